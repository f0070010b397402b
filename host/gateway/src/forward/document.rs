//! What of a request policies judge, and the arguments of a call as its server's adapter wants them:
//! what stands here afterwards is the request that is judged, recorded and sent.

use std::sync::Arc;

use serde_json::value::RawValue;
use toolgate_plugins::{Adapter, Change, Document, Moment};
use toolgate_store::{AuditRow, Deed};
use toolgate_wire::{Outcome, edit};

use super::{Path, Stop};
use crate::reply::{self, ErrorCode};
use crate::{deeds, redact};

impl Path {
    /// What policies judge: the arguments of a call or prompt, the URI of a read or subscription, of a
    /// completion all but the reference.
    pub(super) async fn document(&self, params: &RawValue) -> Result<Document, Stop> {
        match self.deed {
            Deed::Call => self.adapted_arguments(params).await,
            Deed::Prompt => self.object(params, "/arguments", Some("{}")),
            Deed::Complete => {
                self.object(params, "/argument", None)?;
                edit::drop_all(params.get(), &["/ref"])
                    .map(Document::new)
                    .map_err(|error| self.refuse(ErrorCode::Internal, &error.to_string()))
            }
            Deed::Read | Deed::Subscribe => {
                Ok(Document::new(format!(r#"{{"uri":{}}}"#, edit::quote(&self.handle.subject))))
            }
        }
    }

    fn object(&self, params: &RawValue, pointer: &str, absent: Option<&str>) -> Result<Document, Stop> {
        let given = edit::get(params.get(), pointer).filter(|given| *given != "null").or(absent);
        match given {
            Some(given) if given.starts_with('{') => Ok(Document::new(given)),
            _ => {
                let text = format!(
                    "{} needs params.{}, a JSON object",
                    deeds::method(self.deed),
                    pointer.trim_start_matches('/')
                );
                Err(Stop(Outcome::Error(reply::invalid_params(text))))
            }
        }
    }

    /// Step 4: from here on the adapted document is the call. A refusal of the adapter's is audited
    /// like one of a policy's.
    async fn adapted_arguments(&self, params: &RawValue) -> Result<Document, Stop> {
        let given = edit::get(params.get(), "/arguments").unwrap_or("{}");
        // PR-09: a client that sends no arguments means no arguments, not null.
        let given = if given == "null" { "{}" } else { given };
        if !given.starts_with('{') {
            return Err(Stop(Outcome::Error(reply::invalid_params("arguments must be a JSON object"))));
        }
        match self.ask_adapter(Document::new(given)) {
            Ok(arguments) => Ok(arguments),
            Err(reason) => {
                let by = self.handle.server.adapter.as_ref().map(|used| used.plugin.as_str());
                if let Ok(Some(adapter)) = self.gateway.adapter_of(&self.handle.server)
                    && adapter.is_put_aside()
                {
                    self.gateway.note_aside(adapter.name());
                }
                self.gateway.note_refusal(AuditRow::denied(&self.call, "adapter", by, &reason)).await;
                Err(self.refuse(ErrorCode::Adapter, &reason))
            }
        }
    }

    /// The arguments after the adapter, or why it refuses them.
    fn ask_adapter(&self, document: Document) -> Result<Document, String> {
        self.record(Moment::Arguments, &document);
        let adapter = self.gateway.adapter_of(&self.handle.server).map_err(|error| error.to_string())?;
        let Some(adapter) = adapter else { return Ok(document) };
        let facts = self.facts(Some(document.clone()));
        match adapter.arguments(&facts).map_err(|fault| fault.to_string())? {
            Change::Unchanged => Ok(document),
            Change::Fail(text) => Err(text),
            change => match redact::changed(document.text(), &change).map_err(|error| error.to_string())? {
                Some(text) if text.trim_start().starts_with('{') => Ok(Document::new(text)),
                _ => Err("the adapter's arguments are no JSON object".to_owned()),
            },
        }
    }

    pub(super) fn adapter(&self) -> Result<Option<Arc<Adapter>>, Stop> {
        self.gateway
            .adapter_of(&self.handle.server)
            .map_err(|error| self.refuse(ErrorCode::Adapter, &error.to_string()))
    }
}

//! What a server answered, on its way back: adapter, result policies, redaction, audit.
//!
//! The result is hostile text. What cannot be judged is withheld, and no result passes an adapter
//! or a policy that failed (the tenth step of the path of one call).

use std::cell::OnceCell;

use serde_json::value::RawValue;
use toolgate_plugins::{Change, Document, Hook, Moment};
use toolgate_store::{AuditRow, Deed};
use toolgate_wire::envelope::{self, ResultKind};
use toolgate_wire::{Outcome, edit};

use super::{Path, Stop};
use crate::decide::{self, Ruling};
use crate::reply::{self, ErrorCode, ErrorDetails};
use crate::{catalog, redact, rewrite};

impl Path {
    /// Step 10: adapter, result policies, audit. A server's own error passes as it is.
    pub(crate) async fn received(&self, outcome: Outcome) -> Outcome {
        let Outcome::Result(result) = outcome else {
            self.note(AuditRow::completed(&self.call, true));
            return outcome;
        };
        if let Some(fault) = fault_of(&result) {
            self.note(AuditRow::completed(&self.call, true));
            let text = format!("server '{}' {fault}; the call may have run", self.handle.server.name);
            return self.refuse(ErrorCode::BadServer, &text).0;
        }
        let is_error = edit::get(result.get(), "/isError") == Some("true");
        match self.judged_result(&result).await {
            Ok(changed) => {
                self.note(AuditRow::completed(&self.call, is_error));
                Outcome::Result(self.with_known_uris(changed.unwrap_or(result)))
            }
            Err(Stop(refusal)) => {
                self.note(AuditRow::completed(&self.call, true));
                refusal
            }
        }
    }

    async fn judged_result(&self, result: &RawValue) -> Result<Option<Box<RawValue>>, Stop> {
        let adapter = if self.deed == Deed::Call { self.adapter()? } else { None };
        let in_force = self.gateway.plugins();
        let plugins = &in_force.plugins;
        let is_judged = adapter.is_some() || plugins.policies().iter().any(|policy| policy.has(Hook::Result));
        if !is_judged && !self.gateway.recorder.is_on() {
            return Ok(None);
        }
        let mut document = Document::new(result.get());
        if self.deed == Deed::Call {
            self.record(Moment::Content, &document);
        }
        let mut changed = false;
        if let Some(adapter) = adapter {
            let change = adapter
                .content(&self.facts(Some(document.clone())))
                .map_err(|fault| self.refuse(ErrorCode::Adapter, &fault.to_string()))?;
            if let Change::Fail(text) = &change {
                return Err(self.refuse(ErrorCode::Adapter, text));
            }
            let text = redact::changed(document.text(), &change)
                .map_err(|error| self.refuse(ErrorCode::Adapter, &error.to_string()))?;
            if let Some(text) = text {
                document = Document::new(text);
                changed = true;
            }
        }
        self.record(Moment::Policy(Hook::Result), &document);
        let binding = self.gateway.binding(&self.caller, &self.handle.server.name);
        let facts = self.facts(Some(document.clone()));
        let verdict = decide::decide(plugins, &binding, Hook::Result, &facts);
        if verdict.ruling != Ruling::Allow {
            self.gateway.note_denial(&self.call, &verdict).await;
            let text = format!("The result was withheld by Toolgate: {}", verdict.reason);
            let details = ErrorDetails { by: verdict.by.clone(), ..self.details() };
            return Err(Stop(reply::refuse(self.deed, ErrorCode::ResultDenied, &text, &details)));
        }
        if !verdict.redactions.is_empty() {
            self.gateway.note_hidden_result(&self.call, &verdict, &document);
            let text = redact::redact(document.text(), &verdict.redactions)
                .map_err(|error| self.refuse(ErrorCode::ResultDenied, &error.to_string()))?;
            document = Document::new(text);
            changed = true;
        }
        if !changed {
            return Ok(None);
        }
        RawValue::from_string(document.text().to_owned())
            .map(Some)
            .map_err(|error| self.refuse(ErrorCode::Internal, &error.to_string()))
    }

    /// The URIs of a result as this client knows them.
    fn with_known_uris(&self, result: Box<RawValue>) -> Box<RawValue> {
        let original = self.handle.subject.as_str();
        let asked =
            (self.deed == Deed::Read && original != self.used).then_some((original, self.used.as_str()));
        if !result.get().contains("\"uri\"") {
            return result;
        }
        let surfaces = OnceCell::new();
        let known = |uri: &str| {
            if let Some((_, used)) = asked.filter(|(original, _)| *original == uri) {
                return Some(used.to_owned());
            }
            let surfaces = surfaces.get_or_init(|| self.gateway.known_surfaces(&self.caller));
            catalog::shown_uri(surfaces, &self.handle.server.name, uri)
        };
        let rewritten = rewrite::result_uris(result.get(), &known);
        rewritten.and_then(|text| edit::raw(text).ok()).unwrap_or(result)
    }
}

/// What is wrong with a result, if it is one that a client must not get.
fn fault_of(result: &RawValue) -> Option<&'static str> {
    if !result.get().starts_with('{') {
        return Some("answered with something that is no result");
    }
    match envelope::result_kind(result.get()) {
        ResultKind::Complete => None,
        ResultKind::InputRequired => Some("asks a question where the protocol has none"),
        ResultKind::Other(_) => Some("answered with a kind of result that Toolgate does not know"),
    }
}

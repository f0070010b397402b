//! What a server answered, on its way back: adapter, result policies, redaction, audit.
//!
//! The result is hostile text. What cannot be judged is withheld, and no result passes an adapter
//! or a policy that failed (the tenth step of the path of one call).
//!
//! Threat: what a policy takes out can bring something to life. `resultType` with a hidden character in it is
//! no member that the protocol knows until the character is gone. So what a client must not get is looked for
//! in what it gets, after every change ([`own`]).

mod own;
mod pages;

use std::cell::OnceCell;

use serde_json::value::RawValue;
use toolgate_plugins::{Change, Document, Hook, Moment};
use toolgate_store::{AuditRow, Deed};
use toolgate_wire::envelope::{self, ResultKind};
use toolgate_wire::{ErrorObject, Outcome, edit};

use super::{Path, Stop};
use crate::decide::{self, Ruling, Verdict};
use crate::reply::{self, ErrorCode, ErrorDetails};
use crate::{catalog, redact, rewrite};

impl Path {
    /// Step 10: adapter, result policies, audit.
    pub(crate) async fn received(&self, outcome: Outcome) -> Outcome {
        let result = match outcome {
            Outcome::Result(result) => result,
            Outcome::Error(error) => return self.received_error(error).await,
        };
        match self.passed_result(result).await {
            Ok(result) => {
                let is_error = edit::get(result.get(), "/isError") == Some("true");
                self.note(AuditRow::completed(&self.call, is_error));
                Outcome::Result(result)
            }
            Err(Stop(refusal)) => {
                self.note(AuditRow::completed(&self.call, true));
                refusal
            }
        }
    }

    /// A result as its client gets it, if it gets it.
    async fn passed_result(&self, result: Box<RawValue>) -> Result<Box<RawValue>, Stop> {
        self.check_kind(&result)?;
        let result = match self.judged_result(&result).await? {
            Some(changed) => {
                self.check_kind(&changed)?;
                changed
            }
            None => result,
        };
        Ok(self.with_known_uris(own::taken_out_of_result(result)))
    }

    /// A server's result is a complete one; whatever else there is, Toolgate makes itself.
    fn check_kind(&self, result: &RawValue) -> Result<(), Stop> {
        let Some(fault) = fault_of(result) else { return Ok(()) };
        let text = format!("server '{}' {fault}; the call may have run", self.handle.server.name);
        Err(self.refuse(ErrorCode::BadServer, &text))
    }

    /// A server's own error is its words as much as a result is, and a model reads both. It keeps its code
    /// and passes as it is, unless a result policy has something to say about it.
    async fn received_error(&self, error: ErrorObject) -> Outcome {
        let passed = match self.judged_error(error).await {
            Ok(error) => self.with_pages(own::taken_out_of_error(error)).await,
            Err(stop) => Err(stop),
        };
        self.note(AuditRow::completed(&self.call, true));
        match passed {
            Ok(error) => Outcome::Error(error),
            Err(Stop(refusal)) => refusal,
        }
    }

    /// Policies get it as the document `{"error": …}`, which tells it from a result.
    async fn judged_error(&self, error: ErrorObject) -> Result<ErrorObject, Stop> {
        if !self.is_judged() {
            return Ok(error);
        }
        let document = Document::new(format!(r#"{{"error":{}}}"#, error.to_json()));
        self.record(Moment::Policy(Hook::Result), &document);
        let Some(changed) = self.passed(document).await? else { return Ok(error) };
        let changed = edit::get(changed.text(), "/error").and_then(ErrorObject::from_json);
        // What a policy left is no error any more, so the error it was may not pass either.
        changed.ok_or_else(|| self.refuse(ErrorCode::ResultDenied, "a policy left nothing of the error"))
    }

    /// Whether anybody judges what comes back.
    pub(super) fn is_judged(&self) -> bool {
        let in_force = self.gateway.plugins();
        in_force.plugins.policies().iter().any(|policy| policy.has(Hook::Result))
    }

    /// The verdict of the hook result about what a server said.
    pub(super) fn result_verdict(&self, document: &Document) -> Verdict {
        let binding = self.gateway.binding(&self.caller, &self.handle.server.name);
        let facts = self.facts(Some(document.clone()));
        let verdict = decide::decide(&self.gateway.plugins().plugins, &binding, Hook::Result, &facts);
        self.gateway.note_monitored(&self.call, Hook::Result, &verdict);
        verdict
    }

    /// What the result policies let pass; `None` where they change nothing.
    async fn passed(&self, document: Document) -> Result<Option<Document>, Stop> {
        let verdict = self.result_verdict(&document);
        // Whatever becomes of it: what was hidden in it is in the log.
        let _ = self.gateway.note_hidden_result(&self.call, &document);
        if verdict.ruling != Ruling::Allow {
            self.gateway.note_denial(&self.call, &verdict).await;
            let text = format!("The result was withheld by Toolgate: {}", verdict.reason);
            let details = ErrorDetails { by: verdict.by.clone(), ..self.details() };
            return Err(Stop(reply::refuse(self.deed, ErrorCode::ResultDenied, &text, &details)));
        }
        if verdict.redactions.is_empty() {
            return Ok(None);
        }
        redact::redact(document.text(), &verdict.redactions)
            .map(|text| Some(Document::new(text)))
            .map_err(|error| self.refuse(ErrorCode::ResultDenied, &error.to_string()))
    }

    async fn judged_result(&self, result: &RawValue) -> Result<Option<Box<RawValue>>, Stop> {
        let adapter = if self.deed == Deed::Call { self.adapter()? } else { None };
        if adapter.is_none() && !self.is_judged() && !self.gateway.recorder.is_on() {
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
        if let Some(passed) = self.passed(document.clone()).await? {
            document = passed;
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

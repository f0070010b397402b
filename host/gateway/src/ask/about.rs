//! What an ask is about, as it is bound, recorded and refused.

use toolgate_plugins::Document;
use toolgate_signing::canonical_json;
use toolgate_store::{Ask, AskAbout, StoreError};
use toolgate_wire::Outcome;

use super::{Question, show};
use crate::reply::{self, ErrorCode, ErrorDetails};
use crate::{beside, deeds};

/// All of a call that a person approves, in canonical JSON: what is bound is what is shown.
pub(super) struct Whole {
    /// The arguments, after every adapter.
    pub(super) arguments: String,
    /// What goes beside them; empty for nothing.
    pub(super) beside: String,
}

impl Question<'_> {
    /// All of the call, as it is bound and shown.
    pub(super) fn whole(&self) -> Result<Whole, Outcome> {
        let arguments = self.facts.document.as_ref().map_or("{}", Document::text);
        let arguments = beside::bound(self.call.deed, arguments)
            .map_err(|error| error.to_string())
            .and_then(|bound| canonical_json(&bound).map_err(|error| error.to_string()));
        match arguments {
            Ok(arguments) => Ok(Whole { arguments, beside: self.beside.clone() }),
            Err(error) => {
                let text = format!("the arguments cannot be asked about: {error}");
                Err(self.refuse(ErrorCode::Denied, &text, None))
            }
        }
    }

    /// What is recorded for a person; the store cuts what is long and keeps the whole beside it.
    pub(super) fn about(&self, whole: &Whole) -> AskAbout {
        AskAbout {
            persona: self.caller.persona.clone(),
            server: self.handle.server.name.clone(),
            tool: self.handle.subject.clone(),
            reason: self.verdict.reason.clone(),
            arguments: whole.arguments.clone(),
            arguments_bytes: whole.arguments.len(),
            beside: whole.beside.clone(),
            beside_bytes: whole.beside.len(),
            action: deeds::action(self.call.deed).to_owned(),
            session: self.caller.session.clone(),
            host_escape: self.handle.server.trust.host_escape,
            run_id: self.caller.run_id.clone(),
            thread_id: self.caller.thread_id.clone(),
        }
    }

    pub(super) fn parked(&self, ask: &Ask) -> Outcome {
        let text = show::for_model(self.caller, ask, self.facts, self.verdict);
        self.refuse(ErrorCode::Asked, &text, Some(ask))
    }

    pub(super) fn rejected(&self, ask: &Ask) -> Outcome {
        let text = match ask.surface.as_deref() {
            Some("freeze") => format!(
                "Ask {} was taken back: what it is about is frozen. Nothing was sent to server '{}'.",
                ask.id, self.handle.server.name
            ),
            _ => format!(
                "A person denied this (ask {}). Nothing was sent to server '{}'. Do not repeat it \
                 unless your user tells you to.",
                ask.id, self.handle.server.name
            ),
        };
        self.refuse(ErrorCode::Denied, &text, Some(ask))
    }

    pub(super) fn expired(&self, ask: &Ask) -> Outcome {
        let text = format!(
            "Nobody answered ask {} in time, so the call was rejected. Nothing was sent to server '{}'.",
            ask.id, self.handle.server.name
        );
        self.refuse(ErrorCode::Unanswered, &text, Some(ask))
    }

    pub(super) fn unreadable(&self, error: &StoreError) -> Outcome {
        tracing::error!(%error, "asks cannot be read or written, so the request is refused");
        let text = "the store of approvals cannot be used, so nothing was sent. \
                    The operator finds the reason in Toolgate's log.";
        self.refuse(ErrorCode::Internal, text, None)
    }

    /// There is no ask whose row could not be written: what nobody can read of later is granted to nobody.
    pub(super) fn unrecorded(&self, error: &StoreError) -> Outcome {
        tracing::error!(%error, "an ask has no row in the audit log, so its call is refused and there is no ask");
        let text = "the audit log cannot be written, so nobody was asked and nothing was sent. \
                    The operator finds the reason in Toolgate's log.";
        self.refuse(ErrorCode::Audit, text, None)
    }

    pub(super) fn refuse(&self, code: ErrorCode, text: &str, ask: Option<&Ask>) -> Outcome {
        let details = ErrorDetails {
            server: Some(self.handle.server.name.clone()),
            ask: ask.map(|ask| ask.id.clone()),
            by: ask.and(self.verdict.by.clone()),
        };
        reply::refuse(self.call.deed, code, text, &details)
    }
}

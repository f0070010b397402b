//! Asks: questions to a person, stored before the caller hears of them.
//!
//! A grant is spent by exactly the call it was given for: same caller, server, definition, arguments
//! and set of plugins, once (design.md 3.6). What the ask shows is escaped by whoever shows it.

use toolgate_plugins::{Document, Facts};
use toolgate_signing::{Digest, canonical_json};
use toolgate_store::{AskAbout, AskBinding, AuditRow, StoreError};
use toolgate_wire::Outcome;

use crate::Gateway;
use crate::caller::Caller;
use crate::catalog::ToolHandle;
use crate::decide::Verdict;
use crate::reply::{self, ErrorCode, ErrorDetails};

impl Gateway {
    /// Spends a grant for exactly this call, or records the ask and gives the reply that names it.
    pub(crate) async fn spend_or_ask(
        &self,
        caller: &Caller,
        handle: &ToolHandle,
        facts: &Facts,
        verdict: &Verdict,
        call: &toolgate_store::CallFacts,
    ) -> Result<(), Outcome> {
        let arguments = facts.document.as_ref().map_or("{}", Document::text);
        let details = ErrorDetails { server: Some(handle.server.name.clone()), ..ErrorDetails::default() };
        let binding = self.ask_binding(caller, handle, arguments).map_err(|reason| {
            reply::refusal(
                ErrorCode::Denied,
                &format!("the arguments cannot be asked about: {reason}"),
                &details,
            )
        })?;
        match self.store.spend(&binding) {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => {}
            Err(error) => return Err(unreadable(&error, &details)),
        }
        let about = AskAbout {
            persona: caller.persona.clone(),
            server: handle.server.name.clone(),
            tool: handle.tool.name.clone(),
            reason: verdict.reason.clone(),
            arguments: arguments.to_owned(),
        };
        let max = toolgate_store::DEFAULT_MAX_PENDING_ASKS;
        match self.store.record_ask(&binding, &about, self.config.approvals.timeout, max) {
            Ok(recorded) => {
                let ask = &recorded.ask;
                if recorded.is_new {
                    let expires = u64::try_from(ask.expires_at_ms).unwrap_or(0);
                    let row = AuditRow::asked(call, &ask.id, &verdict.reason, expires);
                    self.note_refusal(row).await;
                }
                let text = question(caller, handle, facts, verdict, &ask.id);
                let details = ErrorDetails { ask: Some(ask.id.clone()), by: verdict.by.clone(), ..details };
                Err(reply::refusal(ErrorCode::Asked, &text, &details))
            }
            Err(error @ StoreError::TooManyAsks { .. }) => {
                Err(reply::refusal(ErrorCode::TooManyAsks, &error.to_string(), &details))
            }
            Err(error) => Err(unreadable(&error, &details)),
        }
    }

    fn ask_binding(
        &self,
        caller: &Caller,
        handle: &ToolHandle,
        arguments: &str,
    ) -> Result<AskBinding, String> {
        let canonical = canonical_json(arguments).map_err(|error| error.to_string())?;
        Ok(AskBinding {
            caller: caller.binding(),
            server_identity: handle.server.identity(),
            definition: handle.tool.digest,
            arguments: Digest::of(canonical.as_bytes()),
            plugin_set: self.plugins().plugins.set_digest(),
        })
    }
}

fn unreadable(error: &StoreError, details: &ErrorDetails) -> Outcome {
    tracing::error!(%error, "asks cannot be read or written, so the call is refused");
    let text = "the store of approvals cannot be used, so the call was not sent. \
                The operator finds the reason in Toolgate's log.";
    reply::refusal(ErrorCode::Internal, text, details)
}

/// What a model, and the person behind it, need to know: what happened and both ways to grant.
fn question(caller: &Caller, handle: &ToolHandle, facts: &Facts, verdict: &Verdict, ask: &str) -> String {
    let (server, tool) = (&handle.server.name, &handle.tool.name);
    let label = format!("mcp.call:{server}/{tool}");
    let capabilities = format!("personas.{}.capabilities", caller.persona);
    let standing = match (&facts.matched_approval, facts.has_capabilities) {
        (Some(matched), _) => format!(
            "take the label \"{matched}\" out of {capabilities}.require_approval and write \"{label}\" under \
             {capabilities}.allow in toolgate.yaml"
        ),
        (None, true) => format!(
            "add the label \"{label}\" (or \"mcp.call:{server}\") to {capabilities}.allow in toolgate.yaml"
        ),
        (None, false) => format!(
            "add the label \"{label}\" (or \"mcp.call:{server}\") under {capabilities}.allow in toolgate.yaml; \
             with a capabilities block, what no label covers is denied"
        ),
    };
    format!(
        "A person has to approve this call first: {reason}\n\
         Ask {ask} is open. Nothing was sent to server '{server}'.\n\
         The operator can grant it in one of two ways:\n\
         1. once, for exactly these arguments: toolgate approvals grant {ask}\n\
         2. from now on: {standing}\n\
         Then repeat the same call.",
        reason = verdict.reason,
    )
}

//! Why a call would pass or not: every policy's decision, reason and digest, and the label that
//! matched. It asks the one decision point and changes nothing.

use std::sync::Arc;

use serde::Serialize;
use toolgate_plugins::{Document, Facts, Hook};
use toolgate_signing::DefinitionKind;

use crate::Gateway;
use crate::caller::Caller;
use crate::decide::{self, Verdict};
use crate::facts;
use crate::find::{FindError, Target};
use crate::{monitor, views};

/// What would happen to one call.
#[derive(Debug, Serialize)]
pub struct Explanation {
    /// The server.
    pub server: String,
    /// The server's own name of the tool.
    pub tool: String,
    /// The name a client sees.
    pub exposed: String,
    /// The persona it was asked for.
    pub persona: String,
    /// The label that names this call.
    pub label: String,
    /// The persona's label in `capabilities.allow` that covers it.
    pub matched_allow: Option<String>,
    /// The persona's label in `capabilities.require_approval` that covers it.
    pub matched_approval: Option<String>,
    /// What approved it beforehand, so that a policy may allow it without an ask: where that stands.
    pub approved_by: Option<String>,
    /// How the definition compares with its pin.
    pub pin: String,
    /// Digest of the definition.
    pub definition: String,
    /// `allow`, `ask` or `deny`, of the hooks list and call.
    pub list: &'static str,
    /// The ruling for a call.
    pub call: &'static str,
    /// The reason of the ruling for a call.
    pub reason: String,
    /// Every policy that was asked about the call.
    pub policies: Vec<PolicyLine>,
    /// Every policy that was asked whether the tool is listed.
    pub listing: Vec<PolicyLine>,
}

/// One policy's word.
#[derive(Debug, Serialize)]
pub struct PolicyLine {
    /// The plugin.
    pub plugin: String,
    /// Digest of its component.
    pub digest: String,
    /// Asked only because all others abstained.
    pub fallback: bool,
    /// `enforce`, or `monitor`: what it says is recorded and decides nothing.
    pub mode: &'static str,
    /// `abstain`, `allow`, `ask`, `deny` or `redact`.
    pub decision: &'static str,
    /// Its reason.
    pub reason: String,
}

impl Gateway {
    /// Explains what would happen to a call with these arguments.
    pub async fn explain(
        self: &Arc<Self>,
        caller: &Caller,
        target: &Target,
        arguments: &str,
    ) -> Result<Explanation, String> {
        let handle = self.find(caller, DefinitionKind::Tool, target).await.map_err(|error| match error {
            FindError::Unknown(name) => format!(
                "persona '{}' has no tool {}; see `toolgate mcp tools`",
                caller.persona,
                toolgate_base::display::escape(&name)
            ),
            FindError::Ambiguous { uri, .. } => format!("several servers have {uri}"),
            FindError::AmbiguousApp { name, .. } => {
                format!("several servers have a tool {name} for their views")
            }
            FindError::Open { error, .. } => error.to_string(),
        })?;
        let about = |document: &str| -> Arc<Facts> {
            let document = Some(Document::new(document));
            let about = facts::About { action: "call", subject: &handle.subject, document };
            Arc::new(facts::of_item(self, caller, &handle.server, &handle.surface, &handle.item, about))
        };
        let binding = self.binding(caller, &handle.server.name);
        let facts = about(arguments);
        let in_force = self.plugins();
        let call = views::judge(&in_force.views, &in_force.plugins, &binding, Hook::Call, &facts);
        let listed = about(handle.item.definition.text());
        let list = decide::decide_list(&in_force.plugins, &binding, &[listed]);
        Ok(Explanation {
            server: handle.server.name.clone(),
            tool: handle.item.name.clone(),
            exposed: handle.item.exposed.clone(),
            persona: caller.persona.clone(),
            label: facts.label.clone(),
            matched_allow: facts.matched_allow.clone(),
            matched_approval: facts.matched_approval.clone(),
            approved_by: facts::approved_by(self, caller, &handle.server, &handle.item, &facts),
            pin: crate::status::pin_word(handle.item.pin).to_owned(),
            definition: handle.item.digest.to_string(),
            list: list.first().map_or("deny", |verdict| verdict.ruling.as_str()),
            call: call.ruling.as_str(),
            reason: call.reason.clone(),
            policies: lines(&call),
            listing: list.first().map(lines).unwrap_or_default(),
        })
    }
}

fn lines(verdict: &Verdict) -> Vec<PolicyLine> {
    verdict
        .decisions
        .iter()
        .map(|said| {
            let (decision, reason) = monitor::words(&said.decision);
            PolicyLine {
                plugin: said.plugin.clone(),
                digest: said.digest.to_string(),
                fallback: said.fallback,
                mode: if said.monitored { "monitor" } else { "enforce" },
                decision,
                reason: reason.to_owned(),
            }
        })
        .collect()
}

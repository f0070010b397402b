//! Decides by the capability labels of a persona (CAP-001..008, CAP-022, CAP-023, APR-001).
//!
//! A persona without a `capabilities` block is not this policy's business: it abstains. With one,
//! only what a label covers passes: `require_approval` asks, `allow` lets pass, and what neither
//! covers is denied and not even listed. Where both cover a request the person is asked, because
//! the narrower promise is the one that the operator would miss.
//!
//! Labels are matched by the host, which knows the grammar; a server's instructions are text
//! beside its tools and have no label that anyone writes, so they are left to the other policies.

use toolgate_sdk::{
    CallPolicy, CompletePolicy, Decision, LabelList, ListPolicy, PromptPolicy, ReadPolicy, Request,
    SubscribePolicy, SurfaceKind,
};

/// The policy `toolgate/capabilities`.
pub struct Capabilities;

impl CallPolicy for Capabilities {
    fn call(request: &Request) -> Decision {
        judge(request)
    }
}

impl ReadPolicy for Capabilities {
    fn read(request: &Request) -> Decision {
        judge(request)
    }
}

impl PromptPolicy for Capabilities {
    fn prompt(request: &Request) -> Decision {
        judge(request)
    }
}

impl SubscribePolicy for Capabilities {
    fn subscribe(request: &Request) -> Decision {
        judge(request)
    }
}

impl CompletePolicy for Capabilities {
    fn complete(request: &Request) -> Decision {
        judge(request)
    }
}

impl ListPolicy for Capabilities {
    fn list(request: &Request) -> Decision {
        if request.kind() == SurfaceKind::Instructions {
            return Decision::Abstain;
        }
        judge(request)
    }
}

/// Collects what decides. The texts of a denial are asked for only when there is one, since each
/// of them is a call into the host.
fn judge(request: &Request) -> Decision {
    if !request.has_capabilities() {
        return Decision::Abstain;
    }
    decide(request.matched_label(LabelList::RequireApproval), request.matched_label(LabelList::Allow), || {
        denial(&request.persona(), &request.server(), &request.label())
    })
}

/// The rule itself, for a persona that has a `capabilities` block.
fn decide(
    require_approval: Option<String>,
    allow: Option<String>,
    denial: impl FnOnce() -> String,
) -> Decision {
    match (require_approval, allow) {
        (Some(label), _) => Decision::Ask(format!(
            "the persona's label `{label}` in capabilities.require_approval covers this"
        )),
        (None, Some(label)) => {
            Decision::Allow(format!("the persona's label `{label}` in capabilities.allow covers this"))
        }
        (None, None) => Decision::Deny(denial()),
    }
}

/// Names the server and the missing label, and both ways to grant it (TRB-010, APR-012).
fn denial(persona: &str, server: &str, label: &str) -> String {
    format!(
        "persona `{persona}` has no capability label that covers `{label}` of server `{server}`; \
         the operator can add `{label}` to personas.{persona}.capabilities.allow to let it pass, \
         or to personas.{persona}.capabilities.require_approval to be asked each time"
    )
}

toolgate_sdk::policy!(Capabilities: call, list, read, prompt, subscribe, complete);

#[cfg(test)]
mod tests;

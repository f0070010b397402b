//! What the operator decided beforehand, under all policies: `mcp deny` and `mcp ask`, the same two
//! words of `permissions.mcp`, and what was approved of a server.
//!
//! Contract: a denial is a denial before any policy is asked; so is a definition that is not the approved
//! one, because no configuration turns the comparison with pins off, a set of policies included. Where the operator wants to be asked no
//! policy's allow is more than an ask. Nothing here allows: what the operator allowed beforehand is a fact
//! for the policies (`facts`). Labels and lists are theirs too, since they say what a persona has and not
//! what was taken from it.
//!
//! Threat: a policy that nobody read, or whose author knows nothing of this host, says `allow` to
//! everything, with the bundle switched off. What the operator took away stays taken.

use toolgate_base::display::is_command_word;
use toolgate_config::Permit;
use toolgate_labels::Label;
use toolgate_plugins::{Facts, Hook, PinState, SurfaceKind};
use toolgate_store::Standing;

use super::{Binding, Ruling, Verdict};
use crate::watch::Decided;

/// The denial that needs no policy. A connection is opened for everything that a server has, and a result
/// belongs to a call that was let pass, so neither is denied here.
pub(super) fn denied(binding: &Binding, hook: Hook, facts: &Facts) -> Option<Verdict> {
    if matches!(hook, Hook::Install | Hook::Connect | Hook::Result) {
        return None;
    }
    if let Some(decided) = decided(binding, facts).filter(|decided| decided.decision == Standing::Deny) {
        let what = decided.pattern.strip_prefix("mcp.call:").unwrap_or(&decided.pattern);
        let whose = match facts.persona.as_str() {
            toolgate_config::DEFAULT_PERSONA => String::new(),
            persona => format!(" --persona {persona}"),
        };
        // What the operator typed may be a name that a server chose, and a model with a shell reads this.
        let how = if is_command_word(what) {
            format!("`toolgate mcp ask {what}{whose}` or `toolgate mcp allow {what}{whose}`")
        } else {
            "`toolgate mcp ask` or `toolgate mcp allow`; `toolgate mcp decisions` lists what was decided"
                .to_owned()
        };
        return Some(Verdict::refused(format!(
            "the operator denied `{}` of server '{}' to persona '{}' beforehand. The operator takes that back \
             with {how}.",
            decided.pattern, facts.server, facts.persona
        )));
    }
    (binding.permit == Some(Permit::Deny)).then(|| {
        Verdict::refused(format!(
            "permissions.mcp of toolgate.yaml denies server '{}'. The operator changes it there.",
            facts.server
        ))
    })
}

/// The denial of what is not what was approved (PI-02, PI-05, TRB-004). A server is connected to before its
/// surface is known, and a result belongs to a call whose definition was compared.
pub(super) fn unapproved(hook: Hook, facts: &Facts) -> Option<Verdict> {
    if matches!(hook, Hook::Install | Hook::Connect | Hook::Result) {
        return None;
    }
    let server = &facts.server;
    let (surface, own) = (facts.surface_pin, facts.pin);
    let reason = match (surface, own) {
        (PinState::Unreadable, _) | (_, PinState::Unreadable) => format!(
            "the pins of server '{server}' cannot be read, so nothing of it can be compared. Restore state.db from a \
             copy, or look at the server with `toolgate mcp diff {server}` and accept it with `toolgate mcp pin \
             {server} --accept`"
        ),
        (PinState::Differs | PinState::Unknown, _) => format!(
            "tool set changed on server '{server}': it is not the one that trust.pinned_tool_hash names; refusing to \
             register its tools. Review it with `toolgate mcp diff {server}`, then put the new hash into \
             trust.pinned_tool_hash"
        ),
        (_, PinState::Unknown) => format!(
            "{} is not among the pinned definitions of server '{server}': it is blocked until it is accepted. {}",
            subject(facts),
            review(server)
        ),
        (_, PinState::Differs) => format!(
            "{} of server '{server}' changed after it was pinned: it is blocked until it is accepted. {}",
            subject(facts),
            review(server)
        ),
        (PinState::Unpinned | PinState::Matches, PinState::Unpinned | PinState::Matches) => return None,
    };
    Some(Verdict::refused(reason))
}

/// What a request is about, in words.
fn subject(facts: &Facts) -> String {
    let kind = match facts.kind {
        SurfaceKind::Tool => "tool",
        SurfaceKind::Prompt => "prompt",
        SurfaceKind::Resource => "resource",
        SurfaceKind::Template => "resource template",
        SurfaceKind::Question => return "what asks this".to_owned(),
        SurfaceKind::Instructions | SurfaceKind::Server => return "the text of instructions".to_owned(),
    };
    format!("{kind} '{}'", facts.name)
}

fn review(server: &str) -> String {
    format!(
        "Review it with `toolgate mcp diff {server}`, accept it with `toolgate mcp pin {server} --accept`"
    )
}

/// The verdict, and an ask where it would be an allow and the operator wants to be asked. A list is no
/// use of anything, and a question of a server belongs to a call that was asked about.
pub(super) fn asked(binding: &Binding, hook: Hook, facts: &Facts, verdict: Verdict) -> Verdict {
    let is_use = matches!(hook, Hook::Call | Hook::Read | Hook::Prompt | Hook::Subscribe | Hook::Complete);
    if !is_use || verdict.ruling != Ruling::Allow {
        return verdict;
    }
    let reason = match decided(binding, facts).filter(|decided| decided.decision == Standing::Ask) {
        Some(decided) => {
            format!("the operator wants to be asked about `{}` (`toolgate mcp ask`)", decided.pattern)
        }
        None if binding.permit == Some(Permit::Ask) => {
            format!("permissions.mcp of toolgate.yaml asks about server '{}'", facts.server)
        }
        None => return verdict,
    };
    Verdict { ruling: Ruling::Ask, reason, by: None, ..verdict }
}

/// What stands about this for its persona. A decision about the whole server is one about all of it,
/// whatever its label is; one about a tool is about that label.
fn decided(binding: &Binding, facts: &Facts) -> Option<Decided> {
    let current = binding.current.as_ref().filter(|current| current.has_standing())?;
    let own = facts.label.parse::<Label>().ok();
    let whole = Label::new("mcp", "call", &facts.server).ok();
    let labels: Vec<&Label> = own.iter().chain(&whole).collect();
    current.decided(&facts.persona, &labels, facts.read_only_hint == Some(true))
}

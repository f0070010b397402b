//! Decides by a server's `trust` block and by the pins of its surface (PI-02, PI-05, TRB-004).
//!
//! What differs from its pin, is not among the pins of a pinned server, or cannot be compared
//! because the pin store is unreadable, is denied: an unreadable store is never a first use. What
//! the operator named in `trust.auto_approve_tools` is allowed, and so is the connection to a
//! server whose surface is as pinned, or not pinned. A question of a server's is allowed where the operator
//! wrote `forward` for its kind. About everything else it abstains.
//!
//! It never makes a permanent grant, so `trust.host_escape`, which forbids those, has nothing to
//! forbid here.

use toolgate_sdk::{
    CallPolicy, CompletePolicy, ConnectPolicy, Decision, ElicitPolicy, ListPolicy, PinState, PromptPolicy,
    ReadPolicy, Request, SubscribePolicy, SurfaceKind, words,
};

/// The policy `toolgate/trust`.
pub struct Trust;

impl ConnectPolicy for Trust {
    fn connect(request: &Request) -> Decision {
        match violation(request) {
            Some(reason) => Decision::Deny(reason),
            None => {
                Decision::Allow(format!("the surface of server `{}` differs from no pin", request.server()))
            }
        }
    }
}

impl ListPolicy for Trust {
    fn list(request: &Request) -> Decision {
        judge_tool(request)
    }
}

impl CallPolicy for Trust {
    fn call(request: &Request) -> Decision {
        judge_tool(request)
    }
}

impl ReadPolicy for Trust {
    fn read(request: &Request) -> Decision {
        judge(request)
    }
}

impl PromptPolicy for Trust {
    fn prompt(request: &Request) -> Decision {
        judge(request)
    }
}

impl SubscribePolicy for Trust {
    fn subscribe(request: &Request) -> Decision {
        judge(request)
    }
}

impl CompletePolicy for Trust {
    fn complete(request: &Request) -> Decision {
        judge(request)
    }
}

impl ElicitPolicy for Trust {
    fn elicit(request: &Request) -> Decision {
        match judge(request) {
            Decision::Abstain if request.auto_approved() => Decision::Allow(format!(
                "the operator forwards `{}` of server `{}`",
                request.name(),
                request.server()
            )),
            decision => decision,
        }
    }
}

/// As [`judge`], and what the operator approved beforehand is allowed (APR-019).
fn judge_tool(request: &Request) -> Decision {
    match judge(request) {
        Decision::Abstain if request.auto_approved() => Decision::Allow(format!(
            "the operator named `{}` in trust.auto_approve_tools of server `{}`",
            request.name(),
            request.server()
        )),
        decision => decision,
    }
}

/// Denies what the pins forbid.
fn judge(request: &Request) -> Decision {
    violation(request).map_or(Decision::Abstain, Decision::Deny)
}

/// What the pins say against this request. The texts are asked of the host only when needed.
fn violation(request: &Request) -> Option<String> {
    let surface = request.surface_pin();
    if !fine(surface) {
        // Only for the server as a whole is the digest at hand the one that the pin would need.
        let whole = request.kind() == SurfaceKind::Server;
        let now = if whole { request.digest() } else { None };
        return Some(surface_text(surface, &request.server(), now.as_deref()));
    }
    let pin = request.pin();
    (!fine(pin)).then(|| pin_text(pin, &words::subject(request.kind(), &request.name()), &request.server()))
}

/// Whether a pin raises no objection.
fn fine(pin: PinState) -> bool {
    matches!(pin, PinState::Unpinned | PinState::Matches)
}

/// Why a whole surface is refused; `now` is its digest, for the operator to compare and to pin.
fn surface_text(pin: PinState, server: &str, now: Option<&str>) -> String {
    if pin == PinState::Unreadable {
        return unreadable(server);
    }
    let now = now.map(|digest| format!(" (now {digest})")).unwrap_or_default();
    format!(
        "tool set changed on server `{server}`{now}: it is not the one that \
         trust.pinned_tool_hash names; refusing to register its tools. Review it with \
         `toolgate mcp diff {server}`, then put the new hash into trust.pinned_tool_hash"
    )
}

/// Why one definition is refused.
fn pin_text(pin: PinState, what: &str, server: &str) -> String {
    match pin {
        PinState::Unreadable => unreadable(server),
        PinState::Unknown => format!(
            "{what} is not among the pinned definitions of server `{server}`: it is blocked until \
             it is accepted. Review it with `toolgate mcp diff {server}`, accept it with \
             `toolgate mcp pin {server} --accept`"
        ),
        PinState::Differs | PinState::Unpinned | PinState::Matches => format!(
            "{what} of server `{server}` changed after it was pinned: it is blocked until it is \
             accepted. Review it with `toolgate mcp diff {server}`, accept it with \
             `toolgate mcp pin {server} --accept`"
        ),
    }
}

/// A store that cannot be read is a refusal, not a first use (PI-05).
fn unreadable(server: &str) -> String {
    format!(
        "the pins of server `{server}` cannot be read, so nothing of it can be compared: repair \
         or restore the state store, or accept its surface anew with \
         `toolgate mcp pin {server} --accept`"
    )
}

toolgate_sdk::policy!(Trust: connect, list, call, read, prompt, subscribe, complete, elicit);

#[cfg(test)]
mod tests;

//! The fallback policy: what no other policy has spoken about, a person decides.
//!
//! The host asks it only after persona and server are bound and every other policy has abstained.
//! It never allows and never denies. Everything a server shows is listed, because a tool that can
//! be asked for has to be seen (APR-002). Calls, reads, prompts and subscriptions can be asked for, and a
//! question of a server's to a person goes to that person, who answers it; a completion is asked for at every keystroke, which no person can answer, so that hook is absent,
//! which the host takes as an abstention.

use toolgate_sdk::{
    CallPolicy, Decision, ElicitPolicy, ListPolicy, PromptPolicy, ReadPolicy, Request, SubscribePolicy, words,
};

/// The policy `toolgate/ask`.
pub struct Ask;

impl CallPolicy for Ask {
    fn call(request: &Request) -> Decision {
        Decision::Ask(reason(&Call {
            server: &request.server(),
            tool: &request.name(),
            host_escape: request.host_escape(),
            destructive: request.destructive_hint(),
        }))
    }
}

impl ReadPolicy for Ask {
    fn read(request: &Request) -> Decision {
        of_deed(request, "reading")
    }
}

impl PromptPolicy for Ask {
    fn prompt(request: &Request) -> Decision {
        of_deed(request, "rendering")
    }
}

impl SubscribePolicy for Ask {
    fn subscribe(request: &Request) -> Decision {
        of_deed(request, "subscribing to")
    }
}

impl ElicitPolicy for Ask {
    fn elicit(request: &Request) -> Decision {
        Decision::Ask(format!(
            "server `{}` asks ({}), and no policy decides about it: the person who is asked does",
            request.server(),
            request.name()
        ))
    }
}

/// The question about something that is no call.
fn of_deed(request: &Request, doing: &str) -> Decision {
    Decision::Ask(format!(
        "no policy decides about {doing} {} of server `{}`: a person has to",
        words::subject(request.kind(), &request.name()),
        request.server()
    ))
}

impl ListPolicy for Ask {
    fn list(request: &Request) -> Decision {
        Decision::Ask(format!(
            "no policy decides about {} of server `{}`: it is shown, and using it asks",
            words::subject(request.kind(), &request.name()),
            request.server()
        ))
    }
}

/// What the person who is asked should know.
struct Call<'a> {
    server: &'a str,
    tool: &'a str,
    host_escape: bool,
    destructive: Option<bool>,
}

/// The question, with the two facts that make it more than a formality.
fn reason(call: &Call) -> String {
    let mut text =
        format!("no policy decides about tool `{}` of server `{}`: a person has to", call.tool, call.server);
    if call.host_escape {
        text.push_str("; this server drives the real machine");
    }
    if call.destructive == Some(true) {
        text.push_str("; the server says that this tool may destroy something");
    }
    text
}

toolgate_sdk::policy!(Ask: call, list, read, prompt, subscribe, elicit);

#[cfg(test)]
mod tests;

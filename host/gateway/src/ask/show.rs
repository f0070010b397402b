//! An ask in words: for the model, and for the person who answers.
//!
//! Threat: reason, names and arguments were written by servers and agents. What a person is shown is
//! escaped and cut, so that no terminal sequence, hidden character or forged line can stand in it. What is cut
//! is what an agent would have nobody read: it is said how much that is and where all of it can be read, the
//! end is shown as well as the beginning, and a yes is offered only where the operator wants that. A command or a
//! label is offered only where the name in it is one word that no shell obeys and is the label of just this.

use toolgate_base::display::{is_command_word, is_label_text, show as escape};
use toolgate_config::CutAsks;
use toolgate_plugins::Facts;
use toolgate_signing::Digest;
use toolgate_store::Ask;

use super::about::Whole;
use super::client::Offer;
use crate::caller::Caller;
use crate::decide::Verdict;
use crate::facts::offered_label;

/// Characters of names and reasons that a person is shown.
const MAX_SHOWN: usize = 1_000;
/// Characters of the beginning and of the end of arguments that are too long to be shown.
const ARGUMENTS: [usize; 2] = [3_000, 1_000];
/// The same of what goes beside them.
const BESIDE: [usize; 2] = [700, 300];
/// The action of a tool call.
const CALL: &str = "call";

/// What a model, and the person behind it, need to know: what happened and both ways to grant.
pub(super) fn for_model(caller: &Caller, ask: &Ask, facts: &Facts, verdict: &Verdict) -> String {
    let long = if ask.about.is_cut() {
        format!(
            "It is {} bytes long: all of it is read with toolgate approvals show {}\n",
            ask.about.arguments_bytes.saturating_add(ask.about.beside_bytes),
            ask.id
        )
    } else {
        String::new()
    };
    let once = format!("once, for exactly these arguments: toolgate approvals grant {}", ask.id);
    let ways = match standing(caller, ask, facts) {
        Some(standing) => {
            format!("The operator can grant it in one of two ways:\n1. {once}\n2. from now on: {standing}\n")
        }
        None => format!(
            "The operator can grant it {once}\nNo other way is offered: the name has characters that cannot stand \
             in a label, or that a shell would obey.\n"
        ),
    };
    format!(
        "A person has to approve this {what} first: {reason}\n\
         Ask {ask} is open. Nothing was sent to server '{server}'.\n\
         {ways}{long}Then repeat the same {what}.",
        what = noun(ask),
        reason = verdict.reason,
        ask = ask.id,
        server = ask.about.server,
    )
}

/// How the operator grants this and no more from now on. Both the command and the label hold a name that a server
/// chose and that a model with a shell reads, so there is none where the name says more than itself.
fn standing(caller: &Caller, ask: &Ask, facts: &Facts) -> Option<String> {
    let server = &ask.about.server;
    let label = offered_label(facts)?;
    let capabilities = format!("personas.{}.capabilities", caller.persona);
    let written = format!("the label \"{label}\" (or \"mcp.call:{server}\")");
    Some(match (&facts.matched_approval, facts.has_capabilities) {
        (Some(matched), _) => format!(
            "take {} out of {capabilities}.require_approval and write \"{label}\" under {capabilities}.allow in \
             toolgate.yaml",
            // The operator wrote it, with a wildcard or without; where it is a tool's name, a server chose that.
            if is_label_text(matched.strip_suffix('*').unwrap_or(matched)) {
                format!("the label \"{matched}\"")
            } else {
                "the label that covers it".to_owned()
            },
        ),
        (None, true) => format!("add {written} to {capabilities}.allow in toolgate.yaml"),
        (None, false) => {
            // A standing decision names a tool or a whole server.
            let allowed =
                if ask.about.action == CALL { label.strip_prefix("mcp.call:") } else { Some(&**server) };
            let command =
                allowed.filter(|allowed| is_command_word(allowed)).map_or_else(String::new, |allowed| {
                    format!("toolgate mcp allow {allowed} --persona {}, or ", caller.persona)
                });
            format!(
                "{command}{written} under {capabilities}.allow in toolgate.yaml; with a capabilities block, what no \
                 label covers is denied"
            )
        }
    })
}

/// An ask as a client shows it.
pub(super) struct Card {
    /// What is read.
    pub(super) message: String,
    /// What can be answered.
    pub(super) offer: Offer,
}

/// What the person at the client is shown. It says who asks, because a server's own questions come the
/// same way.
pub(super) fn for_person(ask: &Ask, whole: &Whole, cut: CutAsks) -> Card {
    let about = &ask.about;
    let arguments = Shown::of(&whole.arguments, ARGUMENTS);
    let beside = Shown::of(&whole.beside, BESIDE);
    let beside_line = match whole.beside.as_str() {
        "" => String::new(),
        _ => format!("Sent beside them: {}\n", beside.text),
    };
    let is_whole = arguments.is_whole && beside.is_whole;
    let offer = if is_whole || cut == CutAsks::Ask { Offer::YesOrNo } else { Offer::NoOrLater };
    let rest = match (is_whole, offer) {
        (true, _) => String::new(),
        (false, Offer::YesOrNo) => {
            format!("You do not see all of it here. Read it with: toolgate approvals show {}\n", ask.id)
        }
        (false, Offer::NoOrLater) => format!(
            "You do not see all of it here, so it cannot be allowed here. Read it with: toolgate approvals \
             show {id}\nand allow it with: toolgate approvals grant {id}\n",
            id = ask.id
        ),
    };
    let message = format!(
        "Toolgate asks (this is not the server): may the agent {verb} {tool} of server {server}?\n\
         As: {persona}\n\
         Why you are asked: {reason}\n\
         Arguments: {arguments}\n\
         {beside_line}{rest}\
         Your answer counts for this one {what} ({id}).",
        verb = verb(ask),
        what = noun(ask),
        tool = shown(&about.tool),
        server = shown(&about.server),
        persona = shown(&about.persona),
        reason = shown(&about.reason),
        arguments = arguments.text,
        id = ask.id,
    );
    Card { message, offer }
}

/// A document for a person's eyes: all of it, or its beginning and its end with what is missing between them.
struct Shown {
    text: String,
    is_whole: bool,
}

impl Shown {
    fn of(document: &str, [first, last]: [usize; 2]) -> Self {
        let text = escape(document);
        let length = text.chars().count();
        if length <= first + last {
            return Self { text, is_whole: true };
        }
        let head: String = text.chars().take(first).collect();
        let tail: String = text.chars().skip(length - last).collect();
        let text = format!(
            "CUT, {} bytes, {}\n{head}\n[... {} characters are not shown here ...]\n{tail}",
            document.len(),
            Digest::of(document.as_bytes()),
            length - first - last,
        );
        Self { text, is_whole: false }
    }
}

/// What is done, as `call`.
fn noun(ask: &Ask) -> &'static str {
    match ask.about.action.as_str() {
        CALL => "call",
        "read" => "read",
        "subscribe" => "subscription",
        "complete" => "completion",
        _ => "request",
    }
}

fn verb(ask: &Ask) -> &'static str {
    match ask.about.action.as_str() {
        "read" => "read",
        "subscribe" => "hear of changes of",
        "prompt" => "fetch the prompt",
        "complete" => "complete an argument of",
        _ => "use",
    }
}

fn shown(text: &str) -> String {
    let escaped = escape(text);
    if escaped.chars().count() <= MAX_SHOWN {
        return escaped;
    }
    let cut: String = escaped.chars().take(MAX_SHOWN).collect();
    format!("{cut}… (cut)")
}

//! What each deed is in the words of the protocol, of policies and of labels. One table, beside the
//! audit log's own in `toolgate_store::Deed`.

use toolgate_plugins::Hook;
use toolgate_store::Deed;

/// The method that does it.
pub(crate) fn method(deed: Deed) -> &'static str {
    match deed {
        Deed::Call => "tools/call",
        Deed::Read => "resources/read",
        Deed::Prompt => "prompts/get",
        Deed::Complete => "completion/complete",
        Deed::Subscribe => "resources/subscribe",
    }
}

/// The hook that decides it.
pub(crate) fn hook(deed: Deed) -> Hook {
    match deed {
        Deed::Call => Hook::Call,
        Deed::Read => Hook::Read,
        Deed::Prompt => Hook::Prompt,
        Deed::Complete => Hook::Complete,
        Deed::Subscribe => Hook::Subscribe,
    }
}

/// The action of the capability label that names it.
pub(crate) fn action(deed: Deed) -> &'static str {
    hook(deed).word()
}

/// The server capability without which it is refused before anybody is asked (NEG-005..007).
pub(crate) fn capability(deed: Deed) -> &'static str {
    match deed {
        Deed::Call => "tools",
        Deed::Read => "resources",
        Deed::Prompt => "prompts",
        Deed::Complete => "completions",
        Deed::Subscribe => "resources.subscribe",
    }
}

/// Whether its reply may ask for input in the stateless era: calls, prompts and reads only.
pub(crate) fn has_rounds(deed: Deed) -> bool {
    matches!(deed, Deed::Call | Deed::Prompt | Deed::Read)
}

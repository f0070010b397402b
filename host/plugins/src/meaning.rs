//! What the words of a release mean, for a person who decides whether to let a plugin in.
//!
//! Contract: every interface of `wit/` and every decision has its line here (a test compares with
//! the contract itself); a word without one is shown as unknown, never left out.

use toolgate_signing::Kind;

/// What each interface lets a plugin do: `it may …`.
const INTERFACES: &[(&str, &str)] = &[
    ("types", "use the words of the contract; nothing can be called"),
    ("log", "write lines into the log, escaped, at most 64 in a call"),
    ("clock", "know what time it is; what it lists is then not cached"),
    ("hashing", "compute digests"),
    ("settings", "read the settings that you give it"),
    ("matching", "have the host compare labels, patterns and paths; no file is touched"),
    ("documents", "read the arguments, definitions and results that it is asked about"),
    ("requests", "see who asks for what: persona, server, tool, label and pin"),
    ("kv", "keep small values between calls"),
    ("http", "send requests over the network, to the hosts that its release and your grant name"),
    ("secrets", "have a secret sent in a header, without seeing it"),
    ("secrets-reveal", "SEE a secret itself; each look is in the audit log"),
    ("files", "reach the directories that you name, and nothing outside of them"),
    ("install-hook", "be asked before a server is installed, and see the plan"),
    ("connect-hook", "be asked before a server is connected to"),
    ("list-hook", "be asked about everything that an agent would see of a server"),
    ("call-hook", "be asked before a tool is called, and see the arguments"),
    ("read-hook", "be asked before a resource is read"),
    ("prompt-hook", "be asked before a prompt is rendered, and see its arguments"),
    ("subscribe-hook", "be asked before a resource is subscribed to"),
    ("complete-hook", "be asked before an argument is completed"),
    ("elicit-hook", "be asked before a server's question reaches a person, and see the question"),
    ("result-hook", "be asked before a result reaches the agent, and see the result"),
    ("adapter", "change arguments before they are judged, and results and definitions before they are shown"),
    ("installer", "find servers and propose how to run them; it runs nothing"),
];

/// What each decision does: `it may …`.
const DECISIONS: &[(&str, &str)] = &[
    ("abstain", "say nothing; others decide"),
    ("allow", "LET something pass, if nothing else denies it or asks; counts only where you grant it"),
    ("ask", "have a person asked first"),
    ("deny", "deny, whatever other policies say"),
    ("redact", "take parts out of what a model sees"),
];

/// What an interface means, by its short or its full name; none for one that the contract does not
/// have.
pub fn of_interface(name: &str) -> Option<&'static str> {
    if name.starts_with("wasi:") {
        return Some(
            "use the system interface of its language, sealed: it finds no file, network or environment there",
        );
    }
    let short = match name.split_once('/') {
        Some(("toolgate:plugin", rest)) => rest.split('@').next().unwrap_or(rest),
        Some(_) => return None,
        None => name,
    };
    INTERFACES.iter().find(|(known, _)| *known == short).map(|(_, meaning)| *meaning)
}

/// What a decision means, by its word.
pub fn of_decision(word: &str) -> Option<&'static str> {
    DECISIONS.iter().find(|(known, _)| *known == word).map(|(_, meaning)| *meaning)
}

/// What a plugin of this kind is for, and what it can do at worst.
pub fn of_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Policy => "it judges; one that fails denies",
        Kind::Installer => "it proposes servers; nothing runs before a person has accepted the plan",
        Kind::Adapter => "it changes what one server gets and says; one that fails fails the call",
    }
}

#[cfg(test)]
mod tests;

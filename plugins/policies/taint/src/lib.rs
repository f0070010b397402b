//! After something private was read in a session, a public write of that session asks or is denied.
//!
//! Settings: `{"private": [labels], "public": [labels], "then": "ask" | "deny"}`; a label is written
//! as in a persona's capabilities (`mcp.call:mail`, `mcp.call:github/create_issue`). The result of a
//! call under a private label marks the session before the client has it; from then on every call
//! under a public label is asked about, or denied. The mark is kept by the host (`kv`, scope
//! session) for a day after it was made, whatever becomes of this process.
//!
//! The threat is a model that was talked into carrying what it read to where others can see it. It
//! is not stopped from doing so by a way that no label here names, nor in another session.
//!
//! Without its store this policy knows nothing, so it lets nothing of either kind pass.

use serde::Deserialize;
use toolgate_sdk::kv::{Expected, Outcome, Scope, Store};
use toolgate_sdk::{
    CallPolicy, Decision, Error, PromptPolicy, ReadPolicy, Request, ResultPolicy, matching, settings,
};

/// The policy `toolgate/taint`.
pub struct Taint;

/// The key of a session's mark; its value is the label that was read.
const MARK: &str = "private";
/// The label of the release's `kv` capability.
const STORE: &str = "taint";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    private: Vec<String>,
    public: Vec<String>,
    #[serde(default)]
    then: Then,
}

/// What becomes of a public write after a private read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Then {
    /// A person is asked.
    #[default]
    Ask,
    /// It is denied.
    Deny,
}

impl CallPolicy for Taint {
    fn call(request: &Request) -> Decision {
        decided(before(request))
    }
}

impl ReadPolicy for Taint {
    fn read(request: &Request) -> Decision {
        decided(before(request))
    }
}

impl PromptPolicy for Taint {
    fn prompt(request: &Request) -> Decision {
        decided(before(request))
    }
}

impl ResultPolicy for Taint {
    fn result(request: &Request) -> Decision {
        decided(after(request))
    }
}

/// What cannot be found out is a denial.
fn decided(answer: Result<Decision, Error>) -> Decision {
    answer.unwrap_or_else(|fault| {
        Decision::Deny(format!("whether something private was read in this session cannot be known: {fault}"))
    })
}

/// A public write is judged by the mark of its session.
fn before(request: &Request) -> Result<Decision, Error> {
    let Settings { public, then, .. } = settings::parse()?;
    let label = request.label();
    if !covered(&public, &label, matching::label_covers)? {
        return Ok(Decision::Abstain);
    }
    let mark = Store::open(STORE, Scope::Session)?.get(MARK)?;
    Ok(judge(then, &label, mark.map(|entry| String::from_utf8_lossy(&entry.value).into_owned())))
}

/// A private read marks its session, before what was read leaves the host.
fn after(request: &Request) -> Result<Decision, Error> {
    let Settings { private, .. } = settings::parse()?;
    let label = request.label();
    if covered(&private, &label, matching::label_covers)? {
        let store = Store::open(STORE, Scope::Session)?;
        // The first one stays: it is the one that a person has to know about.
        match store.compare_and_set(MARK, Expected::Absent, label.as_bytes(), None)? {
            Outcome::Written(_) | Outcome::Conflict(Some(_)) => {}
            Outcome::Conflict(None) => {
                return Err(Error::Unavailable("the mark could not be set".to_owned()));
            }
        }
    }
    Ok(Decision::Abstain)
}

/// Whether one of the patterns covers a label.
fn covered(
    patterns: &[String],
    label: &str,
    covers: impl Fn(&str, &str) -> Result<bool, Error>,
) -> Result<bool, Error> {
    for pattern in patterns {
        if covers(pattern, label)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What becomes of a public write, with what was read before it.
fn judge(then: Then, label: &str, read: Option<String>) -> Decision {
    let Some(read) = read else { return Decision::Abstain };
    let reason = format!(
        "`{read}` was read in this session, and `{label}` can be seen by others: what was read must not be carried there"
    );
    match then {
        Then::Ask => Decision::Ask(reason),
        Then::Deny => Decision::Deny(format!("{reason}. Use a new session for it")),
    }
}

toolgate_sdk::policy!(Taint: call, read, prompt, result);

#[cfg(test)]
mod tests;

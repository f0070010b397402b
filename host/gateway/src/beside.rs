//! What a request takes to its server beside its arguments: members that Toolgate does not know, and `_meta`.
//!
//! Contract: they go there as they are (design.md 3.1), so what a person approves is bound to them and shows
//! them. Outside of the binding is only what differs between a call and its repetition by its nature, by a
//! closed list: what belongs to the connection, which the front door has taken out by now (the progress token
//! and the envelope of the stateless era), and trace ids in the form that W3C Trace Context gives them. What
//! is addressed to Toolgate ([`CLAIMS`]) ends here and reaches no server.
//!
//! Threat: an agent has a harmless call approved and repeats it with a member that its server acts on.

use std::borrow::Cow;

use serde_json::value::RawValue;
use toolgate_signing::canonical_json;
use toolgate_store::Deed;
use toolgate_wire::edit::{self, EditError};

use crate::rewrite;

const META: &str = "/_meta";
/// What a client tells Toolgate of itself (AUD-003, AUD-004, SCP-018): no server's business.
const CLAIMS: [&str; 5] = [
    "/_meta/toolgate~1persona",
    "/_meta/toolgate~1lane",
    "/_meta/toolgate~1run_id",
    "/_meta/toolgate~1thread_id",
    "/_meta/toolgate~1servers",
];
/// Longest `tracestate` (W3C Trace Context, 3.3.1.5).
const MAX_TRACESTATE: usize = 512;

/// The parameters without what is addressed to Toolgate; `None` where nothing of that is in them.
pub(crate) fn without_claims(params: &RawValue) -> Result<Option<Box<RawValue>>, EditError> {
    let text = params.get();
    // A key may be written with escapes.
    if !text.contains("toolgate") && !text.contains("\\u") {
        return Ok(None);
    }
    if CLAIMS.iter().all(|claim| edit::get(text, claim).is_none()) {
        return Ok(None);
    }
    let rest = edit::drop_all(text, &CLAIMS)?;
    let is_empty =
        edit::get(&rest, META).is_some_and(|meta| edit::members(meta).is_ok_and(|all| all.is_empty()));
    let rest = if is_empty { edit::drop_all(&rest, &[META])? } else { rest };
    edit::raw(rest).map(Some)
}

/// What goes to the server beside what policies judge, as canonical JSON; empty for nothing. `Err` says why it
/// cannot be bound.
pub(crate) fn of(deed: Deed, params: &RawValue) -> Result<String, String> {
    let params = params.get();
    let rest = match deed {
        Deed::Call | Deed::Prompt => edit::drop_all(params, &["/name", "/arguments"]),
        Deed::Read | Deed::Subscribe => edit::drop_all(params, &["/uri"]),
        // All of a completion but its reference is its document.
        Deed::Complete => {
            let reference = edit::get(params, "/ref").unwrap_or("{}");
            let subject = if rewrite::is_prompt(params) { "/name" } else { "/uri" };
            edit::drop_all(reference, &["/type", subject])
        }
    };
    let rest = rest.map_err(|error| error.to_string())?;
    let rest = without_traces(&rest).map_err(|error| error.to_string())?;
    let canonical = canonical_json(&rest).map_err(|error| error.to_string())?;
    Ok(match (canonical.as_str(), deed) {
        ("{}", _) => String::new(),
        (_, Deed::Complete) => format!(r#"{{"ref":{canonical}}}"#),
        _ => canonical,
    })
}

/// What of the judged document is bound: all of it, but for the trace ids of a completion, whose document has
/// its `_meta`. A member of this name among the arguments of a call is an argument.
pub(crate) fn bound(deed: Deed, document: &str) -> Result<Cow<'_, str>, EditError> {
    match deed {
        Deed::Complete => without_traces(document),
        _ => Ok(Cow::Borrowed(document)),
    }
}

fn without_traces(params: &str) -> Result<Cow<'_, str>, EditError> {
    let Some(meta) = edit::get(params, META).filter(|meta| meta.starts_with('{')) else {
        return Ok(Cow::Borrowed(params));
    };
    let fits = |pointer: &str, is_one: fn(&str) -> bool| {
        edit::get(meta, pointer).and_then(edit::string).is_some_and(|text| is_one(&text))
    };
    let mut passing = Vec::new();
    if fits("/traceparent", is_traceparent) {
        passing.push("/traceparent");
    }
    if fits("/tracestate", is_tracestate) {
        passing.push("/tracestate");
    }
    let rest = edit::drop_all(meta, &passing)?;
    let edited = if edit::members(&rest)?.is_empty() {
        edit::drop_all(params, &[META])?
    } else {
        edit::set(params, META, &rest)?
    };
    Ok(Cow::Owned(edited))
}

/// `00-<32 hex>-<16 hex>-<2 hex>`: nothing else can stand in it.
fn is_traceparent(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    let plain = |byte: u8| byte == b'-' || byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    lengths == [2, 32, 16, 2] && text.bytes().all(plain)
}

/// `key=value` members, separated by commas.
fn is_tracestate(text: &str) -> bool {
    let key = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-' | b'*' | b'/' | b'@')
    };
    let value = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'=';
    text.len() <= MAX_TRACESTATE
        && text.split(',').all(|member| match member.trim_matches([' ', '\t']).split_once('=') {
            Some((name, text)) => !name.is_empty() && name.bytes().all(key) && text.bytes().all(value),
            None => false,
        })
}

#[cfg(test)]
mod tests;

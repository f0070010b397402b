//! What a client says about itself, held against what its credential says.
//!
//! **Threat.** An agent that can choose its persona by writing a key is an agent without a persona. So
//! persona and lane come from the credential (or from the process's own arguments); a header or a
//! `_meta` key that disagrees is refused and recorded, one that agrees is allowed and changes nothing. Run and thread
//! ids are kept for the audit log as claims, bounded and without control characters.

use std::sync::Arc;

use serde_json::value::RawValue;
use toolgate_wire::{ErrorObject, codes, edit};

use crate::backend::{Backend, FalseClaim};
use crate::options::Credential;

/// Longest id a client may claim, in bytes.
const MAX_CLAIM: usize = 256;
/// Servers that a client may declare.
const MAX_DECLARED: usize = 64;

/// The keys a client may use, in `_meta` of a request.
mod meta_key {
    pub(super) const PERSONA: &str = "/_meta/toolgate~1persona";
    pub(super) const LANE: &str = "/_meta/toolgate~1lane";
    pub(super) const RUN: &str = "/_meta/toolgate~1run_id";
    pub(super) const THREAD: &str = "/_meta/toolgate~1thread_id";
    pub(super) const SERVERS: &str = "/_meta/toolgate~1servers";
}

/// The same as headers of an HTTP request.
pub(crate) mod header {
    /// Must agree with the token.
    pub(crate) const PERSONA: &str = "x-toolgate-persona";
    /// Must agree with the token.
    pub(crate) const LANE: &str = "x-toolgate-lane";
    /// Claimed, for the audit log.
    pub(crate) const RUN: &str = "x-toolgate-run-id";
    /// Claimed, for the audit log and to tell the threads of one credential apart.
    pub(crate) const THREAD: &str = "x-toolgate-thread-id";
    /// The servers that are needed, separated by commas: no other exists for the request.
    pub(crate) const SERVERS: &str = "x-toolgate-servers";
}

/// What a client claims.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Claims {
    /// As whom it says it acts.
    pub(crate) persona: Option<String>,
    /// In which lane.
    pub(crate) lane: Option<String>,
    /// In which run.
    pub(crate) run_id: Option<String>,
    /// In which thread.
    pub(crate) thread_id: Option<String>,
    /// Which servers it declares that it needs (SCP-018). This takes away and opens nothing, so it is
    /// taken at its word.
    pub(crate) servers: Option<Arc<[String]>>,
}

impl Claims {
    /// The claims in a request's `_meta`.
    pub(crate) fn of_params(params: Option<&RawValue>) -> Result<Self, ErrorObject> {
        let Some(params) = params.map(RawValue::get) else { return Ok(Self::default()) };
        // The keys share a word, so most requests are done after one search of the text; a key may also
        // be written with escapes.
        if !params.contains("toolgate") && !params.contains("\\u") {
            return Ok(Self::default());
        }
        let read = |pointer: &str| match edit::get(params, pointer) {
            None => Ok(None),
            Some(value) => match edit::string(value) {
                Some(text) => checked(pointer, text).map(Some),
                None => Err(refused(pointer, "is not a string")),
            },
        };
        Ok(Self {
            persona: read(meta_key::PERSONA)?,
            lane: read(meta_key::LANE)?,
            run_id: read(meta_key::RUN)?,
            thread_id: read(meta_key::THREAD)?,
            servers: edit::get(params, meta_key::SERVERS).map(declared).transpose()?,
        })
    }

    /// The claims in headers.
    pub(crate) fn of_headers(headers: &http::HeaderMap) -> Result<Self, ErrorObject> {
        let text = |name: &str, value: &http::HeaderValue| match value.to_str() {
            Ok(text) => checked(name, text.to_owned()),
            Err(_) => Err(refused(name, "has bytes that are not visible ASCII")),
        };
        let read = |name: &str| {
            let mut values = headers.get_all(name).iter();
            let first = values.next().map(|value| text(name, value)).transpose();
            if values.next().is_some() { Err(refused(name, "is there more than once")) } else { first }
        };
        // Each line narrows: whoever wrote one of them meant that no other server is there.
        let mut servers = None;
        for line in headers.get_all(header::SERVERS) {
            let line = text(header::SERVERS, line)?;
            let names = line.split(',').map(str::trim).filter(|name| !name.is_empty());
            let names: Arc<[String]> = names.map(str::to_owned).collect();
            servers = both(Some(names), servers.as_ref());
        }
        Ok(Self {
            persona: read(header::PERSONA)?,
            lane: read(header::LANE)?,
            run_id: read(header::RUN)?,
            thread_id: read(header::THREAD)?,
            servers,
        })
    }

    /// Refuses a claim that the credential does not bear out, after it was written down.
    pub(crate) fn agree(
        self,
        place: &'static str,
        credential: &Credential,
        backend: &dyn Backend,
    ) -> Result<Self, ErrorObject> {
        let lane = credential.lane.as_str();
        for (what, claim, truth) in
            [("persona", &self.persona, credential.persona.as_str()), ("lane", &self.lane, lane)]
        {
            if let Some(claimed) = claim.as_deref().filter(|claim| *claim != truth) {
                backend.note_false_claim(false_claim(place, credential, what, claimed));
                return Err(refused(what, &format!("is not the {what} of this credential")));
            }
        }
        Ok(self)
    }

    /// These claims, and where they are silent, the others; of servers, those that both declare.
    pub(crate) fn or(self, other: &Self) -> Self {
        Self {
            persona: self.persona.or_else(|| other.persona.clone()),
            lane: self.lane.or_else(|| other.lane.clone()),
            run_id: self.run_id.or_else(|| other.run_id.clone()),
            thread_id: self.thread_id.or_else(|| other.thread_id.clone()),
            servers: both(self.servers, other.servers.as_ref()),
        }
    }
}

/// What is written down of a claim that is none.
pub(crate) fn false_claim(
    place: &'static str,
    credential: &Credential,
    what: &'static str,
    claimed: &str,
) -> FalseClaim {
    FalseClaim {
        credential: credential.id.clone(),
        persona: credential.persona.clone(),
        lane: credential.lane,
        place,
        what,
        claimed: claimed.to_owned(),
    }
}

/// A list of names. What is no such list is refused, because to leave it out would widen.
fn declared(value: &str) -> Result<Arc<[String]>, ErrorObject> {
    let wrong = || refused(meta_key::SERVERS, "is no list of at most 64 names of servers");
    let names: Vec<String> = serde_json::from_str(value).map_err(|_| wrong())?;
    if names.len() > MAX_DECLARED || names.iter().any(|name| name.len() > MAX_CLAIM) {
        return Err(wrong());
    }
    Ok(names.into())
}

/// What was declared twice is what both times said.
pub(crate) fn both(one: Option<Arc<[String]>>, other: Option<&Arc<[String]>>) -> Option<Arc<[String]>> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.iter().filter(|name| other.contains(name)).cloned().collect()),
        (one, other) => one.or_else(|| other.cloned()),
    }
}

fn checked(name: &str, text: String) -> Result<String, ErrorObject> {
    if text.len() > MAX_CLAIM {
        return Err(refused(name, "is longer than 256 bytes"));
    }
    if text.chars().any(char::is_control) {
        return Err(refused(name, "has control characters"));
    }
    Ok(text)
}

/// The error says which claim, never the true value: that is not the client's to learn by guessing.
fn refused(name: &str, why: &str) -> ErrorObject {
    ErrorObject::new(codes::INVALID_REQUEST, format!("claim refused: {name} {why}; leave it out"))
}

#[cfg(test)]
mod tests;

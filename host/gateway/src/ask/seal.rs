//! `requestState` of a question that goes through a client of the stateless era.
//!
//! Contract: a state is opened only for the caller and the session it was made for, before it expires, by
//! the gateway process that made it, and once; each refusal says which of these it was. It holds nothing
//! secret: the name of an ask or of a parked call, an expiry, a nonce, a mark of the caller and a MAC
//! over all of them.
//!
//! Bounds: [`MAX_USED`] used states are remembered until they expire; beyond that none is opened.
//!
//! Threat: the client hands the state back and may hand back anything, to any call.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use ring::hmac;
use toolgate_base::{Clock as _, SystemClock, random_hex};

/// What every state of ours begins with; a server's own state never does, since it is kept back.
const PREFIX: &str = "tg1.";
/// What the names of parked calls begin with; those of asks do not.
const PARKED: &str = "call_";
const MAX_USED: usize = 10_000;

const ALTERED: &str = "it was altered, or this gateway process did not make it";

/// The key of this process and the states that were used.
pub(crate) struct Seal {
    key: hmac::Key,
    used: Mutex<HashMap<String, i64>>,
}

impl Seal {
    /// A key of its own for each process: a state that outlives the process is none, and the repeated
    /// call meets its open ask again.
    pub(crate) fn new() -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, random_hex(32).as_bytes()), used: Mutex::default() }
    }

    /// The state for an ask or a parked call. Names have no dot.
    pub(crate) fn make(&self, name: &str, caller: &str, expires_at_ms: i64) -> String {
        let open = format!("{PREFIX}{name}.{expires_at_ms}.{}.{}", random_hex(8), self.mark(caller));
        let tag = hmac::sign(&self.key, &bound("state", &open));
        format!("{open}.{}", hex::encode(tag))
    }

    /// The name in a state that this caller may use now. `Err` says why not.
    pub(crate) fn check(&self, state: &str, caller: &str, now_ms: i64) -> Result<String, String> {
        let (open, tag) = state.rsplit_once('.').ok_or(ALTERED)?;
        let tag = hex::decode(tag).map_err(|_| ALTERED)?;
        hmac::verify(&self.key, &bound("state", open), &tag).map_err(|_| ALTERED)?;
        let mut parts = open.strip_prefix(PREFIX).unwrap_or_default().split('.');
        let (name, expires) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        if parts.nth(1) != Some(self.mark(caller).as_str()) {
            return Err("it was made for another caller".to_owned());
        }
        let expires: i64 = expires.parse().map_err(|_| ALTERED)?;
        if expires <= now_ms {
            return Err("it has expired".to_owned());
        }
        Ok(name.to_owned())
    }

    /// As [`Seal::check`], and the state cannot be used again.
    pub(super) fn open(&self, state: &str, caller: &str, now_ms: i64) -> Result<String, String> {
        let name = self.check(state, caller, now_ms)?;
        let expires = state.split('.').nth(2).and_then(|text| text.parse().ok()).unwrap_or(i64::MAX);
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.retain(|_, until| *until > now_ms);
        if used.len() >= MAX_USED || used.insert(state.to_owned(), expires).is_some() {
            return Err("it was used already".to_owned());
        }
        Ok(name)
    }

    /// A mark of the caller that tells nobody else who it is.
    fn mark(&self, caller: &str) -> String {
        let tag = hmac::sign(&self.key, &bound("caller", caller));
        hex::encode(tag.as_ref().get(..16).unwrap_or_default())
    }
}

/// A name for a parked call.
pub(crate) fn parked_id() -> String {
    format!("{PARKED}{}", random_hex(16))
}

/// The time that expiries are counted in.
pub(crate) fn now_ms() -> i64 {
    i64::try_from(SystemClock.now_ms()).unwrap_or(i64::MAX)
}

/// Whether a state is one of ours, whoever made it.
pub(super) fn is_ours(state: &str) -> bool {
    state.starts_with(PREFIX)
}

/// Whether a state of ours names a parked call.
pub(super) fn is_parked(state: &str) -> bool {
    state.strip_prefix(PREFIX).is_some_and(|rest| rest.starts_with(PARKED))
}

fn bound(what: &str, text: &str) -> Vec<u8> {
    format!("toolgate request state, version 2\n{what}\n{text}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_opens_once_for_its_caller_before_it_expires_and_each_refusal_says_why() {
        let seal = Seal::new();
        let state = seal.make("ask_1", "default/stdio", 1_000);
        assert!(is_ours(&state) && !is_parked(&state));
        let refused =
            |seal: &Seal, state: &str, caller: &str, now| seal.open(state, caller, now).unwrap_err();
        assert!(refused(&seal, &state, "default/token:2", 10).contains("another caller"));
        assert!(refused(&seal, &state, "default/stdio", 1_000).contains("expired"));
        assert_eq!(refused(&Seal::new(), &state, "default/stdio", 10), ALTERED);
        let other = state.replace("ask_1", "ask_2");
        assert_eq!(refused(&seal, &other, "default/stdio", 10), ALTERED);
        assert_eq!(seal.open(&state, "default/stdio", 10).as_deref(), Ok("ask_1"));
        assert!(refused(&seal, &state, "default/stdio", 10).contains("used already"));
        assert!(seal.open("", "default/stdio", 10).is_err());
        assert!(seal.open("tg1.", "default/stdio", 10).is_err());
        assert!(is_parked(&seal.make(&parked_id(), "x", 1)));
    }
}

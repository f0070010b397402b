//! `requestState` of a question that goes through a client of the stateless era.
//!
//! Contract: a state is opened only for the caller, the session and the ask it was made for, before it
//! expires, by the gateway process that made it, and once. It holds nothing secret: an ask's id, a
//! nonce, an expiry and a MAC over them and what they are bound to.
//!
//! Bounds: [`MAX_USED`] used states are remembered until they expire; beyond that none is opened.
//!
//! Threat: the client hands the state back and may hand back anything, to any call.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use ring::hmac;
use toolgate_base::random_hex;

/// What every state of ours begins with; a server's own state never does, since it is wrapped.
const PREFIX: &str = "tg1.";
const MAX_USED: usize = 10_000;

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

    /// The state for an ask.
    pub(super) fn make(&self, ask: &str, caller: &str, expires_at_ms: i64) -> String {
        let open = format!("{PREFIX}{ask}.{expires_at_ms}.{}", random_hex(8));
        let tag = hmac::sign(&self.key, &bound(&open, caller));
        format!("{open}.{}", hex::encode(tag))
    }

    /// The ask of a state that may be used now; it cannot be used again. `Err` says why not.
    pub(super) fn open(&self, state: &str, caller: &str, now_ms: i64) -> Result<String, &'static str> {
        let (open, tag) = state.rsplit_once('.').ok_or("it is not one of Toolgate's")?;
        let tag = hex::decode(tag).map_err(|_| "it is not one of Toolgate's")?;
        hmac::verify(&self.key, &bound(open, caller), &tag)
            .map_err(|_| "it was not made for this caller by this gateway")?;
        let mut parts = open.strip_prefix(PREFIX).unwrap_or_default().split('.');
        let (ask, expires) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let expires: i64 = expires.parse().map_err(|_| "it is not one of Toolgate's")?;
        if expires <= now_ms {
            return Err("it has expired");
        }
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.retain(|_, until| *until > now_ms);
        if used.len() >= MAX_USED || used.insert(open.to_owned(), expires).is_some() {
            return Err("it was used already");
        }
        Ok(ask.to_owned())
    }
}

/// Whether a state is one of ours, whoever made it.
pub(super) fn is_ours(state: &str) -> bool {
    state.starts_with(PREFIX)
}

fn bound(open: &str, caller: &str) -> Vec<u8> {
    let mut bytes = b"toolgate request state, version 1\n".to_vec();
    // The length keeps the two apart.
    bytes.extend_from_slice(&(open.len() as u64).to_be_bytes());
    bytes.extend_from_slice(open.as_bytes());
    bytes.extend_from_slice(caller.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_opens_once_for_its_caller_before_it_expires() {
        let seal = Seal::new();
        let state = seal.make("ask_1", "default/stdio", 1_000);
        assert!(is_ours(&state));
        assert!(seal.open(&state, "default/token:2", 10).is_err(), "another caller");
        assert!(seal.open(&state, "default/stdio", 1_000).is_err(), "too late");
        assert!(Seal::new().open(&state, "default/stdio", 10).is_err(), "another gateway");
        let other = state.replace("ask_1", "ask_2");
        assert!(seal.open(&other, "default/stdio", 10).is_err(), "altered");
        assert_eq!(seal.open(&state, "default/stdio", 10).as_deref(), Ok("ask_1"));
        assert!(seal.open(&state, "default/stdio", 10).is_err(), "a second time");
        assert!(seal.open("", "default/stdio", 10).is_err());
        assert!(seal.open("tg1.", "default/stdio", 10).is_err());
    }
}

//! The only `unsafe` of the tree: turning a verified cache entry back into code.
//!
//! wasmtime checks little of what it deserialises: bytes of somebody else's making would be run
//! as native code. So [`VerifiedCode`] has a private field and one maker, [`Key::open`], which
//! makes it only after the MAC over context and code was right; and [`load`] takes nothing else.

#![allow(unsafe_code)]

use ring::hmac;
use wasmtime::Engine;
use wasmtime::component::Component;

/// Bytes of the key of an installation.
pub(super) const KEY_BYTES: usize = 32;
/// Bytes of a MAC (HMAC-SHA-256).
const TAG_BYTES: usize = 32;

/// The key of this installation.
pub(super) struct Key(hmac::Key);

/// Code that carried a right MAC. The bytes are those that were verified, in memory, not a file.
pub(super) struct VerifiedCode<'a>(&'a [u8]);

impl Key {
    /// From the bytes of the key file.
    pub(super) fn new(bytes: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// The MAC of `code` in `context`.
    pub(super) fn seal(&self, context: &str, code: &[u8]) -> Vec<u8> {
        hmac::sign(&self.for_context(context), code).as_ref().to_vec()
    }

    /// Splits a sealed entry, and gives the code if the MAC is right.
    pub(super) fn open<'a>(&self, context: &str, sealed: &'a [u8]) -> Option<VerifiedCode<'a>> {
        let (tag, code) = sealed.split_at_checked(TAG_BYTES)?;
        hmac::verify(&self.for_context(context), code, tag).ok()?;
        Some(VerifiedCode(code))
    }

    /// A key for one context, so that the code need not be copied behind it.
    fn for_context(&self, context: &str) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&self.0, context.as_bytes()).as_ref())
    }
}

/// Loads verified code. Errors when the engine is another one than the code was made for.
pub(super) fn load(engine: &Engine, code: &VerifiedCode<'_>) -> wasmtime::Result<Component> {
    // SAFETY: `Component::deserialize` demands bytes that `Component::serialize` of a compatible
    // engine made, unmodified. The bytes carry a MAC under a key that only this installation has
    // (file mode 0600 in a directory of mode 0700), and the only code that makes such MACs is
    // `Cache::put`, over the output of `Component::serialize`. The context under the MAC names
    // `precompile_compatibility_hash` of the engine, which covers its exact version, target and
    // settings, so the engine is compatible. The MAC was checked over this very buffer and the
    // borrow keeps it unchanged until here, so nothing can be exchanged after the check.
    unsafe { Component::deserialize(engine, code.0) }
}

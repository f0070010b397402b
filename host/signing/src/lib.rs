//! Canonical JSON, digests, keys, DSSE envelopes and release statements: everything that has to come
//! out the same on every machine and in every implementation.
//!
//! Pure: no I/O, no clock, no randomness. Everything here faces bytes that somebody else wrote, so
//! every input has a size limit, every parser refuses duplicate keys, and every refusal says what
//! did not match. `host/signing/vectors/` holds inputs and expected outputs as JSON; an
//! implementation in another language that reproduces them agrees with this one.
//!
//! # The formats
//! Bytes are joined with `||`, text is UTF-8, `\n` is one byte, digests are written
//! `sha256:<64 lowercase hex digits>`.
//!
//! | what | how |
//! |---|---|
//! | canonical JSON | RFC 8785, with the number rule of the module `canonical` |
//! | definition digest | sha256(`toolgate definition v1\n` \|\| kind \|\| `\n` \|\| canonical JSON of the normalised definition) |
//! | surface digest | sha256(`toolgate surface v1\n` \|\| one line per definition, sorted: kind, space, name as canonical JSON string, space, digest, `\n`) |
//! | key | `ed25519:<standard base64 of the 32 bytes>`, admitted only if its encoding is canonical and its order is not small |
//! | key id | lowercase hex of sha256(`toolgate key v1\n` \|\| 0x01 \|\| the 32 bytes) |
//! | signature | Ed25519 (RFC 8032), strict, over the DSSE v1 pre-authentication encoding of the payload |
//! | release | DSSE envelope over an in-toto Statement v1 whose predicate is [`Release`] |
//!
//! # Order of verification
//! [`verify_release`]: size of the envelope, its syntax and closedness, payload type, payload size,
//! the trust rule for the name the payload claims, the threshold over exactly the payload's bytes,
//! and only then the statement: duplicate keys, types, subject, every field. The component's bytes are
//! compared by [`VerifiedRelease::check_component`].

mod canonical;
mod definition;
mod digest;
mod dsse;
mod indented;
mod key;
#[cfg(any(test, feature = "sign"))]
mod keyfile;
mod release;
#[cfg(any(test, feature = "sign"))]
mod sign;
#[cfg(any(test, feature = "sign"))]
mod signer;
#[cfg(test)]
mod vectors;
mod verify;
mod words;

pub use canonical::{CanonicalError, MAX_DEPTH, canonical_json};
pub use definition::{DefinitionError, DefinitionKind, definition_digest, surface_digest};
pub use digest::{Digest, DigestError};
pub use dsse::{MAX_ENVELOPE, MAX_PAYLOAD, MAX_SIGNATURES, PAYLOAD_TYPE, pre_authentication_encoding};
pub use indented::indented;
pub use key::{KeyError, KeyId, PublicKey};
#[cfg(any(test, feature = "sign"))]
pub use keyfile::{KeyFileError, is_sealed};
pub use release::{
    Access, Capabilities, FilesCapability, HttpCapability, Kind, KvCapability, Limits, PREDICATE_TYPE,
    Release, STATEMENT_TYPE, SecretCapability, Wasi,
};
#[cfg(any(test, feature = "sign"))]
pub use sign::{SigningKey, release_statement, sign_payload, sign_release};
#[cfg(any(test, feature = "sign"))]
pub use signer::{
    SignError, Signer, add_signature, decode_pre_authentication, read_signature, seal, seal_with, signatures,
    unverified_payload,
};
pub use verify::{Threshold, VerifiedPayload, VerifiedRelease, VerifyError, verify_payload, verify_release};

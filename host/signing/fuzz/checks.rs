//! What must hold for any bytes at all. The fuzz targets run it on what libFuzzer makes up, a normal test
//! on the corpus.

#![allow(dead_code, reason = "each fuzz target uses one of the two")]

use toolgate_signing::{DefinitionKind, PublicKey, Threshold, definition_digest, verify_release};

/// The key that signed the accepted envelopes of the corpus; the seed is 32 bytes of 1.
const KEY: &str = "ed25519:iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w=";

/// Canonical JSON never panics, is its own canonical form, and is refused and hashed consistently.
pub(crate) fn canonical_json(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(canonical) = toolgate_signing::canonical_json(text) else {
        assert!(definition_digest(DefinitionKind::Tool, text).is_err());
        return;
    };
    assert_eq!(toolgate_signing::canonical_json(&canonical).as_ref(), Ok(&canonical));
    for kind in DefinitionKind::ALL {
        assert_eq!(definition_digest(kind, text), definition_digest(kind, &canonical));
    }
}

/// Verification never panics, and accepts nothing that the one key of the rule did not sign.
pub(crate) fn envelope(bytes: &[u8]) {
    let rule = |_: &str| PublicKey::parse(KEY).ok().map(|key| Threshold { keys: vec![key], minimum: 1 });
    if let Ok(verified) = verify_release(bytes, &rule) {
        assert_eq!(verified.signers().len(), 1);
        // The one release that key ever signed for the corpus.
        assert_eq!(verified.release().name, "acme/github-guard");
    }
}

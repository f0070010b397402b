//! Canonical JSON, digests, keys, DSSE envelopes, release statements and surface digests.

//! `toolgate:plugin/hashing`: digests as the rest of Toolgate writes them.

use toolgate_signing::{Digest, canonical_json};
use wasmtime::component::Resource;

use super::invalid;
use crate::bindings::hashing::Host;
use crate::bindings::types::Error;
use crate::facts::Document;
use crate::state::State;

impl Host for State {
    fn sha256(&mut self, bytes: Vec<u8>) -> wasmtime::Result<String> {
        Ok(Digest::of(&bytes).to_string())
    }

    fn canonical(&mut self, document: Resource<Document>) -> wasmtime::Result<Result<String, Error>> {
        let document = self.look_into(&document)?;
        Ok(self.host_work(document.len(), || {
            let canonical = canonical_json(document.text()).map_err(invalid)?;
            Ok(Digest::of(canonical.as_bytes()).to_string())
        }))
    }
}

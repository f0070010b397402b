//! `toolgate:plugin/documents`: JSON that stays here, and look-ups in it.

use wasmtime::component::Resource;

use super::{invalid, too_large};
use crate::bindings::documents::{Host, HostDocument};
use crate::bindings::types::Error;
use crate::facts::Document;
use crate::json::{self, Role, Visit};
use crate::state::State;

/// Most pointers that `strings` gives.
const MAX_STRINGS: usize = 4096;

impl Host for State {}

impl HostDocument for State {
    fn size(&mut self, document: Resource<Document>) -> wasmtime::Result<u64> {
        Ok(u64::try_from(self.look_into(&document)?.len()).unwrap_or(u64::MAX))
    }

    fn read(&mut self, document: Resource<Document>) -> wasmtime::Result<Result<String, Error>> {
        let document = self.look_into(&document)?;
        Ok(self.bounded(document.text()))
    }

    fn pointer(
        &mut self,
        document: Resource<Document>,
        path: String,
    ) -> wasmtime::Result<Result<Option<String>, Error>> {
        let document = self.look_into(&document)?;
        let found = self.host_work(document.len(), || json::lookup(document.text(), &path));
        self.trace.looked_up = Some(path);
        Ok(match found {
            Ok(Some(found)) => self.bounded(found).map(Some),
            Ok(None) => Ok(None),
            Err(error) => Err(invalid(error)),
        })
    }

    fn text(
        &mut self,
        document: Resource<Document>,
        path: String,
    ) -> wasmtime::Result<Result<Option<String>, Error>> {
        let document = self.look_into(&document)?;
        let found = self.host_work(document.len(), || json::string_at(document.text(), &path));
        self.trace.looked_up = Some(path);
        Ok(match found {
            Ok(Some(found)) => self.bounded(&found).map(Some),
            Ok(None) => Ok(None),
            Err(error) => Err(invalid(error)),
        })
    }

    fn strings(
        &mut self,
        document: Resource<Document>,
        path: String,
    ) -> wasmtime::Result<Result<Vec<String>, Error>> {
        let document = self.look_into(&document)?;
        let limit = self.shared.limits.host_bytes;
        let found = self.host_work(document.len(), || strings(document.text(), &path, limit));
        self.trace.looked_up = Some(path);
        Ok(found)
    }

    fn drop(&mut self, document: Resource<Document>) -> wasmtime::Result<()> {
        self.table.delete(document)?;
        Ok(())
    }
}

impl State {
    fn bounded(&self, text: &str) -> Result<String, Error> {
        let limit = self.shared.limits.host_bytes;
        if text.len() > limit { Err(too_large(text.len(), limit)) } else { Ok(text.to_owned()) }
    }
}

/// Pointers to the string values below `path`; none where nothing is.
fn strings(text: &str, path: &str, limit: usize) -> Result<Vec<String>, Error> {
    let Some(below) = json::lookup(text, path).map_err(invalid)? else {
        return Ok(Vec::new());
    };
    let mut pointers = Vec::new();
    let mut bytes = 0_usize;
    let mut exceeded = None;
    json::visit_strings(below, path, &mut |pointer, _, role| {
        if role == Role::Key {
            return Visit::On;
        }
        bytes = bytes.saturating_add(pointer.len());
        if pointers.len() >= MAX_STRINGS {
            exceeded = Some(Error::LimitExceeded(format!("there are more than {MAX_STRINGS} strings")));
        } else if bytes > limit {
            exceeded = Some(too_large(bytes, limit));
        } else {
            pointers.push(pointer.to_owned());
            return Visit::On;
        }
        Visit::Stop
    })
    .map_err(invalid)?;
    exceeded.map_or(Ok(pointers), Err)
}

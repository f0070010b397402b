//! `toolgate:plugin/secrets` and `secrets-reveal`: handles, and the one way to the value itself.
//!
//! A handle says which label; the value is written by the host into headers it sends (`http`), to
//! the origins that release and operator both name. Seeing the value is a grant of its own, and
//! the row about it is in the audit log before the guest has a byte.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};
use toolgate_base::Secret;
use wasmtime::component::Resource;

use super::http::{Binding, Client, is_framing};
use super::origin::{Origins, narrowed};
use super::{invalid, not_granted};
use crate::bindings::secrets::{Host, HostSecret};
use crate::bindings::secrets_reveal;
use crate::bindings::types::Error;
use crate::error::LoadErrorKind;
use crate::opened::{Given, only_declared};
use crate::state::State;

/// Secrets that one client may carry.
const MAX_BINDINGS: usize = 4;

/// One open label.
pub(crate) struct Label {
    /// The value.
    pub(crate) value: Secret,
    /// Where it may be sent.
    pub(crate) send_to: Origins,
    /// Whether it may be seen.
    pub(crate) reveal: bool,
}

/// What stands behind a `secret` handle.
#[allow(unreachable_pub)] // the generated bindings re-export it, which they can only for a `pub` item
pub struct Handle {
    label: String,
}

/// The labels that are open.
pub(crate) fn validate(given: &Given<'_>) -> Result<BTreeMap<String, Label>, LoadErrorKind> {
    let mut open = BTreeMap::new();
    for (label, declared, grant) in
        only_declared("secrets", &given.release.capabilities.secrets, &given.grants.secrets)?
    {
        let at = format!("secrets.{label}.send_to");
        let send_to = narrowed(&at, &declared.send_to, grant.send_to.as_deref())?;
        if grant.reveal && !declared.reveal {
            return Err(LoadErrorKind::Grant(format!(
                "grants.secrets.{label}.reveal is true, and its release does not ask to see that secret"
            )));
        }
        open.insert(label.clone(), Label { value: grant.value.clone(), send_to, reveal: grant.reveal });
    }
    Ok(open)
}

impl Host for State {}

impl HostSecret for State {
    fn open(&mut self, label: String) -> wasmtime::Result<Result<Resource<Handle>, Error>> {
        if let Err(error) = self.may_change("secrets") {
            return Ok(Err(error));
        }
        match self.shared.opened.secrets.get(&label) {
            None => Ok(Err(not_granted("secrets", &label))),
            Some(open) if open.value.is_empty() => {
                Ok(Err(Error::Unavailable(format!("the secret `{label}` has no value now"))))
            }
            Some(_) => Ok(Ok(self.table.push(Handle { label })?)),
        }
    }

    fn name(&mut self, secret: Resource<Handle>) -> wasmtime::Result<String> {
        Ok(self.table.get(&secret)?.label.clone())
    }

    fn bind(
        &mut self,
        secret: Resource<Handle>,
        client: Resource<Client>,
        header: String,
        prefix: String,
    ) -> wasmtime::Result<Result<(), Error>> {
        let label = self.table.get(&secret)?.label.clone();
        if let Err(error) = self.may_change("secrets") {
            return Ok(Err(error));
        }
        let binding = match self.binding(label, &header, &prefix) {
            Ok(binding) => binding,
            Err(error) => return Ok(Err(error)),
        };
        let bindings = &mut self.table.get_mut(&client)?.bindings;
        bindings.retain(|other| other.header != binding.header);
        if bindings.len() >= MAX_BINDINGS {
            return Ok(Err(Error::LimitExceeded(format!("a client carries at most {MAX_BINDINGS} secrets"))));
        }
        bindings.push(binding);
        Ok(Ok(()))
    }

    fn drop(&mut self, secret: Resource<Handle>) -> wasmtime::Result<()> {
        self.table.delete(secret)?;
        Ok(())
    }
}

impl secrets_reveal::Host for State {
    fn reveal(&mut self, secret: Resource<Handle>) -> wasmtime::Result<Result<Vec<u8>, Error>> {
        let label = self.table.get(&secret)?.label.clone();
        Ok(self.revealed(&label))
    }
}

impl State {
    fn revealed(&mut self, label: &str) -> Result<Vec<u8>, Error> {
        self.may_change("secrets")?;
        let shared = std::sync::Arc::clone(&self.shared);
        let open = shared.opened.secrets.get(label).ok_or_else(|| not_granted("secrets", label))?;
        if !open.reveal {
            return Err(Error::Denied(format!(
                "the secret `{label}` is granted as a handle; seeing it is a grant of its own (reveal: true)"
            )));
        }
        let persona = self.subject.as_ref().map(|subject| subject.persona.clone()).unwrap_or_default();
        let Some(record) = &shared.record else {
            return Err(Error::Unavailable("no audit log is connected, so nothing is revealed".to_owned()));
        };
        self.wait(|_| {
            record.secret_revealed(&shared.name, label, &persona).map_err(|why| {
                Error::Unavailable(format!("the use could not be recorded, so nothing is revealed: {why}"))
            })
        })?;
        Ok(open.value.expose().as_bytes().to_vec())
    }

    fn binding(&self, label: String, header: &str, prefix: &str) -> Result<Binding, Error> {
        let name = HeaderName::try_from(header).map_err(|_| invalid("that is no name of a header"))?;
        if is_framing(&name) {
            return Err(invalid(format!("the header {name} is the host's")));
        }
        let shared = &self.shared;
        let open = shared.opened.secrets.get(&label).ok_or_else(|| not_granted("secrets", &label))?;
        let mut value = HeaderValue::try_from(format!("{prefix}{}", open.value.expose()))
            .map_err(|_| invalid("the prefix, or the secret, is no text that a header can hold"))?;
        value.set_sensitive(true);
        Ok(Binding { label, header: name, value })
    }
}

#[cfg(test)]
mod tests;

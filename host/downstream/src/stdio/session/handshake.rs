//! The handshake of the initialize era, and what it settled about the client.

use std::sync::{Arc, PoisonError};

use serde_json::value::RawValue;
use toolgate_wire::envelope::Era;
use toolgate_wire::{ErrorObject, Outcome, Request};

use super::Session;
use crate::asking::{Outlet, SessionAsker};
use crate::backend::{Abilities, Caller, Client};
use crate::caller::{Claims, both};
use crate::{legacy, modern, reply};

impl Session {
    /// A second handshake starts over: what ran under the first ends without a reply. A handshake counts at
    /// once; its reply may wait for servers that were never seen, and holds up
    /// neither what follows it nor the end.
    pub(super) async fn initialize(self: &Arc<Self>, request: Request) {
        let (version, caller) = match self.handshake(request.params.as_deref()) {
            Ok(agreed) => agreed,
            Err(error) => {
                let reply = reply::response(Some(&request.id), Outcome::Error(error));
                return self.writer.send(reply).await;
            }
        };
        let session = Arc::clone(self);
        self.tasks.spawn(async move {
            let offers = tokio::select! {
                offers = session.backend.offers(&caller) => offers,
                () = session.leaving.cancelled() => return,
            };
            *session.offers.lock().unwrap_or_else(PoisonError::into_inner) = offers;
            let instructions = session.backend.instructions(&caller).await;
            let outcome = match legacy::initialize_result(version, offers, instructions) {
                Ok(result) => Outcome::Result(result),
                Err(error) => Outcome::Error(error),
            };
            session.writer.send(reply::response(Some(&request.id), outcome)).await;
        });
    }

    fn handshake(&self, params: Option<&RawValue>) -> Result<(&'static str, Caller), ErrorObject> {
        let version = legacy::negotiate(params)?;
        let claims = self.claims(params)?;
        if self.set_version(version).is_some() {
            self.running.cancel_all();
            self.asking.end();
            self.wanted.clear();
            self.subscriber.end();
        }
        // A second handshake narrows further and widens nothing.
        let claims = Claims { servers: both(claims.servers, self.declared().as_ref()), ..claims };
        self.declared.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&claims.servers);
        let abilities = legacy::abilities(params);
        self.set_client(abilities);
        Ok((version, self.as_caller(Era::Legacy, claims, abilities)))
    }

    /// What this process was narrowed to so far.
    pub(super) fn declared(&self) -> Option<Arc<[String]>> {
        self.declared.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The client as its handshake said; one of the stateless era says it with each request.
    pub(super) fn client(&self) -> Client {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_client(&self, abilities: Abilities) {
        let writer = self.writer.clone();
        let outlet: Outlet = Arc::new(move |text| {
            let writer = writer.clone();
            Box::pin(async move {
                writer.send(text).await;
                !writer.is_closed()
            })
        });
        let asker = SessionAsker::new(Arc::clone(&self.asking), outlet);
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = Client::session(abilities, asker);
    }

    /// The way to the client hangs on its writer, which must end with the session.
    pub(super) fn set_silent(&self) {
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = Client::silent();
    }

    pub(super) fn version(&self) -> Option<&'static str> {
        *self.version.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_version(&self, version: &'static str) -> Option<&'static str> {
        self.version.lock().unwrap_or_else(PoisonError::into_inner).replace(version)
    }
}

/// The handshake of the legacy era; with a modern envelope the method does not exist.
pub(super) fn is_initialize(request: &Request) -> bool {
    request.method == "initialize" && matches!(modern::era_of(request), Ok(Era::Legacy))
}

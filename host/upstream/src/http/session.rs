//! The session of the legacy era: its id, its version, and its renewal.
//!
//! Several requests may be refused at once when a server forgot a session (HT-10). One of them
//! renews it; the others find a new generation and repeat under it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use reqwest::header::HeaderValue;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::timeout;
use toolgate_wire::{Outcome, edit};

use super::verdict::Verdict;
use super::{Core, DELETE_LIMIT};
use crate::error::RequestError;
use crate::link::{Outgoing, notification};
use crate::pending::Reply;

/// The one place where the session stands.
#[derive(Debug, Default)]
pub(super) struct SessionCell {
    state: Mutex<Session>,
    renewal: tokio::sync::Mutex<()>,
    /// The generation, for who has to know when it changes.
    renewals: watch::Sender<u64>,
    /// Whether a standing stream is kept, which says itself what may have been missed.
    listening: AtomicBool,
}

/// The session at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Session {
    pub(super) id: Option<HeaderValue>,
    /// The negotiated revision; `None` before the handshake and in the modern era.
    pub(super) version: Option<String>,
    /// Counts the renewals.
    pub(super) generation: u64,
    initialize_params: Option<Arc<str>>,
}

/// A renewal that fails, or whose caller goes away, leaves the session as it was: the next request tries
/// again.
struct Unfinished<'a> {
    cell: &'a SessionCell,
    old: Option<Session>,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(old) = self.old.take() {
            self.cell.restore(old);
        }
    }
}

impl SessionCell {
    pub(super) fn snapshot(&self) -> Session {
        self.lock().clone()
    }

    pub(super) fn version(&self) -> Option<String> {
        self.lock().version.clone()
    }

    pub(super) fn established(&self, version: &str, initialize_params: &str) {
        let mut state = self.lock();
        state.version = Some(version.to_owned());
        state.initialize_params = Some(initialize_params.into());
    }

    /// The id that came with the reply to `initialize`.
    pub(super) fn set_id(&self, id: Option<HeaderValue>) {
        self.lock().id = id;
    }

    pub(super) fn set_listening(&self, listening: bool) {
        self.listening.store(listening, Ordering::Release);
    }

    /// Tells of each renewal.
    pub(super) fn renewals(&self) -> watch::Receiver<u64> {
        self.renewals.subscribe()
    }

    fn renewed(&self, version: String) {
        let mut state = self.lock();
        state.version = Some(version);
        state.generation += 1;
        self.renewals.send_replace(state.generation);
    }

    fn restore(&self, old: Session) {
        *self.lock() = old;
    }

    /// Takes the id out, so that it is deleted once.
    fn take_id(&self) -> Option<HeaderValue> {
        self.lock().id.take()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Session> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    /// One new `initialize` in place of the session that was `lost`.
    pub(super) async fn renew(self: &Arc<Self>, lost: u64) -> Result<(), RequestError> {
        let _one_at_a_time = self.session.renewal.lock().await;
        let old = self.session.snapshot();
        if old.generation != lost {
            return Ok(());
        }
        tracing::info!(server = self.hub.server, "the server forgot the session; initialising again");
        let Some(params) = old.initialize_params.clone() else {
            return Err(self.not_renewed("there was no handshake"));
        };
        let mut unfinished = Unfinished { cell: &self.session, old: Some(old) };
        let version = timeout(self.init_limit, self.initialize_again(&params))
            .await
            .unwrap_or_else(|_| Err(self.not_renewed("it did not answer within timeouts.init")))?;
        unfinished.old = None;
        self.session.renewed(version);
        self.notify(notification("notifications/initialized", None)).await?;
        // What was said between the sessions is lost, so everything may be different.
        self.hub.events.lists_changed();
        if !self.session.listening.load(Ordering::Acquire) {
            self.hub.events.missed();
        }
        Ok(())
    }

    async fn initialize_again(self: &Arc<Self>, params: &str) -> Result<String, RequestError> {
        let params: Box<RawValue> =
            edit::raw(params.to_owned()).map_err(|error| self.not_renewed(&error.to_string()))?;
        let mut ticket = self.hub.pending.open(None, None, None)?;
        let out = Outgoing::new(ticket.id, "initialize", params, None);
        // Neither id nor version: the server knows neither any more. Requests beside this one keep the old
        // id, are refused as the first one was, and repeat under the new one.
        match self
            .attempt(&out, &Session::default(), &ticket.shared)
            .await
            .map_err(|error| self.not_renewed(&error.to_string()))?
        {
            Verdict::Done => {}
            Verdict::SessionLost(error) => return Err(self.not_renewed(&error.to_string())),
            Verdict::Wait(_) => return Err(self.not_renewed("it answered 429")),
        }
        match ticket.reply.try_recv() {
            Ok(Reply::Outcome(Outcome::Result(result))) => edit::get(result.get(), "/protocolVersion")
                .and_then(edit::string)
                .ok_or_else(|| self.not_renewed("its reply names no version")),
            Ok(Reply::Outcome(Outcome::Error(error))) => {
                Err(self.not_renewed(&self.hub.quote(&error.message, 200)))
            }
            Ok(Reply::Unusable { error, .. }) => Err(self.not_renewed(&error.to_string())),
            Err(_) => Err(self.not_renewed("it did not reply to initialize")),
        }
    }

    fn not_renewed(&self, detail: &str) -> RequestError {
        RequestError::NotSent {
            server: self.hub.server.clone(),
            detail: format!("its session was lost and could not be renewed: {detail}"),
        }
    }

    /// Ends the session, if there is one. A server may refuse that with 405 (HT-27); nothing it
    /// answers, and no silence of it, keeps the close waiting.
    pub(super) async fn delete_session(&self) {
        let session = self.session.snapshot();
        if self.session.take_id().is_none() {
            return;
        }
        let request = self.client.delete(self.url.clone()).headers(self.common_headers(&session));
        match timeout(DELETE_LIMIT, request.send()).await {
            Ok(Ok(response)) => {
                tracing::debug!(
                    server = self.hub.server,
                    status = response.status().as_u16(),
                    "session ended"
                );
            }
            Ok(Err(_)) | Err(_) => {
                tracing::debug!(server = self.hub.server, "the end of the session was not confirmed");
            }
        }
    }
}

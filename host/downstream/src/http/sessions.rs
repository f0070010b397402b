//! Sessions of the initialize era over HTTP.
//!
//! **Contract.** A session id is 256 random bits, told once, and works only together with the credential
//! and the endpoint it was made with; for everybody else it does not exist (404, which tells nothing).
//!
//! **Bounds.** There are at most `max_sessions`, and at most `max_sessions_per_token` of one token, so
//! that no token takes all places. A session that is idle (no request runs, no stream is open) for
//! `session_idle` ends by itself; with it end the connections that were opened for it alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::admit::Admitted;
use crate::asking::Asking;
use crate::backend::{Abilities, Backend, Offers, Subscriber};
use crate::logging::Wanted;
use crate::options::HttpOptions;
use crate::running::Running;

/// Pause between two searches for idle sessions, at most.
const REAP: Duration = Duration::from_secs(30);

/// All sessions of one listener.
pub(super) struct Sessions {
    max: usize,
    max_per_token: usize,
    idle: Duration,
    max_running: usize,
    backend: Arc<dyn Backend>,
    table: Mutex<HashMap<String, Arc<Session>>>,
}

/// One client after its handshake.
pub(super) struct Session {
    /// The id the client was told: half of a credential, never logged.
    pub(super) id: String,
    /// The name under which grants and audit rows know the session.
    pub(super) name: String,
    /// The revision both sides speak.
    pub(super) version: &'static str,
    /// What the client declared in its handshake that it can be asked.
    pub(super) abilities: Abilities,
    /// The servers that it declared there; no request of the session has others.
    pub(super) declared: Option<Arc<[String]>>,
    /// What it wants to see of logs.
    pub(super) wanted: Arc<Wanted>,
    /// What the client was asked and has not answered.
    pub(super) asking: Arc<Asking>,
    /// What the client subscribed to; told on its stream, and kept for it while there is none.
    pub(super) subscriber: Arc<Subscriber>,
    /// What was declared in the handshake.
    offers: OnceLock<Offers>,
    /// What runs now.
    pub(super) running: Arc<Running>,
    /// Ends with the session; parent of its calls and streams.
    pub(super) end: CancellationToken,
    credential: String,
    persona: String,
    server_only: Option<String>,
    state: Mutex<State>,
}

struct State {
    used: Instant,
    /// The one stream for changes; a new one takes the place of the old.
    stream: Option<CancellationToken>,
}

/// There is no place for another session.
#[derive(Debug, thiserror::Error)]
pub(super) enum Full {
    /// For nobody.
    #[error("there are {0} sessions, which is the limit (serve.max_sessions); end one with DELETE, or wait")]
    All(usize),
    /// For this token.
    #[error(
        "this token has {0} sessions, which is the limit (serve.max_sessions_per_token); end one with DELETE, or wait"
    )]
    Own(usize),
}

impl Sessions {
    pub(super) fn new(options: &HttpOptions, backend: Arc<dyn Backend>) -> Self {
        Self {
            max: options.max_sessions,
            max_per_token: options.max_sessions_per_token,
            idle: options.session_idle,
            max_running: options.max_running,
            backend,
            table: Mutex::default(),
        }
    }

    /// Makes a session for whoever was admitted.
    pub(super) fn create(
        &self,
        admitted: &Admitted,
        version: &'static str,
        abilities: Abilities,
        declared: Option<Arc<[String]>>,
    ) -> Result<Arc<Session>, Full> {
        let mut table = self.lock();
        if self.full(&table, admitted).is_some() {
            self.reap(&mut table);
        }
        if let Some(full) = self.full(&table, admitted) {
            return Err(full);
        }
        let session = Arc::new(Session {
            id: toolgate_base::random_hex(32),
            name: format!("http:{}", toolgate_base::random_hex(8)),
            version,
            abilities,
            declared,
            wanted: Arc::default(),
            asking: Arc::default(),
            subscriber: Subscriber::new(),
            offers: OnceLock::new(),
            running: Running::new(self.max_running),
            end: CancellationToken::new(),
            credential: admitted.credential.id.clone(),
            persona: admitted.credential.persona.clone(),
            server_only: admitted.server_only.clone(),
            state: Mutex::new(State { used: Instant::now(), stream: None }),
        });
        table.insert(session.id.clone(), Arc::clone(&session));
        Ok(session)
    }

    /// The session with this id, if it is this caller's own.
    pub(super) fn find(&self, id: &str, admitted: &Admitted) -> Option<Arc<Session>> {
        let session = self.lock().get(id).cloned()?;
        if !session.belongs_to(admitted) {
            tracing::warn!(session = session.name, "a session id came with another credential or endpoint");
            return None;
        }
        session.state().used = Instant::now();
        Some(session)
    }

    /// Ends a session: its calls are cancelled and its stream closes.
    pub(super) fn end(&self, session: &Session) {
        self.lock().remove(&session.id);
        self.stop(session);
    }

    /// Ends all of them.
    pub(super) fn end_all(&self) {
        for session in std::mem::take(&mut *self.lock()).into_values() {
            self.stop(&session);
        }
    }

    /// Looks for idle sessions again and again; never returns.
    pub(super) async fn reap_forever(&self) {
        let pause = (self.idle / 4).clamp(Duration::from_millis(20), REAP);
        loop {
            tokio::time::sleep(pause).await;
            self.reap(&mut self.lock());
        }
    }

    fn full(&self, table: &HashMap<String, Arc<Session>>, admitted: &Admitted) -> Option<Full> {
        let own = |session: &&Arc<Session>| session.credential == admitted.credential.id;
        if table.values().filter(own).count() >= self.max_per_token {
            return Some(Full::Own(self.max_per_token));
        }
        (table.len() >= self.max).then_some(Full::All(self.max))
    }

    fn reap(&self, table: &mut HashMap<String, Arc<Session>>) {
        table.retain(|_, session| {
            let keep = !session.is_idle(self.idle);
            if !keep {
                tracing::info!(session = session.name, "an idle session ends");
                self.stop(session);
            }
            keep
        });
    }

    fn stop(&self, session: &Session) {
        session.running.cancel_all();
        session.asking.end();
        session.subscriber.end();
        session.end.cancel();
        self.backend.end_session(&session.name);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// Notes what the handshake declares.
    pub(super) fn declared(&self, offers: Offers) {
        // There is one handshake for a session.
        let _ = self.offers.set(offers);
    }

    /// What was declared.
    pub(super) fn offers(&self) -> Offers {
        self.offers.get().copied().unwrap_or_default()
    }

    /// Opens the stream for changes and closes the one before: a client that lost its connection comes
    /// back before the loss is noticed here.
    pub(super) fn open_stream(&self) -> CancellationToken {
        let token = self.end.child_token();
        let old = self.state().stream.replace(token.clone());
        if let Some(old) = old {
            old.cancel();
        }
        token
    }

    /// Tells that a stream has closed, from which the session counts as idle.
    pub(super) fn stream_closed(&self, stream: &CancellationToken) {
        stream.cancel();
        self.state().used = Instant::now();
    }

    fn belongs_to(&self, admitted: &Admitted) -> bool {
        self.credential == admitted.credential.id
            && self.persona == admitted.credential.persona
            && self.server_only == admitted.server_only
    }

    fn is_idle(&self, limit: Duration) -> bool {
        let state = self.state();
        let streaming = state.stream.as_ref().is_some_and(|stream| !stream.is_cancelled());
        !streaming && self.running.is_empty() && state.used.elapsed() >= limit
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

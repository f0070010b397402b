//! After a connection was lost, or a server forgot what it was asked: opening again and asking again.
//!
//! One task for one connection, for as long as something of it does not stand. The pauses between starts
//! and their number are those of every connection ([`crate::links`]); where it is given up, or somebody
//! says no, the subscriptions end with that reason.

use std::sync::Arc;
use std::time::{Duration, Instant};

use toolgate_config::Server;
use toolgate_store::AuditRow;
use toolgate_upstream::{RequestOptions, State};
use toolgate_wire::{Outcome, edit};

use super::Watcher;
use crate::Gateway;
use crate::connect::OpenError;
use crate::links::{Key, Live, Standing};
use crate::reply::ErrorCode;

/// The pause where nothing says when to try again, and between two rounds of asking.
const PAUSE: Duration = Duration::from_secs(1);

impl Gateway {
    /// Sees to it that what is subscribed to over a connection stands.
    pub(crate) fn mind(self: &Arc<Self>, key: &Key, server: &Arc<Server>) {
        if !self.subscriptions.holds(key) || !self.subscriptions.begin_minding(key) {
            return;
        }
        let (gateway, key, server) = (Arc::clone(self), key.clone(), Arc::clone(server));
        tokio::spawn(async move { gateway.restore(&key, &server).await });
    }

    /// The server may have forgotten what it was asked, and something may have been missed.
    pub(crate) fn missed(self: &Arc<Self>, key: &Key, server: &Arc<Server>) {
        self.subscriptions.forget_asked(key);
        self.mind(key, server);
    }

    async fn restore(self: &Arc<Self>, key: &Key, server: &Arc<Server>) {
        loop {
            let Some(caller) = self.subscriptions.caller_of(key) else {
                return self.subscriptions.end_minding(key);
            };
            let opened = self.live(&caller, server).await;
            match opened {
                Ok(live) => {
                    let unasked = self.subscriptions.unasked(key, &live);
                    for uri in &unasked {
                        self.ask_again(key, server, &live, uri).await;
                    }
                    if !unasked.is_empty() {
                        // A server that forgets again and again is asked again once in so long.
                        tokio::time::sleep(PAUSE).await;
                    }
                    if live.connection.state() == State::Connected {
                        self.subscriptions.end_minding(key);
                        // What came in between finds this task gone, or is seen here.
                        if self.subscriptions.unasked(key, &live).is_empty()
                            && live.connection.state() == State::Connected
                            || !self.subscriptions.begin_minding(key)
                        {
                            return;
                        }
                    }
                }
                Err(error) => {
                    if let Some(due) = self.next_attempt(key, &error) {
                        tokio::time::sleep_until(due.into()).await;
                        continue;
                    }
                    let told = format!("{error}; subscribe again when it is back");
                    for (uri, watcher) in self.watchers_of(key, &caller.persona, &caller.credential) {
                        self.end_subscription(key, server, &uri, &watcher, error.code(), &told);
                    }
                }
            }
        }
    }

    /// When opening is worth another try; `None` where it is not.
    fn next_attempt(&self, key: &Key, error: &OpenError) -> Option<Instant> {
        match error {
            OpenError::Denied(_)
            | OpenError::Unusable(_)
            | OpenError::Ending { .. }
            | OpenError::Failed { code: ErrorCode::Authentication, .. } => return None,
            _ => {}
        }
        match self.links.find(key)?.standing().1 {
            Some(Standing::GivenUp) => None,
            Some(Standing::Due(due) | Standing::Ended(due)) => Some(due),
            None => Some(Instant::now() + PAUSE),
        }
    }

    /// The wishes of everybody who opens the connection as this caller does.
    fn watchers_of(&self, key: &Key, persona: &str, credential: &str) -> Vec<(String, Watcher)> {
        let uris = self.subscriptions.uris(key).into_iter();
        let all = uris.flat_map(|uri| {
            let watchers = self.subscriptions.watchers(key, &uri);
            watchers.into_iter().map(move |watcher| (uri.clone(), watcher))
        });
        all.filter(|(_, watcher)| {
            watcher.caller.persona == persona && watcher.caller.credential == credential
        })
        .collect()
    }

    /// One resource on a new connection: each wish is judged again, the server is asked once, and since
    /// something may have been missed everybody reads again (RES-011, RES-012, FR-07).
    async fn ask_again(self: &Arc<Self>, key: &Key, server: &Arc<Server>, live: &Arc<Live>, uri: &str) {
        let mut watchers = self.subscriptions.watchers(key, uri);
        let Some(turn) =
            watchers.first().and_then(|watcher| self.subscriptions.turn(key, uri, &watcher.inbox).ok())
        else {
            return;
        };
        let _turn = turn.lock().await;
        watchers.retain(|watcher| self.still_may(key, server, live, uri, watcher));
        if watchers.is_empty() {
            return;
        }
        let asked = match edit::raw(format!(r#"{{"uri":{}}}"#, edit::quote(uri))) {
            Ok(params) => live.connection.subscribe(params, RequestOptions::default()).await,
            Err(_) => return,
        };
        let refusal = match asked {
            Ok(Outcome::Result(_)) => {
                self.subscriptions.renewed(key, uri, live);
                self.store.append_detached(AuditRow::resource_updated(&server.name, uri, true));
                for watcher in &watchers {
                    watcher.inbox.updated(watcher.shown.clone());
                }
                return;
            }
            Ok(Outcome::Error(error)) => format!(
                "server '{}' does not take it again: {}",
                server.name,
                toolgate_base::display::escape(&error.message)
            ),
            // Lost once more: the loop opens another.
            Err(_) if live.connection.state() != State::Connected => return,
            Err(error) => server.without_secrets(&error.to_string()),
        };
        for watcher in &watchers {
            self.end_subscription(key, server, uri, watcher, ErrorCode::ServerUnavailable, &refusal);
        }
    }
}

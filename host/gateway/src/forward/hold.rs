//! The last step of a subscription: the server is asked once, and the caller is noted as one who hears.
//!
//! Contract: nothing is noted that the server did not take or that a result policy withheld. Asking for
//! one resource and giving it up come in turn; that wait is bounded by the deadline of each.

use std::sync::Arc;

use serde_json::value::RawValue;
use toolgate_store::AuditRow;
use toolgate_upstream::{Connection, RequestError, RequestOptions};
use toolgate_wire::{Outcome, edit};

use super::{Path, Stop};
use crate::Gateway;
use crate::call::Call;
use crate::links::Key;
use crate::reply::ErrorCode;
use crate::subscriptions::{Subscriber, Watcher};

/// Somebody is about to be noted as a subscriber, or gave that up.
struct Attempt<'a> {
    gateway: &'a Arc<Gateway>,
    key: &'a Key,
    uri: &'a str,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.gateway.release_later(self.key, self.uri);
    }
}

impl Path {
    pub(super) async fn hold(&self, call: Call, params: Box<RawValue>) -> Result<Outcome, Stop> {
        let Some(subscriber) = &self.waiting.subscriber else {
            let text = "a subscription would end with this one request; subscribe in a session, with \
                        subscriptions/listen, or with `toolgate mcp subscribe`";
            self.note(AuditRow::failed(&self.call, text));
            return Err(self.refuse(ErrorCode::Denied, text));
        };
        let key = Key::of(&self.handle.server, &self.caller);
        let subscriptions = &self.gateway.subscriptions;
        // However it ends: where nobody is noted, the server is told that nobody listens. Dropped after the
        // turn is given up.
        let _attempt = Attempt { gateway: &self.gateway, key: &key, uri: &self.handle.subject };
        let turn = subscriptions.turn(&key, &self.handle.subject, &subscriber.inbox).map_err(|limit| {
            self.note(AuditRow::failed(&self.call, &limit));
            self.refuse(ErrorCode::Denied, &limit)
        })?;
        let _turn = tokio::select! {
            biased;
            turn = turn.lock() => turn,
            () = call.cancel.cancelled() => {
                self.note(AuditRow::cancelled(&self.call));
                return Err(self.refuse(ErrorCode::Cancelled, "it was given up while it waited for its turn"));
            }
        };
        let outcome = if subscriptions.stands(&key, &self.handle.subject, &self.handle.live) {
            edit::raw("{}".to_owned())
                .map(Outcome::Result)
                .map_err(|error| self.refuse(ErrorCode::Internal, &error.to_string()))
        } else {
            self.ask_server(&key, &call, params).await
        };
        let outcome = match outcome {
            Ok(outcome) => self.received(outcome).await,
            Err(Stop(refusal)) => refusal,
        };
        if matches!(outcome, Outcome::Result(_)) {
            self.keep(&key, subscriber);
        }
        Ok(outcome)
    }

    async fn ask_server(&self, key: &Key, call: &Call, params: Box<RawValue>) -> Result<Outcome, Stop> {
        let timeouts = &self.handle.server.timeouts;
        let options = RequestOptions {
            timeout: Some(call.timeout.unwrap_or(timeouts.call)),
            max_total: Some(timeouts.max_total),
            // A child: a freeze ends this request and not what else its client runs.
            cancel: call.cancel.child_token(),
            ..RequestOptions::default()
        };
        let cancel = options.cancel.clone();
        let connection: &Connection = &self.handle.live.connection;
        let asked = connection.subscribe(params, options);
        tokio::pin!(asked);
        let answered = tokio::select! {
            biased;
            answered = &mut asked => answered,
            () = self.frozen.cancelled() => {
                cancel.cancel();
                asked.await
            }
        };
        answered.map_err(|error| {
            if matches!(error, RequestError::NotHonored { .. }) {
                self.gateway.subscriptions.decline(key, &self.handle.subject);
            }
            self.failed(&error)
        })
    }

    fn keep(&self, key: &Key, subscriber: &Arc<Subscriber>) {
        subscriber.belongs_to(&self.gateway);
        let watcher = Watcher {
            inbox: Arc::clone(&subscriber.inbox),
            shown: self.used.clone(),
            caller: self.caller.clone(),
        };
        self.gateway.subscriptions.add(key, &self.handle.subject, watcher, &self.handle.live);
        // It may have been lost, or replaced, before it was known that somebody holds it.
        let now = self.gateway.live_now(&self.caller, &self.handle.server);
        if !now.is_some_and(|now| Arc::ptr_eq(&now, &self.handle.live)) {
            self.gateway.mind(key, &self.handle.server);
        }
    }
}

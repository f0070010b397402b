//! What a server says of resources, on its way to those who are subscribed; and the ways out.

use std::sync::Arc;

use serde_json::value::RawValue;
use toolgate_config::Server;
use toolgate_plugins::{Document, Hook};
use toolgate_store::{AuditRow, Deed, Event};
use toolgate_upstream::RequestOptions;
use toolgate_wire::{ErrorObject, Outcome, edit};

use super::{Inbox, Subscriber, Watcher};
use crate::Gateway;
use crate::caller::Caller;
use crate::decide::{Ruling, Verdict};
use crate::find::{self, Target};
use crate::links::{Key, Live};
use crate::reply::{self, ErrorCode, ErrorDetails};
use crate::{deeds, facts, uris, views};

impl Gateway {
    /// Gives up what a client subscribed to by this URI. It needs no permission, and giving up what one
    /// does not have is no error.
    pub async fn unsubscribe(
        self: &Arc<Self>,
        caller: &Caller,
        subscriber: &Subscriber,
        params: &RawValue,
    ) -> Outcome {
        let done =
            || edit::raw("{}".to_owned()).map_or_else(|error| internal(&error.to_string()), Outcome::Result);
        let Some(shown) = edit::get(params.get(), "/uri").and_then(edit::string) else {
            return Outcome::Error(reply::invalid_params("resources/unsubscribe needs params.uri, a string"));
        };
        let own = self.subscriptions.of(&subscriber.inbox).into_iter().find(|(_, _, known)| *known == shown);
        let Some((key, uri, _)) = own else {
            // A server without subscriptions is named all the same (NEG-006).
            return match self.find_resource(caller, &Target::Exposed(shown)).await {
                Ok(handle) if !handle.live.connection.declares("/resources/subscribe") => {
                    Outcome::Error(reply::not_offered(&no_subscriptions(&handle.server.name)))
                }
                _ => done(),
            };
        };
        if self.leave(&key, &uri, &subscriber.inbox, "the client gave it up") {
            self.release(&key, &uri).await;
        }
        done()
    }

    /// Ends all subscriptions of a client that is gone.
    pub(crate) fn leave_all(self: &Arc<Self>, inbox: &Arc<Inbox>) {
        for (key, uri, _) in self.subscriptions.of(inbox) {
            self.leave(&key, &uri, inbox, "the client has gone");
            self.release_later(&key, &uri);
        }
        self.leave_tasks(inbox);
    }

    /// A resource changed: those who are subscribed to it, or to what it is beneath, and still may, are
    /// told. What waits to be told already is judged and told once.
    pub(crate) fn resource_updated(
        self: &Arc<Self>,
        key: &Key,
        server: &Arc<Server>,
        live: &Arc<Live>,
        updated: &str,
    ) {
        let covering = self.subscriptions.uris(key).into_iter().filter(|uri| covers(uri, updated));
        let mut told = false;
        for uri in covering {
            for watcher in self.subscriptions.watchers(key, &uri) {
                let shown = shown(server, &watcher, &uri, updated);
                let Some(shown) = watcher.inbox.room_for(shown, &watcher.shown) else { continue };
                if self.still_may(key, server, live, &uri, &watcher) {
                    watcher.inbox.updated(shown);
                    told = true;
                }
            }
        }
        if told {
            self.store.append_detached(AuditRow::resource_updated(&server.name, updated, false));
        }
    }

    /// The verdict on a subscription that stands. One that is denied now is over; one that was asked
    /// about was answered when it was made.
    pub(super) fn still_may(
        self: &Arc<Self>,
        key: &Key,
        server: &Arc<Server>,
        live: &Arc<Live>,
        uri: &str,
        watcher: &Watcher,
    ) -> bool {
        let verdict = self.judge_subscription(&watcher.caller, server, live, uri);
        if verdict.ruling != Ruling::Deny {
            return true;
        }
        let text = format!("Denied by Toolgate: {}", verdict.reason);
        self.end_subscription(key, server, uri, watcher, ErrorCode::Denied, &text);
        false
    }

    fn judge_subscription(&self, caller: &Caller, server: &Server, live: &Live, uri: &str) -> Verdict {
        let surface = live.surface.load_full();
        let (subject, item, _) = find::resource(&surface, uri);
        let document = Document::new(format!(r#"{{"uri":{}}}"#, edit::quote(uri)));
        let about = facts::About {
            action: deeds::action(Deed::Subscribe),
            subject: &subject,
            document: Some(document),
        };
        let facts = facts::shared(facts::of_item(self, caller, server, &surface, &item, about));
        let binding = self.binding(caller, &server.name);
        let in_force = self.plugins();
        views::judge(&in_force.views, &in_force.plugins, &binding, Hook::Subscribe, &facts)
    }

    /// Ends one caller's subscription and says why, to it and in the log.
    pub(super) fn end_subscription(
        self: &Arc<Self>,
        key: &Key,
        server: &Server,
        uri: &str,
        watcher: &Watcher,
        code: ErrorCode,
        reason: &str,
    ) {
        if !self.leave(key, uri, &watcher.inbox, reason) {
            return;
        }
        tracing::warn!(server = %server.name, uri, reason, "a subscription ended");
        let details = ErrorDetails { server: Some(server.name.clone()), ..ErrorDetails::default() };
        let text = format!("the subscription to {} ended: {reason}", toolgate_base::display::escape(uri));
        let error = match reply::refuse(Deed::Subscribe, code, &text, &details) {
            Outcome::Error(error) => error,
            Outcome::Result(_) => ErrorObject::new(toolgate_wire::codes::INTERNAL_ERROR, text),
        };
        watcher.inbox.ended(watcher.shown.clone(), error);
        self.release_later(key, uri);
    }

    fn leave(&self, key: &Key, uri: &str, inbox: &Arc<Inbox>, reason: &str) -> bool {
        let left = self.subscriptions.leave(key, uri, inbox);
        if left {
            let row = AuditRow::about_server(Event::McpResourceUnsubscribed, &key.server);
            self.store.append_detached(row.with("uri", uri).with("reason", reason));
        }
        left
    }

    pub(crate) fn release_later(self: &Arc<Self>, key: &Key, uri: &str) {
        if self.subscriptions.turn_of_left(key, uri).is_none() {
            return;
        }
        let (gateway, key, uri) = (Arc::clone(self), key.clone(), uri.to_owned());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { gateway.release(&key, &uri).await });
        }
    }

    /// Tells the server that nobody wants to hear of a resource, where that is so.
    async fn release(&self, key: &Key, uri: &str) {
        let Some(turn) = self.subscriptions.turn_of_left(key, uri) else { return };
        let in_turn = turn.lock().await;
        if self.subscriptions.unask_left(key, uri)
            && let Some(live) = self.links.find(key).and_then(|link| link.live_untouched())
        {
            let options = RequestOptions::default();
            if let Err(error) = live.connection.unsubscribe(uri, options).await {
                tracing::debug!(server = %key.server, uri, %error, "a server was not told that nobody listens");
            }
        }
        drop(in_turn);
        drop(turn);
        self.subscriptions.drop_left(key);
    }
}

/// The refusal for a server that declares no subscriptions (NEG-006, RES-021).
fn no_subscriptions(server: &str) -> String {
    format!(
        "server '{server}' does not offer resources/unsubscribe: it did not declare the capability `resources.subscribe`"
    )
}

fn internal(text: &str) -> Outcome {
    Outcome::Error(ErrorObject::new(toolgate_wire::codes::INTERNAL_ERROR, text))
}

/// Whether an update of one resource concerns who is subscribed to the other: the same, or one beneath
/// it (specification, "resources": an update may name a sub-resource).
fn covers(subscribed: &str, updated: &str) -> bool {
    updated
        .strip_prefix(subscribed)
        .is_some_and(|rest| rest.is_empty() || subscribed.ends_with('/') || rest.starts_with(['/', '#', '?']))
}

/// The URI as the subscriber knows it. What is beneath it is the server's own text, which no policy saw: it
/// passes where it can be a URI (RFC 3986 has neither white space nor what a person does not see), and
/// otherwise the client is told of what it subscribed to.
fn shown(server: &Server, watcher: &Watcher, subscribed: &str, updated: &str) -> String {
    if updated == subscribed || !updated.chars().all(in_uri) {
        return watcher.shown.clone();
    }
    uris::rewritten_where(watcher.shown != subscribed, &server.name, updated)
        .unwrap_or_else(|| updated.to_owned())
}

fn in_uri(character: char) -> bool {
    !character.is_control() && !character.is_whitespace() && !toolgate_base::hidden::is_hidden(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn se_01_what_cannot_stand_in_a_uri_is_not_told() {
        let server = Server::stdio("s", "x", Vec::new());
        let caller = Caller::new("default", "c", "s", toolgate_wire::envelope::Era::Legacy);
        let watcher = Watcher { inbox: Arc::default(), shown: "x://a".to_owned(), caller };
        let told = |updated: &str| shown(&server, &watcher, "x://a", updated);
        assert_eq!(told("x://a/part"), "x://a/part");
        for updated in ["x://a/obey me", "x://a/\u{200b}", "x://a/\nupdated x://b", "x://a/\u{e0041}"] {
            assert_eq!(told(updated), "x://a", "{updated:?}");
        }
    }

    #[test]
    fn an_update_concerns_what_was_subscribed_to_and_what_is_beneath_it() {
        for updated in ["x://a", "x://a/b", "x://a#b", "x://a?b"] {
            assert!(covers("x://a", updated), "{updated}");
        }
        assert!(covers("x://a/", "x://a/b"));
        for updated in ["x://ab", "x://", "y://a"] {
            assert!(!covers("x://a", updated), "{updated}");
        }
    }
}

//! Subscriptions to single resources, in whichever era the server speaks.

use serde_json::value::RawValue;
use toolgate_wire::envelope::Era;
use toolgate_wire::{Outcome, edit};

use crate::connection::{Connection, RequestOptions};
use crate::error::RequestError;

impl Connection {
    /// Asks to be told when the resource that `params.uri` names changes ([`crate::Event::ResourceUpdated`]).
    ///
    /// A legacy server gets `resources/subscribe` with these params, and its own answer comes back. A
    /// modern one gets the URI in its `subscriptions/listen`, and the answer is an empty result once it
    /// acknowledged it; one that leaves it out is [`RequestError::NotHonored`]. Asking again for what
    /// stands sends nothing to a modern server. Both end with the connection.
    pub async fn subscribe(
        &self,
        params: Box<RawValue>,
        options: RequestOptions,
    ) -> Result<Outcome, RequestError> {
        if self.era() == Era::Legacy {
            return self.request("resources/subscribe", Some(params), options).await;
        }
        let core = &self.core;
        let server = || self.server().to_owned();
        let not_sent = |detail: String| RequestError::NotSent { server: server(), detail };
        let Some(uri) = edit::get(params.get(), "/uri").and_then(edit::string) else {
            return Err(not_sent("params.uri is not a string".to_owned()));
        };
        let patience = options.timeout.unwrap_or(core.timeouts.call);
        let answer = tokio::select! {
            biased;
            answer = core.listening.add(&uri) => answer,
            () = options.cancel.cancelled() => {
                return Err(RequestError::Cancelled { server: server(), sent: true });
            }
            () = tokio::time::sleep(patience) => {
                return Err(RequestError::TimedOut { server: server(), after: patience, limit: "call", sent: true });
            }
        };
        match (answer, core.hub.pending.closed()) {
            (_, Some(reason)) => Err(not_sent(reason)),
            (Ok(()), None) => {
                edit::raw("{}".to_owned()).map(Outcome::Result).map_err(|error| not_sent(error.to_string()))
            }
            (Err(detail), None) => Err(RequestError::NotHonored { server: server(), uri, detail }),
        }
    }

    /// Asks to be told no more. Of a modern server nothing is waited for, and the result is empty.
    pub async fn unsubscribe(&self, uri: &str, options: RequestOptions) -> Result<Outcome, RequestError> {
        let params = format!(r#"{{"uri":{}}}"#, edit::quote(uri));
        let raw = |text: String| {
            edit::raw(text).map_err(|error| RequestError::NotSent {
                server: self.server().to_owned(),
                detail: error.to_string(),
            })
        };
        if self.era() == Era::Legacy {
            return self.request("resources/unsubscribe", Some(raw(params)?), options).await;
        }
        self.core.listening.remove(uri);
        Ok(Outcome::Result(raw("{}".to_owned())?))
    }
}

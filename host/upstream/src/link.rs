//! One way to a server, whichever transport it is.

use std::sync::Arc;

use serde_json::value::RawValue;
use toolgate_wire::{Id, Notification, Request, edit};

use crate::error::RequestError;
use crate::http::HttpLink;
use crate::pending::Shared;
use crate::stdio::StdioLink;

/// The transports of this crate.
#[derive(Debug)]
pub(crate) enum Link {
    Stdio(StdioLink),
    Http(HttpLink),
}

/// One request, ready to leave.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) id: u64,
    pub(crate) method: String,
    /// The JSON-RPC request as one line.
    pub(crate) text: String,
    /// The values of the headers that only a modern HTTP request has; `None` in the legacy era.
    pub(crate) modern: Option<ModernHeaders>,
}

/// Headers that repeat parts of the body (spec 2026-07-28, "streamable HTTP").
#[derive(Debug, Default)]
pub(crate) struct ModernHeaders {
    pub(crate) name: Option<String>,
    pub(crate) params: Vec<(String, String)>,
}

impl Outgoing {
    pub(crate) fn new(id: u64, method: &str, params: Box<RawValue>, modern: Option<ModernHeaders>) -> Self {
        Self {
            id,
            method: method.to_owned(),
            text: Request::new(Id::number(id), method, Some(params)).to_text(),
            modern,
        }
    }
}

impl Link {
    /// Brings a request to the server. `Ok` means that no reply can come any more; a transport on
    /// which one can always come stays pending.
    pub(crate) async fn carry(&self, out: &Outgoing, shared: &Arc<Shared>) -> Result<(), RequestError> {
        match self {
            Self::Stdio(link) => {
                link.send(out.text.clone(), Arc::clone(shared)).await;
                std::future::pending().await
            }
            Self::Http(link) => link.carry(out, shared).await,
        }
    }

    /// Tells the server that nobody waits for the reply any more. Never waits.
    pub(crate) fn abandon(&self, id: u64) {
        let params = format!(r#"{{"requestId":{id},"reason":"the caller no longer waits"}}"#);
        let Ok(params) = edit::raw(params) else { return };
        let text = notification("notifications/cancelled", Some(params));
        match self {
            Self::Stdio(link) => link.post(text),
            Self::Http(link) => link.abandon(text),
        }
    }

    /// Sends `notifications/initialized`.
    pub(crate) async fn initialized(&self) -> Result<(), RequestError> {
        match self {
            Self::Stdio(link) => {
                link.post(notification("notifications/initialized", None));
                Ok(())
            }
            Self::Http(link) => link.initialized().await,
        }
    }

    /// Ends the connection and returns when it has ended, within 8 s on stdio and 3 s on HTTP.
    pub(crate) async fn close(&self) {
        match self {
            Self::Stdio(link) => link.close().await,
            Self::Http(link) => link.close().await,
        }
    }
}

/// A notification as one line.
pub(crate) fn notification(method: &str, params: Option<Box<RawValue>>) -> String {
    let notification = Notification { method: method.to_owned(), params };
    notification.to_text()
}

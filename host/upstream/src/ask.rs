//! One request from its parameters to its end.
//!
//! The request goes out under an own id and an own progress token; the caller's never do (PR-13).
//! It ends by the reply, by the transport, by cancel or by deadline, whichever is first, and a
//! future that is dropped counts as cancelled: the server is told in every case but the first two
//! (PR-14). Nothing here repeats a request.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolgate_wire::envelope::{self, ModernMeta, ResultKind};
use toolgate_wire::{Outcome, edit, headers};

use crate::error::{RequestError, quote};
use crate::hub::Hub;
use crate::link::{Link, ModernHeaders, Outgoing};
use crate::listen;
use crate::logs::Logs;
use crate::pending::{Progress, Reply, Shared};
use crate::question::Question;
use crate::tasks;

/// What to ask and how long to wait.
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: Option<&'a RawValue>,
    /// The modern envelope; `None` in the legacy era.
    pub(crate) meta: Option<&'a ModernMeta>,
    /// `Mcp-Param-*` headers of a modern HTTP call.
    pub(crate) param_headers: Vec<(String, String)>,
    /// Longest silence.
    pub(crate) idle: Duration,
    /// Longest time in all.
    pub(crate) total: Duration,
    pub(crate) progress: Option<mpsc::Sender<Progress>>,
    /// Where questions of the server about this request go.
    pub(crate) questions: Option<mpsc::Sender<Question>>,
    /// Where what the server logs about this request goes.
    pub(crate) logs: Option<Logs>,
    pub(crate) cancel: CancellationToken,
    /// Whether to tell the server when the wait ends early. Not for the handshake: `initialize`
    /// must not be cancelled (spec, "cancellation").
    pub(crate) tell: bool,
}

/// A request without an outcome; `raw` is the reply that could not be used, if one came.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: RequestError,
    pub(crate) raw: Option<Vec<u8>>,
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Self {
        Self { error, raw: None }
    }
}

/// Sends the request and waits for its end.
pub(crate) async fn ask(hub: &Hub, link: &Link, ask: Ask<'_>) -> Result<Outcome, Failure> {
    // A subscription has an acknowledgement instead, which comes the same way.
    let wants_progress = ask.progress.is_some() && ask.method != listen::METHOD;
    let mut ticket = hub.pending.open(ask.progress, ask.questions, ask.logs)?;
    let token = wants_progress.then_some(ticket.id);
    let params = prepare(&hub.server, ask.method, ask.params, ask.meta, token)?;
    let modern = ask.meta.map(|_| ModernHeaders {
        name: headers::mcp_name(ask.method, params.get()),
        params: ask.param_headers,
    });
    let out = Outgoing::new(ticket.id, ask.method, params, modern);
    let shared = Arc::clone(&ticket.shared);
    let mut unanswered = Unanswered { link, id: ticket.id, shared: &shared, tell: ask.tell };
    let server = || hub.server.clone();
    let end = tokio::select! {
        biased;
        reply = &mut ticket.reply => Some(reply),
        end = link.carry(&out, &shared) => {
            unanswered.tell = false;
            end?;
            // The exchange is over: the reply is here now or never.
            ticket.reply.try_recv().ok().map(Ok)
        }
        () = ask.cancel.cancelled() => {
            let sent = shared.withdraw();
            return Err(RequestError::Cancelled { server: server(), sent }.into());
        }
        (limit, after) = shared.expired(ask.idle, ask.total) => {
            let sent = shared.withdraw();
            return Err(RequestError::TimedOut { server: server(), after, limit, sent }.into());
        }
    };
    unanswered.tell = false;
    match end {
        Some(Ok(Reply::Outcome(outcome))) => checked(&hub.server, ask.method, ask.meta, outcome),
        Some(Ok(Reply::Unusable { error, raw })) => Err(Failure { error, raw }),
        Some(Err(_)) | None => Err(RequestError::MayHaveRun {
            server: server(),
            detail: "the response ended before the reply".to_owned(),
        }
        .into()),
    }
}

/// The parameters as the server gets them: this connection's era, own token, and `arguments` on
/// every call (PR-09).
fn prepare(
    server: &str,
    method: &str,
    params: Option<&RawValue>,
    meta: Option<&ModernMeta>,
    token: Option<u64>,
) -> Result<Box<RawValue>, RequestError> {
    let refuse = |detail: String| RequestError::NotSent { server: server.to_owned(), detail };
    let given = params.map_or("{}", RawValue::get);
    if !given.trim_start().starts_with('{') {
        return Err(refuse(format!("the params of `{method}` are no object")));
    }
    let mut text = envelope::strip_modern_meta(given);
    if let Some(meta) = meta {
        text = Cow::Owned(envelope::add_modern_meta(Some(&text), meta));
    }
    text = match token {
        Some(token) => Cow::Owned(envelope::set_progress_token(Some(&text), &token.to_string())),
        None => match envelope::remove_progress_token(&text) {
            Cow::Owned(without) => Cow::Owned(without),
            Cow::Borrowed(_) => text,
        },
    };
    if method == "tools/call" && matches!(edit::get(&text, "/arguments"), None | Some("null")) {
        let with = edit::set(&text, "/arguments", "{}").map_err(|error| refuse(error.to_string()))?;
        text = Cow::Owned(with);
    }
    edit::raw(text.into_owned()).map_err(|error| refuse(error.to_string()))
}

/// A modern result of a kind that nobody asked for is invalid (spec 2026-07-28, 1.1: unknown
/// `resultType`). Kinds other than the two of the core are only allowed to a client that declared
/// their extension, which this one does for tasks.
fn checked(
    server: &str,
    method: &str,
    meta: Option<&ModernMeta>,
    outcome: Outcome,
) -> Result<Outcome, Failure> {
    if let Outcome::Result(result) = &outcome
        && let Some(meta) = meta
        && let ResultKind::Other(kind) = envelope::result_kind(result.get())
        && !tasks::answers(method, meta, &kind)
    {
        let error = RequestError::BadReply {
            server: server.to_owned(),
            detail: format!("its result is of the unknown kind `{}`", quote(&kind, 60)),
        };
        let raw = Some(result.get().as_bytes().to_vec());
        return Err(Failure { error, raw });
    }
    Ok(outcome)
}

/// Tells the server when a request it may be working on is given up, by whatever way: an early
/// return, or the caller's future being dropped.
struct Unanswered<'a> {
    link: &'a Link,
    id: u64,
    shared: &'a Shared,
    tell: bool,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let sent = self.shared.withdraw();
        if sent && self.tell {
            self.link.abandon(self.id);
        }
    }
}

#[cfg(test)]
mod tests;

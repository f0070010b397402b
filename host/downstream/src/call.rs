//! One request that the backend answers: a listing, or something for one server.
//!
//! **Contract.** [`respond`] ends when the backend does, gives an outcome in the caller's era, and calls
//! `progress` for each step in between, with the client's own token put back (PR-13): a token that one
//! client chose never leaves this crate, so two clients that chose the same cannot meet.
//!
//! **Bounds.** Progress is advisory. It waits in a short queue and is dropped when the client does not
//! keep up; the outcome is never dropped.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolgate_gateway::Logs;
use toolgate_wire::envelope::{self, Era};
use toolgate_wire::{ErrorObject, Id, ListKind, Notification, Outcome, Request, codes, edit};

use crate::backend::{Backend, Call, Caller, Client, Deed, Page, Progress, Subscriber, TaskVerb};
use crate::{logging, modern, reply};

/// Steps of one call that may wait for this crate to take them.
const PROGRESS_QUEUE: usize = 32;

/// One request, and who sent it.
pub(crate) struct Asked {
    /// Who.
    pub(crate) caller: Caller,
    /// What can be asked of it: what its session said, or in the stateless era the request itself.
    pub(crate) client: Client,
    /// What.
    pub(crate) request: Request,
    /// The `Mcp-Param-*` headers it came with, names in lower case; `None` where there are no headers.
    pub(crate) param_headers: Option<Vec<(String, String)>>,
    /// What the client of the session wants to see of logs; `None` where there is no session.
    pub(crate) wanted: Option<Arc<logging::Wanted>>,
    /// Who hears of what the request subscribes to: the session, which only the initialize era has.
    pub(crate) subscriber: Option<Arc<Subscriber>>,
}

/// Takes a finished notification; must not block.
pub(crate) type ProgressSink<'a> = &'a (dyn Fn(String) + Send + Sync);

/// Answers one request of either era, except those that open or change a session.
pub(crate) async fn respond(
    backend: &Arc<dyn Backend>,
    asked: Asked,
    cancel: &CancellationToken,
    progress: ProgressSink<'_>,
) -> Outcome {
    let Asked { caller, request, .. } = &asked;
    let era = caller.era;
    let method = request.method.as_str();
    let is_read = deed_of(method) == Some(Deed::Read);
    let outcome = match (era, ListKind::of_method(method), deed_of(method)) {
        (_, Some(kind), _) => list(backend, caller, kind, request.params.as_deref()).await.into_outcome(),
        (_, _, Some(deed)) => forward(backend, deed, asked, cancel, progress).await,
        (Era::Legacy, ..) if method == "resources/subscribe" => {
            forward(backend, Deed::Subscribe, asked, cancel, progress).await
        }
        (Era::Legacy, ..) if method == "resources/unsubscribe" => unsubscribe(backend, &asked).await,
        // RES-010: it would end with this one request.
        (Era::Modern, ..) if matches!(method, "resources/subscribe" | "resources/unsubscribe") => {
            Outcome::Error(reply::needs_listen(method))
        }
        (Era::Legacy, ..) if method == "ping" => reply::raw("{}".to_owned()).into_outcome(),
        (Era::Legacy, ..) if method == logging::SET_LEVEL => set_level(backend, &asked).await.into_outcome(),
        (Era::Modern, ..) if TaskVerb::of_method(method).is_some() => task(backend, &asked).await,
        (Era::Modern, ..) if method == "server/discover" => discover(backend, caller).await.into_outcome(),
        _ => Outcome::Error(reply::unknown_method(method)),
    };
    match (era, reply::dress(era, outcome)) {
        (Era::Modern, Outcome::Result(result)) if is_read => modern::read_result(result).into_outcome(),
        (_, outcome) => outcome,
    }
}

/// What a method asks a server for.
fn deed_of(method: &str) -> Option<Deed> {
    Some(match method {
        "tools/call" => Deed::Call,
        "resources/read" => Deed::Read,
        "prompts/get" => Deed::Prompt,
        "completion/complete" => Deed::Complete,
        _ => return None,
    })
}

/// Only where a server's log can come at all; the level counts for the whole session.
async fn set_level(backend: &Arc<dyn Backend>, asked: &Asked) -> Result<Box<RawValue>, ErrorObject> {
    let Some(wanted) = &asked.wanted else {
        return Err(reply::unknown_method(logging::SET_LEVEL));
    };
    if !backend.offers(&asked.caller).await.logging {
        return Err(reply::unknown_method(logging::SET_LEVEL));
    }
    wanted.set(asked.request.params.as_deref())?;
    reply::raw("{}".to_owned())
}

async fn unsubscribe(backend: &Arc<dyn Backend>, asked: &Asked) -> Outcome {
    let Some(subscriber) = &asked.subscriber else {
        return Outcome::Error(reply::unknown_method(&asked.request.method));
    };
    match neutral_params(&asked.request.method, asked.request.params.as_deref()) {
        Ok(params) => backend.unsubscribe(&asked.caller, subscriber, &params).await,
        Err(error) => Outcome::Error(error),
    }
}

async fn task(backend: &Arc<dyn Backend>, asked: &Asked) -> Outcome {
    let Request { id, method, params } = &asked.request;
    let Some(verb) = TaskVerb::of_method(method) else {
        return Outcome::Error(reply::unknown_method(method));
    };
    match neutral_params(method, params.as_deref()) {
        Ok(params) => backend.task(&asked.caller, verb, id, &params).await,
        Err(error) => Outcome::Error(error),
    }
}

async fn discover(backend: &Arc<dyn Backend>, caller: &Caller) -> Result<Box<RawValue>, ErrorObject> {
    let offers = backend.offers(caller).await;
    modern::discover_result(offers, backend.instructions(caller).await)
}

async fn list(
    backend: &Arc<dyn Backend>,
    caller: &Caller,
    kind: ListKind,
    params: Option<&RawValue>,
) -> Result<Box<RawValue>, ErrorObject> {
    let cursor = match params.and_then(|raw| edit::get(raw.get(), "/cursor")) {
        None => None,
        Some(text) => Some(edit::string(text).ok_or_else(|| {
            ErrorObject::new(
                codes::INVALID_PARAMS,
                "params.cursor is not a string; use a nextCursor as it was given",
            )
        })?),
    };
    let page = backend.list(caller, kind, cursor.as_deref()).await?;
    reply::raw(page_text(kind, &page, caller.era))
}

/// The page's entries stay the text they are.
fn page_text(kind: ListKind, page: &Page, era: Era) -> String {
    let size: usize = page.items.iter().map(|item| item.get().len() + 1).sum();
    let mut text = String::with_capacity(size + 128);
    text.push_str("{\"");
    text.push_str(kind.member());
    text.push_str("\":[");
    for (index, item) in page.items.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(item.get());
    }
    text.push(']');
    if let Some(cursor) = &page.next_cursor {
        text.push_str(r#","nextCursor":"#);
        text.push_str(&serde_json::Value::from(cursor.as_str()).to_string());
    }
    if era == Era::Modern {
        text.push_str(&modern::list_members());
    }
    text.push('}');
    text
}

async fn forward(
    backend: &Arc<dyn Backend>,
    deed: Deed,
    asked: Asked,
    cancel: &CancellationToken,
    progress: ProgressSink<'_>,
) -> Outcome {
    let Asked { caller, client, request, param_headers, wanted, subscriber } = asked;
    let token = progress_token(request.params.as_deref());
    let level = logging::level(caller.era, wanted.as_deref(), request.params.as_deref());
    let params = match neutral_params(&request.method, request.params.as_deref()) {
        Ok(params) => params,
        Err(error) => return Outcome::Error(error),
    };
    let (steps, mut arriving) = token.is_some().then(|| mpsc::channel(PROGRESS_QUEUE)).unzip();
    let (out, mut logged) = level.is_some().then(|| mpsc::channel(PROGRESS_QUEUE)).unzip();
    let call = Call {
        request_id: request.id,
        params,
        progress: steps,
        logs: level.zip(out).map(|(level, out)| Logs { level, out }),
        cancel: cancel.clone(),
        timeout: None,
        param_headers,
        hold: Duration::MAX,
        client,
        subscriber,
    };
    let tell = |step: Progress| {
        if let Some(text) = token.as_ref().and_then(|token| progress_text(&step, token)) {
            progress(text);
        }
    };
    let running = backend.forward(&caller, deed, call);
    tokio::pin!(running);
    loop {
        tokio::select! {
            biased;
            Some(step) = next(&mut arriving) => tell(step),
            Some(message) = next(&mut logged) => progress(logging::message(message.params)),
            outcome = &mut running => {
                while let Some(step) = arriving.as_mut().and_then(|queue| queue.try_recv().ok()) {
                    tell(step);
                }
                while let Some(message) = logged.as_mut().and_then(|queue| queue.try_recv().ok()) {
                    progress(logging::message(message.params));
                }
                return outcome;
            }
        }
    }
}

/// The next message of a queue; none at once where nobody asked for any.
async fn next<T>(queue: &mut Option<mpsc::Receiver<T>>) -> Option<T> {
    match queue {
        Some(queue) => queue.recv().await,
        None => None,
    }
}

/// The parameters without what belongs to this connection: the era's envelope and the client's token.
fn neutral_params(method: &str, params: Option<&RawValue>) -> Result<Box<RawValue>, ErrorObject> {
    let Some(params) = params.map(RawValue::get) else {
        let text = format!("{method} needs params that name what it is about");
        return Err(ErrorObject::new(codes::INVALID_PARAMS, text));
    };
    reply::raw(envelope::remove_progress_token(&envelope::strip_modern_meta(params)).into_owned())
}

/// The client's token as it wrote it: a string or an integer; anything else asks for nothing.
fn progress_token(params: Option<&RawValue>) -> Option<String> {
    let token = envelope::progress_token(params?.get())?;
    // A token has the types of an id.
    Id::from_json(token).map(|_| token.to_owned())
}

fn progress_text(step: &Progress, token: &str) -> Option<String> {
    let params = edit::set(step.params.get(), "/progressToken", token).ok()?;
    let params = RawValue::from_string(params).ok()?;
    Some(Notification::new("notifications/progress", Some(params)).to_text())
}

/// Both shapes of a result in one word.
trait IntoOutcome {
    fn into_outcome(self) -> Outcome;
}

impl IntoOutcome for Result<Box<RawValue>, ErrorObject> {
    fn into_outcome(self) -> Outcome {
        match self {
            Ok(result) => Outcome::Result(result),
            Err(error) => Outcome::Error(error),
        }
    }
}

//! The initialize era over HTTP: sessions, their stream for changes, and batches of one revision.

use std::sync::Arc;

use futures_util::future::join_all;
use http::request::Parts;
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use toolgate_wire::envelope::{Era, LEGACY};
use toolgate_wire::{ErrorObject, Id, Message, Outcome, Request, codes, edit};

use super::Shared;
use super::admit::Admitted;
use super::answer::{self, Checked, Reply};
use super::body::Accepts;
use super::exchange::{self, Hold};
use super::service::{immediate, version};
use super::sessions::Session;
use super::stream::{self, Item};
use crate::backend::{Caller, Client};
use crate::call::Asked;
use crate::caller::{Claims, both};
use crate::changes::ListChanges;
use crate::inbound::Refusal;
use crate::running::Ticket;
use crate::unread::Waiting;
use crate::{legacy, listening, reply};

/// Carries the session id both ways.
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// A request of this era: the handshake, or something in a session.
pub(super) async fn request(
    shared: &Arc<Shared>,
    parts: &Parts,
    admitted: &Admitted,
    accepts: Accepts,
    request: Request,
) -> Reply {
    if request.method == "initialize" {
        return initialize(shared, admitted, accepts, &request).await;
    }
    let session = match session_of(shared, parts, admitted) {
        Ok(session) => session,
        Err(reply) => return *reply,
    };
    let caller = match caller(shared, &session, admitted, request.params.as_deref()) {
        Ok(caller) => caller,
        Err(error) => return answer::error(StatusCode::FORBIDDEN, Some(&request.id), error),
    };
    match begin(&session, &request.id) {
        Ok(ticket) => {
            let asked = asked(&session, caller, request);
            exchange::run(shared, asked, accepts, Hold::Session(ticket), Some(&session)).await
        }
        Err(error) => answer::error(StatusCode::BAD_REQUEST, Some(&request.id), error),
    }
}

/// A notification or a response in a session; it gets no answer of its own.
pub(super) fn notice(shared: &Arc<Shared>, parts: &Parts, admitted: &Admitted, message: &Message) -> Reply {
    match session_of(shared, parts, admitted) {
        Ok(session) => {
            note(&session, message);
            answer::empty(StatusCode::ACCEPTED)
        }
        Err(reply) => *reply,
    }
}

/// A batch: all its requests at once, one array of replies.
pub(super) async fn batch(
    shared: &Arc<Shared>,
    parts: &Parts,
    admitted: &Admitted,
    accepts: Accepts,
    items: Vec<Result<Message, Refusal>>,
) -> Reply {
    let session = match session_of(shared, parts, admitted) {
        Ok(session) => session,
        Err(reply) => return *reply,
    };
    if !legacy::has_batches(session.version) {
        return answer::bad_request(
            "batches exist only in protocol version 2025-03-26; send one message per request",
        );
    }
    let waits = shared.options.unread.client_named(&admitted.credential.id);
    if waits.is_crowded() {
        return answer::too_many(&waits.crowded_text());
    }
    let mut replies: Vec<Waiting> = Vec::new();
    let mut running = Vec::new();
    for item in items {
        match item {
            Ok(Message::Request(request)) => match start(shared, &session, admitted, &request) {
                Ok((caller, ticket)) => {
                    let asked = asked(&session, caller, request);
                    running.push(exchange::run_quietly(shared, asked, ticket));
                }
                Err(error) => {
                    replies.push(reply::response(Some(&request.id), Outcome::Error(error)).into());
                }
            },
            Ok(message) => note(&session, &message),
            Err(refusal) => {
                replies.push(reply::response(refusal.id.as_ref(), Outcome::Error(refusal.error)).into());
            }
        }
    }
    let expects_reply = !running.is_empty() || !replies.is_empty();
    replies.extend(join_all(running).await.into_iter().flatten());
    if !expects_reply {
        return answer::empty(StatusCode::ACCEPTED);
    }
    let text = (!replies.is_empty()).then(|| Waiting::array(replies));
    exchange::at_once(StatusCode::OK, text, accepts)
}

/// GET: the stream on which a session hears of changes.
pub(super) fn open_stream(shared: &Arc<Shared>, parts: &Parts, admitted: Admitted) -> Reply {
    if !Accepts::of(parts).events {
        return answer::refuse(StatusCode::NOT_ACCEPTABLE, "the stream is text/event-stream; accept it");
    }
    let session = match session_of(shared, parts, &admitted) {
        Ok(session) => session,
        Err(reply) => return *reply,
    };
    let (items, queue) = mpsc::channel(stream::QUEUE);
    let changes = ListChanges::new(shared.backend.changes());
    shared.tasks.spawn(announce(Arc::clone(shared), session, admitted, changes, items));
    answer::events(stream::body(None, queue, shared.options.keep_alive, None))
}

/// DELETE: the client is done.
pub(super) fn end_session(shared: &Arc<Shared>, parts: &Parts, admitted: &Admitted) -> Reply {
    match session_of(shared, parts, admitted) {
        Ok(session) => {
            shared.sessions.end(&session);
            answer::empty(StatusCode::NO_CONTENT)
        }
        Err(reply) => *reply,
    }
}

async fn initialize(shared: &Arc<Shared>, admitted: &Admitted, accepts: Accepts, request: &Request) -> Reply {
    let params = request.params.as_deref();
    let version = match legacy::negotiate(params) {
        Ok(version) => version,
        Err(error) => return immediate(&request.id, Outcome::Error(error), accepts),
    };
    let declared = match claims(shared, admitted, params) {
        Ok(claims) => claims.servers,
        Err(error) => return answer::error(StatusCode::FORBIDDEN, Some(&request.id), error),
    };
    let session = match shared.sessions.create(admitted, version, legacy::abilities(params), declared) {
        Ok(session) => session,
        Err(full) => return answer::too_many(&full.to_string()),
    };
    let outcome = match caller(shared, &session, admitted, params) {
        Err(error) => Outcome::Error(error),
        Ok(caller) => {
            let offers = shared.backend.offers(&caller).await;
            session.declared(offers);
            let instructions = shared.backend.instructions(&caller).await;
            legacy::initialize_result(version, offers, instructions)
                .map_or_else(Outcome::Error, Outcome::Result)
        }
    };
    let mut reply = immediate(&request.id, outcome, accepts);
    match HeaderValue::from_str(&session.id) {
        Ok(id) => {
            reply.headers_mut().insert(SESSION, id);
            reply
        }
        Err(_) => answer::error(
            StatusCode::INTERNAL_SERVER_ERROR,
            None,
            reply::internal("an unreadable session id"),
        ),
    }
}

/// Tells a session of changes until it ends, its token ends, or the client closes the stream.
async fn announce(
    shared: Arc<Shared>,
    session: Arc<Session>,
    admitted: Admitted,
    mut changes: ListChanges,
    items: mpsc::Sender<Item>,
) {
    let replaced = session.open_stream();
    let waits = shared.options.unread.client_named(&admitted.credential.id);
    loop {
        let messages = tokio::select! {
            () = shared.options.shutdown.cancelled() => break,
            () = replaced.cancelled() => break,
            () = items.closed() => break,
            () = admitted.revoked(&shared) => break,
            kinds = changes.next() => match kinds {
                Some(kinds) => legacy::list_changed(kinds, session.offers()),
                None => break,
            },
            told = session.subscriber.next() => listening::legacy_messages(told),
        };
        for message in messages.into_iter().filter_map(|message| waits.may_lose(message)) {
            // A stream that is gone is noticed above.
            let _ = items.send(Item::Message(message)).await;
        }
    }
    session.stream_closed(&replaced);
}

/// The session a request names: 400 without a name, 404 for one that is not this caller's.
fn session_of(shared: &Shared, parts: &Parts, admitted: &Admitted) -> Checked<Arc<Session>> {
    if let Some(version) = version(parts)
        && !LEGACY.contains(&version)
    {
        let text = format!("MCP-Protocol-Version is none of {}", LEGACY.join(", "));
        return Err(answer::bad_request(&text).into());
    }
    let Some(id) = parts.headers.get(SESSION) else {
        let text = "no Mcp-Session-Id: send initialize first and repeat the id it gives, or put \
                    io.modelcontextprotocol/protocolVersion into params._meta of every request";
        return Err(answer::bad_request(text).into());
    };
    let session = id.to_str().ok().and_then(|id| shared.sessions.find(id, admitted));
    session.ok_or_else(|| {
        let text = "no such session; send initialize without a session id to begin a new one";
        answer::refuse(StatusCode::NOT_FOUND, text).into()
    })
}

fn start(
    shared: &Shared,
    session: &Session,
    admitted: &Admitted,
    request: &Request,
) -> Result<(Caller, Ticket), ErrorObject> {
    if request.method == "initialize" {
        return Err(ErrorObject::new(codes::INVALID_REQUEST, "initialize must not be part of a batch"));
    }
    let caller = caller(shared, session, admitted, request.params.as_deref())?;
    Ok((caller, begin(session, &request.id)?))
}

fn asked(session: &Session, caller: Caller, request: Request) -> Asked {
    let wanted = Some(Arc::clone(&session.wanted));
    let subscriber = Some(Arc::clone(&session.subscriber));
    Asked { caller, client: Client::silent(), request, param_headers: None, wanted, subscriber }
}

fn begin(session: &Session, id: &Id) -> Result<Ticket, ErrorObject> {
    let begun = session.running.begin(id, &session.end);
    begun.map_err(|error| ErrorObject::new(codes::INVALID_REQUEST, error.to_string()))
}

/// Claims of the message, and where it is silent, of the headers; all agree with the credential.
fn claims(shared: &Shared, admitted: &Admitted, params: Option<&RawValue>) -> Result<Claims, ErrorObject> {
    let claims = Claims::of_params(params)?;
    let claims = claims.agree("message", &admitted.credential, &*shared.backend)?;
    Ok(claims.or(&admitted.claims))
}

fn caller(
    shared: &Shared,
    session: &Session,
    admitted: &Admitted,
    params: Option<&RawValue>,
) -> Result<Caller, ErrorObject> {
    let claims = claims(shared, admitted, params)?;
    let claims = Claims { servers: both(claims.servers, session.declared.as_ref()), ..claims };
    Ok(admitted.caller(session.name.clone(), Era::Legacy, claims, session.abilities))
}

fn note(session: &Session, message: &Message) {
    let notification = match message {
        Message::Notification(notification) => notification,
        Message::Response(response) => {
            if !session.asking.answered(response.clone()) {
                tracing::debug!(session = session.name, "a response came, but nothing was asked");
            }
            return;
        }
        Message::Request(_) => return,
    };
    if notification.method != "notifications/cancelled" {
        return;
    }
    let params = notification.params.as_deref().map(RawValue::get);
    if let Some(id) = params.and_then(|params| edit::get(params, "/requestId")).and_then(Id::from_json) {
        session.running.cancel(&id);
    }
}

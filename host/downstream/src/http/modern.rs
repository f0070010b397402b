//! The stateless era over HTTP: every request stands alone, and closing its connection cancels it.

use std::sync::Arc;

use http::StatusCode;
use http::request::Parts;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use toolgate_wire::envelope::Era;
use toolgate_wire::headers::{self, HeaderFault, HeaderMismatch};
use toolgate_wire::{ErrorObject, Id, Request};

use super::Shared;
use super::admit::Admitted;
use super::answer::{self, Reply};
use super::body::Accepts;
use super::exchange::{self, Hold};
use super::share::Share;
use super::stream::{self, Item};
use crate::backend::Caller;
use crate::call::Asked;
use crate::caller::Claims;
use crate::listening::{Listening, Step};
use crate::modern::Filter;
use crate::{modern, reply};

/// Answers one request whose envelope has been checked.
pub(super) async fn request(
    shared: &Arc<Shared>,
    parts: &Parts,
    admitted: &Admitted,
    accepts: Accepts,
    request: Request,
) -> Reply {
    if let Err(mismatch) = compare_headers(parts, &request) {
        return answer::error(StatusCode::BAD_REQUEST, Some(&request.id), mismatch.to_error_object());
    }
    let claims = Claims::of_params(request.params.as_deref())
        .and_then(|claims| claims.agree("message", &admitted.credential, &*shared.backend))
        .map(|claims| claims.or(&admitted.claims));
    let claims = match claims {
        Ok(claims) => claims,
        Err(error) => return answer::error(StatusCode::FORBIDDEN, Some(&request.id), error),
    };
    let share = match shared.shares.take(&admitted.credential.id) {
        Ok(share) => share,
        Err(text) => return answer::too_many(&text),
    };
    let param_headers = match param_headers(parts) {
        Ok(headers) => headers,
        Err(mismatch) => {
            return answer::error(StatusCode::BAD_REQUEST, Some(&request.id), mismatch.to_error_object());
        }
    };
    // Grants never cross credentials: the thread only tells the conversations of one credential apart.
    let thread = claims.thread_id.as_deref().unwrap_or_default();
    let session = format!("http:{}:{thread}", admitted.credential.id);
    let client = modern::client(request.params.as_deref());
    let caller = admitted.caller(session, Era::Modern, claims, client.abilities());
    if request.method == "subscriptions/listen" {
        return listen(shared, admitted, accepts, caller, &request, share);
    }
    let param_headers = Some(param_headers);
    let asked = Asked { caller, client, request, param_headers, wanted: None, subscriber: None };
    exchange::run(shared, asked, accepts, Hold::Alone(share), None).await
}

/// The error for headers that name another revision than the body. A missing header is no contradiction:
/// a revision that is not known here may have other rules.
pub(super) fn contradiction(parts: &Parts, request: &Request) -> Option<ErrorObject> {
    let mismatch = compare_headers(parts, request).err()?;
    let contradicts =
        mismatch.header == headers::PROTOCOL_VERSION && mismatch.fault == HeaderFault::Different;
    contradicts.then(|| mismatch.to_error_object())
}

/// What intermediaries read in the headers must be what the body says.
fn compare_headers(parts: &Parts, request: &Request) -> Result<(), HeaderMismatch> {
    for name in [headers::PROTOCOL_VERSION, headers::METHOD, headers::NAME] {
        if parts.headers.get_all(name).iter().nth(1).is_some() {
            return Err(HeaderMismatch { header: name.to_owned(), fault: HeaderFault::Repeated });
        }
    }
    let get = |name: &str| Some(parts.headers.get(name)?.to_str().ok()?.to_owned());
    let params = request.params.as_deref().map(RawValue::get);
    headers::check(&request.method, params, &get)
}

/// The headers that repeat arguments. They are compared where the tool's schema is known; one that is
/// there twice, or is no text, could be read differently elsewhere and is refused here.
fn param_headers(parts: &Parts) -> Result<Vec<(String, String)>, HeaderMismatch> {
    let mut found: Vec<(String, String)> = Vec::new();
    for (name, value) in &parts.headers {
        let name = name.as_str();
        if !name.starts_with(headers::PARAM_PREFIX) {
            continue;
        }
        let refused = |fault| HeaderMismatch { header: name.to_owned(), fault };
        if found.iter().any(|(have, _)| have == name) {
            return Err(refused(HeaderFault::Repeated));
        }
        let value = value.to_str().map_err(|_| refused(HeaderFault::Undecodable))?;
        found.push((name.to_owned(), value.to_owned()));
    }
    Ok(found)
}

fn listen(
    shared: &Arc<Shared>,
    admitted: &Admitted,
    accepts: Accepts,
    caller: Caller,
    request: &Request,
    share: Share,
) -> Reply {
    let id = &request.id;
    let filter = match modern::filter(request.params.as_deref()) {
        Ok(filter) => filter,
        Err(error) => return answer::error(StatusCode::BAD_REQUEST, Some(id), error),
    };
    if !accepts.events {
        return answer::refuse(StatusCode::NOT_ACCEPTABLE, "a subscription is text/event-stream; accept it");
    }
    let (items, queue) = mpsc::channel(stream::QUEUE);
    let telling = tell(Arc::clone(shared), admitted.clone(), caller, id.clone(), filter, items);
    shared.tasks.spawn(async move {
        telling.await;
        drop(share);
    });
    answer::events(stream::body(None, queue, shared.options.keep_alive, None))
}

/// Feeds a subscription until the client closes it, its token ends, or the server stops; the last two
/// end it with a result, so that the client knows that it was no accident.
async fn tell(
    shared: Arc<Shared>,
    admitted: Admitted,
    caller: Caller,
    id: Id,
    filter: Filter,
    items: mpsc::Sender<Item>,
) {
    let cancel = shared.calls.child_token();
    let opening = Listening::open(&shared.backend, &caller, &id, filter, &cancel);
    tokio::pin!(opening);
    let (mut listening, first) = tokio::select! {
        opened = &mut opening => opened,
        () = items.closed() => {
            // Not dropped: what it has begun at servers it also ends.
            cancel.cancel();
            drop(opening.await);
            return;
        }
    };
    let waits = shared.options.unread.client_named(&admitted.credential.id);
    let _ = items.send(Item::Message(first.into())).await;
    let outcome = loop {
        let step = tokio::select! {
            () = items.closed() => return,
            () = shared.options.shutdown.cancelled() => break listening.end(),
            () = admitted.revoked(&shared) => break listening.end(),
            step = listening.next() => step,
        };
        match step {
            Step::End(outcome) => break outcome,
            Step::Tell(messages) => {
                for message in messages.into_iter().filter_map(|message| waits.may_lose(message)) {
                    // A stream that is gone is noticed above.
                    let _ = items.send(Item::Message(message)).await;
                }
            }
        }
    };
    drop(items.send(Item::Last(Some(reply::response(Some(&id), outcome).into()))).await);
}

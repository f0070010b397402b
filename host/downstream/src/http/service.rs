//! One HTTP request, check by check. The order is the contract: what comes later has not been looked at
//! when something earlier refuses.

use std::sync::Arc;

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, VARY,
};
use http::request::Parts;
use http::{HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;
use toolgate_wire::envelope::{Era, MODERN};
use toolgate_wire::{Message, Outcome};

use super::Shared;
use super::admit::{Admitted, Target, admit};
use super::answer::{self, Reply};
use super::body::{self, Accepts};
use super::{legacy, modern};
use crate::inbound::{self, Inbound};
use crate::reply;

/// The header that names the revision.
const VERSION: &str = "mcp-protocol-version";

/// Answers one request.
pub(super) async fn handle(shared: &Arc<Shared>, request: Request<Incoming>) -> Reply {
    let (parts, body) = request.into_parts();
    let origin = match shared.guard.check(&parts) {
        Ok(origin) => origin,
        Err(text) => {
            tracing::warn!(text, "a request is refused before anything else");
            return answer::closing(answer::refuse(StatusCode::FORBIDDEN, text));
        }
    };
    let mut reply = if parts.method == Method::OPTIONS && origin.is_some() {
        preflight()
    } else {
        route(shared, &parts, body).await
    };
    if let Some(origin) = origin {
        let headers = reply.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(
            ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate"),
        );
        headers.insert(VARY, HeaderValue::from_static("Origin"));
    }
    reply
}

/// What a browser asks before it sends a request with a token, for an origin that was allowed above.
fn preflight() -> Reply {
    let mut reply = answer::empty(StatusCode::NO_CONTENT);
    let headers = reply.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST, GET, DELETE"));
    let allowed = "Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, MCP-Protocol-Version, \
                   Mcp-Method, Mcp-Name";
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(allowed));
    reply
}

async fn route(shared: &Arc<Shared>, parts: &Parts, body: Incoming) -> Reply {
    let Some(target) = Target::of(parts.uri.path()) else {
        let text = "nothing is here; the endpoint is /mcp, /mcp/<persona> or /mcp/<persona>/<server>";
        return answer::refuse(StatusCode::NOT_FOUND, text);
    };
    let admitted = match admit(shared, target, parts).await {
        Ok(admitted) => admitted,
        Err(reply) => return *reply,
    };
    match parts.method {
        Method::POST => post(shared, parts, &admitted, body).await,
        Method::GET | Method::DELETE if version(parts) == Some(MODERN) => {
            answer::not_allowed("POST", "this protocol version has POST only")
        }
        Method::GET => legacy::open_stream(shared, parts, admitted),
        Method::DELETE => legacy::end_session(shared, parts, &admitted),
        _ => answer::not_allowed("POST, GET, DELETE", "the endpoint takes POST, GET and DELETE"),
    }
}

async fn post(shared: &Arc<Shared>, parts: &Parts, admitted: &Admitted, body: Incoming) -> Reply {
    let accepts = Accepts::of(parts);
    if accepts.nothing() {
        let text = "accept application/json, text/event-stream, or both";
        return answer::refuse(StatusCode::NOT_ACCEPTABLE, text);
    }
    if let Err(reply) = body::check_type(parts) {
        return *reply;
    }
    let limits = &shared.options.limits;
    let bytes = match body::read(parts, body, limits.max_message, shared.options.body_timeout).await {
        Ok(bytes) => bytes,
        Err(reply) => return *reply,
    };
    match inbound::read(&bytes, limits) {
        Err(refusal) => answer::error(StatusCode::BAD_REQUEST, refusal.id.as_ref(), refusal.error),
        Ok(Inbound::Batch(items)) => legacy::batch(shared, parts, admitted, accepts, items).await,
        Ok(Inbound::One(Message::Request(request))) => match crate::modern::era_of(&request) {
            Err(error) => {
                // Which revision is meant must be clear before it can be said that it is not served.
                let error = modern::contradiction(parts, &request).unwrap_or(error);
                answer::error(StatusCode::BAD_REQUEST, Some(&request.id), error)
            }
            Ok(Era::Modern) => modern::request(shared, parts, admitted, accepts, request).await,
            Ok(Era::Legacy) if version(parts) == Some(MODERN) => {
                let error = crate::modern::missing_envelope();
                answer::error(StatusCode::BAD_REQUEST, Some(&request.id), error)
            }
            Ok(Era::Legacy) => legacy::request(shared, parts, admitted, accepts, request).await,
        },
        // The modern era has no notifications towards a server over HTTP; a stray one is taken and let go.
        Ok(Inbound::One(Message::Notification(_))) if version(parts) == Some(MODERN) => {
            answer::empty(StatusCode::ACCEPTED)
        }
        Ok(Inbound::One(Message::Response(_))) if version(parts) == Some(MODERN) => {
            answer::bad_request("a client of this protocol version sends no responses")
        }
        Ok(Inbound::One(message)) => legacy::notice(shared, parts, admitted, &message),
    }
}

/// The revision a request names in its headers.
pub(super) fn version(parts: &Parts) -> Option<&str> {
    parts.headers.get(VERSION)?.to_str().ok().map(str::trim)
}

/// An outcome as a finished reply, for the few requests that need no task.
pub(super) fn immediate(id: &toolgate_wire::Id, outcome: Outcome, accepts: Accepts) -> Reply {
    super::exchange::at_once(StatusCode::OK, Some(reply::response(Some(id), outcome).into()), accepts)
}

//! HTTP responses: which status, which type, which body.

use std::convert::Infallible;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use toolgate_wire::{ErrorObject, Id, Outcome, codes};

use crate::reply;
use crate::unread::Waiting;

/// A body of either kind: whole, or a stream of events.
pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;
/// What a handler gives.
pub(super) type Reply = Response<Body>;
/// A check that passes, or ends the request with a reply.
pub(super) type Checked<T> = Result<T, Box<Reply>>;

/// Keeps proxies from holding back events.
const ACCEL: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A JSON body.
pub(super) fn json(status: StatusCode, text: impl Into<Waiting>) -> Reply {
    let mut reply = Response::new(Full::new(text.into().into_bytes()).boxed_unsync());
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

/// A stream of events.
pub(super) fn events(body: Body) -> Reply {
    let mut reply = Response::new(body);
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(ACCEL, HeaderValue::from_static("no"));
    reply
}

/// A status without a body.
pub(super) fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(Empty::new().boxed_unsync());
    *reply.status_mut() = status;
    reply
}

/// A JSON-RPC error with its own status.
pub(super) fn error(status: StatusCode, id: Option<&Id>, error: ErrorObject) -> Reply {
    json(status, reply::response(id, Outcome::Error(error)))
}

/// A refusal by the HTTP side: the error has a code of Toolgate's own and no id, because nothing of the
/// body was believed.
pub(super) fn refuse(status: StatusCode, text: &str) -> Reply {
    error(status, None, ErrorObject::new(codes::DENIED, text))
}

/// A request that the protocol does not allow in this form.
pub(super) fn bad_request(text: &str) -> Reply {
    error(StatusCode::BAD_REQUEST, None, ErrorObject::new(codes::INVALID_REQUEST, text))
}

/// No token, or one that nobody holds (RFC 6750, section 3).
pub(super) fn unauthorized(token_given: bool) -> Reply {
    let (challenge, text) = if token_given {
        (
            r#"Bearer realm="toolgate", error="invalid_token""#,
            "this bearer token is not valid; issue one with: toolgate token issue",
        )
    } else {
        (
            r#"Bearer realm="toolgate""#,
            "a bearer token is needed: send it as `Authorization: Bearer <token>`; issue one with: toolgate token issue",
        )
    };
    let mut reply = refuse(StatusCode::UNAUTHORIZED, text);
    reply.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    closing(reply)
}

/// Gives up the connection after this reply: who is not known must not keep a place.
pub(super) fn closing(mut reply: Reply) -> Reply {
    reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    reply
}

/// A method this endpoint does not have.
pub(super) fn not_allowed(allow: &'static str, text: &str) -> Reply {
    let mut reply = refuse(StatusCode::METHOD_NOT_ALLOWED, text);
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    reply
}

/// A bound is reached; it may be free again later.
pub(super) fn too_many(text: &str) -> Reply {
    let mut reply = refuse(StatusCode::TOO_MANY_REQUESTS, text);
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("30"));
    reply
}

/// The status that goes with a modern outcome (specification 2026-07-28, errors over HTTP).
pub(super) fn modern_status(outcome: &Outcome) -> StatusCode {
    match outcome {
        Outcome::Error(error) => match error.code {
            codes::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
            codes::HEADER_MISMATCH | codes::MISSING_CLIENT_CAPABILITY | codes::UNSUPPORTED_VERSION => {
                StatusCode::BAD_REQUEST
            }
            _ => StatusCode::OK,
        },
        Outcome::Result(_) => StatusCode::OK,
    }
}

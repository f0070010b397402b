//! What a response's status means for the request: an answer, a lost session, a wait, or a refusal.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use reqwest::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use reqwest::{Response, StatusCode};
use toolgate_wire::{Id, Message, Outcome, codes, door};

use super::session::Session;
use super::{Core, retry_after};
use crate::error::RequestError;
use crate::hub::Asked;
use crate::link::Outgoing;
use crate::pending::Shared;

/// Longest error body that is read: error data may hold a list, but no result.
const MAX_ERROR_BODY: usize = 256 * 1024;

/// What to do after one attempt.
#[derive(Debug)]
pub(super) enum Verdict {
    /// The reply is with the hub, or cannot come any more.
    Done,
    /// The server does not know the session; the request has not run.
    SessionLost(RequestError),
    /// 429: the request has not run and may be repeated after this.
    Wait(Duration),
}

impl Core {
    /// Sends the request once and reads what comes.
    pub(super) async fn attempt(
        self: &Arc<Self>,
        out: &Outgoing,
        session: &Session,
        shared: &Shared,
    ) -> Result<Verdict, RequestError> {
        let response = self.post(&out.text, Some(out), session, Some(shared)).await?;
        shared.touch();
        let status = response.status();
        if status.is_success() {
            if out.method == "initialize" {
                let id = response.headers().get(toolgate_wire::headers::SESSION_ID);
                self.session.set_id(id.cloned());
            }
            self.receive(response, out.id, session, shared).await?;
            return Ok(Verdict::Done);
        }
        self.judge(response, out, session).await
    }

    async fn judge(
        self: &Arc<Self>,
        response: Response,
        out: &Outgoing,
        session: &Session,
    ) -> Result<Verdict, RequestError> {
        let status = response.status();
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let challenge = header(WWW_AUTHENTICATE).map(str::to_owned);
        if status == StatusCode::TOO_MANY_REQUESTS {
            let wait = header(RETRY_AFTER).and_then(|value| retry_after::parse(value, SystemTime::now()));
            return match wait {
                Some(wait) => Ok(Verdict::Wait(wait)),
                None => Err(RequestError::RateLimited { server: self.hub.server.clone(), retry_after: None }),
            };
        }
        let body = self.read_error_body(response).await;
        let in_session = session.id.is_some() && out.method != "initialize";
        let refused = RequestError::Refused {
            server: self.hub.server.clone(),
            status: status.as_u16(),
            detail: self.hub.quote(&String::from_utf8_lossy(&body), 200),
            challenge: challenge.clone(),
        };
        match status.as_u16() {
            // design.md 9a: without a challenge, a 401 on a session is about the session.
            401 if in_session && !challenge.is_some_and(|text| is_bearer(&text)) => {
                Ok(Verdict::SessionLost(refused))
            }
            401 | 403 => Err(refused),
            404 if in_session && !self.is_unknown_method(&body, out.id) => Ok(Verdict::SessionLost(refused)),
            400..=499 if self.is_answer(&body, out.id, true) => {
                self.hub.inbound(&body, Asked::Body(out.id));
                Ok(Verdict::Done)
            }
            400..=499 => Err(refused),
            // A failing proxy or server says nothing about the era, and may have begun the work;
            // an error of the server's own, under our id, is its answer all the same.
            _ if out.method != "server/discover" && self.is_answer(&body, out.id, false) => {
                self.hub.inbound(&body, Asked::Body(out.id));
                Ok(Verdict::Done)
            }
            _ => Err(RequestError::MayHaveRun {
                server: self.hub.server.clone(),
                detail: format!(
                    "HTTP {} {}",
                    status.as_u16(),
                    self.hub.quote(&String::from_utf8_lossy(&body), 200)
                ),
            }),
        }
    }

    /// Whether the body is a JSON-RPC error for this request; `nameless` ones count only where
    /// the caller says so.
    fn is_answer(&self, body: &[u8], id: u64, nameless: bool) -> bool {
        self.error_code(body, id, nameless).is_some()
    }

    /// A 404 with this code, under our id, is about the method and not about the session.
    fn is_unknown_method(&self, body: &[u8], id: u64) -> bool {
        self.error_code(body, id, false) == Some(codes::METHOD_NOT_FOUND)
    }

    fn error_code(&self, body: &[u8], id: u64, nameless: bool) -> Option<i64> {
        let text = door::scan(body, &self.hub.limits.door()).ok()?;
        let Ok(Message::Response(response)) = Message::parse(text) else {
            return None;
        };
        let ours = match &response.id {
            Some(answered) => *answered == Id::number(id),
            None => nameless,
        };
        match response.outcome {
            Outcome::Error(error) if ours => Some(error.code),
            _ => None,
        }
    }

    async fn read_error_body(&self, mut response: Response) -> Vec<u8> {
        let mut body = Vec::new();
        while let Ok(Some(chunk)) = response.chunk().await {
            let room = MAX_ERROR_BODY.saturating_sub(body.len());
            body.extend(chunk.iter().take(room));
            if chunk.len() >= room {
                break;
            }
        }
        body
    }
}

/// Whether the challenge is one of OAuth (RFC 6750, 3).
fn is_bearer(challenge: &str) -> bool {
    challenge
        .split(',')
        .filter_map(|part| part.trim().split(' ').next())
        .any(|scheme| scheme.eq_ignore_ascii_case("bearer"))
}

//! One POST: its headers, and the redirects that keep it what it is.
//!
//! Only 307 and 308 keep method and body, and only within one origin do they keep the headers,
//! which hold credentials (HT-15). Everything else is refused and named; nothing of the request
//! has run then.

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Response, StatusCode};
use toolgate_wire::envelope::MODERN;
use toolgate_wire::headers as names;

use super::session::Session;
use super::{Core, address};
use crate::error::RequestError;
use crate::link::Outgoing;
use crate::pending::Shared;

impl Core {
    /// Sends `text` and follows same-origin redirects. `request` gives the modern headers.
    pub(super) async fn post(
        &self,
        text: &str,
        request: Option<&Outgoing>,
        session: &Session,
        shared: Option<&Shared>,
    ) -> Result<Response, RequestError> {
        let mut headers = self.common_headers(session);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if let Some(request) = request {
            add_modern_headers(&mut headers, request).map_err(|detail| self.not_sent(detail))?;
        }
        let mut url = self.endpoint.get().unwrap_or(&self.url).clone();
        let mut hops = 0;
        loop {
            if shared.is_some_and(|shared| !shared.begin()) {
                return Err(self.not_sent("it was withdrawn before it was sent".to_owned()));
            }
            let sending = self.client.post(url.clone()).headers(headers.clone());
            let response =
                sending.body(text.to_owned()).send().await.map_err(|error| self.send_error(error))?;
            let status = response.status();
            if !status.is_redirection() || status == StatusCode::NOT_MODIFIED {
                return Ok(response);
            }
            url = self.next_hop(&url, &response, hops)?;
            hops += 1;
        }
    }

    /// Where a redirect leads, if it may be followed.
    fn next_hop(
        &self,
        from: &reqwest::Url,
        response: &Response,
        hops: usize,
    ) -> Result<reqwest::Url, RequestError> {
        let status = response.status();
        let refuse = |detail: String| RequestError::Refused {
            server: self.hub.server.clone(),
            status: status.as_u16(),
            detail,
            challenge: None,
        };
        let target = response
            .headers()
            .get(LOCATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| from.join(value).ok())
            .ok_or_else(|| refuse("a redirect without a usable Location".to_owned()))?;
        let origin = |url: &reqwest::Url| url.origin().ascii_serialization();
        if !matches!(status.as_u16(), 307 | 308) {
            return Err(refuse(format!(
                "a redirect to {} that would turn the request into another one; configure the final url",
                origin(&target)
            )));
        }
        if !address::same_origin(from, &target) {
            return Err(refuse(format!(
                "a redirect from {} to {}; credentials stay with their origin, so configure the final url if it is right",
                origin(from),
                origin(&target)
            )));
        }
        if hops >= self.hub.limits.max_redirects {
            return Err(refuse(format!("more than {} redirects", self.hub.limits.max_redirects)));
        }
        Ok(target)
    }

    /// The operator's headers, and those of the session.
    pub(super) fn common_headers(&self, session: &Session) -> HeaderMap {
        let mut headers = self.headers.clone();
        if let Some(id) = &session.id {
            headers.insert(names::SESSION_ID, id.clone());
        }
        if let Some(version) =
            session.version.as_deref().and_then(|version| HeaderValue::from_str(version).ok())
        {
            headers.insert(names::PROTOCOL_VERSION, version);
        }
        headers
    }

    fn not_sent(&self, detail: String) -> RequestError {
        RequestError::NotSent { server: self.hub.server.clone(), detail }
    }

    /// A connection that was never made has carried nothing; of any other failure that is unknown.
    pub(super) fn send_error(&self, error: reqwest::Error) -> RequestError {
        let before = error.is_connect() || error.is_builder();
        let detail = chain(&error.without_url());
        let server = self.hub.server.clone();
        if before {
            RequestError::NotSent { server, detail }
        } else {
            RequestError::MayHaveRun { server, detail }
        }
    }
}

/// An error with its causes, without the URL, whose query may hold a secret.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

fn add_modern_headers(headers: &mut HeaderMap, request: &Outgoing) -> Result<(), String> {
    let Some(modern) = &request.modern else {
        return Ok(());
    };
    let value = |text: &str| {
        HeaderValue::from_str(text).map_err(|_| format!("`{}` cannot stand in a header", text.escape_debug()))
    };
    headers.insert(names::PROTOCOL_VERSION, HeaderValue::from_static(MODERN));
    headers.insert(names::METHOD, value(&request.method)?);
    if let Some(name) = &modern.name {
        headers.insert(names::NAME, value(&names::encode_value(name))?);
    }
    for (name, text) in &modern.params {
        let key =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("`{name}` is no header name"))?;
        headers.insert(key, value(text)?);
    }
    Ok(())
}

//! Requests to one repository: addresses, signing in, redirects.

use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use toolgate_net::guard::Dialer;
use toolgate_net::{Url, is_loopback};

use crate::error::RegistryError;
use crate::reach::{Credentials, Reach, not_dialled, unsent};
use crate::source::{body, check_url, said};

/// Most redirects of one download.
const MAX_REDIRECTS: usize = 5;
/// Largest answer of a token service.
const MAX_TOKEN: u64 = 64 * 1024;

pub(super) struct Session {
    dialer: Dialer,
    /// `https://HOST/v2/NAME/`.
    base: Url,
    credentials: Option<Credentials>,
    /// The value of `Authorization` that worked.
    authorization: Mutex<Option<String>>,
}

impl Session {
    pub(super) fn new(host: &str, name: &str, reach: &Reach) -> Result<Self, RegistryError> {
        let refused = |why: String| RegistryError::Source { what: host.to_owned(), why };
        let parsed =
            Url::parse(&format!("https://{host}/v2/{name}/")).map_err(|error| refused(error.to_string()))?;
        let known = reach.host(host);
        // Who names an authority for it means https on this machine too.
        let local = parsed.host_str().is_some_and(is_loopback)
            && known.is_none_or(|known| known.authorities.is_empty());
        let base = if local { Url::parse(&format!("http://{host}/v2/{name}/")) } else { Ok(parsed) };
        let base = base.map_err(|error| refused(error.to_string()))?;
        check_url(&base).map_err(|why| refused(why.to_owned()))?;
        let dialer = reach.dialer(&base).map_err(refused)?;
        let credentials = known.and_then(|known| known.credentials.clone());
        Ok(Self { dialer, base, credentials, authorization: Mutex::default() })
    }

    /// An address below the repository.
    pub(super) fn at(&self, path: &str) -> Result<Url, RegistryError> {
        let refused = |error: &dyn std::fmt::Display| RegistryError::Source {
            what: path.to_owned(),
            why: error.to_string(),
        };
        // A path like `manifests/sha256:…` must not be taken for a URL with a scheme.
        self.base.join(&format!("./{path}")).map_err(|error| refused(&error))
    }

    /// A file of the repository, at most `limit` bytes; nothing where there is none.
    pub(super) async fn get(
        &self,
        path: &str,
        accept: &str,
        limit: u64,
    ) -> Result<Option<Vec<u8>>, RegistryError> {
        let mut url = self.at(path)?;
        for _ in 0..=MAX_REDIRECTS {
            let response = self.send(Method::GET, url.clone(), Some(accept), None).await?;
            match response.status() {
                StatusCode::OK => {
                    let bytes = body(response, limit.saturating_add(1)).await;
                    let bytes = bytes.map_err(|error| unreachable(&url, said(&error)))?;
                    if bytes.len() as u64 > limit {
                        return Err(RegistryError::TooLarge { what: url.to_string(), limit });
                    }
                    return Ok(Some(bytes));
                }
                StatusCode::NOT_FOUND => return Ok(None),
                status if status.is_redirection() => url = self.redirected(&response)?,
                status => return Err(self.answered(&url, status, "")),
            }
        }
        Err(unreachable(&url, format!("it is redirected more than {MAX_REDIRECTS} times")))
    }

    /// Sends a request that must be answered so.
    pub(super) async fn expect(
        &self,
        method: Method,
        url: Url,
        media_type: Option<&str>,
        content: Option<Bytes>,
        status: StatusCode,
    ) -> Result<Response, RegistryError> {
        let response = self.send(method, url.clone(), media_type, content).await?;
        if response.status() == status {
            return Ok(response);
        }
        let found = response.status();
        let text = body(response, 2048).await.unwrap_or_default();
        let text = String::from_utf8_lossy(&text).trim().to_owned();
        Err(self.answered(&url, found, &format!(", not {status}: {text}")))
    }

    /// Sends a request, and once more after signing in where the registry wants that. `media_type` is that
    /// of the content, or without content the one that is accepted.
    pub(super) async fn send(
        &self,
        method: Method,
        url: Url,
        media_type: Option<&str>,
        content: Option<Bytes>,
    ) -> Result<Response, RegistryError> {
        let request = || -> Result<RequestBuilder, RegistryError> {
            let request = self.dialer.request(method.clone(), url.clone());
            let mut request = request.map_err(|error| not_dialled(&url, &error))?;
            if let Some(media_type) = media_type {
                request = request.header(if content.is_some() { CONTENT_TYPE } else { ACCEPT }, media_type);
            }
            Ok(match &content {
                Some(bytes) => request.body(bytes.clone()),
                None => request,
            })
        };
        let failed = |error: reqwest::Error| unsent(&url, &error);
        let response = self.signed(request()?, &url).send().await.map_err(failed)?;
        if response.status() != StatusCode::UNAUTHORIZED || !self.is_own(&url) {
            return Ok(response);
        }
        self.sign_in(&response, &method).await?;
        self.signed(request()?, &url).send().await.map_err(failed)
    }

    /// An answer that is none of those that were hoped for.
    fn answered(&self, url: &Url, status: StatusCode, more: &str) -> RegistryError {
        match (status, &self.credentials) {
            (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, Some(credentials)) => {
                self.signed_out(&format!("it answers {status} to {}", credentials.username))
            }
            (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, None) => {
                self.signed_out(&format!("it answers {status}, and no name and password were given"))
            }
            _ => unreachable(url, format!("it answers {status}{more}")),
        }
    }

    fn signed_out(&self, why: &str) -> RegistryError {
        RegistryError::SignIn { url: self.base.to_string(), why: why.to_owned() }
    }

    /// Where an upload goes on: at the same registry and nowhere else.
    pub(super) fn location(&self, answer: &Response) -> Result<Url, RegistryError> {
        let place = target(answer)?;
        if self.is_own(&place) {
            return Ok(place);
        }
        Err(unreachable(&place, "the registry sends an upload to another server".to_owned()))
    }

    fn redirected(&self, answer: &Response) -> Result<Url, RegistryError> {
        let place = target(answer)?;
        check_url(&place).map_err(|why| unreachable(&place, why.to_owned()))?;
        if place.scheme() == "https" || self.base.scheme() == "http" {
            return Ok(place);
        }
        Err(unreachable(&place, "a registry elsewhere sends to a server of this machine".to_owned()))
    }

    /// What was signed in for is shown to this registry alone.
    fn signed(&self, request: RequestBuilder, url: &Url) -> RequestBuilder {
        let known = self.authorization.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match known.filter(|_| self.is_own(url)) {
            Some(value) => request.header(AUTHORIZATION, value),
            None => request,
        }
    }

    fn is_own(&self, url: &Url) -> bool {
        url.origin() == self.base.origin()
    }

    async fn sign_in(&self, answer: &Response, method: &Method) -> Result<(), RegistryError> {
        let challenge = answer.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        let challenge = challenge.unwrap_or_default().to_owned();
        let wants = |why: &str| self.signed_out(why);
        // The name of a scheme is written in any case (RFC 9110, section 11.1).
        let (scheme, rest) = challenge.split_once(' ').unwrap_or((challenge.as_str(), ""));
        let value = if scheme.eq_ignore_ascii_case("bearer") {
            format!("Bearer {}", self.token(rest, method).await?)
        } else if scheme.eq_ignore_ascii_case("basic") {
            self.basic().ok_or_else(|| wants("no name and password were given"))?
        } else {
            return Err(wants("not in a way that is known"));
        };
        *self.authorization.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        Ok(())
    }

    fn basic(&self) -> Option<String> {
        let credentials = self.credentials.as_ref()?;
        let pair = format!("{}:{}", credentials.username, credentials.password.expose());
        Some(format!("Basic {}", STANDARD.encode(pair)))
    }

    /// A token of the service that the registry names, for this repository; without credentials the one
    /// that anybody gets.
    async fn token(&self, challenge: &str, method: &Method) -> Result<String, RegistryError> {
        #[derive(Deserialize)]
        struct Answer {
            token: Option<String>,
            access_token: Option<String>,
        }
        let refused = |why: String| self.signed_out(&format!("it wants a token, and {why}"));
        let realm = parameter(challenge, "realm").ok_or_else(|| refused("says not from where".to_owned()))?;
        let mut realm = Url::parse(&realm).map_err(|error| refused(error.to_string()))?;
        check_url(&realm).map_err(|why| refused(why.to_owned()))?;
        if realm.scheme() != "https" && self.base.scheme() == "https" {
            return Err(refused(format!("{realm} is a server of this machine")));
        }
        let reads = matches!(*method, Method::GET | Method::HEAD) && self.credentials.is_none();
        let name = self.base.path().trim_start_matches("/v2/").trim_end_matches('/').to_owned();
        let scope = format!("repository:{name}:{}", if reads { "pull" } else { "pull,push" });
        if let Some(service) = parameter(challenge, "service") {
            realm.query_pairs_mut().append_pair("service", &service);
        }
        realm.query_pairs_mut().append_pair("scope", &scope);
        let basic = self.basic();
        if basic.is_some() && !is_related(&realm, &self.base) {
            return Err(refused(format!(
                "its token service is at {}, of another domain; no password is sent there",
                realm.host_str().unwrap_or_default()
            )));
        }
        let request = self.dialer.request(Method::GET, realm.clone());
        let mut request = request.map_err(|error| not_dialled(&realm, &error))?;
        if let Some(basic) = basic {
            request = request.header(AUTHORIZATION, basic);
        }
        let response = request.send().await.map_err(|error| unsent(&realm, &error))?;
        if !response.status().is_success() {
            let more = if self.credentials.is_some() { "" } else { ", and no name and password were given" };
            return Err(refused(format!("its token service answers {}{more}", response.status())));
        }
        let bytes = body(response, MAX_TOKEN).await.map_err(|error| unreachable(&realm, said(&error)))?;
        let answer: Answer = serde_json::from_slice(&bytes).map_err(|error| refused(error.to_string()))?;
        answer.token.or(answer.access_token).ok_or_else(|| refused("its service gives none".to_owned()))
    }
}

/// Whether both are of one host, or of one domain by its last two names (as `auth.docker.io` and
/// `registry-1.docker.io` are).
fn is_related(one: &Url, other: &Url) -> bool {
    let domain = |url: &Url| {
        let host = url.host_str().unwrap_or_default().to_owned();
        let names: Vec<&str> = host.rsplit('.').take(2).collect();
        if url.domain().is_some() { names.join(".") } else { host.clone() }
    };
    one.host_str() == other.host_str() || (one.domain().is_some() && domain(one) == domain(other))
}

/// A parameter of a challenge, as `realm="…"`.
fn parameter(challenge: &str, name: &str) -> Option<String> {
    let from = challenge.find(&format!("{name}=\""))? + name.len() + 2;
    let rest = challenge.get(from..)?;
    rest.split_once('"').map(|(value, _)| value.to_owned())
}

fn target(answer: &Response) -> Result<Url, RegistryError> {
    let place = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let place = place.and_then(|place| answer.url().join(place).ok());
    place.ok_or_else(|| unreachable(answer.url(), "it sends on, and says not where".to_owned()))
}

fn unreachable(url: &Url, detail: String) -> RegistryError {
    RegistryError::Unreachable { url: url.to_string(), detail }
}

//! `toolgate:plugin/http`: requests that the host sends, through `toolgate-net` and nothing else.
//!
//! The guard of `net` judges addresses and redirects; here stand the rules of one label: origins,
//! methods, headers that a guest may set, secrets and where they may go. Bounds: the timeout and
//! the answer's size of the label, [`MAX_AT_ONCE`] requests of one label at a time, 64 headers,
//! `host-bytes` each way, and the waiting time of the call.
//!
//! Threat: a guest that wants another host, another method or another identity than it was given,
//! and a server that sends a bound secret back, so that the guest could read it there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use tokio::sync::Semaphore;
use toolgate_net::Url;
use toolgate_net::guard::{Guard, GuardError, GuardedRequest, GuardedResponse, Rules, public_or};
use wasmtime::component::Resource;

use super::origin::{Origins, narrowed};
use super::{invalid, not_granted, too_large};
use crate::bindings::http::{Header, Host, HostClient, Incoming, Outgoing};
use crate::bindings::types::Error;
use crate::error::LoadErrorKind;
use crate::io;
use crate::json;
use crate::opened::{Given, Opened, only_declared};
use crate::state::State;

/// Requests of one label at the same time, over all callers.
const MAX_AT_ONCE: usize = 4;
/// Headers of one request.
const MAX_HEADERS: usize = 64;
/// Bytes of all header names and values of one request.
const MAX_HEADER_BYTES: usize = 16 << 10;
/// Bytes of a URL.
const MAX_URL: usize = 8 << 10;
/// What a request may take that the operator gave no time.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);
/// What it may take at most.
const MAX_TIMEOUT: Duration = Duration::from_secs(30);

/// One open label.
pub(crate) struct Label {
    guard: Guard,
    hosts: Origins,
    methods: Vec<Method>,
    max_response: usize,
    timeout: Duration,
    places: Arc<Semaphore>,
}

/// What stands behind a `client` handle.
#[allow(unreachable_pub)] // the generated bindings re-export it, which they can only for a `pub` item
pub struct Client {
    label: String,
    pub(super) bindings: Vec<Binding>,
}

/// A secret that goes into a header of one client.
#[derive(Clone)]
pub(super) struct Binding {
    pub(super) label: String,
    pub(super) header: HeaderName,
    pub(super) value: HeaderValue,
}

/// The labels that are open.
pub(crate) fn validate(given: &Given<'_>) -> Result<BTreeMap<String, Label>, LoadErrorKind> {
    let mut open = BTreeMap::new();
    for (label, declared, grant) in
        only_declared("http", &given.release.capabilities.http, &given.grants.http)?
    {
        let mut hosts = narrowed(&format!("http.{label}.hosts"), &declared.hosts, grant.hosts.as_deref())?;
        hosts.extend(hosts_of_settings(given)?);
        let methods = methods(label, &declared.methods, grant.methods.as_deref())?;
        let guard = Guard::new(given.ports.lookup(), public_or(&hosts.loopback_hosts()))
            .map_err(|error| LoadErrorKind::Host(error.to_string()))?;
        let most = [declared.max_response, grant.max_response].into_iter().flatten();
        let most = most.filter_map(|bytes| usize::try_from(bytes).ok());
        open.insert(
            label.clone(),
            Label {
                guard,
                hosts,
                methods,
                max_response: most.fold(given.limits.host_bytes, usize::min),
                timeout: grant.timeout.unwrap_or(DEFAULT_TIMEOUT).min(MAX_TIMEOUT),
                places: Arc::new(Semaphore::new(MAX_AT_ONCE)),
            },
        );
    }
    Ok(open)
}

/// Hosts that the operator wrote into the settings, at the places that the release names.
fn hosts_of_settings(given: &Given<'_>) -> Result<Origins, LoadErrorKind> {
    let mut found = Origins::default();
    for pointer in &given.release.settings_hosts {
        let raw = json::lookup(given.settings.text(), pointer)
            .map_err(|error| LoadErrorKind::Malformed(format!("settings_hosts: {error}")))?;
        let Some(raw) = raw else { continue };
        let list: Vec<String> = match serde_json::from_str(raw) {
            Ok(serde_json::Value::String(one)) => vec![one],
            Ok(value) => serde_json::from_value(value).map_err(|_| {
                LoadErrorKind::Settings(format!("a host, or a list of hosts, is needed at {pointer}"))
            })?,
            Err(_) => Vec::new(),
        };
        // A setting may hold a whole URL, as a registry's; its origin is what is granted.
        let origins: Vec<String> = list.iter().map(|text| origin_of(text)).collect();
        found.extend(Origins::parse(&format!("settings {pointer}"), &origins)?);
    }
    Ok(found)
}

fn origin_of(text: &str) -> String {
    match Url::parse(text) {
        Ok(url) if url.username().is_empty() && url.password().is_none() => {
            url.origin().ascii_serialization()
        }
        _ => text.to_owned(),
    }
}

fn methods(
    label: &str,
    declared: &[String],
    granted: Option<&[String]>,
) -> Result<Vec<Method>, LoadErrorKind> {
    let wanted = granted.unwrap_or(declared);
    if let Some(method) = wanted.iter().find(|method| !declared.contains(*method)) {
        return Err(LoadErrorKind::Grant(format!(
            "grants.http.{label}.methods: `{method}` is not among what its release declares"
        )));
    }
    let parse = |method: &String| match method.to_ascii_uppercase().parse::<Method>() {
        // These two are tunnels and echoes, no requests to a resource.
        Ok(method) if method != Method::CONNECT && method != Method::TRACE => Ok(method),
        _ => Err(LoadErrorKind::Grant(format!("http.{label}.methods: `{method}` is no method"))),
    };
    wanted.iter().map(parse).collect()
}

impl Host for State {}

impl HostClient for State {
    fn open(&mut self, label: String) -> wasmtime::Result<Result<Resource<Client>, Error>> {
        if let Err(error) = self.may_change("http") {
            return Ok(Err(error));
        }
        if !self.shared.opened.http.contains_key(&label) {
            return Ok(Err(not_granted("http", &label)));
        }
        Ok(Ok(self.table.push(Client { label, bindings: Vec::new() })?))
    }

    fn send(
        &mut self,
        client: Resource<Client>,
        request: Outgoing,
    ) -> wasmtime::Result<Result<Incoming, Error>> {
        let client = self.table.get(&client)?;
        let (label, bindings) = (client.label.clone(), client.bindings.clone());
        Ok(self.sent(&label, bindings, request))
    }

    fn drop(&mut self, client: Resource<Client>) -> wasmtime::Result<()> {
        self.table.delete(client)?;
        Ok(())
    }
}

impl State {
    fn sent(&mut self, label: &str, bindings: Vec<Binding>, request: Outgoing) -> Result<Incoming, Error> {
        self.may_change("http")?;
        let shared = Arc::clone(&self.shared);
        let open = shared.opened.http.get(label).ok_or_else(|| not_granted("http", label))?;
        let request = prepared(request, open, shared.limits.host_bytes)?;
        let rules = HopRules { label: label.to_owned(), bindings, shared: Arc::clone(&shared) };
        self.wait(move |left| {
            let timeout = open.timeout.min(left);
            let request = GuardedRequest { timeout, ..request };
            let (guard, places) = (open.guard.clone(), Arc::clone(&open.places));
            let work = async move {
                // The wait for a place counts towards the same time.
                let _place = places.acquire_owned().await;
                let answer = guard.send(request, &rules).await;
                (answer, rules)
            };
            let busy = || {
                Error::Unavailable(format!(
                    "no complete answer within the timeout of {} ms",
                    timeout.as_millis()
                ))
            };
            let (answer, rules) = io::within(timeout, work).ok_or_else(busy)?;
            answer.map(|answer| incoming(answer, &rules)).map_err(error_of)
        })
    }
}

/// The rules of one label for each hop of a request.
struct HopRules {
    label: String,
    bindings: Vec<Binding>,
    shared: Arc<crate::state::Shared>,
}

impl Rules for HopRules {
    fn hop(&self, method: &Method, url: &Url) -> Result<HeaderMap, String> {
        let opened: &Opened = &self.shared.opened;
        let label = self.label.as_str();
        let Some(open) = opened.http.get(label) else { return Err(format!("http.{label} is not open")) };
        if !url.username().is_empty() || url.password().is_some() {
            return Err("a URL with a user name is not requested".to_owned());
        }
        if !open.hosts.cover(url) {
            return Err(format!("{} is not among the hosts of http.{label}", shown(url)));
        }
        if !open.methods.contains(method) {
            return Err(format!("{method} is not among the methods of http.{label}"));
        }
        let mut headers = HeaderMap::new();
        for binding in &self.bindings {
            let secret = binding.label.as_str();
            if !opened.secrets.get(secret).is_some_and(|secret| secret.send_to.cover(url)) {
                return Err(format!("the secret `{secret}` may not be sent to {}", shown(url)));
            }
            headers.insert(binding.header.clone(), binding.value.clone());
        }
        Ok(headers)
    }
}

/// Scheme, host and port; the rest of a URL may hold what a log should not.
fn shown(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// Checks what a guest wants to send.
fn prepared(request: Outgoing, open: &Label, host_bytes: usize) -> Result<GuardedRequest, Error> {
    if request.url.len() > MAX_URL {
        return Err(too_large(request.url.len(), MAX_URL));
    }
    let mut url = Url::parse(&request.url).map_err(|_| invalid("that is no absolute URL"))?;
    url.set_fragment(None);
    let method: Method = request.method.parse().map_err(|_| invalid("that is no method"))?;
    if let Some(body) = &request.body
        && body.len() > host_bytes
    {
        return Err(too_large(body.len(), host_bytes));
    }
    Ok(GuardedRequest {
        method,
        url,
        headers: guest_headers(&request.headers)?,
        body: request.body,
        max_response: open.max_response,
        timeout: open.timeout,
    })
}

fn guest_headers(list: &[Header]) -> Result<HeaderMap, Error> {
    let bytes: usize = list.iter().map(|header| header.name.len() + header.value.len()).sum();
    if list.len() > MAX_HEADERS || bytes > MAX_HEADER_BYTES {
        return Err(Error::LimitExceeded(format!(
            "a request has at most {MAX_HEADERS} headers of {MAX_HEADER_BYTES} bytes in all"
        )));
    }
    let mut headers = HeaderMap::new();
    for entry in list {
        let name = HeaderName::try_from(&entry.name).map_err(|_| invalid("that is no name of a header"))?;
        if is_framing(&name) || is_identity(&name) {
            return Err(invalid(format!("the header {name} is the host's")));
        }
        let value = HeaderValue::try_from(&entry.value)
            .map_err(|_| invalid(format!("the value of {name} is no text that a header can hold")))?;
        headers.append(name, value);
    }
    Ok(headers)
}

/// Headers that say where a message goes and where it ends (RFC 9110 7.6.1, RFC 9112 6).
pub(super) fn is_framing(name: &HeaderName) -> bool {
    const FRAMING: [HeaderName; 8] = [
        header::HOST,
        header::CONTENT_LENGTH,
        header::TRANSFER_ENCODING,
        header::CONNECTION,
        header::TE,
        header::TRAILER,
        header::UPGRADE,
        header::EXPECT,
    ];
    FRAMING.contains(name) || name.as_str() == "keep-alive" || name.as_str().starts_with("proxy-")
}

/// Headers that say who asks: those come from a bound secret, or from nowhere.
fn is_identity(name: &HeaderName) -> bool {
    *name == header::AUTHORIZATION || *name == header::COOKIE
}

fn error_of(error: GuardError) -> Error {
    match error {
        GuardError::Denied(why) => Error::Denied(why),
        GuardError::TooLarge(why) => Error::LimitExceeded(why),
        GuardError::Unavailable(why) => Error::Unavailable(why),
    }
}

/// The answer without the secrets that were sent for it.
fn incoming(answer: GuardedResponse, rules: &HopRules) -> Incoming {
    let secrets: Vec<&str> = rules
        .bindings
        .iter()
        .filter_map(|binding| Some(rules.shared.opened.secrets.get(&binding.label)?.value.expose()))
        .collect();
    let text = |text: String| {
        let bytes = blanked(text.into_bytes(), &secrets);
        String::from_utf8_lossy(&bytes).into_owned()
    };
    Incoming {
        status: answer.status,
        url: text(answer.url.to_string()),
        headers: answer
            .headers
            .into_iter()
            .map(|(name, value)| Header { name, value: text(value) })
            .collect(),
        body: blanked(answer.body, &secrets),
    }
}

/// Puts `*` in place of every byte of a secret.
fn blanked(mut bytes: Vec<u8>, secrets: &[&str]) -> Vec<u8> {
    for secret in secrets.iter().map(|secret| secret.as_bytes()).filter(|secret| !secret.is_empty()) {
        let mut at = 0;
        while let Some(found) =
            bytes.get(at..).and_then(|rest| rest.windows(secret.len()).position(|window| window == secret))
        {
            let start = at + found;
            if let Some(place) = bytes.get_mut(start..start + secret.len()) {
                place.fill(b'*');
            }
            at = start + secret.len();
        }
    }
    bytes
}

#[cfg(test)]
mod tests;

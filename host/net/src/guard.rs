//! Requests to addresses that somebody else chose: a plugin, a registry entry, a redirect.
//!
//! Contract: [`Guard::send`] sends one request and gives the whole answer. The caller's [`Rules`]
//! see every URL before anything is dialled, the first one and each redirect. A name is resolved
//! once, by the guard, where the connection is made: the addresses that were judged are the ones
//! that are dialled, and there is no second look-up whose answer could differ (DNS rebinding).
//! Judged by [`classify`]: only public addresses, and this machine's own where the operator named
//! that host itself as a loopback address.
//!
//! Bounds: redirects, bytes of the answer, headers, and one clock over everything from the
//! look-up to the last byte, so that an answer that drips ends like one that never comes.
//!
//! Threat: a host that is allowed and hostile. It cannot make the guard speak to another host, fill
//! memory, or hold the caller.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{HeaderMap, LOCATION};
use reqwest::{Client, Method, RequestBuilder, StatusCode, Url};

use crate::address::{AddressClass, class_of_host, classify};
use crate::client::{ClientOptions, NetError, builder};

/// Most redirects of one request.
pub const MAX_REDIRECTS: usize = 5;
/// Most headers of an answer that are kept.
const MAX_HEADERS: usize = 64;
/// Bytes of all kept header names and values.
const MAX_HEADER_BYTES: usize = 16 << 10;

/// Turns a name into addresses. One implementation asks the system; tests have others.
pub trait Lookup: Send + Sync {
    /// The addresses of a name, in the order in which they are to be tried.
    fn lookup(&self, name: String) -> Looking;
}

/// An answer to come.
pub type Looking = Pin<Box<dyn Future<Output = std::io::Result<Vec<IpAddr>>> + Send>>;

/// The resolver of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn lookup(&self, name: String) -> Looking {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Which addresses a host of a URL may have.
pub type AddressRule = Arc<dyn Fn(&str, IpAddr) -> bool + Send + Sync>;

/// Public addresses for everybody; loopback ones for the hosts in `loopback`, which are compared
/// exactly and have to be loopback addresses or `localhost` themselves. So no name that a stranger
/// owns can lead to this machine, whatever it resolves to.
pub fn public_or(loopback: &[String]) -> AddressRule {
    let named: Vec<String> =
        loopback.iter().filter(|host| class_of_host(host).is_loopback()).map(|host| bare(host)).collect();
    Arc::new(move |host, address| match classify(address) {
        AddressClass::Public => true,
        AddressClass::Loopback => named.contains(&bare(host)),
        _ => false,
    })
}

/// As [`public_or`], and addresses of private networks for the hosts in `private`: those that the operator
/// says are there. Link-local addresses and those of cloud credentials are nobody's.
pub fn public_or_private(loopback: &[String], private: &[String]) -> AddressRule {
    let elsewhere = public_or(loopback);
    let named: Vec<String> = private.iter().map(|host| bare(host)).collect();
    Arc::new(move |host, address| {
        elsewhere(host, address)
            || (classify(address) == AddressClass::Private && named.contains(&bare(host)))
    })
}

/// A client whose every connection is judged, for answers that are read as they come. It follows nothing:
/// each redirect is a request of its own, and judged like the first. Cheap to clone; clones share
/// connections.
#[derive(Clone)]
pub struct Dialer {
    client: Client,
    permits: AddressRule,
}

impl Dialer {
    /// A dialer with a connection pool of its own.
    pub fn new(
        options: &ClientOptions,
        lookup: Arc<dyn Lookup>,
        permits: AddressRule,
    ) -> Result<Self, NetError> {
        let resolver = Judged { lookup, permits: Arc::clone(&permits) };
        let client = builder(options)?
            .dns_resolver(Arc::new(resolver))
            .pool_idle_timeout(Duration::from_secs(30))
            .build()
            .map_err(NetError::Client)?;
        Ok(Self { client, permits })
    }

    /// A request that may be sent; the addresses of a name are judged when it is.
    pub fn request(&self, method: Method, url: Url) -> Result<RequestBuilder, GuardError> {
        self.check_literal(&url)?;
        Ok(self.client.request(method, url))
    }

    /// A host that is an address is never looked up, and `localhost` is pinned in every client: both
    /// are judged here.
    fn check_literal(&self, url: &Url) -> Result<(), GuardError> {
        let host = url.host_str().unwrap_or_default();
        let name = bare(host);
        let address = if name == "localhost" { Ok(IpAddr::from([127, 0, 0, 1])) } else { name.parse() };
        match address {
            Ok(address) if !(self.permits)(host, address) => {
                Err(GuardError::Denied(refused(host, &[address])))
            }
            _ => Ok(()),
        }
    }
}

impl std::fmt::Debug for Dialer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Dialer")
    }
}

/// What the caller says about one hop.
pub trait Rules: Sync {
    /// Whether this request may be made, and the headers that belong to this hop alone, such as
    /// credentials. The text says why not.
    fn hop(&self, method: &Method, url: &Url) -> Result<HeaderMap, String>;
}

/// One request.
#[derive(Debug, Clone)]
pub struct GuardedRequest {
    /// The method.
    pub method: Method,
    /// Where to.
    pub url: Url,
    /// Headers of every hop.
    pub headers: HeaderMap,
    /// The body; not sent again where a redirect turns the request into a GET.
    pub body: Option<Vec<u8>>,
    /// Most bytes of the answer.
    pub max_response: usize,
    /// Bound on everything.
    pub timeout: Duration,
}

/// One whole answer.
#[derive(Debug, Clone)]
pub struct GuardedResponse {
    /// The status.
    pub status: u16,
    /// Where it came from, after redirects.
    pub url: Url,
    /// Its headers: names in lower case, values that are text.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GuardError {
    /// The rules, or the class of the address, do not allow it. Nothing was dialled.
    #[error("{0}")]
    Denied(String),
    /// A bound was met.
    #[error("{0}")]
    TooLarge(String),
    /// The other side is not there, or did not answer in time.
    #[error("{0}")]
    Unavailable(String),
}

/// A client that waits for whole answers and follows redirects, each one judged. Cheap to clone.
#[derive(Clone)]
pub struct Guard {
    dialer: Dialer,
}

impl Guard {
    /// A guard with a connection pool of its own.
    pub fn new(lookup: Arc<dyn Lookup>, permits: AddressRule) -> Result<Self, NetError> {
        let options = ClientOptions { connect_timeout: Duration::from_secs(5), ..ClientOptions::default() };
        Dialer::new(&options, lookup, permits).map(|dialer| Self { dialer })
    }

    /// Sends a request and waits for the whole answer, following redirects.
    pub async fn send(
        &self,
        request: GuardedRequest,
        rules: &dyn Rules,
    ) -> Result<GuardedResponse, GuardError> {
        let timeout = request.timeout;
        match tokio::time::timeout(timeout, self.follow(request, rules)).await {
            Ok(answer) => answer,
            Err(_) => Err(GuardError::Unavailable(format!(
                "no complete answer within the timeout of {} ms",
                timeout.as_millis()
            ))),
        }
    }

    async fn follow(
        &self,
        request: GuardedRequest,
        rules: &dyn Rules,
    ) -> Result<GuardedResponse, GuardError> {
        let GuardedRequest { mut method, mut url, mut headers, mut body, max_response, .. } = request;
        for _ in 0..=MAX_REDIRECTS {
            let own = rules.hop(&method, &url).map_err(GuardError::Denied)?;
            let hop = self.dialer.request(method.clone(), url.clone())?;
            let mut hop = hop.headers(headers.clone()).headers(own);
            if let Some(body) = &body {
                hop = hop.body(body.clone());
            }
            let response = hop.send().await.map_err(|error| failed(&error))?;
            let Some(target) = redirected(&response, &url)? else {
                return whole(response, url, max_response).await;
            };
            if !keeps_method(response.status()) && method != Method::HEAD {
                method = Method::GET;
                body = None;
                headers.remove(reqwest::header::CONTENT_TYPE);
            }
            url = target;
        }
        Err(GuardError::TooLarge(format!("more than {MAX_REDIRECTS} redirects")))
    }
}

/// Looks a name up and keeps the addresses that may be dialled.
struct Judged {
    lookup: Arc<dyn Lookup>,
    permits: AddressRule,
}

/// Marks a refusal inside the errors of the client.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refused(String);

impl Resolve for Judged {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        let permits = Arc::clone(&self.permits);
        let looking = self.lookup.lookup(name.clone());
        Box::pin(async move {
            let found = looking.await?;
            let kept: Vec<SocketAddr> = found
                .iter()
                .filter(|address| permits(&name, **address))
                .map(|address| SocketAddr::new(*address, 0))
                .collect();
            if kept.is_empty() {
                return Err(Refused(refused(&name, &found)).into());
            }
            let addresses: Addrs = Box::new(kept.into_iter());
            Ok(addresses)
        })
    }
}

fn refused(host: &str, found: &[IpAddr]) -> String {
    let Some(address) = found.first() else {
        return format!("the name {host} has no address");
    };
    let class = match classify(*address) {
        AddressClass::Loopback => "an address of this machine",
        AddressClass::Private => "an address of a private network",
        AddressClass::LinkLocal => "a link-local address",
        AddressClass::Metadata => "an address from which cloud machines give credentials",
        _ => "an address that no server has",
    };
    format!("{host} is {address}, {class}, which is not dialled")
}

/// A refusal of the guard's own, wherever it stands in the chain, else a failure of the network.
pub fn failed(error: &reqwest::Error) -> GuardError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut innermost = String::new();
    while let Some(now) = cause {
        if let Some(Refused(why)) = now.downcast_ref::<Refused>() {
            return GuardError::Denied(why.clone());
        }
        innermost = now.to_string();
        cause = now.source();
    }
    GuardError::Unavailable(format!("the request came to nothing: {innermost}"))
}

/// Where a redirect leads; none where this is the answer.
fn redirected(response: &reqwest::Response, from: &Url) -> Result<Option<Url>, GuardError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(LOCATION) else {
        return Ok(None);
    };
    let target = location.to_str().ok().and_then(|text| from.join(text).ok());
    target.map(Some).ok_or_else(|| GuardError::Unavailable("a redirect leads to no URL".to_owned()))
}

fn keeps_method(status: StatusCode) -> bool {
    matches!(status.as_u16(), 307 | 308)
}

async fn whole(
    mut response: reqwest::Response,
    url: Url,
    limit: usize,
) -> Result<GuardedResponse, GuardError> {
    let too_large = || GuardError::TooLarge(format!("the answer has more than {limit} bytes"));
    if response.content_length().is_some_and(|stated| stated > limit as u64) {
        return Err(too_large());
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| failed(&error))? {
        if body.len().saturating_add(chunk.len()) > limit {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(GuardedResponse {
        status: response.status().as_u16(),
        headers: text_headers(response.headers()),
        url,
        body,
    })
}

fn text_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let mut bytes = 0_usize;
    headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())))
        .take(MAX_HEADERS)
        .take_while(|(name, value)| {
            bytes = bytes.saturating_add(name.len() + value.len());
            bytes <= MAX_HEADER_BYTES
        })
        .collect()
}

/// A host without the brackets of an IPv6 address, in lower case.
fn bare(host: &str) -> String {
    let inside = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    inside.to_ascii_lowercase()
}

#[cfg(test)]
mod tests;

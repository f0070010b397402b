//! The factory of HTTP clients.
//!
//! Contract: [`client`] gives a client that speaks TLS through rustls with ring, trusts the roots of
//! this machine, takes nothing from the environment but the place of those roots, follows nothing
//! and remembers nothing. Bounded by a connect timeout always, by a total timeout only when asked:
//! an MCP event stream may rightly stay open for hours, and its deadlines belong to each call.
//!
//! Roots are the machine's own store (rustls-native-certs) and not a list compiled in: a company
//! that runs its own authority has put it there, an operator who distrusts one has removed it there,
//! and a list compiled in grows old with the binary. Where the store is empty (a bare container),
//! https fails with that reason and plain http to loopback still works.
//!
//! Threat: `localhost` answered by a resolver with somebody else's address. The name is pinned to
//! 127.0.0.1 and `::1`, so that what [`crate::is_loopback`] judged is what is dialled.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

#[cfg(test)]
mod tests;

/// What a client may be asked for. [`Default`]: 10 s to connect, no total timeout,
/// `toolgate/<version>` as user agent, HTTP/1.1 and HTTP/2.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Bound on name resolution, TCP and TLS together. Zero is refused.
    pub connect_timeout: Duration,
    /// Bound on a whole exchange, body included. `None` for anything that may stream.
    pub total_timeout: Option<Duration>,
    /// The `User-Agent` header of every request.
    pub user_agent: String,
    /// Refuse every URL that is not https, before anything is dialled.
    pub https_only: bool,
    /// Certificates of authorities, as PEM, that are believed beside those of this machine.
    pub authorities: Vec<u8>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            total_timeout: None,
            user_agent: concat!("toolgate/", env!("CARGO_PKG_VERSION")).to_owned(),
            https_only: false,
            authorities: Vec::new(),
        }
    }
}

/// Why no client could be made.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// The caller's options cannot work: a defect of the calling code or of a value it passed on.
    #[error("the options for an HTTP client are not usable: {0}")]
    Options(&'static str),
    /// The certificates of an authority cannot be used.
    #[error("the certificates of its authority cannot be used: {0}")]
    Authorities(String),
    /// The certificate or the key of a server cannot be used.
    #[error("the certificate of the server cannot be used: {0}")]
    Certificate(String),
    /// rustls refused the configuration: a defect of this build.
    #[error("TLS could not be set up in this build")]
    Tls(#[source] rustls::Error),
    /// reqwest refused to build the client, for example for a user agent that is no header value.
    #[error("the HTTP client could not be built")]
    Client(#[source] reqwest::Error),
}

/// Makes a client. Cheap to clone afterwards; each one has a connection pool of its own, so a caller
/// that must not share connections with another makes its own.
pub fn client(options: &ClientOptions) -> Result<reqwest::Client, NetError> {
    builder(options)?.build().map_err(NetError::Client)
}

/// What every client of Toolgate has in common.
pub(crate) fn builder(options: &ClientOptions) -> Result<reqwest::ClientBuilder, NetError> {
    if options.connect_timeout.is_zero() {
        return Err(NetError::Options("connect_timeout is zero; give at least a millisecond"));
    }
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls(&options.authorities)?)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .https_only(options.https_only)
        .connect_timeout(options.connect_timeout)
        .user_agent(&options.user_agent)
        .resolve_to_addrs("localhost", &localhost());
    if let Some(total) = options.total_timeout {
        builder = builder.timeout(total);
    }
    Ok(builder)
}

fn tls(authorities: &[u8]) -> Result<rustls::ClientConfig, NetError> {
    let mut config = config(authorities)?;
    // A TLS setup handed to reqwest is used as it is, so the protocols it may choose are named here.
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// The one TLS set-up: ring, the machine's roots and those that the caller names, no certificate of our own.
pub(crate) fn config(authorities: &[u8]) -> Result<rustls::ClientConfig, NetError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(NetError::Tls)?
        .with_root_certificates(roots_and(authorities)?)
        .with_no_client_auth())
}

/// The machine's roots and those that the caller names.
fn roots_and(authorities: &[u8]) -> Result<Arc<RootCertStore>, NetError> {
    if authorities.is_empty() {
        return Ok(Arc::clone(roots()));
    }
    let unusable = |error: &dyn std::fmt::Display| NetError::Authorities(error.to_string());
    let mut store = RootCertStore::clone(roots());
    let before = store.len();
    for certificate in CertificateDer::pem_slice_iter(authorities) {
        let certificate = certificate.map_err(|error| unusable(&error))?;
        store.add(certificate).map_err(|error| unusable(&error))?;
    }
    if store.len() == before {
        return Err(NetError::Authorities("there is no certificate in PEM form".to_owned()));
    }
    Ok(Arc::new(store))
}

/// The machine's roots, read once: parsing them takes milliseconds, and a root that changes while
/// the gateway runs counts from its next start.
fn roots() -> &'static Arc<RootCertStore> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    ROOTS.get_or_init(|| {
        let found = rustls_native_certs::load_native_certs();
        let mut store = RootCertStore::empty();
        let (_, unusable) = store.add_parsable_certificates(found.certs);
        for error in &found.errors {
            tracing::warn!(%error, "a part of this machine's certificate store could not be read");
        }
        if unusable > 0 {
            tracing::debug!(unusable, "certificates in this machine's store that rustls does not read");
        }
        if store.is_empty() {
            tracing::warn!("this machine has no certificate store; every https connection will be refused (install ca-certificates)");
        }
        Arc::new(store)
    })
}

/// The addresses of this machine; port 0 lets the port of the URL stand.
pub(crate) fn localhost() -> [SocketAddr; 2] {
    [SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0), SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 0)]
}

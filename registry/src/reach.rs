//! How the hosts of registries are reached: which addresses are dialled, whom TLS believes, and as whom.
//!
//! Contract: every request of this crate goes through a [`Dialer`] made here. Public addresses are dialled;
//! one of this machine only where the place that somebody named is itself one; one of a private network
//! only for hosts that somebody said are there. What was judged is what is dialled, and each redirect is
//! judged again. Nothing here turns the verification of TLS off: a further authority is named by its
//! certificate.
//!
//! Threat: an index or a registry that sends to a server beside this machine, and a name that leads there.

use std::sync::Arc;
use std::time::Duration;

use toolgate_base::Secret;
use toolgate_net::guard::{Dialer, GuardError, Lookup, SystemLookup, public_or_private};
use toolgate_net::{ClientOptions, Url};

use crate::error::RegistryError;
use crate::source::said;

/// Longest time for one file.
const DEADLINE: Duration = Duration::from_mins(5);

/// Name and password for a registry that wants them.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// The name.
    pub username: String,
    /// The password, or a token in its place.
    pub password: Secret,
}

/// What is known of one host.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// The host in lower case, with its port where it is not the scheme's own.
    pub host: String,
    /// Certificates of authorities, as PEM, that are believed for it beside those of this machine.
    pub authorities: Vec<u8>,
    /// Whether its addresses may be those of a private network.
    pub private: bool,
    /// As whom to sign in, where an OCI registry wants that.
    pub credentials: Option<Credentials>,
}

impl Host {
    /// The host of a URL, or of `HOST[:PORT]`, of which nothing else is known yet.
    pub fn named(place: &str) -> Self {
        let host = Url::parse(place).ok().filter(Url::has_host).map(|url| authority(&url));
        Self { host: host.unwrap_or_else(|| place.to_ascii_lowercase()), ..Self::default() }
    }
}

/// What is known of hosts. The default knows none: public addresses, and this machine where it is named.
#[derive(Clone, Default)]
pub struct Reach {
    hosts: Vec<Host>,
    lookup: Option<Arc<dyn Lookup>>,
}

impl Reach {
    /// With these hosts.
    pub const fn new(hosts: Vec<Host>) -> Self {
        Self { hosts, lookup: None }
    }

    /// With another resolver of names than the system's.
    #[must_use]
    pub fn with_lookup(mut self, lookup: Arc<dyn Lookup>) -> Self {
        self.lookup = Some(lookup);
        self
    }

    /// What is known of the host of a URL, or of `HOST[:PORT]`.
    pub(crate) fn host(&self, authority: &str) -> Option<&Host> {
        let wanted = authority.to_ascii_lowercase();
        self.hosts.iter().find(|host| host.host == wanted)
    }

    /// For requests that begin at this URL, which somebody named.
    pub(crate) fn dialer(&self, named: &Url) -> Result<Dialer, String> {
        let authorities = self.host(&authority(named)).map(|host| host.authorities.clone());
        let options = ClientOptions {
            total_timeout: Some(DEADLINE),
            authorities: authorities.unwrap_or_default(),
            ..ClientOptions::default()
        };
        let loopback = [named.host_str().unwrap_or_default().to_owned()];
        let private = self.hosts.iter().filter(|host| host.private);
        let private: Vec<String> = private.map(|host| without_port(&host.host).to_owned()).collect();
        let lookup = self.lookup.clone().unwrap_or_else(|| Arc::new(SystemLookup));
        Dialer::new(&options, lookup, public_or_private(&loopback, &private))
            .map_err(|error| error.to_string())
    }
}

impl std::fmt::Debug for Reach {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Reach").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

/// A request that was not sent, because its address may not be dialled.
pub(crate) fn not_dialled(url: &Url, error: &GuardError) -> RegistryError {
    RegistryError::NotDialled { url: url.to_string(), why: error.to_string() }
}

/// A request that came to nothing: an address that may not be dialled, or the network.
pub(crate) fn unsent(url: &Url, error: &reqwest::Error) -> RegistryError {
    match toolgate_net::guard::failed(error) {
        GuardError::Denied(why) => RegistryError::NotDialled { url: url.to_string(), why },
        _ => RegistryError::Unreachable { url: url.to_string(), detail: said(error) },
    }
}

/// Host and port of a URL as [`Host::host`] has them.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// The host of `HOST[:PORT]`; an IPv6 address stands in brackets.
fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !host.is_empty() => host,
        _ => authority,
    }
}

#[cfg(test)]
mod tests;

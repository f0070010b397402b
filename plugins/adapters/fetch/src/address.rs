//! Which URL may be fetched. Strict on purpose: what two readers could take for different hosts is
//! refused, whatever each of them would make of it.

use core::net::{Ipv4Addr, Ipv6Addr};

/// Longest URL, bytes.
const MAX_URL: usize = 4096;
/// Names, and ends of names, that only private networks know (RFC 6761, 6762, 8375, ICANN `.internal`).
const PRIVATE_NAMES: [&str; 8] =
    ["localhost", "local", "internal", "intranet", "lan", "home.arpa", "localdomain", "corp"];

/// Refuses a URL; the text says why, for the caller.
pub(crate) fn check(url: &str, schemes: &[String], hosts: Option<&[String]>) -> Result<(), String> {
    if url.len() > MAX_URL {
        return Err(format!("the URL is longer than {MAX_URL} bytes"));
    }
    if url.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
        return Err("the URL holds a blank, a control character or a backslash".to_owned());
    }
    let (scheme, rest) = url.split_once("://").ok_or("the URL is not absolute")?;
    if !schemes.iter().any(|allowed| allowed.eq_ignore_ascii_case(scheme)) {
        return Err(format!("the scheme must be one of {}", schemes.join(", ")));
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err("the URL holds a user name".to_owned());
    }
    let host = host_of(authority)?;
    refuse_private(&host)?;
    match hosts {
        Some(hosts) if !hosts.iter().any(|pattern| covers(pattern, &host)) => {
            Err(format!("the host `{host}` is not among those that may be fetched"))
        }
        _ => Ok(()),
    }
}

/// The host without its port, in lower case.
fn host_of(authority: &str) -> Result<String, String> {
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (address, after) = rest.split_once(']').ok_or("the URL has no host")?;
        address.parse::<Ipv6Addr>().map_err(|_| "the host is no address")?;
        (address, after.strip_prefix(':').or(after.is_empty().then_some("")).ok_or("the URL has no host")?)
    } else {
        authority.split_once(':').unwrap_or((authority, ""))
    };
    if !port.is_empty() && (port.len() > 5 || !port.bytes().all(|byte| byte.is_ascii_digit())) {
        return Err("the port is no number".to_owned());
    }
    if host.is_empty() {
        return Err("the URL has no host".to_owned());
    }
    Ok(host.to_ascii_lowercase())
}

fn refuse_private(host: &str) -> Result<(), String> {
    let private = || Err(format!("`{host}` is an address of this machine or of a private network"));
    if let Ok(address) = host.parse::<Ipv6Addr>() {
        return if is_public_v6(address) { Ok(()) } else { private() };
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    if !host.bytes().all(plain) || host.split('.').any(str::is_empty) {
        return Err(format!("`{host}` is no plain host name; write an international one as xn--…"));
    }
    let last = host.rsplit('.').next().unwrap_or_default();
    if last.starts_with(|first: char| first.is_ascii_digit()) {
        // Whoever takes it for an address takes it for this one, or it is refused: `127.1`, `0x7f.1`,
        // `2130706433` and `010.0.0.1` mean different things to different readers.
        return match host.parse::<Ipv4Addr>() {
            Ok(address) if is_public_v4(address) => Ok(()),
            Ok(_) => private(),
            Err(_) => Err(format!("`{host}` is an address in a spelling that readers take differently")),
        };
    }
    let below =
        |name: &str| host == name || host.strip_suffix(name).is_some_and(|front| front.ends_with('.'));
    if !host.contains('.') || PRIVATE_NAMES.iter().any(|name| below(name)) {
        return Err(format!("`{host}` is a name of this machine or of a private network"));
    }
    Ok(())
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || first == 0
        || first >= 224
        || (first == 100 && (64..128).contains(&second))
        || (first == 198 && (second & 0xfe) == 18)
        || matches!(address.octets(), [192, 0, 0, _]))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let embedded = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..]
        | [0, 0, 0, 0, 0, 0 | 0xffff, high, low] => is_public_v4(embedded(high, low)),
        [first, second, ..] => (first & 0xe000) == 0x2000 && (first, second) != (0x2001, 0x0db8),
    }
}

/// `example.com`, or `*.example.com` for every name below it.
fn covers(pattern: &str, host: &str) -> bool {
    let pattern = pattern.to_ascii_lowercase();
    match pattern.strip_prefix("*.") {
        Some(parent) => {
            host.strip_suffix(parent).is_some_and(|front| front.len() > 1 && front.ends_with('.'))
        }
        None => pattern == host,
    }
}

//! Classes of addresses: which hosts are this machine, which are near it, which are the world.
//!
//! Contract: pure; a name is never resolved here. Hosts are compared exactly.
//! Threat: a host text that looks like one class and is dialled as another. So an IPv4 address is
//! taken only in its four-part decimal form (`0x7f.1`, `2130706433` and `127.1` are names here, and
//! names are [`AddressClass::Unknown`]), and an IPv4 address inside an IPv6 one is judged as IPv4.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[cfg(test)]
mod tests;

/// Where an address lies, seen from this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressClass {
    /// This machine: 127.0.0.0/8 (RFC 1122 section 3.2.1.3), `::1` (RFC 4291 section 2.5.3), or the
    /// name `localhost` (RFC 6761 section 6.3, which [`crate::client()`] dials as such).
    Loopback,
    /// The unspecified address (`0.0.0.0`, `::`): a listener on it is open to every network, and a
    /// client that dials it reaches this machine.
    Unspecified,
    /// An address that cloud machines ask for their own credentials: 169.254.169.254,
    /// 169.254.170.2, `fd00:ec2::254`, 100.100.100.200.
    Metadata,
    /// 169.254.0.0/16 (RFC 3927) and `fe80::/10` (RFC 4291 section 2.5.6), but for metadata.
    LinkLocal,
    /// 10/8, 172.16/12, 192.168/16 (RFC 1918), 100.64/10 (RFC 6598) and `fc00::/7` (RFC 4193).
    Private,
    /// Multicast, broadcast, documentation and other ranges that no server has.
    Special,
    /// Any other address.
    Public,
    /// A name, which only a resolver can classify.
    Unknown,
}

impl AddressClass {
    /// Whether an address of this class can be reached from nowhere but this machine.
    pub fn is_loopback(self) -> bool {
        self == Self::Loopback
    }
}

/// Whether `host` names this machine and nothing else: exactly `localhost` (any case), an address
/// in 127.0.0.0/8, or `::1`, with or without brackets. No name is resolved, and neither
/// `localhost.evil.example` nor `127.0.0.1.nip.io` counts (design: "hosts are compared exactly").
pub fn is_loopback(host: &str) -> bool {
    class_of_host(host).is_loopback()
}

/// The class of the host part of a URL: an address (IPv6 with or without brackets) or a name.
pub fn class_of_host(host: &str) -> AddressClass {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return classify(address);
    }
    if bare.eq_ignore_ascii_case("localhost") {
        return AddressClass::Loopback;
    }
    AddressClass::Unknown
}

/// The class of an address. An IPv6 address that carries an IPv4 one (mapped, RFC 4291 2.5.5.2;
/// translated, RFC 6052; 6to4, RFC 3056) has the class of the address in it: a gateway leads there.
pub fn classify(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(v4) => classify_v4(v4),
        IpAddr::V6(v6) => carried(v6).map_or_else(|| classify_v6(v6), classify_v4),
    }
}

fn carried(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let embedded = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => Some(embedded(high, low)),
        _ => address.to_ipv4_mapped(),
    }
}

fn classify_v4(address: Ipv4Addr) -> AddressClass {
    const METADATA: [Ipv4Addr; 3] = [
        Ipv4Addr::new(169, 254, 169, 254),
        Ipv4Addr::new(169, 254, 170, 2),
        Ipv4Addr::new(100, 100, 100, 200),
    ];
    let [first, second, ..] = address.octets();
    if METADATA.contains(&address) {
        AddressClass::Metadata
    } else if address.is_loopback() {
        AddressClass::Loopback
    } else if address.is_unspecified() {
        AddressClass::Unspecified
    } else if address.is_link_local() {
        AddressClass::LinkLocal
    } else if address.is_private() || (first == 100 && (64..128).contains(&second)) {
        AddressClass::Private
    } else if first == 0
        || first >= 224
        || address.is_documentation()
        // Benchmarks (RFC 2544) and protocol assignments (RFC 6890).
        || (first == 198 && (second & 0xfe) == 18)
        || matches!(address.octets(), [192, 0, 0, _])
    {
        AddressClass::Special
    } else {
        AddressClass::Public
    }
}

fn classify_v6(address: Ipv6Addr) -> AddressClass {
    const METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
    let [first, second, ..] = address.segments();
    if address == METADATA {
        AddressClass::Metadata
    } else if address.is_loopback() {
        AddressClass::Loopback
    } else if address.is_unspecified() {
        AddressClass::Unspecified
    } else if first & 0xffc0 == 0xfe80 {
        AddressClass::LinkLocal
    } else if first & 0xfe00 == 0xfc00 {
        AddressClass::Private
    } else if first & 0xff00 == 0xff00 || (first == 0x2001 && second == 0x0db8) {
        AddressClass::Special
    } else {
        AddressClass::Public
    }
}

use super::*;

#[test]
fn only_the_loopback_network_colon_colon_one_and_localhost_are_loopback() {
    for host in ["127.0.0.1", "127.255.255.254", "::1", "[::1]", "localhost", "LOCALHOST", "::ffff:127.0.0.1"]
    {
        assert!(is_loopback(host), "{host}");
    }
    for host in [
        "128.0.0.1",
        "0.0.0.0",
        "::",
        "localhost.evil.example",
        "localhost.",
        "127.0.0.1.nip.io",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "::2",
        "",
        "[::1",
    ] {
        assert!(!is_loopback(host), "{host}");
    }
}

#[test]
fn near_addresses_have_their_classes() {
    let cases = [
        ("10.1.2.3", AddressClass::Private),
        ("172.16.0.1", AddressClass::Private),
        ("172.32.0.1", AddressClass::Public),
        ("192.168.1.1", AddressClass::Private),
        ("100.64.0.1", AddressClass::Private),
        ("fd12::1", AddressClass::Private),
        ("169.254.1.1", AddressClass::LinkLocal),
        ("fe80::1", AddressClass::LinkLocal),
        ("169.254.169.254", AddressClass::Metadata),
        ("::ffff:169.254.169.254", AddressClass::Metadata),
        ("fd00:ec2::254", AddressClass::Metadata),
        ("224.0.0.1", AddressClass::Special),
        ("255.255.255.255", AddressClass::Special),
        ("2001:db8::1", AddressClass::Special),
        ("8.8.8.8", AddressClass::Public),
        ("2606:4700::1111", AddressClass::Public),
        ("0.0.0.0", AddressClass::Unspecified),
        ("example.com", AddressClass::Unknown),
    ];
    for (host, class) in cases {
        assert_eq!(class_of_host(host), class, "{host}");
    }
}

use super::*;

fn check(host: &str, origin: Option<&str>) -> bool {
    let guard =
        Guard::new(&["mcp.example:8443".into(), "Proxy.example".into()], &["https://app.example".into()]);
    let mut request = http::Request::post("/mcp").header("host", host);
    if let Some(origin) = origin {
        request = request.header("origin", origin);
    }
    guard.check(&request.body(()).unwrap().into_parts().0).is_ok()
}

#[test]
fn loopback_names_pass_on_any_port_and_nothing_that_only_looks_like_them() {
    for host in ["localhost", "LocalHost:8848", "127.0.0.1:1", "127.9.9.9", "[::1]:8848"] {
        assert!(check(host, None), "{host}");
    }
    for host in
        ["evil.example", "localhost.evil.example", "127.0.0.1.nip.example", "user@localhost", "0.0.0.0", ""]
    {
        assert!(!check(host, None), "{host}");
    }
}

#[test]
fn configured_hosts_pass_whole_or_by_name() {
    assert!(check("mcp.example:8443", None));
    assert!(!check("mcp.example:1", None));
    assert!(check("proxy.example:9", None));
}

#[test]
fn an_origin_is_our_own_or_configured() {
    assert!(check("localhost:8848", Some("http://localhost:8848")));
    assert!(check("localhost:8848", Some("https://app.example")));
    for origin in ["http://localhost:9999", "http://evil.example", "null", "https://app.example.evil", ""] {
        assert!(!check("localhost:8848", Some(origin)), "{origin}");
    }
}

#[test]
fn a_second_host_or_a_target_for_another_host_is_refused() {
    let guard = Guard::new(&[], &[]);
    let twice = http::Request::post("/mcp").header("host", "localhost").header("host", "localhost");
    assert!(guard.check(&twice.body(()).unwrap().into_parts().0).is_err());
    let absolute = http::Request::post("http://evil.example/mcp").header("host", "localhost");
    assert!(guard.check(&absolute.body(()).unwrap().into_parts().0).is_err());
    let none = http::Request::post("/mcp");
    assert!(guard.check(&none.body(()).unwrap().into_parts().0).is_err());
}

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Mutex;
use std::time::Instant;

use toolgate_base::Secret;
use toolgate_grants::{Grants, HttpGrant, SecretGrant};
use toolgate_signing::{HttpCapability, Kind, SecretCapability};

use super::super::testing::{Book, again, open};
use super::*;
use crate::bindings::secrets::HostSecret as _;
use crate::ports::Ports;
use crate::state::Phase;

/// A server on a loopback port: answers each connection once and keeps the heads it read.
struct Server {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// `%HEAD%` in the answer is what was asked.
    fn new(answer: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, heads) = (listener.local_addr().unwrap().port(), Arc::new(Mutex::new(Vec::new())));
        let (kept, answer) = (Arc::clone(&heads), answer.to_owned());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut head = vec![0; 4096];
                let length = stream.read(&mut head).unwrap_or(0);
                let head = String::from_utf8_lossy(&head[..length]).into_owned();
                kept.lock().unwrap().push(head.clone());
                let _ = stream.write_all(answer.replace("%HEAD%", &head).as_bytes());
            }
        });
        Self { port, heads }
    }

    fn ok(body: &str) -> Self {
        Self::new(&format!("HTTP/1.1 200 OK\r\nX-Kind: test\r\nconnection: close\r\n\r\n{body}"))
    }

    fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

fn declare(release: &mut toolgate_signing::Release) {
    let hosts = vec!["https://api.example.com".into()];
    let capability =
        HttpCapability { hosts, methods: vec!["get".into(), "post".into()], max_response: Some(1000) };
    release.capabilities.http.insert("api".into(), capability);
}

/// A state in which `api` is open for these loopback origins.
fn state(origins: &[String], more: impl FnOnce(&mut toolgate_signing::Release, &mut Grants)) -> State {
    open(Kind::Adapter, &Ports::default(), "{}", |release, grants| {
        declare(release);
        let grant = HttpGrant {
            hosts: Some(origins.to_vec()),
            timeout: Some(Duration::from_millis(700)),
            ..HttpGrant::default()
        };
        grants.http.insert("api".into(), grant);
        more(release, grants);
    })
    .unwrap()
}

fn client(state: &mut State) -> Resource<Client> {
    HostClient::open(state, "api".into()).unwrap().unwrap()
}

fn get(url: &str) -> Outgoing {
    Outgoing { method: "GET".into(), url: url.into(), headers: Vec::new(), body: None }
}

fn send(state: &mut State, client: &Resource<Client>, request: Outgoing) -> Result<Incoming, Error> {
    HostClient::send(state, again(client), request).unwrap()
}

#[test]
fn works_when_a_loopback_origin_is_named_by_the_operator() {
    let server = Server::ok("hello");
    let mut state = state(&[server.origin()], |_, _| {});
    let client = client(&mut state);
    let header = Header { name: "X-Mine".into(), value: "1".into() };
    let request = Outgoing { headers: vec![header], ..get(&format!("{}/path?q#fragment", server.origin())) };
    let answer = send(&mut state, &client, request).unwrap();
    assert_eq!((answer.status, answer.body.as_slice()), (200, b"hello".as_slice()));
    assert!(answer.headers.iter().any(|header| header.name == "x-kind" && header.value == "test"));
    let head = server.heads().remove(0);
    assert!(head.starts_with("GET /path?q HTTP/1.1") && head.to_lowercase().contains("x-mine: 1"), "{head}");
}

#[test]
fn errors_when_origin_or_method_is_not_allowed_and_nothing_is_dialled() {
    let (named, other) = (Server::ok(""), Server::ok(""));
    let mut state = state(&[named.origin()], |_, _| {});
    let client = client(&mut state);
    for request in [
        get(&other.origin()),
        get(&format!("http://localhost:{}", named.port)),
        get("https://api.example.com.evil.example/"),
        Outgoing { method: "DELETE".into(), ..get(&named.origin()) },
        Outgoing { method: "get".into(), ..get(&named.origin()) },
        get(&format!("http://user:pass@127.0.0.1:{}/", named.port)),
    ] {
        let said = send(&mut state, &client, request.clone());
        assert!(matches!(said, Err(Error::Denied(_))), "{request:?}: {said:?}");
    }
    for request in
        [get("/relative"), get("nonsense"), Outgoing { method: "G T".into(), ..get(&named.origin()) }]
    {
        assert!(matches!(send(&mut state, &client, request), Err(Error::Invalid(_))));
    }
    assert!(named.heads().is_empty() && other.heads().is_empty());
    assert!(matches!(HostClient::open(&mut state, "other".into()).unwrap(), Err(Error::Denied(_))));
}

#[test]
fn a_redirect_to_127_0_0_1_is_a_new_decision() {
    let inner = Server::ok("internal");
    let outer = Server::new(&format!(
        "HTTP/1.1 302 Found\r\nlocation: {}/admin\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        inner.origin()
    ));
    let mut state = state(&[outer.origin()], |_, _| {});
    let client = client(&mut state);
    let said = send(&mut state, &client, get(&outer.origin()));
    assert!(matches!(&said, Err(Error::Denied(why)) if why.contains("127.0.0.1")), "{said:?}");
    assert_eq!((outer.heads().len(), inner.heads().len()), (1, 0));
}

#[test]
fn a_server_that_sleeps_ends_at_the_timeout_and_the_wait_of_a_call_is_bounded_in_all() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let mut state = state(std::slice::from_ref(&origin), |_, _| {});
    let client = client(&mut state);
    let started = Instant::now();
    assert!(matches!(send(&mut state, &client, get(&origin)), Err(Error::Unavailable(_))));
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    state.meter.add_wait(state.shared.limits.wait);
    let said = send(&mut state, &client, get(&origin));
    assert!(matches!(&said, Err(Error::LimitExceeded(why)) if why.contains("waited")), "{said:?}");
}

#[test]
fn headers_that_say_who_asks_or_where_a_message_ends_are_the_hosts() {
    let server = Server::ok("");
    let mut state = state(&[server.origin()], |_, _| {});
    let client = client(&mut state);
    for name in [
        "Authorization",
        "cookie",
        "Host",
        "Content-Length",
        "Transfer-Encoding",
        "Proxy-Authorization",
        "bad name",
    ] {
        let headers = vec![Header { name: name.into(), value: "x".into() }];
        let said = send(&mut state, &client, Outgoing { headers, ..get(&server.origin()) });
        assert!(matches!(said, Err(Error::Invalid(_))), "{name}");
    }
    let headers = vec![Header { name: "x".into(), value: "a\r\nHost: evil".into() }];
    assert!(matches!(
        send(&mut state, &client, Outgoing { headers, ..get(&server.origin()) }),
        Err(Error::Invalid(_))
    ));
    let headers = (0..65).map(|n| Header { name: format!("x-{n}"), value: String::new() }).collect();
    let said = send(&mut state, &client, Outgoing { headers, ..get(&server.origin()) });
    assert!(matches!(said, Err(Error::LimitExceeded(_))));
    assert!(server.heads().is_empty());
}

#[test]
fn the_smallest_of_three_sizes_bounds_an_answer() {
    let server = Server::ok(&"x".repeat(1001));
    let mut state = state(&[server.origin()], |_, _| {});
    let client = client(&mut state);
    let said = send(&mut state, &client, get(&server.origin()));
    assert!(matches!(&said, Err(Error::LimitExceeded(why)) if why.contains("1000")), "{said:?}");
}

#[test]
fn an_adapter_sends_nothing_before_the_verdict_not_even_by_a_handle_it_kept() {
    let server = Server::ok("");
    let mut state = state(&[server.origin()], |_, _| {});
    let client = client(&mut state);
    state.phase = Phase::BeforeVerdict;
    assert!(matches!(send(&mut state, &client, get(&server.origin())), Err(Error::Denied(_))));
    assert!(matches!(HostClient::open(&mut state, "api".into()).unwrap(), Err(Error::Denied(_))));
    assert!(server.heads().is_empty());
}

fn with_secret(origin: &str, send_to: &[String], book: Option<Book>, reveal: bool) -> State {
    let ports = Ports {
        record: book.map(|book| Arc::new(book) as Arc<dyn crate::ports::Record>),
        ..Ports::default()
    };
    open(Kind::Adapter, &ports, "{}", |release, grants| {
        declare(release);
        let declared = SecretCapability {
            purpose: "t".into(),
            send_to: vec!["https://api.example.com".into()],
            reveal: true,
        };
        release.capabilities.secrets.insert("token".into(), declared);
        let hosts = Some(vec![origin.to_owned()]);
        grants.http.insert("api".into(), HttpGrant { hosts, ..HttpGrant::default() });
        let grant = SecretGrant { value: Secret::new("s3cret"), send_to: Some(send_to.to_vec()), reveal };
        grants.secrets.insert("token".into(), grant);
    })
    .unwrap()
}

#[test]
fn the_host_writes_a_bound_secret_and_blanks_it_out_of_what_comes_back() {
    let server = Server::new("HTTP/1.1 200 OK\r\nx-echo: Bearer s3cret\r\nconnection: close\r\n\r\n%HEAD%");
    let mut state = with_secret(&server.origin(), &[server.origin()], None, false);
    let client = client(&mut state);
    let secret = crate::bindings::secrets::HostSecret::open(&mut state, "token".into()).unwrap().unwrap();
    assert_eq!(state.name(again(&secret)).unwrap(), "token");
    state.bind(again(&secret), again(&client), "Authorization".into(), "Bearer ".into()).unwrap().unwrap();
    let answer = send(&mut state, &client, get(&server.origin())).unwrap();
    assert!(server.heads()[0].contains("authorization: Bearer s3cret"), "{:?}", server.heads());
    let seen = format!("{answer:?} {}", String::from_utf8_lossy(&answer.body));
    assert!(!seen.contains("s3cret") && seen.contains("Bearer ******"), "{seen}");
    for header in ["Host", "content-length", "no name"] {
        let said = state.bind(again(&secret), again(&client), header.into(), String::new()).unwrap();
        assert!(matches!(said, Err(Error::Invalid(_))), "{header}");
    }
    let said = state.bind(again(&secret), again(&client), "x".into(), "a\r\nb: ".into()).unwrap();
    assert!(matches!(said, Err(Error::Invalid(_))));
}

#[test]
fn a_secret_goes_to_no_other_origin_than_its_own() {
    let server = Server::ok("");
    let mut state = with_secret(&server.origin(), &["http://127.0.0.1:1".to_owned()], None, false);
    let client = client(&mut state);
    let secret = crate::bindings::secrets::HostSecret::open(&mut state, "token".into()).unwrap().unwrap();
    state.bind(again(&secret), again(&client), "Authorization".into(), String::new()).unwrap().unwrap();
    let said = send(&mut state, &client, get(&server.origin()));
    assert!(matches!(&said, Err(Error::Denied(why)) if why.contains("token")), "{said:?}");
    assert!(server.heads().is_empty());
}

#[test]
fn a_grant_that_widens_is_refused_when_the_plugin_is_loaded() {
    let refused = |change: fn(&mut HttpGrant)| {
        open(Kind::Adapter, &Ports::default(), "{}", |release, grants| {
            declare(release);
            let mut grant = HttpGrant::default();
            change(&mut grant);
            grants.http.insert("api".into(), grant);
        })
        .err()
    };
    assert!(refused(|_| {}).is_none());
    let hosts = |grant: &mut HttpGrant| grant.hosts = Some(vec!["https://evil.example".into()]);
    assert!(matches!(refused(hosts), Some(LoadErrorKind::Grant(why)) if why.contains("evil.example")));
    let methods = |grant: &mut HttpGrant| grant.methods = Some(vec!["delete".into()]);
    assert!(matches!(refused(methods), Some(LoadErrorKind::Grant(why)) if why.contains("delete")));
    let undeclared = open(Kind::Adapter, &Ports::default(), "{}", |_, grants| {
        grants.http.insert("api".into(), HttpGrant::default());
    });
    assert!(matches!(undeclared, Err(LoadErrorKind::Grant(why)) if why.contains("http.api")));
}

#[test]
fn hosts_come_from_the_settings_where_the_release_says_so() {
    let server = Server::ok("found");
    let settings = format!(r#"{{"registry":"{}/v1/packages"}}"#, server.origin());
    let mut state = open(Kind::Installer, &Ports::default(), &settings, |release, grants| {
        declare(release);
        release.settings_hosts.push("/registry".into());
        grants.http.insert("api".into(), HttpGrant::default());
    })
    .unwrap();
    let client = client(&mut state);
    assert_eq!(send(&mut state, &client, get(&server.origin())).unwrap().body, b"found");
}

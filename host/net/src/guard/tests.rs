//! Against listeners on loopback addresses that count who comes.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// A server that gives every connection the same bytes and then waits; it counts connections.
struct Server {
    port: u16,
    met: Arc<AtomicUsize>,
}

impl Server {
    async fn on(address: Ipv4Addr, port: u16, answer: &str, drip: bool) -> Self {
        let listener = TcpListener::bind((address, port)).await.unwrap();
        let (port, met) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
        let (count, answer) = (Arc::clone(&met), answer.to_owned().into_bytes());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let answer = answer.clone();
                tokio::spawn(async move {
                    let mut head = [0; 2048];
                    let _ = stream.read(&mut head).await;
                    if stream.write_all(&answer).await.is_err() || !drip {
                        return;
                    }
                    while stream.write_all(b"x").await.is_ok() {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                });
            }
        });
        Self { port, met }
    }

    fn met(&self) -> usize {
        self.met.load(Ordering::SeqCst)
    }
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

/// Answers a name with one list after another.
struct Scripted(Mutex<VecDeque<Vec<IpAddr>>>, AtomicUsize);

impl Lookup for Scripted {
    fn lookup(&self, _name: String) -> Looking {
        self.1.fetch_add(1, Ordering::SeqCst);
        let next = self.0.lock().unwrap().pop_front().unwrap_or_default();
        Box::pin(async move { Ok(next) })
    }
}

fn scripted(answers: &[[u8; 4]]) -> Arc<Scripted> {
    let answers = answers.iter().map(|octets| vec![IpAddr::from(*octets)]).collect();
    Arc::new(Scripted(Mutex::new(answers), AtomicUsize::new(0)))
}

/// Allows every URL.
struct All;

impl Rules for All {
    fn hop(&self, _method: &Method, _url: &Url) -> Result<HeaderMap, String> {
        Ok(HeaderMap::new())
    }
}

fn get(url: &str) -> GuardedRequest {
    GuardedRequest {
        method: Method::GET,
        url: url.parse().unwrap(),
        headers: HeaderMap::new(),
        body: None,
        max_response: 1 << 10,
        timeout: Duration::from_millis(600),
    }
}

/// A guard for the hosts that a grant names.
fn guard(loopback: &[&str]) -> Guard {
    let named: Vec<String> = loopback.iter().map(ToString::to_string).collect();
    Guard::new(scripted(&[]), public_or(&named)).unwrap()
}

#[tokio::test]
async fn a_name_that_resolves_differently_between_check_and_dial_is_dialled_as_checked() {
    let checked = Server::on(Ipv4Addr::LOCALHOST, 0, &ok("checked"), false).await;
    let other = Server::on(Ipv4Addr::new(127, 0, 0, 2), checked.port, &ok("other"), false).await;
    // Only the first of the two may be dialled. The name gives it once, and the other from then on.
    let lookup = scripted(&[[127, 0, 0, 1], [127, 0, 0, 2], [127, 0, 0, 2]]);
    let only_first: AddressRule = Arc::new(|_, address| address == IpAddr::from([127, 0, 0, 1]));
    let guard = Guard::new(Arc::<Scripted>::clone(&lookup), only_first).unwrap();
    let url = format!("http://rebind.test:{}/", checked.port);
    let answer = guard.send(get(&url), &All).await.unwrap();
    assert_eq!(answer.body, b"checked");
    assert_eq!(lookup.1.load(Ordering::SeqCst), 1, "one look-up, and its answer is what is dialled");
    let refused = guard.send(get(&url), &All).await.unwrap_err();
    assert!(matches!(&refused, GuardError::Denied(why) if why.contains("127.0.0.2")), "{refused}");
    assert_eq!((checked.met(), other.met()), (1, 0), "the other address never heard of it");
}

#[tokio::test]
async fn addresses_of_this_machine_and_of_private_networks_are_not_dialled() {
    let server = Server::on(Ipv4Addr::LOCALHOST, 0, &ok("here"), false).await;
    let port = server.port;
    for url in [
        format!("http://127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://[::1]:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://0x7f.1:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://0.0.0.0:{port}/"),
        format!("http://10.0.0.1:{port}/"),
        format!("http://169.254.169.254:{port}/"),
        format!("http://[fe80::1]:{port}/"),
        format!("http://[64:ff9b::7f00:1]:{port}/"),
        format!("http://[2002:7f00:1::]:{port}/"),
    ] {
        let error = guard(&[]).send(get(&url), &All).await.unwrap_err();
        assert!(matches!(error, GuardError::Denied(_)), "{url}: {error}");
    }
    assert_eq!(server.met(), 0);
    let named = guard(&["127.0.0.1"]);
    assert_eq!(named.send(get(&format!("http://127.0.0.1:{port}/")), &All).await.unwrap().body, b"here");
    let error = named.send(get(&format!("http://127.0.0.2:{port}/")), &All).await.unwrap_err();
    assert!(matches!(error, GuardError::Denied(_)), "another loopback address was not named: {error}");
}

#[tokio::test]
async fn a_name_that_leads_to_this_machine_is_refused_even_where_loopback_is_named() {
    let server = Server::on(Ipv4Addr::LOCALHOST, 0, &ok("here"), false).await;
    let guard = Guard::new(scripted(&[[127, 0, 0, 1]]), public_or(&["127.0.0.1".to_owned()])).unwrap();
    let error = guard.send(get(&format!("http://evil.test:{}/", server.port)), &All).await.unwrap_err();
    assert!(matches!(error, GuardError::Denied(_)), "{error}");
    assert_eq!(server.met(), 0);
}

#[tokio::test]
async fn each_redirect_is_a_new_decision() {
    let inner = Server::on(Ipv4Addr::new(127, 0, 0, 3), 0, &ok("inner"), false).await;
    let redirect = format!(
        "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.3:{}/secret\r\ncontent-length: 0\r\n\r\n",
        inner.port
    );
    let outer = Server::on(Ipv4Addr::LOCALHOST, 0, &redirect, false).await;
    let url = format!("http://127.0.0.1:{}/", outer.port);
    let error = guard(&["127.0.0.1"]).send(get(&url), &All).await.unwrap_err();
    assert!(matches!(&error, GuardError::Denied(why) if why.contains("127.0.0.3")), "{error}");
    assert_eq!((outer.met(), inner.met()), (1, 0));
    let answer = guard(&["127.0.0.1", "127.0.0.3"]).send(get(&url), &All).await.unwrap();
    assert_eq!((answer.body.as_slice(), answer.url.path()), (b"inner".as_slice(), "/secret"));
}

#[tokio::test]
async fn an_endless_chain_of_redirects_ends() {
    let round = Server::on(
        Ipv4Addr::LOCALHOST,
        0,
        "HTTP/1.1 307 T\r\nlocation: /again\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        false,
    )
    .await;
    let error = guard(&["127.0.0.1"])
        .send(get(&format!("http://127.0.0.1:{}/", round.port)), &All)
        .await
        .unwrap_err();
    assert!(matches!(&error, GuardError::TooLarge(why) if why.contains("redirects")), "{error}");
    assert_eq!(round.met(), MAX_REDIRECTS + 1);
}

#[tokio::test]
async fn an_answer_that_drips_or_never_comes_ends_at_the_timeout() {
    let dripping =
        Server::on(Ipv4Addr::LOCALHOST, 0, "HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n", true).await;
    let silent = Server::on(Ipv4Addr::LOCALHOST, 0, "", true).await;
    for server in [dripping, silent] {
        let started = Instant::now();
        let url = format!("http://127.0.0.1:{}/", server.port);
        let error = guard(&["127.0.0.1"]).send(get(&url), &All).await.unwrap_err();
        assert!(matches!(error, GuardError::Unavailable(_)), "{error}");
        assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    }
}

#[tokio::test]
async fn an_answer_over_the_limit_is_refused_whether_it_says_its_length_or_not() {
    let long = "y".repeat(2000);
    let stated = Server::on(Ipv4Addr::LOCALHOST, 0, &ok(&long), false).await;
    let unstated = Server::on(
        Ipv4Addr::LOCALHOST,
        0,
        &format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{long}"),
        false,
    )
    .await;
    for server in [stated, unstated] {
        let url = format!("http://127.0.0.1:{}/", server.port);
        let error = guard(&["127.0.0.1"]).send(get(&url), &All).await.unwrap_err();
        assert!(matches!(&error, GuardError::TooLarge(why) if why.contains("1024")), "{error}");
    }
}

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use super::*;

/// Answers one request with `reply` and returns what was asked.
fn one_reply(reply: &'static str) -> (u16, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut seen = vec![0; 4096];
        let length = stream.read(&mut seen).unwrap();
        stream.write_all(reply.as_bytes()).unwrap();
        String::from_utf8_lossy(&seen[..length]).into_owned()
    });
    (port, server)
}

#[tokio::test]
async fn a_redirect_is_handed_back_and_no_cookie_is_kept() {
    let client = client(&ClientOptions::default()).unwrap();
    let (port, server) = one_reply(
        "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/elsewhere\r\nset-cookie: a=b\r\ncontent-length: 0\r\n\r\n",
    );
    let reply = client.get(format!("http://127.0.0.1:{port}/")).send().await.unwrap();
    assert_eq!(reply.status(), 302);
    let asked = server.join().unwrap();
    assert!(asked.contains("user-agent: toolgate/"), "{asked}");

    let (port, server) = one_reply("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    client.get(format!("http://127.0.0.1:{port}/")).send().await.unwrap();
    assert!(!server.join().unwrap().contains("cookie"));
}

#[tokio::test]
async fn localhost_is_dialled_as_this_machine() {
    let client = client(&ClientOptions::default()).unwrap();
    let (port, server) = one_reply("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let reply = client.get(format!("http://localhost:{port}/")).send().await.unwrap();
    assert_eq!(reply.status(), 200);
    assert!(server.join().unwrap().contains(&format!("host: localhost:{port}")));
}

#[tokio::test]
async fn https_only_refuses_plain_http_before_dialling() {
    let client = client(&ClientOptions { https_only: true, ..ClientOptions::default() }).unwrap();
    assert!(client.get("http://127.0.0.1:1/").send().await.unwrap_err().is_builder());
}

#[test]
fn options_that_cannot_work_are_refused() {
    let zero = ClientOptions { connect_timeout: Duration::ZERO, ..ClientOptions::default() };
    assert!(matches!(client(&zero), Err(NetError::Options(_))));
    let agent = ClientOptions { user_agent: "a\nb".to_owned(), ..ClientOptions::default() };
    assert!(matches!(client(&agent), Err(NetError::Client(_))));
}

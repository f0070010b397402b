//! The tests' server and their HTTP client.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::DropGuard;

use crate::fake::Fake;
use crate::options::{Credential, HttpOptions, TokenCheck, TokenCheckError};
use crate::{HttpServer, ServeError};

/// Tokens that can be revoked.
pub(super) struct Tokens(pub(super) Mutex<Vec<(&'static str, Credential)>>);

#[async_trait]
impl TokenCheck for Tokens {
    async fn check(&self, token: &str) -> Result<Option<Credential>, TokenCheckError> {
        if token == "unreadable" {
            return Err(TokenCheckError("disk gone".into()));
        }
        let known = self.0.lock().unwrap();
        Ok(known.iter().find(|(text, _)| *text == token).map(|(_, credential)| credential.clone()))
    }
}

/// A running server; it stops when this is dropped.
pub(super) struct Server {
    pub(super) fake: Fake,
    pub(super) address: std::net::SocketAddr,
    pub(super) tokens: Arc<Tokens>,
    pub(super) task: tokio::task::JoinHandle<Result<(), ServeError>>,
    pub(super) stop: DropGuard,
}

impl Server {
    pub(super) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub(super) async fn with(change: impl FnOnce(&mut HttpOptions)) -> Self {
        let known = vec![
            ("alpha", Credential::new("token:a", "coder")),
            ("beta", Credential::new("token:b", "coder")),
            ("gamma", Credential::new("token:c", "researcher")),
        ];
        let tokens = Arc::new(Tokens(Mutex::new(known)));
        let mut options =
            HttpOptions::new(([127, 0, 0, 1], 0).into(), Arc::clone(&tokens) as Arc<dyn TokenCheck>);
        options.keep_alive = Duration::from_millis(100);
        change(&mut options);
        let stop = options.shutdown.clone().drop_guard();
        let server = HttpServer::bind(options).await.unwrap();
        let address = server.local_addr();
        let fake = Fake::new();
        let task = tokio::spawn(server.run(fake.clone()));
        Self { fake, address, tokens, task, stop }
    }

    /// Sends one request and reads until the server closes.
    pub(super) async fn send(&self, request: Request<'_>) -> Reply {
        let mut socket = self.open(request).await;
        let mut bytes = Vec::new();
        timeout(Duration::from_secs(10), socket.read_to_end(&mut bytes))
            .await
            .expect("a reply in time")
            .unwrap();
        Reply::parse(&bytes)
    }

    /// Sends one request and leaves its reply to be read.
    pub(super) async fn open(&self, request: Request<'_>) -> TcpStream {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        socket.write_all(&request.bytes(self.address)).await.unwrap();
        socket
    }

    pub(super) async fn post(&self, body: &Value) -> Reply {
        self.send(Request::post(&body.to_string())).await
    }

    /// Shakes hands and gives the session id.
    pub(super) async fn session(&self, token: &str, version: &str) -> String {
        let hello = message(0, "initialize", json!({ "protocolVersion": version }));
        let reply = self.send(Request::post(&hello.to_string()).token(token)).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert_eq!(reply.json()["result"]["protocolVersion"], version);
        reply.header("mcp-session-id").unwrap()
    }
}

/// One request to be sent.
#[derive(Clone)]
pub(super) struct Request<'a> {
    method: &'a str,
    path: &'a str,
    token: Option<&'a str>,
    host: Option<&'a str>,
    headers: Vec<(&'a str, String)>,
    body: &'a str,
}

impl<'a> Request<'a> {
    pub(super) fn new(method: &'a str, body: &'a str) -> Self {
        Self { method, path: "/mcp", token: Some("alpha"), host: None, headers: Vec::new(), body }
    }

    pub(super) fn post(body: &'a str) -> Self {
        Self::new("POST", body).header("Content-Type", "application/json")
    }

    pub(super) fn path(mut self, path: &'a str) -> Self {
        self.path = path;
        self
    }

    pub(super) fn token(mut self, token: &'a str) -> Self {
        self.token = Some(token);
        self
    }

    pub(super) fn anonymous(mut self) -> Self {
        self.token = None;
        self
    }

    pub(super) fn host(mut self, host: &'a str) -> Self {
        self.host = Some(host);
        self
    }

    pub(super) fn header(mut self, name: &'a str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(super) fn session(self, id: &str) -> Self {
        self.header("Mcp-Session-Id", id)
    }

    fn bytes(&self, address: std::net::SocketAddr) -> Vec<u8> {
        let host = self.host.map_or_else(|| address.to_string(), str::to_owned);
        let mut lines = vec![format!("{} {} HTTP/1.1", self.method, self.path), format!("Host: {host}")];
        lines.extend(self.token.map(|token| format!("Authorization: Bearer {token}")));
        lines.extend(self.headers.iter().map(|(name, value)| format!("{name}: {value}")));
        lines.push(format!("Connection: close\r\nContent-Length: {}\r\n\r\n{}", self.body.len(), self.body));
        lines.join("\r\n").into_bytes()
    }
}

/// A whole reply.
pub(super) struct Reply {
    pub(super) status: u16,
    head: String,
    pub(super) body: String,
}

impl Reply {
    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let head = head.to_ascii_lowercase();
        let body = if head.contains("transfer-encoding: chunked") { unchunk(body) } else { body.to_owned() };
        Self { status, head, body }
    }

    pub(super) fn header(&self, name: &str) -> Option<String> {
        let line = self.head.lines().find(|line| line.starts_with(&format!("{name}: ")))?;
        Some(line.split_once(": ").unwrap().1.to_owned())
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {} {}", self.status, self.body))
    }

    /// The messages of a stream.
    pub(super) fn events(&self) -> Vec<Value> {
        events(&self.body)
    }

    pub(super) fn code(&self) -> i64 {
        self.json()["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {}", self.body))
    }
}

fn unchunk(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break;
        }
        whole.push_str(&rest[..size]);
        body = &rest[size + 2..];
    }
    whole
}

/// The messages in the text of a stream, chunked or not.
pub(super) fn events(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    data.map(|data| serde_json::from_str(data.trim()).unwrap()).collect()
}

/// Reads a stream until its text satisfies `enough`.
pub(super) async fn read_until(socket: &mut TcpStream, enough: impl Fn(&str) -> bool) -> String {
    let mut bytes = Vec::new();
    let reading = async {
        // Large, since all that was read is looked at after each piece.
        let mut chunk = vec![0; 256 * 1024];
        loop {
            let count = socket.read(&mut chunk).await.unwrap();
            bytes.extend_from_slice(&chunk[..count]);
            let text = String::from_utf8_lossy(&bytes);
            if count == 0 || enough(&text) {
                return text.into_owned();
            }
        }
    };
    timeout(Duration::from_secs(30), reading).await.expect("the stream has what is awaited in time")
}

pub(super) fn message(id: impl Into<Value>, method: &str, params: Value) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "id": id.into(), "method": method });
    message["params"] = params;
    message
}

pub(super) fn call(id: impl Into<Value>, tool: &str) -> Value {
    message(id, "tools/call", json!({ "name": tool, "arguments": { "a": 1 } }))
}

/// A modern message.
pub(super) fn modern(id: impl Into<Value>, method: &str, mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    message(id, method, params)
}

/// A request with the headers that repeat a modern body.
pub(super) fn modern_post<'a>(body: &'a str, method: &str, name: Option<&str>) -> Request<'a> {
    let request = Request::post(body)
        .header("Accept", "application/json, text/event-stream")
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", method);
    match name {
        Some(name) => request.header("Mcp-Name", name),
        None => request,
    }
}

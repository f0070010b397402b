//! A bare HTTP/1.1 server on loopback, so that a test sees and sends exact bytes.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// One request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) target: String,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    pub(crate) fn rpc(&self) -> String {
        self.json()["method"].as_str().unwrap_or_default().to_owned()
    }
}

/// What to answer.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Status, headers, body.
    Full(u16, Vec<(String, String)>, String),
    /// 200 with an event stream in pieces, each after a pause. It stays open at the end if the
    /// flag says so.
    Stream(Vec<(Duration, String)>, bool),
    /// Nothing, ever.
    Silence,
}

impl Answer {
    pub(crate) fn status(status: u16) -> Self {
        Self::Full(status, Vec::new(), String::new())
    }

    pub(crate) fn json(value: &Value) -> Self {
        Self::Full(200, vec![header("content-type", "application/json")], value.to_string())
    }

    pub(crate) fn events(text: impl Into<String>) -> Self {
        Self::Stream(vec![(Duration::ZERO, text.into())], false)
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        if let Self::Full(_, headers, _) = &mut self {
            headers.push(header(name, value));
        }
        self
    }
}

pub(crate) fn header(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// A running server. It ends with the test's runtime.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) address: std::net::SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    pub(crate) async fn start(answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self { address: listener.local_addr().unwrap(), seen: Arc::default() };
        let (seen, answer) = (Arc::clone(&server.seen), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                tokio::spawn(async move {
                    let _ = connection(stream, &seen, &*answer).await;
                });
            }
        });
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The requests with this JSON-RPC method.
    pub(crate) fn asked(&self, rpc: &str) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.rpc() == rpc).collect()
    }

    /// The requests with this HTTP method.
    pub(crate) fn http(&self, method: &str) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.method == method).collect()
    }
}

async fn connection(
    stream: TcpStream,
    seen: &Mutex<Vec<Seen>>,
    answer: &(dyn Fn(&Seen) -> Answer + Send + Sync),
) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let Some(request) = read_request(&mut stream).await? else { return Ok(()) };
        seen.lock().unwrap().push(request.clone());
        match answer(&request) {
            Answer::Full(status, headers, body) => {
                let mut head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
                for (name, value) in headers {
                    let _ = write!(head, "{name}: {value}\r\n");
                }
                stream.write_all(format!("{head}\r\n{body}").as_bytes()).await?;
            }
            Answer::Stream(pieces, open) => {
                let head = "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
                stream.write_all(head.as_bytes()).await?;
                for (pause, piece) in pieces {
                    tokio::time::sleep(pause).await;
                    stream.write_all(piece.as_bytes()).await?;
                }
                if open {
                    // Until the client goes away.
                    let _ = stream.read(&mut [0]).await;
                }
                return Ok(());
            }
            Answer::Silence => {
                let _ = stream.read(&mut [0]).await;
                return Ok(());
            }
        }
    }
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<Seen>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    let mut words = lines[0].split(' ');
    let headers: Vec<(String, String)> = lines[1..]
        .iter()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| header(name, value))
        .collect();
    let mut request = Seen {
        method: words.next().unwrap_or_default().to_owned(),
        target: words.next().unwrap_or_default().to_owned(),
        headers,
        body: String::new(),
    };
    let length = request.header("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    request.body = String::from_utf8(body).unwrap();
    Ok(Some(request))
}

/// What a plain legacy server with a session answers; a test replaces the parts it is about.
pub(crate) fn legacy(seen: &Seen) -> Answer {
    match (seen.method.as_str(), seen.rpc().as_str()) {
        ("GET", _) => Answer::status(405),
        ("DELETE", _) => Answer::status(204),
        (_, "server/discover") => Answer::status(400),
        (_, "initialize") => Answer::json(&result(
            seen,
            &json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "w", "version": "1"},
            }),
        ))
        .with("mcp-session-id", "s1"),
        (_, rpc) if rpc.starts_with("notifications/") => Answer::status(202),
        (_, "tools/call") => Answer::json(&result(seen, &json!({"content": [], "ok": true}))),
        _ => Answer::json(&json!({
            "jsonrpc": "2.0", "id": seen.json()["id"], "error": {"code": -32601, "message": "no such method"}
        })),
    }
}

/// What a plain modern server answers.
pub(crate) fn modern(seen: &Seen) -> Answer {
    match seen.rpc().as_str() {
        "server/discover" => Answer::json(&result(
            seen,
            &json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}),
        )),
        "tools/call" => Answer::json(&result(seen, &json!({"resultType": "complete", "content": []}))),
        _ => Answer::status(405),
    }
}

pub(crate) fn result(seen: &Seen, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": seen.json()["id"], "result": result})
}

/// The reply to a request as one event.
pub(crate) fn reply_event(seen: &Seen) -> String {
    format!("event: message\ndata: {}\n\n", result(seen, &json!({"content": [], "ok": true})))
}

//! A client over a plain TCP socket that sends exactly the headers a test wants sent.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{PATIENCE, Sandbox};

/// A serving process and how to reach it.
pub struct Http {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
    /// The first token of its data directory.
    pub token: String,
}

/// One reply.
#[derive(Debug)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Reply {
    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(have, _)| have == name).map(|(_, value)| value.as_str())
    }

    /// The JSON-RPC message, from a JSON body or from the last event of a stream.
    pub fn message(&self) -> Value {
        let text = self
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .map(str::trim)
            .rfind(|data| !data.is_empty())
            .unwrap_or(&self.body);
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Http {
    pub(crate) fn start(sandbox: &Sandbox, options: &[&str]) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let child = sandbox
            .command(&[&["serve", "--listen", &address.to_string()], options].concat())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let mut server = Self { child, address, token: String::new() };
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < until, "nothing listens on {address}");
            assert!(server.child.try_wait().unwrap().is_none(), "toolgate serve ended at once");
            std::thread::sleep(Duration::from_millis(20));
        }
        server.token = std::fs::read_to_string(sandbox.data().join("token")).unwrap_or_default();
        server
    }

    /// The most that the process had resident, MiB, looked at for so long.
    pub fn highest_while(&mut self, length: Duration) -> u64 {
        std::thread::sleep(length);
        assert!(self.child.try_wait().unwrap().is_none(), "it ended");
        crate::most_resident_mib(self.child.id())
    }

    /// Sends a request with exactly these headers, beside `Content-Length`.
    pub fn raw(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut head =
            format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        // A server may answer and close before it has read all of the body.
        let _ = stream.write_all(format!("{head}\r\n{body}").as_bytes());
        read_reply(stream)
    }

    /// A POST as a well-behaved client sends it, with more headers.
    pub fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let (host, bearer) = (self.address.to_string(), format!("Bearer {}", self.token.trim()));
        let mut all = vec![
            ("Host", host.as_str()),
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        all.extend(headers);
        self.raw("POST", path, &all, body)
    }

    /// A modern request: envelope and headers as revision 2026-07-28 has them.
    pub fn modern(&self, path: &str, id: &str, method: &str, params: &str) -> Reply {
        self.modern_with(path, id, method, params, &[])
    }

    /// A modern request with more headers.
    pub fn modern_with(
        &self,
        path: &str,
        id: &str,
        method: &str,
        params: &str,
        more: &[(&str, &str)],
    ) -> Reply {
        let inner =
            params.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_default();
        let comma = if inner.is_empty() { "" } else { "," };
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{inner}{comma}{meta}}}}}"#);
        let name = serde_json::from_str::<Value>(params)
            .ok()
            .and_then(|params| params["name"].as_str().map(str::to_owned));
        let mut headers = vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        if let Some(name) = &name {
            headers.push(("Mcp-Name", name));
        }
        headers.extend(more);
        self.post(path, &headers, &body)
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_reply(stream: TcpStream) -> Reply {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    let mut body = Vec::new();
    let _ = reader.read_to_end(&mut body);
    let chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let body = if chunked { unchunk(&body) } else { body };
    Reply { status, headers, body: String::from_utf8_lossy(&body).into_owned() }
}

fn unchunk(mut bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") {
        let size = std::str::from_utf8(&bytes[..end])
            .ok()
            .and_then(|hex| usize::from_str_radix(hex.trim(), 16).ok());
        let Some(size) = size.filter(|size| *size > 0 && end + 2 + size <= bytes.len()) else { break };
        out.extend_from_slice(&bytes[end + 2..end + 2 + size]);
        bytes = bytes.get(end + 4 + size..).unwrap_or_default();
    }
    out
}

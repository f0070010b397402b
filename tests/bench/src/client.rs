//! Calls over kept-alive connections, one thread each, with nothing between the clock and the socket. The
//! client accepts JSON alone, so that every answer is one body, but where other programs are measured: many
//! of them answer with a stream of events only.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::Outcome;

/// How the client speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// Every request for itself, 2026-07-28.
    Modern,
    /// In a session that was initialized, 2025-11-25.
    Legacy,
}

/// What is sent where.
#[derive(Clone)]
pub(crate) struct Load {
    address: SocketAddr,
    era: Era,
    path: String,
    /// Headers of every request, each with its line end.
    headers: String,
    accept: &'static str,
    tool: String,
    payload: usize,
}

/// One body, and nothing else.
const JSON: &str = "application/json";
/// What every client of the protocol accepts.
const EITHER: &str = "application/json, text/event-stream";

/// What came of it.
pub(crate) struct Sample {
    /// Calls a second, of each round.
    rates: Vec<f64>,
    times: Vec<Duration>,
}

/// One connection.
struct Client {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
    session: Option<String>,
}

impl Era {
    /// As the fixture calls it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Modern => "modern",
            Self::Legacy => "legacy",
        }
    }
}

impl Load {
    /// To the server itself.
    pub(crate) fn direct(address: SocketAddr, era: Era, payload: usize) -> Self {
        let (path, tool) = ("/mcp".to_owned(), "echo".to_owned());
        Self { address, era, path, headers: String::new(), accept: JSON, tool, payload }
    }

    /// Through a gateway.
    pub(crate) fn through(address: SocketAddr, token: &str, era: Era, payload: usize) -> Self {
        let headers = format!("Authorization: Bearer {}\r\n", token.trim());
        Self { headers, tool: "fix__echo".to_owned(), ..Self::direct(address, era, payload) }
    }

    /// Through another program, at this path and under its name for the tool.
    pub(crate) fn at(address: SocketAddr, path: &str, tool: &str, payload: usize) -> Self {
        let direct = Self::direct(address, Era::Legacy, payload);
        Self { path: path.to_owned(), tool: tool.to_owned(), ..direct }.accepting_streams()
    }

    /// The same, with answers as streams of events accepted.
    pub(crate) fn accepting_streams(self) -> Self {
        Self { accept: EITHER, ..self }
    }

    /// Calls on so many connections for so long.
    pub(crate) fn run(&self, connections: usize, length: Duration) -> Outcome<Sample> {
        let begun = Instant::now();
        let threads: Vec<_> = (0..connections)
            .map(|_| {
                let load = self.clone();
                std::thread::spawn(move || load.one(length).map_err(|error| error.to_string()))
            })
            .collect();
        let mut times = Vec::new();
        for thread in threads {
            times.extend(thread.join().map_err(|_| "a client thread ended")??);
        }
        let calls = f64::from(u32::try_from(times.len())?);
        Ok(Sample { rates: vec![calls / begun.elapsed().as_secs_f64()], times })
    }

    /// One call.
    pub(crate) fn once(&self) -> Outcome<()> {
        self.one(Duration::ZERO).map(drop)
    }

    /// One listing, so that every server is connected.
    pub(crate) fn list(&self) -> Outcome<()> {
        let mut client = Client::connect(self)?;
        let request = self.request("tools/list", None, "", client.session.as_deref());
        client.exchange(&request).map(drop)
    }

    /// At least one call, and on until the time is over.
    fn one(&self, length: Duration) -> Outcome<Vec<Duration>> {
        let mut client = Client::connect(self)?;
        let params =
            format!(r#""name":"{}","arguments":{{"message":"{}"}}"#, self.tool, "x".repeat(self.payload));
        let request = self.request("tools/call", Some(&self.tool), &params, client.session.as_deref());
        let until = Instant::now() + length;
        let mut times = Vec::new();
        loop {
            let begun = Instant::now();
            let body = client.exchange(&request)?;
            times.push(begun.elapsed());
            if !body.contains("\"text\":\"xxxx") {
                return Err(format!("not the answer: {body}").into());
            }
            if Instant::now() >= until {
                return Ok(times);
            }
        }
    }

    fn request(&self, method: &str, name: Option<&str>, params: &str, session: Option<&str>) -> Vec<u8> {
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        let comma = if params.is_empty() { "" } else { "," };
        let (params, own) = match self.era {
            Era::Modern => {
                let name = name.map_or_else(String::new, |name| format!("Mcp-Name: {name}\r\n"));
                let own = format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}");
                (format!("{params}{comma}{meta}"), own)
            }
            Era::Legacy => {
                let session = session.map_or_else(String::new, |id| format!("Mcp-Session-Id: {id}\r\n"));
                (params.to_owned(), format!("MCP-Protocol-Version: 2025-11-25\r\n{session}"))
            }
        };
        self.post(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#), &own)
    }

    fn post(&self, body: &str, own: &str) -> Vec<u8> {
        let Self { address, path, headers, accept, .. } = self;
        format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: {accept}\r\n{own}{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }
}

impl Client {
    /// Connects, and in the legacy era initializes a session.
    fn connect(load: &Load) -> Outcome<Self> {
        let stream = TcpStream::connect(load.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let reader = BufReader::new(stream.try_clone()?);
        let mut client = Self { stream, reader, session: None };
        if load.era == Era::Legacy {
            let hello = r#""protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}"#;
            client.exchange(&load.request("initialize", None, hello, None))?;
            let session = client.session.clone().unwrap_or_default();
            let own = format!("MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\n");
            client.exchange(&load.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, &own))?;
        }
        Ok(client)
    }

    fn exchange(&mut self, request: &[u8]) -> Outcome<String> {
        self.stream.write_all(request)?;
        let (mut length, mut chunked) = (0, false);
        let mut line = String::new();
        loop {
            line.clear();
            if self.reader.read_line(&mut line)? == 0 {
                return Err("the connection ended".into());
            }
            if let Some((name, value)) = line.split_once(':') {
                if name.eq_ignore_ascii_case("content-length") {
                    length = value.trim().parse()?;
                } else if name.eq_ignore_ascii_case("transfer-encoding") {
                    chunked = value.trim().eq_ignore_ascii_case("chunked");
                } else if name.eq_ignore_ascii_case("mcp-session-id") {
                    self.session = Some(value.trim().to_owned());
                }
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = Vec::new();
        if chunked {
            while self.chunk(&mut body)? {}
        } else {
            body.resize(length, 0);
            self.reader.read_exact(&mut body)?;
        }
        Ok(String::from_utf8(body)?)
    }

    /// One chunk of a body; false after the last (RFC 9112, 7.1).
    fn chunk(&mut self, body: &mut Vec<u8>) -> Outcome<bool> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        let length = usize::from_str_radix(line.trim().split(';').next().unwrap_or_default(), 16)?;
        let begin = body.len();
        body.resize(begin + length, 0);
        self.reader.read_exact(body.get_mut(begin..).unwrap_or_default())?;
        line.clear();
        self.reader.read_line(&mut line)?;
        Ok(length > 0)
    }
}

impl Sample {
    /// Several rounds as one.
    pub(crate) fn of(rounds: Vec<Self>) -> Self {
        let mut all = Self { rates: Vec::new(), times: Vec::new() };
        for round in rounds {
            all.rates.extend(round.rates);
            all.times.extend(round.times);
        }
        all.rates.sort_by(f64::total_cmp);
        all.times.sort_unstable();
        all
    }

    /// How many calls there were.
    pub(crate) fn calls(&self) -> u32 {
        u32::try_from(self.times.len()).unwrap_or(u32::MAX)
    }

    /// Calls a second: the median of the rounds.
    pub(crate) fn rate(&self) -> f64 {
        self.rates.get(self.rates.len() / 2).copied().unwrap_or_default()
    }

    /// A percentile of the times, in milliseconds.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let index = (self.times.len() * percent / 100).min(self.times.len().saturating_sub(1));
        self.times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    }
}

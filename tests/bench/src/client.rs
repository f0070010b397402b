//! Calls over kept-alive connections, one thread each, with nothing between the clock and the socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::Outcome;

/// What is sent where.
#[derive(Clone)]
pub(crate) struct Load {
    address: SocketAddr,
    request: Vec<u8>,
}

/// What came of it.
pub(crate) struct Sample {
    pub(crate) calls: u32,
    length: Duration,
    times: Vec<Duration>,
}

impl Load {
    /// To the server itself.
    pub(crate) fn direct(address: SocketAddr) -> Self {
        Self::new(address, "echo", "")
    }

    /// Through a gateway.
    pub(crate) fn through(address: SocketAddr, token: &str) -> Self {
        Self::new(address, "fix__echo", &format!("Authorization: Bearer {}\r\n", token.trim()))
    }

    fn new(address: SocketAddr, tool: &str, header: &str) -> Self {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{{"message":"{}"}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#,
            "x".repeat(64)
        );
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n{header}Content-Length: {}\r\n\r\n",
            body.len()
        );
        Self { address, request: [head.into_bytes(), body.into_bytes()].concat() }
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
        times.sort_unstable();
        Ok(Sample { calls: u32::try_from(times.len())?, length: begun.elapsed(), times })
    }

    fn one(&self, length: Duration) -> Outcome<Vec<Duration>> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let until = Instant::now() + length;
        let mut times = Vec::new();
        while Instant::now() < until {
            let begun = Instant::now();
            stream.write_all(&self.request)?;
            let body = reply(&mut reader)?;
            times.push(begun.elapsed());
            if !body.contains("\"text\":\"xxxx") {
                return Err(format!("not the answer: {body}").into());
            }
        }
        Ok(times)
    }
}

fn reply(reader: &mut BufReader<TcpStream>) -> Outcome<String> {
    let mut length = 0;
    let mut line = String::new();
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err("the connection ended".into());
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(String::from_utf8(body)?)
}

impl Sample {
    /// Calls a second.
    pub(crate) fn rate(&self) -> f64 {
        f64::from(self.calls) / self.length.as_secs_f64()
    }

    /// A percentile of the times, in milliseconds.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let index = (self.times.len() * percent / 100).min(self.times.len().saturating_sub(1));
        self.times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    }
}

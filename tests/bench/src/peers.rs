//! Other programs that stand between a client and a server, as a file describes them: which command starts
//! each, and where it listens.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::Outcome;
use crate::client::Load;
use crate::place::{Upstream, built, free_address, listens};
use crate::process::Process;

/// How the server behind is reached.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Over {
    /// As a process of its own.
    Stdio,
    /// At an address.
    Http,
}

/// One program.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) over: Over,
    /// With `{port}`, `{upstream}` for the server's URL and `{fixture}` for its program.
    command: Vec<String>,
    /// Where its endpoint is.
    path: String,
}

impl Over {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "HTTP",
        }
    }
}

/// The programs of a file.
pub(crate) fn read(file: &Path) -> Outcome<Vec<Peer>> {
    Ok(serde_json::from_str(&std::fs::read_to_string(file)?)?)
}

impl Peer {
    /// Starts it and waits for its first answer.
    pub(crate) fn start(&self, upstream: &Upstream, payload: usize) -> Outcome<(Load, Process)> {
        let address = free_address()?;
        let url = format!("http://{}/mcp", upstream.address);
        let fixture = built("toolgate-fixture")?.display().to_string();
        let port = address.port().to_string();
        let filled = |word: &String| {
            word.replace("{port}", &port).replace("{upstream}", &url).replace("{fixture}", &fixture)
        };
        let mut words = self.command.iter().map(filled);
        let mut command = Command::new(words.next().ok_or("a peer has no command")?);
        let silent = command.args(words).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process(silent.stdin(Stdio::null()).spawn()?);
        listens(address)?;
        let load = Load::at(address, &self.path, "echo", payload);
        answers(&load, address)?;
        Ok((load, process))
    }
}

/// Some listen before they can answer.
fn answers(load: &Load, address: SocketAddr) -> Outcome<()> {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        match load.once() {
            Ok(()) => return Ok(()),
            Err(error) if Instant::now() > until => {
                return Err(format!("no answer from {address}: {error}").into());
            }
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

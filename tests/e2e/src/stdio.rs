//! A client on a pair of pipes that says exactly what a test wants said.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio as Pipe};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::PATIENCE;

/// A process and its pipes.
pub struct Stdio {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Receiver<String>,
    next: u64,
}

impl Stdio {
    /// Starts the command.
    pub fn start(mut command: Command) -> Self {
        command.stdin(Pipe::piped()).stdout(Pipe::piped()).stderr(Pipe::piped());
        let mut child = command.spawn().unwrap();
        let lines = collect(child.stdout.take().unwrap());
        let errors = collect(child.stderr.take().unwrap());
        Self { input: child.stdin.take(), child, lines, errors, next: 1 }
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends bytes as they are.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.flush().unwrap();
    }

    /// Sends one line.
    pub fn send(&mut self, line: &str) {
        self.send_bytes(format!("{line}\n").as_bytes());
    }

    /// The next line, or a failed test with what was written to standard error.
    #[track_caller]
    pub fn line(&mut self) -> String {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(error) => {
                let told: Vec<String> = self.errors.try_iter().collect();
                panic!("no line within {PATIENCE:?} ({error}); standard error: {told:#?}")
            }
        }
    }

    /// The next line, if one comes within this time.
    pub fn line_within(&mut self, wait: Duration) -> Option<String> {
        self.lines.recv_timeout(wait).ok()
    }

    /// The reply to an id (as JSON text), skipping notifications; as text, so that nothing is lost.
    #[track_caller]
    pub fn reply_to(&mut self, id: &str) -> String {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let line = self.line();
            if line.contains(&format!(r#""id":{id},"#)) || line.contains(&format!(r#""id":{id}}}"#)) {
                return line;
            }
        }
        panic!("no reply to {id}")
    }

    /// Sends a request with an id of its own and gives the reply.
    #[track_caller]
    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.next;
        self.next += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        serde_json::from_str(&self.reply_to(&id.to_string())).unwrap()
    }

    /// Sends all of these at once and gives the replies in the order of the requests.
    #[track_caller]
    pub fn requests(&mut self, requests: &[(&str, Value)]) -> Vec<Value> {
        let mut replies = self.order_of(requests);
        replies.sort_by_key(|(index, _)| *index);
        replies.into_iter().map(|(_, reply)| reply).collect()
    }

    /// Sends all of these at once and gives the replies in the order in which they came, each with the
    /// place of its request.
    #[track_caller]
    pub fn order_of(&mut self, requests: &[(&str, Value)]) -> Vec<(usize, Value)> {
        let first = self.next;
        for (method, params) in requests {
            let id = self.next;
            self.next += 1;
            self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        }
        let mut replies = Vec::new();
        while replies.len() < requests.len() {
            let line: Value = serde_json::from_str(&self.line()).unwrap();
            let place = line["id"].as_u64().and_then(|id| usize::try_from(id.checked_sub(first)?).ok());
            if let Some(place) = place.filter(|_| line.get("method").is_none()) {
                replies.push((place, line));
            }
        }
        replies
    }

    /// The handshake of the legacy era.
    #[track_caller]
    pub fn initialize(&mut self) -> Value {
        self.initialize_with("{}")
    }

    /// The same with capabilities of the client, as JSON text.
    #[track_caller]
    pub fn initialize_with(&mut self, capabilities: &str) -> Value {
        let capabilities: Value = serde_json::from_str(capabilities).unwrap();
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": { "name": "by-hand", "version": "1" },
        });
        let reply = self.request("initialize", &params);
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        reply
    }

    /// Calls a tool and gives its result.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let reply = self.request("tools/call", &json!({ "name": tool, "arguments": arguments }));
        assert!(reply.get("error").is_none(), "{reply}");
        reply["result"].clone()
    }

    /// The names that `tools/list` gives.
    #[track_caller]
    pub fn tool_names(&mut self) -> Vec<String> {
        let reply = self.request("tools/list", &json!({}));
        let tools = reply["result"]["tools"].as_array().unwrap_or_else(|| panic!("{reply}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Kills the process without a chance to clean up.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Closes the client's side and waits for the process to end by itself.
    #[track_caller]
    pub fn close(mut self) -> i32 {
        drop(self.input.take());
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the process did not end after its input did")
    }
}

impl Drop for Stdio {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(stream: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut bytes = Vec::new();
        while reader.read_until(b'\n', &mut bytes).is_ok_and(|count| count > 0) {
            let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
            bytes.clear();
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

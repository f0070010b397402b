//! A program for the tests of this crate: it is the toolgate binary's `__child`, a number of bad
//! servers, and a small gateway that can be killed.
//!
//! `upstream-child serve MODE` speaks JSON lines on its pipes; `LEDGER` names a file that gets
//! every line it received, `PIDS` one that gets its process id.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::indexing_slicing
)]

use std::fs::OpenOptions;
use std::io::{BufRead as _, Write as _};
use std::time::Duration;

use serde_json::{Value, json};

fn main() {
    let mut args = std::env::args_os().skip(1);
    match args.next().and_then(|word| word.into_string().ok()).as_deref() {
        Some("__child") => toolgate_upstream::child_main(args),
        Some("serve") => serve(&args.next().unwrap().into_string().unwrap()),
        Some("gateway") => gateway(args.map(|word| word.into_string().unwrap()).collect()),
        _ => std::process::exit(2),
    }
}

fn serve(mode: &str) {
    note("PIDS", &std::process::id().to_string());
    match mode {
        "banner" => println!("ready v9\n[INFO] listening"),
        "exit-init" => {
            eprintln!("cannot open the database");
            std::process::exit(4)
        }
        "bom" => send_bytes(&[0xEF, 0xBB, 0xBF]),
        _ => {}
    }
    let mut asked_before = false;
    while let Some(message) = next_message() {
        answer(mode, &message, asked_before);
        asked_before = true;
    }
    if mode == "stubborn" {
        loop {
            std::thread::sleep(Duration::from_mins(1));
        }
    }
}

fn next_message() -> Option<Value> {
    let mut line = String::new();
    if std::io::stdin().lock().read_line(&mut line).unwrap() == 0 {
        return None;
    }
    note("LEDGER", line.trim_end());
    Some(serde_json::from_str(&line).unwrap())
}

fn answer(mode: &str, message: &Value, asked_before: bool) {
    let id = &message["id"];
    match message["method"].as_str().unwrap_or_default() {
        "server/discover" => discover(mode, id),
        "initialize" if mode == "locked" && asked_before => {
            fail(id, -32022, "connection is serving the 2026-07-28 protocol");
        }
        "initialize" => {
            let instructions = if mode == "large" { "i".repeat(129 * 1024) } else { "be kind".to_owned() };
            let result = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": mode, "version": "1"},
                "instructions": instructions,
            });
            reply(mode, id, &result);
        }
        "ping" => {
            if mode == "flood" {
                std::io::stderr().write_all(&vec![b'e'; 256 * 1024]).unwrap();
            }
            reply(mode, id, &json!({}));
        }
        "tools/list" => {
            if mode == "banner" {
                println!("dbg: x");
            }
            let tool = json!({"name": "echo", "inputSchema": {"type": "object"}, "futureField": [1]});
            reply(mode, id, &json!({"tools": [tool], "resultType": "complete"}));
        }
        "tools/call" => call(mode, id, &message["params"]),
        _ => {}
    }
}

fn discover(mode: &str, id: &Value) {
    match mode {
        "modern" => reply(
            mode,
            id,
            &json!({
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}},
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "m", "version": "1"}},
            }),
        ),
        "silent" => eprintln!("{}", "warming up ".repeat(600)),
        "locked" => {}
        "odd-code" => fail(id, -32602, "bad params"),
        "exit-on-discover" => std::process::exit(1),
        "refuse-and-exit" => {
            fail(id, -32601, "initialize first");
            std::process::exit(1);
        }
        _ => fail(id, -32601, "method not found"),
    }
}

fn call(mode: &str, id: &Value, params: &Value) {
    match (mode, params["name"].as_str().unwrap_or_default()) {
        ("exit3", _) => {
            eprintln!("one\nthe disk is full");
            std::process::exit(3);
        }
        ("large", _) => {
            reply(mode, id, &json!({"content": [{"type": "text", "text": "x".repeat(300 * 1024)}]}));
        }
        (_, "bad-utf8") => {
            let head =
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#);
            send_bytes(&[head.as_bytes(), &[0xC3, 0x28], b"\"}]}}\n"].concat());
        }
        (_, "huge") => {
            let text = "y".repeat(64 * 1024);
            reply(mode, id, &json!({"content": [{"type": "text", "text": text}]}));
        }
        (_, "silent") => {}
        (_, "progress") => {
            let token = &params["_meta"]["progressToken"];
            for step in 1..=3 {
                let params = json!({"progressToken": token, "progress": step});
                send(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
            }
            reply(mode, id, &json!({"content": []}));
        }
        (_, "asks") => {
            send(&json!({"jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage", "params": {}}));
            // The answer to the question must come before the reply does.
            let answer = next_message().unwrap();
            reply(mode, id, &json!({"content": [], "answer": answer}));
        }
        (_, "env") => {
            let env: serde_json::Map<_, _> =
                std::env::vars().map(|(name, value)| (name, json!(value))).collect();
            reply(mode, id, &json!({"content": [], "env": env}));
        }
        _ => reply(mode, id, &json!({"content": [], "params": params})),
    }
}

fn reply(mode: &str, id: &Value, result: &Value) {
    let text = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    match mode {
        "crlf" => send_bytes(format!("\r\n   \n{text}\r\n").as_bytes()),
        "crlf-bytes" => format!("\r\n   \n{text}\r\n").bytes().for_each(|byte| send_bytes(&[byte])),
        _ => send_bytes(format!("{text}\n").as_bytes()),
    }
}

fn fail(id: &Value, code: i64, message: &str) {
    send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
}

fn send(message: &Value) {
    send_bytes(format!("{message}\n").as_bytes());
}

fn send_bytes(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).unwrap();
    out.flush().unwrap();
}

fn note(variable: &str, line: &str) {
    if let Ok(path) = std::env::var(variable) {
        let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
        writeln!(file, "{line}").unwrap();
    }
}

/// Connects to a command, says so, and waits to be killed. `words`: a PIDS file and the command.
fn gateway(mut words: Vec<String>) {
    use toolgate_upstream::{ClientInfo, Connection, Permit, ServerSpec, TransportSpec};
    let pids = words.remove(0);
    let program = words.remove(0);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let spec = ServerSpec {
            name: "victim".into(),
            transport: TransportSpec::Stdio {
                program,
                args: words,
                env: vec![("PIDS".into(), toolgate_base::Secret::new(pids))],
                cwd: None,
            },
            protocol: toolgate_upstream::ProtocolChoice::Auto,
            timeouts: toolgate_upstream::Timeouts::default(),
            limits: toolgate_upstream::Limits::default(),
            child_program: std::env::current_exe().unwrap(),
            client_info: ClientInfo::new("t", "0"),
        };
        let (events, _keep) = tokio::sync::mpsc::channel(8);
        let connection = Connection::open(&spec, Permit::decided("victim"), events, None).await.unwrap();
        let tools = connection.list_tools().await.unwrap().tools.len();
        eprintln!("{:?} {} {tools} tools", connection.era(), connection.protocol_version());
        println!("ready");
        std::future::pending::<()>().await;
    });
}

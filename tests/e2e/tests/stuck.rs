//! What is stuck costs nobody else: clients that do not read, servers that hang, a gateway that is stopped, a
//! socket that is gone, a file that may not grow.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio as Pipe};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolgate_e2e::{PATIENCE, Sandbox, Stdio};

use crate::sandbox;

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:*\"]\n";
const HANGS: &str = "  hang: { command: sleep, args: [\"1000\"] }\n";

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The rows of one event.
fn rows(sandbox: &Sandbox, event: &str) -> Vec<Value> {
    sandbox.audit_all().into_iter().filter(|row| row["details"]["event"] == event).collect()
}

/// A server that answers beside one that was never seen and hangs.
fn beside_one_that_hangs(options: &[&str]) -> Sandbox {
    let sandbox = sandbox();
    let fix = sandbox.fixture_entry("fix", options);
    sandbox.configure(&format!(
        "servers:\n{fix}{HANGS}personas:\n  default:\n    servers: [fix, hang]\n{ALLOW}"
    ));
    sandbox
}

fn kill(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

#[test]
fn gate_unread_a_client_that_stops_reading_loses_long_replies_by_name_and_no_call_is_made_twice() {
    const CALLS: usize = 24;
    const LONG: usize = 4 << 20;
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    sandbox.configure_fixture(
        &["--ledger", &ledger],
        &format!("{ALLOW}serve: {{ max_unread_mib: 17, max_unread_total_mib: 64 }}\n"),
    );
    let mut child = sandbox
        .command(&["serve", "--stdio"])
        .stdin(Pipe::piped())
        .stdout(Pipe::piped())
        .stderr(Pipe::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } });
    let request = |id: usize, method: &str, params: &Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string() + "\n"
    };
    input.write_all(request(0, "initialize", &hello).as_bytes()).unwrap();
    output.read_line(&mut String::new()).unwrap();
    let call = json!({ "name": "fix__big", "arguments": { "bytes": LONG } });
    let all: String = (1..=CALLS).map(|id| request(id, "tools/call", &call)).collect();
    input.write_all(all.as_bytes()).unwrap();
    // Four of them have room, and one or two are on their way through the relay.
    wait_until("replies are dropped", || rows(&sandbox, "reply_dropped").len() >= CALLS - 6);
    let mut answered = vec![0; CALLS + 1];
    let (mut kept, mut lost) = (0, 0);
    while kept + lost < CALLS {
        let mut text = String::new();
        assert!(output.read_line(&mut text).unwrap() > 0, "ended after {kept} and {lost}");
        let reply: Value = serde_json::from_str(&text).unwrap();
        let Some(id) = reply["id"].as_u64() else { continue };
        answered[usize::try_from(id).unwrap()] += 1;
        if reply.get("result").is_some() {
            kept += 1;
        } else {
            let told = reply["error"]["message"].as_str().unwrap();
            assert!(told.contains("serve.max_unread_mib") && told.contains("was carried out"), "{told}");
            assert_eq!(reply["error"]["data"]["toolgate/error"]["code"], "reply_dropped");
            lost += 1;
        }
    }
    assert!((1..=6).contains(&kept), "{kept} kept");
    assert!(answered.iter().skip(1).all(|count| *count == 1), "{answered:?}");
    assert_eq!(sandbox.read("ledger").matches(r#""tools/call""#).count(), CALLS, "each was sent once");
    wait_until("each has its row", || rows(&sandbox, "reply_dropped").len() == lost);
    let dropped = rows(&sandbox, "reply_dropped");
    assert_eq!(dropped[0]["details"]["limit"], "serve.max_unread_mib", "{}", dropped[0]);
    let _ = child.kill();
    let _ = child.wait();
}

#[test]
fn gate_crowded_over_http_a_token_with_much_to_read_gets_nothing_new_until_it_has_read() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], &format!("{ALLOW}serve: {{ max_unread_mib: 17 }}\n"));
    let server = sandbox.serve_http();
    assert_eq!(server.modern("/mcp", "1", "tools/list", "{}").status, 200);
    let mut stuck = TcpStream::connect(server.address).unwrap();
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"fix__big","arguments":{{"bytes":15728640}},{meta}}}}}"#
    );
    write!(
        stuck,
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Accept: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
         Mcp-Name: fix__big\r\nContent-Length: {}\r\n\r\n{body}",
        server.address,
        server.token.trim(),
        body.len()
    )
    .unwrap();
    // Its head is there, so the whole reply waits.
    let mut first = [0; 12];
    stuck.set_read_timeout(Some(PATIENCE)).unwrap();
    stuck.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    let echo = r#"{"name":"fix__echo","arguments":{"message":"m"}}"#;
    let refused = server.modern("/mcp", "2", "tools/call", echo);
    assert_eq!(refused.status, 429, "{}", refused.body);
    assert!(refused.body.contains("serve.max_unread_mib"), "{}", refused.body);
    drop(stuck);
    wait_until("what nobody reads any more makes room", || {
        server.modern("/mcp", "3", "tools/call", echo).status == 200
    });
}

#[test]
fn gate_beside_gw_01_a_server_that_was_never_seen_and_hangs_delays_no_list_read_or_status_of_the_others() {
    let sandbox = beside_one_that_hangs(&["--full"]);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let begun = Instant::now();
    assert!(client.tool_names().contains(&"fix__echo".to_owned()));
    // 2 s, and what a busy machine needs; it was 20 s.
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
    let begun = Instant::now();
    client.request("prompts/list", &json!({}));
    client.request("resources/list", &json!({}));
    let read = client.request("resources/read", &json!({ "uri": "fix://static" }));
    assert!(read["result"]["contents"][0]["text"].is_string(), "{read}");
    assert!(begun.elapsed() < Duration::from_secs(6), "waited for again: {:?}", begun.elapsed());

    let begun = Instant::now();
    let status = sandbox.run(&["mcp", "status", "--json"]).exits(0).json();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let state = |name: &str| {
        let all = status.as_array().or_else(|| status["servers"].as_array()).unwrap();
        all.iter().find(|server| server["name"] == name).unwrap()["state"].clone()
    };
    assert_eq!((state("fix"), state("hang")), (json!("connected"), json!("starting")));
}

#[test]
fn a_call_that_a_freeze_ends_is_told_of_the_freeze_its_reason_and_that_it_may_have_run() {
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    sandbox.configure_fixture(&["--ledger", &ledger], ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    client.send(r#"{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"fix__slow","arguments":{"ms":25000}}}"#);
    wait_until("the server has the call", || sandbox.read("ledger").contains(r#""tools/call""#));
    sandbox.run(&["freeze", "--all", "--reason", "incident 42"]).exits(0);
    let reply: Value = serde_json::from_str(&client.reply_to("77")).unwrap();
    let told = reply["result"]["content"][0]["text"].as_str().unwrap();
    for words in ["frozen by the operator", "incident", "42", "may have run", "toolgate thaw --all"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    wait_until("its end is written down", || !rows(&sandbox, "mcp_cancelled").is_empty());
    let cancelled = rows(&sandbox, "mcp_cancelled");
    assert!(cancelled[0]["details"]["reason"].as_str().unwrap().contains("incident"), "{cancelled:?}");
}

#[test]
fn scp_018_servers_declared_in_two_header_lines_are_those_of_both_and_a_doubled_name_is_said_to_be_double() {
    let sandbox = sandbox();
    let servers = ["a", "b"].map(|name| sandbox.fixture_entry(name, &[])).concat();
    sandbox.configure(&format!("servers:\n{servers}personas:\n  default:\n    servers: [a, b]\n{ALLOW}"));
    let server = sandbox.serve_http();
    let listed = |lines: &[&str]| {
        let headers: Vec<(&str, &str)> = lines.iter().map(|line| ("X-Toolgate-Servers", *line)).collect();
        server.modern_with("/mcp", "1", "tools/list", "{}", &headers).body
    };
    wait_until("both are there", || {
        let body = listed(&["a, b"]);
        body.contains("a__echo") && body.contains("b__echo")
    });
    let both = listed(&["a, b", "b"]);
    assert!(both.contains("b__echo") && !both.contains("a__echo"), "{both}");
    assert!(!listed(&["a", "b"]).contains("__echo"));
    let twice = server.modern_with(
        "/mcp",
        "2",
        "tools/list",
        "{}",
        &[("X-Toolgate-Run-Id", "1"), ("X-Toolgate-Run-Id", "2")],
    );
    assert!(twice.status == 403 && twice.body.contains("more than once"), "{twice:?}");
    let echo = r#"{"name":"a__echo","arguments":{"message":"m"}}"#;
    let doubled = server.modern_with("/mcp", "3", "tools/call", echo, &[("Mcp-Name", "a__echo")]);
    assert!(doubled.status == 400 && doubled.body.contains("more than once"), "{doubled:?}");
}

#[test]
fn gate_path_server_scp_002_a_path_to_a_server_that_the_persona_lacks_is_404_whether_or_not_others_have_it() {
    let sandbox = sandbox();
    let servers = ["a", "theirs"].map(|name| sandbox.fixture_entry(name, &[])).concat();
    sandbox.configure(&format!(
        "servers:\n{servers}personas:\n  default:\n    servers: [a]\n  other:\n    servers: [theirs]\n"
    ));
    let server = sandbox.serve_http();
    assert_eq!(server.modern("/mcp/default/a", "1", "tools/list", "{}").status, 200);
    let nobodys = server.modern("/mcp/default/nobody", "1", "tools/list", "{}");
    let theirs = server.modern("/mcp/default/theirs", "1", "tools/list", "{}");
    assert_eq!((nobodys.status, theirs.status), (404, 404), "{nobodys:?} {theirs:?}");
    assert_eq!(nobodys.body, theirs.body);
}

#[test]
fn a_gateway_that_is_stopped_is_named_with_the_remedy_within_a_moment() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let gateway = sandbox.gateway().unwrap();
    kill("-STOP", gateway);
    let begun = Instant::now();
    let asked = sandbox.run(&["mcp", "status"]);
    let took = begun.elapsed();
    kill("-CONT", gateway);
    assert_eq!(asked.code, 0, "what servers show here is shown instead: {asked:?}");
    assert!(took < Duration::from_mins(1), "{took:?}");
    assert!(asked.stderr.contains("did not answer within 10 s"), "{asked:?}");
    assert!(asked.stderr.contains(&format!("kill -CONT {gateway}")), "{asked:?}");
    sandbox.run(&["mcp", "status"]).exits(0);
}

#[test]
fn gate_socket_a_gateway_whose_socket_was_removed_makes_it_anew_and_new_clients_come_in() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    let mut first = sandbox.serve_stdio(&[]);
    first.initialize();
    let gateway = sandbox.gateway();
    std::fs::remove_file(sandbox.data().join("run/gateway.sock")).unwrap();
    let mut second = sandbox.serve_stdio(&[]);
    second.initialize();
    let said = second.call("fix__echo", &json!({ "message": "in again" }));
    assert_eq!(said["content"][0]["text"], "in again");
    assert_eq!(sandbox.gateway(), gateway, "the same one");
}

#[test]
fn gate_file_limit_where_no_file_may_grow_calls_are_refused_as_on_a_full_disk_and_the_process_lives() {
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    sandbox.configure_fixture(&["--ledger", &ledger], ALLOW);
    // What is compiled and made once is there before the limit.
    let mut first = sandbox.serve_alone(&[]);
    first.initialize();
    first.call("fix__echo", &json!({ "message": "first" }));
    assert_eq!(first.close(), 0);
    let serve = sandbox.command(&["serve", "--stdio", "--no-share"]);
    let mut limited = sandbox.command(&[]);
    limited = {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "ulimit -f 1024; exec \"$0\" \"$@\""])
            .arg(serve.get_program())
            .args(serve.get_args());
        shell.env_clear();
        for (name, value) in limited.get_envs() {
            if let Some(value) = value {
                shell.env(name, value);
            }
        }
        shell.current_dir(sandbox.path("work"));
        shell
    };
    let mut client = Stdio::start(limited);
    client.initialize();
    let text = "y".repeat(200);
    let refused = (0..4_000).find_map(|_| {
        let reply =
            client.request("tools/call", &json!({ "name": "fix__echo", "arguments": { "message": text } }));
        (reply["result"]["isError"] == true || reply.get("error").is_some()).then_some(reply)
    });
    let refused = refused.expect("the limit was reached").to_string();
    assert!(refused.contains("nothing was sent"), "{refused}");
    // It lives on and says the same again.
    let again =
        client.request("tools/call", &json!({ "name": "fix__echo", "arguments": { "message": text } }));
    assert!(again.to_string().contains("nothing was sent"), "{again}");
}

#[test]
fn se_01_text_in_a_blob_of_a_text_type_hides_nothing_from_the_client() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&["--full"], ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let read = client.request("resources/read", &json!({ "uri": "fix://item/hidden-blob" }));
    // "ab", without what stood between.
    assert_eq!(read["result"]["contents"][0]["blob"], "YWI=", "{read}");
    wait_until("it is written down", || !rows(&sandbox, "hidden_text_found").is_empty());
}

/// A server over HTTP that answers a call with an event longer than any may be, whose id comes last.
fn too_long() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            std::thread::spawn(move || answer(stream));
        }
    });
    url
}

fn answer(mut stream: TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let (mut length, mut is_post, mut line) = (0, false, String::new());
        loop {
            line.clear();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let lower = line.to_ascii_lowercase();
            is_post |= lower.starts_with("post ");
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        let id = &message["id"];
        let result = match message["method"].as_str().unwrap_or_default() {
            _ if !is_post => {
                stream.write_all(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n").ok()?;
                continue;
            }
            "initialize" => json!({
                "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                "serverInfo": { "name": "long", "version": "1" }
            }),
            "tools/list" => json!({ "tools": [{ "name": "long", "inputSchema": { "type": "object" } }] }),
            "tools/call" => {
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
                stream.write_all(head.as_bytes()).ok()?;
                let text = "x".repeat(17 << 20);
                let event = format!(
                    r#"data: {{"jsonrpc":"2.0","result":{{"content":[{{"type":"text","text":"{text}"}}]}},"id":{id}}}"#
                );
                stream.write_all(event.as_bytes()).ok()?;
                stream.write_all(b"\n\n").ok()?;
                return None;
            }
            _ if id.is_null() => {
                stream.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").ok()?;
                continue;
            }
            _ => {
                let error =
                    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "no" } });
                say(&mut stream, &error)?;
                continue;
            }
        };
        say(&mut stream, &json!({ "jsonrpc": "2.0", "id": id, "result": result }))?;
    }
}

fn say(stream: &mut TcpStream, message: &Value) -> Option<()> {
    let text = message.to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    );
    stream.write_all(head.as_bytes()).ok()
}

#[test]
fn an_event_that_is_too_long_ends_its_call_with_the_name_of_the_limit() {
    let sandbox = sandbox();
    sandbox.configure(&format!(
        "servers:\n  long: {{ url: {:?} }}\npersonas:\n  default:\n    servers: [long]\n{ALLOW}",
        too_long()
    ));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let reply = client.request("tools/call", &json!({ "name": "long__long", "arguments": {} }));
    let told = reply.to_string();
    assert!(told.contains("max_message") && told.contains("16777216"), "{told}");
    assert!(told.contains("may have run"), "{told}");
}

#[test]
fn a_server_that_is_no_child_and_is_not_ready_is_not_told_to_have_been_silent_on_stderr() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let sandbox = sandbox();
    let url = format!("http://{}/sse", silent.local_addr().unwrap());
    sandbox.configure(&format!(
        "servers:\n  old: {{ url: {url:?}, transport: sse, timeouts: {{ init: 1s }} }}\npersonas:\n  default:\n    servers: [old]\n"
    ));
    let status = sandbox.run(&["mcp", "status", "--json"]).exits(0);
    assert!(status.stdout.contains("was not ready within 1 s"), "{status:?}");
    assert!(!status.stdout.contains("stderr\":\"") && !status.stdout.contains("to stderr"), "{status:?}");
}

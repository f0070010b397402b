//! Much at a time: the largest message, the longest listing, a thousand calls, and a client that does not read.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio as Pipe;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_e2e::{PATIENCE, Sandbox};

use crate::sandbox;

/// The longest line and result there may be, bytes.
const LARGEST: usize = 16 << 20;
/// Room for everything of a message but the text in it.
const ROOM: usize = 4 << 10;
const ALL: &str = "    capabilities:\n      allow: [\"mcp.call:fix\"]\n";

fn fixture(options: &[&str], rest: &str) -> Sandbox {
    let sandbox = sandbox();
    sandbox.configure_fixture(options, &format!("{ALL}{rest}"));
    sandbox
}

#[test]
fn a_message_of_16_mib_goes_through_both_ways_and_over_both_transports() {
    let sandbox = fixture(&[], "");
    let (size, text) = (LARGEST - ROOM, "x".repeat(LARGEST - ROOM));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let big = client.call("fix__big", &json!({ "bytes": size }));
    assert_eq!(big["content"][0]["text"].as_str().map(str::len), Some(size), "{}", head(&big));
    let echo = client.call("fix__echo", &json!({ "message": text }));
    assert_eq!(echo["content"][0]["text"].as_str().map(str::len), Some(size), "{}", head(&echo));
    // One over the limit fails alone, and its reason names the limit.
    let over = client.call("fix__big", &json!({ "bytes": LARGEST + 1 }));
    assert_eq!(over["isError"], true, "{}", head(&over));
    assert!(over["content"][0]["text"].as_str().unwrap().contains("16777216"), "{}", head(&over));
    let small = client.call("fix__echo", &json!({ "message": "after" }));
    assert_eq!(small["content"][0]["text"], "after");
    assert_eq!(client.close(), 0);
    sandbox.end_gateway();

    let http = sandbox.serve_http();
    let params = json!({ "name": "fix__echo", "arguments": { "message": text } }).to_string();
    let reply = http.modern("/mcp", "1", "tools/call", &params).message();
    assert_eq!(reply["result"]["content"][0]["text"].as_str().map(str::len), Some(size), "{}", head(&reply));
}

#[test]
fn five_thousand_tools_in_fifty_pages_are_listed_once_each_and_in_their_order() {
    let tools: Vec<Value> = (0..5_000)
        .map(|number| json!({ "name": format!("tool_{number}"), "inputSchema": { "type": "object" } }))
        .collect();
    let sandbox = sandbox();
    let path = sandbox.write("tools.json", Value::from(tools).to_string());
    let ledger = sandbox.path("ledger").display().to_string();
    let options = ["--tools", &path, "--tools-in-pages-of", "100", "--ledger", &ledger];
    sandbox.configure_fixture(&options, ALL);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let mut names = Vec::new();
    let mut params = json!({});
    loop {
        let reply = client.request("tools/list", &params);
        let page = reply["result"]["tools"].as_array().unwrap_or_else(|| panic!("{reply}"));
        assert!(page.len() <= 1_000, "a page of {}", page.len());
        names.extend(page.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        match reply["result"].get("nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => break,
        }
    }
    let wanted: Vec<String> = (0..5_000).map(|number| format!("fix__tool_{number}")).collect();
    assert!(names == wanted, "{} names, from {:?} to {:?}", names.len(), names.first(), names.last());
    let asked = sandbox.read("ledger").lines().filter(|line| line.contains("tools/list")).count();
    assert_eq!(asked % 50, 0, "fifty pages for a listing, and no page twice: {asked}");
    // The last of them is found by its name.
    let reply = client.request("tools/call", &json!({ "name": "fix__tool_4999", "arguments": {} }));
    assert!(
        reply["error"]["message"].as_str().unwrap().contains("no tool tool_4999"),
        "the server's own: {reply}"
    );
}

#[test]
fn a_thousand_calls_at_once_go_through_and_each_reply_belongs_to_its_request() {
    let sandbox = fixture(&[], "serve: { max_running: 1024 }\n");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    client.call("fix__echo", &json!({ "message": "connected" }));
    let say = |number: usize| json!({ "name": "fix__slow", "arguments": { "ms": 1_000, "say": number.to_string() } });
    let calls: Vec<(&str, Value)> = (0..1_000).map(|number| ("tools/call", say(number))).collect();
    for (number, reply) in client.requests(&calls).iter().enumerate() {
        assert_eq!(reply["result"]["content"][0]["text"], number.to_string(), "{reply}");
    }
    assert_eq!(client.close(), 0);
    assert_eq!(sandbox.events().iter().filter(|event| *event == "mcp_called").count(), 1_001);
    sandbox.run(&["audit", "verify"]).exits(0);

    // The default is smaller: what is over it is refused, with the limit's name.
    let sandbox = fixture(&[], "");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    client.call("fix__echo", &json!({ "message": "connected" }));
    let replies = client.requests(&calls);
    let refused: Vec<&Value> = replies.iter().filter(|reply| reply.get("error").is_some()).collect();
    assert!(!refused.is_empty() && refused.len() < 1_000, "{} refused", refused.len());
    assert!(refused[0]["error"]["message"].as_str().unwrap().contains("max_running"), "{}", refused[0]);
}

/// Results of 1 MiB that a client asks for and does not read.
const RESULTS: usize = 2_000;
/// What a gateway may need for as many as may run at once: 128 results, each once as it came and once as it
/// is sent, and itself. All of them would be 2,000 MiB.
const BOUND_MIB: u64 = 700;

#[test]
fn memory_stays_bounded_when_a_client_stops_reading_and_each_request_has_one_answer_when_it_goes_on() {
    let sandbox = fixture(&[], "");
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
    input.write_all(line(0, "initialize", &hello).as_bytes()).unwrap();
    output.read_line(&mut String::new()).unwrap();
    let call = json!({ "name": "fix__big", "arguments": { "bytes": 1 << 20 } });
    // From a thread of its own: where Toolgate stops reading too, this waits.
    let asking = std::thread::spawn(move || {
        for id in 1..=RESULTS {
            input.write_all(line(id, "tools/call", &call).as_bytes()).unwrap();
        }
        input
    });
    std::thread::sleep(Duration::from_secs(6));
    let (mut answered, mut refused) = (0, 0);
    while answered + refused < RESULTS {
        let mut text = String::new();
        assert!(output.read_line(&mut text).unwrap() > 0, "ended after {answered} answers");
        if text.contains(r#""result":"#) {
            answered += 1;
        } else if text.contains(r#""error":"#) {
            let named = text.contains("max_running") || text.contains("max_unread_mib");
            assert!(named, "{}", &text[..text.len().min(300)]);
            refused += 1;
        }
    }
    drop(asking.join().unwrap());
    // The client's own process, and the gateway behind it.
    let all = [child.id(), sandbox.gateway().unwrap()].map(toolgate_e2e::most_resident_mib);
    let _ = child.kill();
    let _ = child.wait();
    assert!(answered >= 120, "{answered} answered, {refused} refused");
    assert!(all.iter().all(|most| (1..BOUND_MIB).contains(most)), "{all:?} MiB");
}

#[test]
fn memory_stays_bounded_when_http_clients_stop_reading() {
    let sandbox = fixture(&[], "");
    let mut http = sandbox.serve_http();
    let arguments = json!({ "name": "fix__big", "arguments": { "bytes": 2 << 20 } });
    let streams: Vec<TcpStream> = (0..100)
        .map(|id| {
            let body = modern(id, &arguments);
            let mut head = String::new();
            write!(
                head,
                "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: fix__big\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                http.address, http.token.trim(), body.len()
            )
            .unwrap();
            let mut stream = TcpStream::connect(http.address).unwrap();
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    // 100 results of 2 MiB, each held as it came and as it is sent, while none is read.
    let most = http.highest_while(Duration::from_secs(6));
    assert!((1..BOUND_MIB).contains(&most), "{most} MiB");
    for mut stream in streams {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        assert!(
            all.len() > 2 << 20,
            "{} bytes: {}",
            all.len(),
            String::from_utf8_lossy(&all[..all.len().min(300)])
        );
    }
    // It goes on as if nothing had been.
    let echo = json!({ "name": "fix__echo", "arguments": { "message": "after" } }).to_string();
    let reply = http.modern("/mcp", "1", "tools/call", &echo).message();
    assert_eq!(reply["result"]["content"][0]["text"], "after", "{reply}");
}

fn line(id: usize, method: &str, params: &Value) -> String {
    format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
}

fn modern(id: usize, params: &Value) -> String {
    let mut params = params.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
}

fn head(value: &Value) -> String {
    value.to_string().chars().take(300).collect()
}

//! The HTTP endpoint, both eras on one address.

use serde_json::{Value, json};

use crate::sandbox;

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:fix\"]\n";
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;

#[test]
fn gw_05_host_and_origin_are_checked_before_anything_else() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    let server = sandbox.serve_http();
    let host = server.address.to_string();
    let evil = server.raw("POST", "/mcp", &[("Host", &host), ("Origin", "http://evil.example")], INITIALIZE);
    assert_eq!(evil.status, 403, "{evil:?}");
    let rebound = server.raw("POST", "/mcp", &[("Host", "evil.example")], INITIALIZE);
    assert_eq!(rebound.status, 403, "{rebound:?}");
    let normal = server.post("/mcp", &[], INITIALIZE);
    assert_eq!(normal.status, 200, "{normal:?}");
}

// FT-03, FR-19
#[test]
fn gate_caller_only_a_token_opens_the_endpoint_and_it_fixes_the_persona() {
    let sandbox = sandbox();
    sandbox.configure(&format!(
        "servers:\n{}{}personas:\n  default:\n    servers: [fix]\n    capabilities: {{ allow: [\"mcp.call:*\"] }}\n  other:\n    servers: [theirs]\n    capabilities: {{ allow: [\"mcp.call:*\"] }}\n",
        sandbox.fixture_entry("fix", &[]),
        sandbox.fixture_entry("theirs", &[]),
    ));
    let server = sandbox.serve_http();
    let host = server.address.to_string();
    assert_eq!(server.raw("POST", "/mcp", &[("Host", &host)], INITIALIZE).status, 401);
    let wrong = [("Host", host.as_str()), ("Authorization", "Bearer wrong")];
    assert_eq!(server.raw("POST", "/mcp", &wrong, INITIALIZE).status, 401);

    let listed = server.modern("/mcp", "1", "tools/list", "{}").message();
    assert!(listed.to_string().contains("fix__echo") && !listed.to_string().contains("theirs__"), "{listed}");
    let refused = server.modern("/mcp/other", "2", "tools/list", "{}");
    assert_eq!(refused.status, 403, "the path cannot change the persona: {refused:?}");
    let header = [("X-Toolgate-Persona", "other")];
    let refused = server.modern_with("/mcp", "2", "tools/list", "{}", &header);
    assert_eq!(refused.status, 403, "nor can a header: {refused:?}");
    let message = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": { "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "toolgate/persona": "other",
    } } });
    let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/list")];
    let refused = server.post("/mcp", &headers, &message.to_string());
    assert_eq!(refused.status, 403, "nor can a message: {refused:?}");

    let issued = sandbox.run(&["token", "issue", "--persona", "other"]).exits(0);
    let mut other = server;
    other.token = issued.stdout;
    let listed = other.modern("/mcp", "3", "tools/list", "{}").message();
    assert!(
        listed.to_string().contains("theirs__echo") && !listed.to_string().contains("fix__"),
        "works at once: {listed}"
    );
    // The token of one persona at the endpoint of another is the same, whichever way round.
    assert_eq!(other.modern("/mcp/default", "4", "tools/list", "{}").status, 403);
    let refused: Vec<Value> =
        sandbox.audit().into_iter().filter(|row| row["details"]["event"] == "caller_refused").collect();
    let said: Vec<_> = refused
        .iter()
        .map(|row| {
            (row["persona_id"].as_str().unwrap(), &row["details"]["place"], &row["details"]["claimed"])
        })
        .collect();
    let claim = |persona, place, claimed| (persona, json!(place), json!(claimed));
    let expected = [
        claim("default", "path", "other"),
        claim("default", "header", "other"),
        claim("default", "message", "other"),
        claim("other", "path", "default"),
    ];
    assert_eq!(said.len(), expected.len(), "{refused:?}");
    for ((persona, place, claimed), wanted) in said.into_iter().zip(&expected) {
        assert_eq!((persona, place, claimed), (wanted.0, &wanted.1, &wanted.2));
    }
    assert!(refused.iter().all(|row| row["details"]["credential"].as_str().unwrap().starts_with("token:")));
}

#[test]
fn fr_19_a_client_on_pipes_that_claims_to_be_somebody_else_is_refused_and_recorded() {
    let sandbox = sandbox();
    sandbox.configure(&format!(
        "servers:\n{}personas:\n  default: {{}}\n  other:\n    servers: [fix]\n    capabilities: {{ allow: [\"mcp.call:*\"] }}\n",
        sandbox.fixture_entry("fix", &[]),
    ));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    for (what, claimed) in [("persona", "other"), ("lane", "automation")] {
        let mut params = json!({ "name": "fix__echo", "arguments": { "message": "hi" }, "_meta": {} });
        params["_meta"][format!("toolgate/{what}")] = json!(claimed);
        let refused = client.request("tools/call", &params);
        assert!(refused["error"]["message"].as_str().unwrap().contains(what), "{refused}");
    }
    client.close();
    let rows = sandbox.audit();
    let refused: Vec<_> = rows.iter().filter(|row| row["details"]["event"] == "caller_refused").collect();
    assert_eq!(refused.len(), 2, "{rows:?}");
    assert_eq!(
        (&refused[0]["details"]["what"], &refused[1]["details"]["what"]),
        (&json!("persona"), &json!("lane"))
    );
    assert!(refused.iter().all(|row| row["details"]["credential"] == "stdio"));
}

#[test]
fn a_modern_client_discovers_lists_and_calls_without_a_session() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    let server = sandbox.serve_http();
    let discovered = server.modern("/mcp", "\"d\"", "server/discover", "{}").message();
    assert_eq!(discovered["id"], "d");
    assert!(discovered["result"]["supportedVersions"].to_string().contains("2026-07-28"), "{discovered}");
    let listed = server.modern("/mcp", "2", "tools/list", "{}").message();
    assert_eq!(listed["result"]["resultType"], "complete");
    assert_eq!(listed["result"]["cacheScope"], "private", "a list depends on its caller");
    let called = server
        .modern("/mcp", "3", "tools/call", r#"{"name":"fix__echo","arguments":{"message":"hi"}}"#)
        .message();
    assert_eq!(called["result"]["content"][0]["text"], "hi", "{called}");
    assert_eq!(called["result"]["resultType"], "complete");
}

#[test]
fn a_header_that_disagrees_with_the_body_is_refused() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    let server = sandbox.serve_http();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fix__big","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let headers =
        [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "fix__echo")];
    let reply = server.post("/mcp", &headers, body);
    assert_eq!(reply.status, 400, "{reply:?}");
    assert_eq!(reply.message()["error"]["code"], -32020);
}

#[test]
fn gate_param_headers_a_header_that_repeats_an_argument_must_agree_with_it() {
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    let tools = sandbox.write(
        "tools.json",
        r#"[{"name":"received","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"count":{"type":"integer","x-mcp-header":"Count"}}}}]"#,
    );
    sandbox.configure_fixture(&["--tools", &tools, "--ledger", &ledger], ALLOW);
    let server = sandbox.serve_http();
    let call = |arguments: &str, headers: &[(&str, &str)]| {
        let params = format!(r#"{{"name":"fix__received","arguments":{arguments}}}"#);
        server.modern_with("/mcp", "1", "tools/call", &params, headers)
    };
    for (arguments, headers) in [
        (r#"{"region":"eu","n":1}"#, &[("Mcp-Param-Region", "eu")][..]),
        (r#"{"region":"eü","n":2}"#, &[("Mcp-Param-Region", "=?base64?ZcO8?=")]),
        (r#"{"count":42.0,"n":3}"#, &[("mcp-param-count", "42")]),
        (r#"{"n":4}"#, &[("Mcp-Param-Other", "x")]),
    ] {
        let reply = call(arguments, headers);
        assert_eq!(reply.status, 200, "{arguments}: {reply:?}");
        assert_eq!(reply.message()["result"].get("isError"), None, "{arguments}: {reply:?}");
    }
    for (arguments, headers) in [
        (r#"{"region":"bad"}"#, &[("Mcp-Param-Region", "eu")][..]),
        (r#"{"region":"bad"}"#, &[]),
        (r#"{"name":"bad"}"#, &[("Mcp-Param-Region", "eu")]),
        (r#"{"region":"bad"}"#, &[("Mcp-Param-Region", "=?base64?!!?=")]),
        (r#"{"region":"bad"}"#, &[("Mcp-Param-Region", "bad"), ("mcp-param-region", "bad")]),
        (r#"{"count":7,"name":"bad"}"#, &[("Mcp-Param-Count", "8")]),
    ] {
        let reply = call(arguments, headers);
        assert_eq!(reply.status, 400, "{arguments}: {reply:?}");
        assert_eq!(reply.message()["error"]["code"], -32020, "{arguments}: {reply:?}");
    }
    let ledger = sandbox.read("ledger");
    assert!(ledger.contains(r#""n":4"#) && !ledger.contains("bad"), "{ledger}");
    let denied = sandbox.audit().into_iter().find(|row| row["details"]["event"] == "mcp_denied").unwrap();
    assert_eq!(denied["tool"], "received", "{denied}");
}

#[test]
fn a_legacy_session_belongs_to_its_token_and_ends_with_delete() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    let mut server = sandbox.serve_http();
    let opened = server.post("/mcp", &[], INITIALIZE);
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let headers = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", "2025-11-25")];
    server.post("/mcp", &headers, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"fix__echo","arguments":{"message":"hi"}}}"#;
    assert_eq!(server.post("/mcp", &headers, call).message()["result"]["content"][0]["text"], "hi");
    let own = server.token.clone();
    server.token = sandbox.run(&["token", "issue"]).exits(0).stdout;
    assert_eq!(server.post("/mcp", &headers, call).status, 404, "another token's session is none");
    server.token = own;
    let (host, bearer) = (server.address.to_string(), format!("Bearer {}", server.token.trim()));
    let delete =
        [("Host", host.as_str()), ("Authorization", bearer.as_str()), ("Mcp-Session-Id", session.as_str())];
    assert!((200..300).contains(&server.raw("DELETE", "/mcp", &delete, "").status));
    assert_eq!(server.post("/mcp", &headers, call).status, 404);
}

#[test]
fn an_address_that_others_can_reach_is_refused() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    let run = sandbox.run(&["serve", "--listen", "0.0.0.0:0"]).exits(2);
    assert!(run.stderr.contains("behind_proxy"), "{run:?}");
}

/// Starts a fixture that serves HTTP and gives its URL; it ends with the returned guard.
pub(crate) fn upstream(sandbox: &toolgate_e2e::Sandbox, options: &[&str]) -> (String, Guard) {
    use std::io::BufRead;
    let mut child = std::process::Command::new(sandbox.fixture())
        .args(["--http", "127.0.0.1:0"])
        .args(options)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (format!("http://127.0.0.1:{}/mcp/?k=a%2Fb", line.trim()), Guard(child))
}

pub(crate) struct Guard(std::process::Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_server_over_http_is_reached_in_either_era_and_either_form_of_reply() {
    for options in
        [&[][..], &["--sse"], &["--era", "modern"], &["--era", "modern", "--sse"], &["--era", "dual"]]
    {
        let sandbox = sandbox();
        let (url, _guard) = upstream(&sandbox, options);
        sandbox.configure(&format!(
            "servers:\n  fix: {{ url: {url:?} }}\npersonas:\n  default:\n    servers: [fix]\n{ALLOW}"
        ));
        let mut client = sandbox.serve_stdio(&[]);
        client.initialize();
        let result = client.call("fix__echo", &json!({ "message": "over http" }));
        assert_eq!(result["content"][0]["text"], "over http", "{options:?}");
        let slow = client.call("fix__slow", &json!({ "ms": 300, "say": "late" }));
        assert_eq!(slow["content"][0]["text"], "late", "{options:?}");
    }
}

#[test]
fn gate_tool_headers_a_tool_whose_header_annotations_break_the_rules_is_not_offered_over_modern_http() {
    let tool = |name: &str, kind: &str, header: &str| {
        json!({ "name": name, "inputSchema": {
            "type": "object", "properties": { "a": { "type": kind, "x-mcp-header": header } },
        } })
    };
    let listed = json!([
        tool("received", "string", "Region"),
        tool("empty", "string", ""),
        tool("spaced", "string", "My Region"),
        tool("number", "number", "Score"),
    ]);
    for (era, seen) in [("modern", 1), ("legacy", 4)] {
        let sandbox = sandbox();
        let tools = sandbox.write("tools.json", listed.to_string());
        let (url, _guard) = upstream(&sandbox, &["--era", era, "--tools", &tools]);
        sandbox.configure(&format!(
            "servers:\n  fix: {{ url: {url:?} }}\npersonas:\n  default:\n    servers: [fix]\n{ALLOW}"
        ));
        let mut client = sandbox.serve_stdio(&[]);
        client.initialize();
        let tools = client.request("tools/list", &json!({}));
        let names = tools["result"]["tools"].as_array().unwrap();
        assert_eq!(names.len(), seen, "{tools}");
        assert_eq!(names.iter().any(|tool| tool["name"] == "fix__number"), seen == 4, "{tools}");
    }
}

#[test]
fn ht_10_and_ht_27_a_forgotten_session_is_renewed_once_and_ended_at_the_end() {
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    let (url, _guard) = upstream(&sandbox, &["--forget-after", "1", "--ledger", &ledger]);
    sandbox.configure(&format!("servers:\n  fix: {{ url: {url:?}, protocol: legacy }}\npersonas:\n  default:\n    servers: [fix]\n{ALLOW}"));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    for _ in 0..2 {
        let result = client.call("fix__echo", &json!({ "message": "hi" }));
        assert_eq!(result["content"][0]["text"], "hi");
    }
    assert_eq!(client.close(), 0);
    sandbox.end_gateway();
    let ledger = sandbox.read("ledger");
    assert_eq!(ledger.matches("\"method\":\"initialize\"").count(), 2, "{ledger}");
    assert!(ledger.contains("DELETE s"), "{ledger}");
}

#[test]
fn gate_forgotten_ht_10_a_server_that_forgets_each_session_at_once_is_not_asked_for_ever() {
    let answer = |status: &str, headers: &str, body: &str| {
        let length = body.len();
        format!(
            "HTTP/1.1 {status}\r\n{headers}content-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        )
    };
    let mut lists = 0;
    let receiver = toolgate_e2e::Receiver::start(move |request| {
        let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let result =
            |result: Value| json!({ "jsonrpc": "2.0", "id": body["id"], "result": result }).to_string();
        match body["method"].as_str() {
            Some("initialize") => answer(
                "200 OK",
                "mcp-session-id: s\r\n",
                &result(json!({
                    "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                    "serverInfo": { "name": "forgetful", "version": "1" },
                })),
            ),
            Some("notifications/initialized") => answer("202 Accepted", "", ""),
            Some("tools/list") if lists == 0 => {
                lists += 1;
                answer(
                    "200 OK",
                    "",
                    &result(json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] })),
                )
            }
            None => answer("405 Method Not Allowed", "", ""),
            _ => answer("404 Not Found", "", ""),
        }
    });
    let sandbox = sandbox();
    sandbox.configure(&format!(
        "servers:\n  fix: {{ url: \"http://127.0.0.1:{}/mcp\", protocol: legacy }}\npersonas:\n  default:\n    servers: [fix]\n{ALLOW}",
        receiver.port
    ));
    let mut client = sandbox.serve_alone(&[]);
    client.initialize();
    let failed = client.call("fix__echo", &json!({}));
    assert_eq!(failed["isError"], true, "{failed}");
    let initializes = || receiver.requests().iter().filter(|it| it.body.contains("\"initialize\"")).count();
    // One for the connection and one in place of the session that was forgotten; nobody needs another.
    std::thread::sleep(std::time::Duration::from_millis(3500));
    assert_eq!(initializes(), 2, "{:?}", receiver.requests());
}

/// An entry for the event stream of a 2024-11-05 server.
fn old_sse(url: &str, transport: &str) -> String {
    let url = url.replace("/mcp/?k=a%2Fb", "/sse");
    format!(
        "servers:\n  fix: {{ url: {url:?}{transport} }}\npersonas:\n  default:\n    servers: [fix]\n{ALLOW}"
    )
}

#[test]
fn a_server_of_2024_is_reached_over_its_event_stream_named_or_found_dsp_009() {
    for transport in [", transport: sse", ""] {
        let sandbox = sandbox();
        let (url, _guard) = upstream(&sandbox, &["--old-sse", "--full"]);
        sandbox.configure(&old_sse(&url, transport));
        let mut client = sandbox.serve_stdio(&[]);
        client.initialize();
        let result = client.call("fix__echo", &json!({ "message": "over sse" }));
        assert_eq!(result["content"][0]["text"], "over sse", "{transport}");
        let read = client.request("resources/read", &json!({ "uri": "fix://static" }));
        assert_eq!(read["result"]["contents"][0]["text"], "fixture:fix://static", "{read}");
        // The stream is the session: with its end every open request ends, and the next call opens another.
        let lost = client.call("fix__die", &json!({}));
        assert_eq!(lost.pointer("/_meta/toolgate~1error/code").unwrap(), "may_have_run", "{lost}");
        let result = client.call("fix__echo", &json!({ "message": "again" }));
        assert_eq!(result["content"][0]["text"], "again", "{transport}");
    }
}

#[test]
fn ht_25_an_endpoint_of_another_origin_is_refused_and_nothing_is_sent_there() {
    let sandbox = sandbox();
    let elsewhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let other = format!("http://{}", elsewhere.local_addr().unwrap());
    let endpoint = format!("{other}/message?sid=1");
    let (url, _guard) = upstream(&sandbox, &["--old-sse", "--endpoint", &endpoint]);
    sandbox.configure(&old_sse(&url, ", transport: sse"));
    let status = sandbox.run(&["mcp", "status", "--json"]).exits(0).json();
    let detail = status["servers"][0]["detail"].as_str().unwrap();
    let own = url.trim_end_matches("/mcp/?k=a%2Fb");
    assert!(detail.contains(&other) && detail.contains(own), "both origins: {detail}");
    assert!(elsewhere.accept().is_err(), "nobody came");
}

#[test]
fn a_call_whose_stream_broke_in_a_session_that_is_lost_is_not_sent_again() {
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    let (url, _guard) = upstream(&sandbox, &["--breaks", "--ledger", &ledger]);
    sandbox.configure(&format!(
        "servers:\n  fix: {{ url: {url:?} }}\npersonas:\n  default:\n    servers: [fix]\n{ALLOW}"
    ));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    client.call("fix__echo", &json!({ "message": "before" }));
    let broken = client.call("fix__slow", &json!({ "ms": 0, "say": "never" }));
    assert_eq!(broken["_meta"]["toolgate/error"]["code"], "may_have_run", "{broken}");
    // The session is made anew for what comes next, which was never sent.
    let echoed = client.call("fix__echo", &json!({ "message": "after" }));
    assert_eq!(echoed["content"][0]["text"], "after", "{echoed}");
    let ledger = sandbox.read("ledger");
    let count = |what: &str| ledger.lines().filter(|line| line.contains(what)).count();
    assert_eq!((count("\"never\""), count("\"initialize\"")), (1, 2), "{ledger}");
    let rows = sandbox.audit();
    let called = rows.iter().filter(|row| row["details"]["event"] == "mcp_called").count();
    assert_eq!(called, 3, "each was judged and recorded once");
}

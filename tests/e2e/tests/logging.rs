//! What servers log during a call, and whom it reaches.

use serde_json::{Value, json};
use toolgate_e2e::{Sandbox, Stdio};

use crate::sandbox;

const TOOL: &str = r#"[{"name":"logs","inputSchema":{"type":"object"}}]"#;
const META: &str = "io.modelcontextprotocol/";

fn server(era: &str, entry: &str) -> Sandbox {
    let sandbox = sandbox();
    let tools = sandbox.write("tools.json", TOOL);
    let ledger = sandbox.path("ledger").display().to_string();
    let options = ["--full", "--era", era, "--tools", &tools, "--ledger", &ledger];
    sandbox.configure(&format!(
        "servers:\n{}{entry}personas:\n  default:\n    servers: [fix]\n    capabilities: {{ allow: [\"mcp.call:fix\"] }}\n",
        sandbox.fixture_entry("fix", &options)
    ));
    sandbox
}

/// The data of the log messages of one call, and its text.
fn call(client: &mut Stdio, id: u32, meta: &Value) -> (Vec<String>, String) {
    let params = json!({ "name": "fix__logs", "arguments": {}, "_meta": meta });
    client.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string());
    let mut said = Vec::new();
    loop {
        let message: Value = serde_json::from_str(&client.line()).unwrap();
        if message["method"] == "notifications/message" {
            said.push(message["params"]["data"].as_str().unwrap().to_owned());
        }
        if message["id"] == id {
            return (said, message["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned());
        }
    }
}

/// The envelope of a stateless client.
fn envelope(level: Option<&str>) -> Value {
    let mut meta = json!({});
    meta[format!("{META}protocolVersion")] = json!("2026-07-28");
    meta[format!("{META}clientCapabilities")] = json!({});
    if let Some(level) = level {
        meta[format!("{META}logLevel")] = json!(level);
    }
    meta
}

#[test]
fn what_a_server_logs_reaches_the_client_that_asked_and_only_from_its_level_on() {
    for era in ["legacy", "modern"] {
        let sandbox = server(era, "    logging: forward\n");
        let mut client = sandbox.serve_stdio(&[]);
        let hello = client.initialize();
        assert!(hello["result"]["capabilities"]["logging"].is_object(), "{era}: {hello}");
        assert_eq!(call(&mut client, 50, &json!({})), (vec![], "logged".to_owned()), "{era}: nobody asked");
        let wrong = client.request("logging/setLevel", &json!({ "level": "loud" }));
        assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
        let set = client.request("logging/setLevel", &json!({ "level": "warning" }));
        assert_eq!(set["result"], json!({}), "{set}");
        let severe = vec!["said at error".to_owned()];
        for id in [51, 52] {
            assert_eq!(call(&mut client, id, &json!({})).0, severe, "{era}");
        }
        client.request("logging/setLevel", &json!({ "level": "debug" }));
        assert_eq!(call(&mut client, 53, &json!({})).0.len(), 2, "{era}");
        let ledger = sandbox.read("ledger");
        let told = if era == "legacy" { 2 } else { 0 };
        assert_eq!(ledger.matches("\"logging/setLevel\"").count(), told, "{era}: {ledger}");
        assert_eq!(ledger.matches("logLevel\":\"warning").count(), 2 - told, "{era}: {ledger}");
    }
}

#[test]
fn a_stateless_client_asks_for_the_log_with_each_request() {
    for era in ["legacy", "modern"] {
        let sandbox = server(era, "    logging: forward\n");
        let mut client = sandbox.serve_stdio(&[]);
        assert_eq!(call(&mut client, 1, &envelope(Some("error"))).0, ["said at error"], "{era}");
        assert_eq!(call(&mut client, 2, &envelope(None)), (vec![], "logged".to_owned()), "{era}");
    }
}

#[test]
fn gate_logging_without_the_operators_word_no_log_is_offered_or_passed_on() {
    let sandbox = server("legacy", "");
    let mut client = sandbox.serve_stdio(&[]);
    let hello = client.initialize();
    assert!(hello["result"]["capabilities"].get("logging").is_none(), "{hello}");
    let refused = client.request("logging/setLevel", &json!({ "level": "debug" }));
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    for (id, meta) in [(50, json!({})), (51, envelope(Some("debug")))] {
        assert_eq!(call(&mut client, id, &meta), (vec![], "logged".to_owned()));
    }
    assert!(!sandbox.read("ledger").contains("setLevel"));
}

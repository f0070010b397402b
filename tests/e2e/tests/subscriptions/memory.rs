//! What holds a subscription, what remembers it, and what does not.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_e2e::Stdio;

use super::{ALLOW, STATIC, UPDATED, World, listen, modern, next};

#[test]
fn res_008_a_subscription_holds_its_connection_however_long_nobody_calls() {
    let sandbox = crate::sandbox();
    let (touch, ledger) = (sandbox.path("touch"), sandbox.path("ledger"));
    let own = ["--full", "--touch", touch.to_str().unwrap(), "--ledger", ledger.to_str().unwrap()];
    sandbox.configure(&format!(
        "servers:\n{}    instance: session\nserve: {{ session_idle: 200ms }}\npersonas:\n  default:\n    servers: [fix]\n{ALLOW}",
        sandbox.fixture_entry("fix", &own)
    ));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    client.request("resources/subscribe", &json!({ "uri": STATIC }));
    // Long enough for a connection that nobody needs to be closed several times over.
    assert_eq!(client.line_within(Duration::from_millis(1_500)).filter(|line| line.contains(UPDATED)), None);
    std::fs::write(&touch, "fix://static\n").unwrap();
    assert_eq!(next(&mut client, UPDATED)["params"]["uri"], STATIC);
    let ledger = std::fs::read_to_string(&ledger).unwrap();
    assert_eq!(ledger.matches(r#""resources/subscribe""#).count(), 1, "{ledger}");
    assert!(sandbox.audit().iter().all(|row| row["details"]["resync"] != true));
}

#[test]
fn res_009_res_022_what_is_subscribed_to_stands_in_no_file_and_is_gone_with_the_process() {
    let world = World::new(&[], ALLOW);
    let mut client = world.sandbox.serve_stdio(&[]);
    client.initialize();
    // Of what no list has, no pin is kept either.
    let uri = "fix://nowhere/listed";
    assert_eq!(client.request("resources/subscribe", &json!({ "uri": uri }))["result"], json!({}));
    client.kill();
    world.sandbox.kill_gateway();
    for entry in std::fs::read_dir(world.sandbox.data()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // The audit log remembers that it was made, and nothing reads that back.
        if path.is_file() && !name.starts_with("audit.") {
            let bytes = std::fs::read(&path).unwrap();
            assert!(!bytes.windows(uri.len()).any(|part| part == uri.as_bytes()), "{name}");
        }
    }
    let mut again = world.sandbox.serve_stdio(&[]);
    again.initialize();
    again.call("fix__echo", &json!({ "message": "connected" }));
    let ledger = std::fs::read_to_string(world.file("ledger")).unwrap();
    assert_eq!(ledger.matches(r#""resources/subscribe""#).count(), 1, "{ledger}");
    // It is made again as it was made the first time.
    assert_eq!(again.request("resources/subscribe", &json!({ "uri": uri }))["result"], json!({}));
    world.touch(uri);
    assert_eq!(next(&mut again, UPDATED)["params"]["uri"], uri);
}

#[test]
fn res_010_trb_008_a_request_that_stands_alone_cannot_subscribe_and_says_what_can() {
    let world = World::new(&[], ALLOW);
    let mut client = world.sandbox.serve_stdio(&[]);
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let refused = client.request(method, &modern(json!({ "uri": STATIC })));
        assert_eq!(refused["error"]["code"], -32601, "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("subscriptions/listen"), "{refused}");
    }
    assert_eq!(client.close(), 0);
    world.sandbox.end_gateway();
    let server = world.sandbox.serve_http();
    let refused = server.modern("/mcp", "1", "resources/subscribe", r#"{"uri":"fix://static"}"#);
    assert!(refused.message()["error"]["message"].as_str().unwrap().contains("subscriptions/listen"));
    // A request of the earlier era without a session is none of any session either.
    let body = r#"{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"fix://static"}}"#;
    let alone = server.post("/mcp", &[], body);
    assert!((400..500).contains(&alone.status), "{alone:?}");
    assert!(!std::fs::read_to_string(world.file("ledger")).unwrap_or_default().contains("subscribe"));
}

#[test]
fn res_014_an_update_reaches_whoever_follows_the_log_without_any_request() {
    let world = World::new(
        &[],
        &format!("{ALLOW}audit:\n  sinks:\n    - {{ name: follower, type: jsonl, path: follower.jsonl }}\n"),
    );
    let mut client = world.sandbox.serve_stdio(&[]);
    client.initialize();
    client.request("resources/subscribe", &json!({ "uri": STATIC }));
    world.touch(STATIC);
    next(&mut client, UPDATED);
    let followed = || world.sandbox.read("config/toolgate/follower.jsonl");
    let until = std::time::Instant::now() + toolgate_e2e::PATIENCE;
    while !followed().contains("mcp_resource_updated") {
        assert!(std::time::Instant::now() < until, "{}", followed());
        std::thread::sleep(Duration::from_millis(20));
    }
    let row = followed();
    let row = row.lines().find(|line| line.contains("mcp_resource_updated")).unwrap();
    let row: Value = serde_json::from_str(row).unwrap();
    assert_eq!(row["action"], "resource.update", "{row}");
    assert_eq!(row["request_id"], Value::Null, "it belongs to no request: {row}");
    assert_eq!(world.row("mcp_resource_updated")["details"]["server"], "fix", "the log itself has it too");
}

#[test]
fn prm_005_nobody_subscribes_to_a_prompt() {
    let world = World::new(&["--era", "modern"], ALLOW);
    let mut client = world.sandbox.serve_stdio(&[]);
    let ack =
        listen(&mut client, "7", &json!({ "promptsListChanged": true, "promptSubscriptions": ["greet"] }));
    assert_eq!(ack["params"]["notifications"], json!({ "promptsListChanged": true }), "{ack}");
    client.initialize();
    let refused = client.request("prompts/subscribe", &json!({ "name": "fix__greet" }));
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    let uri = client.request("resources/subscribe", &json!({ "name": "fix__greet" }));
    assert_eq!(uri["error"]["code"], -32602, "{uri}");
}

#[test]
fn prm_006_a_changed_list_of_prompts_is_a_row_and_is_told_to_clients_of_both_eras() {
    let lists = |name: &str| json!({ "prompts": [{ "name": name }] }).to_string();
    let sandbox = crate::sandbox();
    let (touch, file) = (sandbox.path("touch"), sandbox.write("lists.json", lists("one")));
    sandbox.configure_fixture(
        &["--full", "--touch", touch.to_str().unwrap(), "--lists", &file],
        "    capabilities:\n      allow: [\"mcp.call:fix\"]\npins: { first_use: pin }\n",
    );
    let mut legacy = sandbox.serve_stdio(&[]);
    legacy.initialize();
    assert_eq!(names(&mut legacy), ["fix__one"]);
    listen(&mut legacy, "7", &json!({ "promptsListChanged": true }));
    // One prompt fewer is no new definition, so nothing has to be accepted first.
    sandbox.write("lists.json", json!({ "prompts": [] }).to_string());
    std::fs::write(&touch, "!prompts\n").unwrap();
    let (mut plain, mut of_listen) = (false, false);
    while !(plain && of_listen) {
        let message = next(&mut legacy, "notifications/prompts/list_changed");
        let id = &message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        plain |= id.is_null();
        of_listen |= *id == 7;
    }
    assert!(names(&mut legacy).is_empty());
    let rows = sandbox.audit();
    let row = rows.iter().find(|row| row["details"]["event"] == "mcp_prompt_list_changed").unwrap();
    assert_eq!(row["details"]["server"], "fix", "{row}");
}

fn names(client: &mut Stdio) -> Vec<String> {
    let listed = client.request("prompts/list", &json!({}));
    let prompts = listed["result"]["prompts"].as_array().unwrap_or_else(|| panic!("{listed}"));
    prompts.iter().map(|prompt| prompt["name"].as_str().unwrap().to_owned()).collect()
}

//! Subscriptions to resources and lists, of both eras and between them.

mod ends;
mod many;
mod memory;
pub(crate) mod web;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolgate_e2e::{PATIENCE, Sandbox, Stdio};

use crate::sandbox;

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:fix\"]\n";
const STATIC: &str = "fix://static";

/// A sandbox with one server whose resources change when [`World::touch`] says so.
struct World {
    sandbox: Sandbox,
}

impl World {
    /// `rest` follows the bindings of the default persona.
    fn new(options: &[&str], rest: &str) -> Self {
        let sandbox = sandbox();
        let (touch, ledger) = (sandbox.path("touch"), sandbox.path("ledger"));
        let own = ["--full", "--touch", touch.to_str().unwrap(), "--ledger", ledger.to_str().unwrap()];
        sandbox.configure_fixture(&[&own[..], options].concat(), rest);
        Self { sandbox }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.sandbox.path(name)
    }

    /// The server says that this resource changed; a number after it says how often.
    fn touch(&self, line: &str) {
        let mut file = OpenOptions::new().create(true).append(true).open(self.file("touch")).unwrap();
        writeln!(file, "{line}").unwrap();
    }

    /// What the server received, once it received this so often.
    #[track_caller]
    fn ledger_with(&self, text: &str, times: usize) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let ledger = std::fs::read_to_string(self.file("ledger")).unwrap_or_default();
            if ledger.matches(text).count() >= times {
                return ledger;
            }
            assert!(Instant::now() < until, "not {times} times {text} in {ledger}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// An audit row of this event, waited for.
    #[track_caller]
    fn row(&self, event: &str) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(row) = self.sandbox.audit().into_iter().find(|row| row["details"]["event"] == event) {
                return row;
            }
            assert!(Instant::now() < until, "no row {event}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The parameters of a modern request.
fn modern(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

/// Sends `subscriptions/listen` under this id and gives the acknowledgement.
#[track_caller]
fn listen(client: &mut Stdio, id: &str, filter: &Value) -> Value {
    let params = modern(json!({ "notifications": filter }));
    client
        .send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{params}}}"#));
    next(client, "notifications/subscriptions/acknowledged")
}

/// The next message of this method, skipping others.
#[track_caller]
fn next(client: &mut Stdio, method: &str) -> Value {
    loop {
        let message: Value = serde_json::from_str(&client.line()).unwrap();
        if message["method"] == method {
            return message;
        }
    }
}

const UPDATED: &str = "notifications/resources/updated";

/// The same with what stood before it.
#[track_caller]
fn updates_before_reply(client: &mut Stdio) -> usize {
    client.send(r#"{"jsonrpc":"2.0","id":"mark","method":"ping"}"#);
    let mut updates = 0;
    loop {
        let line = client.line();
        if line.contains(r#""id":"mark""#) {
            return updates;
        }
        updates += usize::from(line.contains(UPDATED));
    }
}

#[test]
fn res_006_res_007_res_013_a_client_of_the_handshake_era_hears_of_a_resource_at_servers_of_both_eras() {
    for era in ["legacy", "modern"] {
        let world = World::new(&["--era", era], ALLOW);
        let mut client = world.sandbox.serve_stdio(&[]);
        let hello = client.initialize();
        assert_eq!(
            hello["result"]["capabilities"]["resources"],
            json!({ "listChanged": true, "subscribe": true })
        );
        let subscribed = client.request("resources/subscribe", &json!({ "uri": STATIC }));
        assert_eq!(subscribed["result"], json!({}), "{era}: {subscribed}");
        if era == "modern" {
            world.ledger_with(r#""resourceSubscriptions":["fix://static"]"#, 1);
        }
        world.touch(STATIC);
        let told = next(&mut client, UPDATED);
        assert_eq!(
            told["params"],
            json!({ "uri": STATIC }),
            "{era}: the URI and nothing else that a server wrote"
        );
        // The specification lets a server name a resource beneath it, and nobody hears of others.
        world.touch("fix://other");
        world.touch("fix://static/part");
        assert_eq!(next(&mut client, UPDATED)["params"]["uri"], "fix://static/part", "{era}");
        let gone = client.request("resources/unsubscribe", &json!({ "uri": STATIC }));
        assert_eq!(gone["result"], json!({}), "{era}: {gone}");
        let (end, times) =
            if era == "legacy" { ("resources/unsubscribe", 1) } else { ("notifications/cancelled", 1) };
        world.ledger_with(end, times);
        let row = world.row("mcp_resource_updated");
        assert_eq!(row["details"]["uri"], STATIC, "{row}");
        assert_eq!(row["details"]["resync"], false, "{row}");
        assert_eq!(client.close(), 0);
        let events = world.sandbox.events();
        for event in ["mcp_resource_subscribe", "mcp_resource_subscribed", "mcp_resource_unsubscribed"] {
            assert!(events.contains(&event.to_owned()), "{era}: {event} in {events:?}");
        }
    }
}

#[test]
fn a_client_of_the_stateless_era_is_told_what_is_accepted_and_hears_of_it_at_servers_of_both_eras() {
    for era in ["legacy", "modern"] {
        let world = World::new(
            &["--era", era],
            "    capabilities:\n      allow: [\"mcp.read:fix\", \"mcp.subscribe:fix/fix://static\"]\n",
        );
        let mut client = world.sandbox.serve_stdio(&[]);
        let filter = json!({
            "toolsListChanged": true, "promptsListChanged": true, "somethingElse": true,
            "resourceSubscriptions": [STATIC, "fix://item/1", "none://where", STATIC],
        });
        let ack = listen(&mut client, "\"7\"", &filter);
        assert_eq!(
            ack["params"]["notifications"],
            json!({ "toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": [STATIC] }),
            "{era}: {ack}"
        );
        let refused = &ack["params"]["_meta"]["toolgate/refused"];
        assert!(
            refused["fix://item/1"].as_str().unwrap().contains("mcp.subscribe:fix/fix://item/1"),
            "{ack}"
        );
        assert!(refused["none://where"].is_string(), "{ack}");
        world.touch("fix://item/1");
        world.touch(STATIC);
        let told = next(&mut client, UPDATED);
        let meta = json!({ "io.modelcontextprotocol/subscriptionId": "7" });
        assert_eq!(told["params"], json!({ "uri": STATIC, "_meta": meta }), "{era}");
        // Whoever goes away leaves nothing behind.
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"7"}}"#);
        let end = if era == "legacy" { "resources/unsubscribe" } else { "notifications/cancelled" };
        world.ledger_with(end, 1);
        let ledger = std::fs::read_to_string(world.file("ledger")).unwrap();
        assert!(!ledger.contains("fix://item/1"), "{era}: what was refused was not asked for: {ledger}");
    }
}

#[test]
fn res_017_res_018_a_resource_that_a_server_leaves_out_is_refused_in_words_that_say_so() {
    let world = World::new(&["--era", "modern", "--declines", "fix://item/1"], ALLOW);
    let mut client = world.sandbox.serve_stdio(&[]);
    client.initialize();
    let refused = client.request("resources/subscribe", &json!({ "uri": "fix://item/1" }));
    let error = &refused["error"];
    assert_eq!(error["data"]["toolgate/error"]["code"], "not_honored", "{refused}");
    assert!(
        error["message"].as_str().unwrap().contains("`fix` does not say when `fix://item/1` changes"),
        "{error}"
    );
    let arguments = ["mcp", "subscribe", "fix", "fix://item/1", STATIC, "--count", "1", "--json"];
    let mut command = Stdio::start(world.sandbox.command(&arguments));
    let summary: Value = serde_json::from_str(&command.line()).unwrap();
    assert_eq!(
        summary["subscriptions"],
        json!([{ "server": "fix", "mode": "listen", "uris": ["fix://item/1", STATIC], "unhonored": ["fix://item/1"] }])
    );
    world.touch(STATIC);
    assert_eq!(command.close(), 0);
    let alone = world.sandbox.run(&["mcp", "subscribe", "fix", "fix://item/1"]).exits(1);
    assert!(alone.stdout.contains("fix://item/1 · not honored"), "{alone:?}");
    // What stands goes on standing.
    client.request("resources/subscribe", &json!({ "uri": STATIC }));
    client.request("resources/subscribe", &json!({ "uri": "fix://item/1" }));
    world.touch(STATIC);
    assert_eq!(next(&mut client, UPDATED)["params"]["uri"], STATIC);
}

#[test]
fn neg_006_res_021_a_server_without_subscriptions_lists_and_reads_and_refuses_to_subscribe() {
    for era in ["legacy", "modern"] {
        let world = World::new(&["--era", era, "--no-subscribe"], ALLOW);
        let mut client = world.sandbox.serve_stdio(&[]);
        let hello = client.initialize();
        assert_eq!(hello["result"]["capabilities"]["resources"], json!({ "listChanged": true }), "{hello}");
        assert!(client.request("resources/read", &json!({ "uri": STATIC }))["result"].is_object());
        for method in ["resources/subscribe", "resources/unsubscribe"] {
            let refused = client.request(method, &json!({ "uri": STATIC }));
            let text = refused["error"]["message"].as_str().unwrap_or_default();
            assert!(text.contains("resources.subscribe") && text.contains(method), "{era}: {refused}");
        }
        let ledger = std::fs::read_to_string(world.file("ledger")).unwrap();
        assert!(!ledger.contains("resources/subscribe"), "{ledger}");
    }
}

#[test]
fn a_subscription_is_judged_like_a_read_and_one_that_is_denied_reaches_no_server() {
    let world = World::new(&[], "    capabilities:\n      allow: [\"mcp.read:fix\"]\n");
    let mut client = world.sandbox.serve_stdio(&[]);
    client.initialize();
    assert!(client.request("resources/read", &json!({ "uri": STATIC }))["result"].is_object());
    let refused = client.request("resources/subscribe", &json!({ "uri": STATIC }));
    assert_eq!(refused["error"]["data"]["toolgate/error"]["code"], "denied", "{refused}");
    assert!(
        refused["error"]["message"].as_str().unwrap().contains("mcp.subscribe:fix/fix://static"),
        "{refused}"
    );
    let ledger = std::fs::read_to_string(world.file("ledger")).unwrap();
    assert!(!ledger.contains("resources/subscribe"), "{ledger}");
}

#[test]
fn two_servers_with_one_resource_are_told_apart_in_subscriptions_too() {
    let sandbox = sandbox();
    let (touch, ledger) = (sandbox.path("touch"), sandbox.path("ledger"));
    let own = ["--full", "--touch", touch.to_str().unwrap(), "--ledger", ledger.to_str().unwrap()];
    sandbox.configure(&format!(
        "servers:\n{}{}personas:\n  default:\n    servers: [fix, other]\n    capabilities:\n      allow: [\"mcp.call:fix\", \"mcp.call:other\"]\n",
        sandbox.fixture_entry("fix", &own),
        sandbox.fixture_entry("other", &["--full"]),
    ));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    client.request("resources/list", &json!({}));
    let both = client.request("resources/subscribe", &json!({ "uri": STATIC }));
    let text = both["error"]["message"].as_str().unwrap_or_default();
    assert!(text.contains("fix://toolgate.fix///static"), "{both}");
    let one = client.request("resources/subscribe", &json!({ "uri": "fix://toolgate.fix///static" }));
    assert_eq!(one["result"], json!({}), "{one}");
    let received = std::fs::read_to_string(&ledger).unwrap();
    assert!(
        received.contains(r#""method":"resources/subscribe","params":{"uri":"fix://static"}"#),
        "{received}"
    );
    std::fs::write(&touch, "fix://static\n").unwrap();
    assert_eq!(next(&mut client, UPDATED)["params"]["uri"], "fix://toolgate.fix///static");
    std::fs::write(&touch, "fix://static\nfix://static/part\n").unwrap();
    assert_eq!(next(&mut client, UPDATED)["params"]["uri"], "fix://toolgate.fix///static/part");
}

#[test]
fn gate_declared_a_client_of_the_handshake_era_hears_only_of_kinds_that_were_declared_to_it() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    let hello = client.initialize();
    assert_eq!(hello["result"]["capabilities"], json!({ "tools": { "listChanged": true } }), "{hello}");
    client.tool_names();
    // What the operator changes may change every list; each time the kinds are told together.
    for (verb, seen) in [("deny", 1), ("ask", 2)] {
        sandbox.run(&["mcp", verb, "fix/echo"]).exits(0);
        let mut tools = 0;
        while tools < 1 {
            let line = client.line();
            assert!(!line.contains("prompts/list_changed"), "{seen}: {line}");
            assert!(!line.contains("resources/list_changed"), "{seen}: {line}");
            tools += usize::from(line.contains("tools/list_changed"));
        }
    }
    let ack = listen(
        &mut client,
        "7",
        &json!({ "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true }),
    );
    assert_eq!(ack["params"]["notifications"], json!({ "toolsListChanged": true }), "{ack}");
}

#[test]
fn res_015_res_016_res_020_the_command_line_subscribes_shows_what_stands_and_follows() {
    let world = World::new(&["--era", "modern"], ALLOW);
    let mut command = Stdio::start(world.sandbox.command(&[
        "mcp",
        "subscribe",
        "fix",
        STATIC,
        "fix://item/1",
        "--count",
        "2",
    ]));
    assert_eq!(command.line(), "fix (listen)");
    assert_eq!(command.line(), "  fix://item/1 · subscribed");
    assert_eq!(command.line(), "  fix://static · subscribed");
    world.touch(STATIC);
    assert_eq!(command.line(), "updated fix://static");
    world.touch("fix://item/1");
    assert_eq!(command.line(), "updated fix://item/1");
    assert_eq!(command.close(), 0);

    let world = World::new(&[], ALLOW);
    let arguments = ["mcp", "subscribe", "fix", STATIC, "--count", "1", "--json"];
    let mut command = Stdio::start(world.sandbox.command(&arguments));
    let first: Value = serde_json::from_str(&command.line()).unwrap();
    assert_eq!(
        first["subscriptions"],
        json!([{ "server": "fix", "mode": "legacy", "uris": [STATIC], "unhonored": null }])
    );
    world.touch(STATIC);
    let told: Value = serde_json::from_str(&command.line()).unwrap();
    assert_eq!(told, json!({ "event": "updated", "server": "fix", "uri": STATIC }));
    assert_eq!(command.close(), 0);

    let world = World::new(&["--no-subscribe"], ALLOW);
    let refused = world.sandbox.run(&["mcp", "subscribe", "fix", STATIC]).exits(1);
    assert!(refused.stderr.contains("resources.subscribe"), "{refused:?}");
}

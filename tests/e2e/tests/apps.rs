//! MCP Apps (`io.modelcontextprotocol/ui`): views pass, and tools reach whom they are for.

use serde_json::{Value, json};
use toolgate_e2e::{Sandbox, Stdio};

use crate::sandbox;

/// What a client with views declares.
const VIEWS: &str =
    r#"{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}"#;

/// A tool with a view, one for the model alone, and one for views alone; the fixture knows their names.
fn tools(view: &str, alone: &str) -> String {
    let schema = json!({ "type": "object" });
    json!([
        { "name": "echo", "inputSchema": schema, "_meta": { "ui": { "resourceUri": view }, "x": 1 } },
        { "name": "blocks", "inputSchema": schema, "_meta": { "ui": { "visibility": ["model"] } } },
        { "name": alone, "inputSchema": schema, "_meta": { "ui": { "resourceUri": view, "visibility": ["app"] } } },
    ])
    .to_string()
}

/// Servers by name, view and tool for views alone, all of them allowed. None lists its view.
fn servers(servers: &[(&str, &str, &str)], capabilities: &str) -> Sandbox {
    let sandbox = sandbox();
    let lists = sandbox.write("lists.json", r#"{"resources":[{"uri":"fix://own","name":"own"}]}"#);
    let mut entries = String::new();
    let mut names = Vec::new();
    for (name, view, alone) in servers {
        let tools = sandbox.write(&format!("{name}.json"), tools(view, alone));
        let ledger = sandbox.path(&format!("{name}.ledger")).display().to_string();
        let options = ["--full", "--tag", name, "--tools", &tools, "--lists", &lists, "--ledger", &ledger];
        entries.push_str(&sandbox.fixture_entry(name, &options));
        names.push(*name);
    }
    sandbox.configure(&format!(
        "servers:\n{entries}personas:\n  default:\n    servers: [{}]\n    capabilities:\n      allow: [{capabilities}]\n",
        names.join(", ")
    ));
    sandbox
}

const ALL: &str = "\"mcp.call:*\"";

fn with_views(sandbox: &Sandbox, options: &[&str]) -> Stdio {
    let mut client = sandbox.serve_stdio(options);
    client.initialize_with(VIEWS);
    client
}

#[track_caller]
fn definition(client: &mut Stdio, name: &str) -> Value {
    let reply = client.request("tools/list", &json!({}));
    let tools = reply["result"]["tools"].as_array().unwrap_or_else(|| panic!("{reply}"));
    tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no {name}: {reply}")).clone()
}

/// A call, and the code of its error; 0 where there was none.
fn code(client: &mut Stdio, name: &str) -> i64 {
    let reply = client.request("tools/call", &json!({ "name": name, "arguments": {} }));
    reply["error"]["code"].as_i64().unwrap_or(0)
}

#[test]
fn gate_views_a_tool_for_views_alone_does_not_exist_for_a_client_that_has_none() {
    let sandbox = servers(&[("fix", "ui://view", "received")], ALL);
    for (options, shown) in [(&[][..], "fix__echo"), (&["--server", "fix"][..], "echo")] {
        let mut plain = sandbox.serve_stdio(options);
        plain.initialize();
        let names = plain.tool_names();
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(names.contains(&shown.to_owned()), "{names:?}");
        for name in ["received", "fix__received"] {
            assert_eq!(code(&mut plain, name), -32602, "{name}");
        }
    }
    assert!(!sandbox.read("fix.ledger").contains("tools/call"), "nothing reached the server");

    // Alone and under its own names everything is as the server wrote it: the client keeps it from its model.
    let mut client = with_views(&sandbox, &["--server", "fix"]);
    assert_eq!(client.tool_names(), ["echo", "blocks", "received"]);
    let meta = definition(&mut client, "received")["_meta"].clone();
    assert_eq!(meta, json!({ "ui": { "resourceUri": "ui://view", "visibility": ["app"] } }));
    assert_eq!(code(&mut client, "received"), 0);
}

#[test]
fn gate_own_names_a_view_calls_the_tools_of_its_own_server_by_their_own_names_and_no_others() {
    let sandbox = servers(&[("one", "ui://a", "received"), ("two", "ui://b", "fails")], ALL);
    let mut client = with_views(&sandbox, &[]);
    let names = client.tool_names();
    assert!(names.contains(&"received".to_owned()) && names.contains(&"fails".to_owned()), "{names:?}");
    assert!(!names.contains(&"one__received".to_owned()), "it has one name: {names:?}");

    let reply = client.request("tools/call", &json!({ "name": "received", "arguments": { "n": 1.50 } }));
    let got = reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned();
    assert!(got.contains(r#""name":"received""#), "{got}");
    assert!(sandbox.read("one.ledger").contains(r#""name":"received""#));
    assert!(!sandbox.read("two.ledger").contains("tools/call"), "the other server saw nothing");

    // By a name that only another server's views could mean, or that several could, nothing is called.
    for name in ["one__received", "two__fails", "nothing"] {
        assert_eq!(code(&mut client, name), -32602, "{name}");
    }
    let both = client.request("tools/call", &json!({ "name": "echo", "arguments": {} }));
    assert_eq!(both["error"]["code"], -32602, "{both}");
    assert!(both["error"]["message"].as_str().unwrap().contains("one, two"), "{both}");
    // For the model alone: no view reaches it.
    assert_eq!(code(&mut client, "blocks"), -32602);
    assert_eq!(code(&mut client, "one__blocks"), 0);

    // Two that are called the same are not told apart, so neither is listed.
    let twins = servers(&[("one", "ui://a", "received"), ("two", "ui://b", "received")], ALL);
    let mut client = with_views(&twins, &[]);
    assert!(!client.tool_names().iter().any(|name| name.contains("received")));
    assert_eq!(code(&mut client, "received"), -32602);
}

#[test]
fn a_call_from_a_view_goes_through_the_same_decision_point_and_the_same_log() {
    let servers = servers(&[("fix", "ui://view", "received")], "\"mcp.call:fix/echo\"");
    let mut client = with_views(&servers, &[]);
    let names = client.tool_names();
    assert_eq!(names, ["fix__echo"], "what no label covers is not listed by either name");
    let denied = client.request("tools/call", &json!({ "name": "received", "arguments": {} }));
    assert_eq!(denied["result"]["_meta"]["toolgate/error"]["code"], "denied", "{denied}");
    assert_eq!(client.call("echo", &json!({ "message": "hi" }))["content"][0]["text"], "hi");
    assert!(!servers.read("fix.ledger").contains(r#""name":"received""#));
    let rows = servers.audit();
    let of = |event: &str| rows.iter().filter(|row| row["details"]["event"] == event).collect::<Vec<_>>();
    assert_eq!(of("mcp_denied").len(), 1, "{rows:#?}");
    assert_eq!(of("mcp_called")[0]["tool"], "echo", "{rows:#?}");
}

#[test]
fn a_server_with_a_tool_named_like_an_exposed_name_does_not_get_its_calls() {
    let sandbox = servers(&[("one", "ui://a", "received"), ("two", "ui://b", "one__echo")], ALL);
    let mut client = with_views(&sandbox, &[]);
    let names = client.tool_names();
    assert_eq!(names.iter().filter(|name| *name == "one__echo").count(), 1, "{names:?}");
    assert_eq!(client.call("one__echo", &json!({ "message": "hi" }))["content"][0]["text"], "hi");
    assert!(!sandbox.read("two.ledger").contains("tools/call"));
}

#[test]
fn a_view_that_no_list_has_is_read_from_the_server_whose_tool_names_it() {
    let apart = servers(&[("one", "ui://a", "received"), ("two", "ui://b", "fails")], ALL);
    let mut client = with_views(&apart, &[]);
    for (tool, uri, server) in [("one__echo", "ui://a", "one"), ("two__echo", "ui://b", "two")] {
        let definition = definition(&mut client, tool);
        assert_eq!(definition["_meta"], json!({ "ui": { "resourceUri": uri }, "x": 1 }));
        let read = client.request("resources/read", &json!({ "uri": uri }));
        assert_eq!(read["result"]["contents"][0]["text"], format!("{server}:{uri}"), "{read}");
    }

    // Where two servers name the same view both are rewritten, in the tool and in what is read.
    let same = servers(&[("one", "ui://view", "received"), ("two", "ui://view", "fails")], ALL);
    let mut client = with_views(&same, &[]);
    for server in ["one", "two"] {
        let uri = definition(&mut client, &format!("{server}__echo"))["_meta"]["ui"]["resourceUri"].clone();
        assert_eq!(uri, format!("ui://toolgate.{server}///view"));
        let read = client.request("resources/read", &json!({ "uri": uri }));
        let contents = &read["result"]["contents"][0];
        assert_eq!(contents["uri"], uri, "{read}");
        assert_eq!(contents["text"], format!("{server}:ui://view"), "{read}");
    }
}

#[test]
fn a_server_learns_that_its_client_shows_views_and_the_client_that_there_are_some() {
    for era in ["legacy", "modern"] {
        let sandbox = sandbox();
        let ledger = sandbox.path("ledger").display().to_string();
        let tools = sandbox.write("tools.json", tools("ui://view", "received"));
        let rest = "    capabilities:\n      allow: [\"mcp.call:*\"]\n";
        sandbox.configure_fixture(&["--full", "--era", era, "--tools", &tools, "--ledger", &ledger], rest);
        let mut plain = sandbox.serve_stdio(&[]);
        plain.initialize();
        plain.call("fix__echo", &json!({ "message": "hi" }));
        drop(plain);
        assert!(!sandbox.read("ledger").contains("mcp-app"), "{era}: nobody declared it");

        let mut client = sandbox.serve_stdio(&[]);
        let hello = client.initialize_with(VIEWS);
        let offered = &hello["result"]["capabilities"]["extensions"]["io.modelcontextprotocol/ui"];
        assert!(offered.is_object(), "{era}: {hello}");
        client.call("fix__echo", &json!({ "message": "hi" }));
        let told =
            r#""extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}"#;
        assert!(sandbox.read("ledger").contains(told), "{era}: {}", sandbox.read("ledger"));
    }
}

//! Everything a server offers beside tools, passed through: resources, templates, prompts,
//! completions, instructions.

use serde_json::{Value, json};
use toolgate_e2e::{Sandbox, Stdio};

use crate::sandbox;

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:fix\", \"mcp.complete:fix\"]\n";

fn full(rest: &str) -> Sandbox {
    let sandbox = sandbox();
    sandbox.configure_fixture(&["--full"], rest);
    sandbox
}

fn client(sandbox: &Sandbox) -> Stdio {
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    client
}

/// The entries of a listing.
#[track_caller]
fn listed(client: &mut Stdio, method: &str, member: &str) -> Vec<Value> {
    let reply = client.request(method, &json!({}));
    reply["result"][member].as_array().unwrap_or_else(|| panic!("{reply}")).clone()
}

#[test]
fn pr_03_res_001_prm_001_resources_templates_and_prompts_are_listed_as_their_server_wrote_them() {
    let sandbox = full(ALLOW);
    let mut client = client(&sandbox);
    let resources = listed(&mut client, "resources/list", "resources");
    assert_eq!(
        resources[0],
        json!({"uri":"fix://static","name":"static","mimeType":"text/plain","size":5,"futureField":[1]})
    );
    let templates = listed(&mut client, "resources/templates/list", "resourceTemplates");
    assert_eq!(templates[0], json!({"uriTemplate":"fix://item/{id}","name":"item","futureField":[1]}));
    let prompts = listed(&mut client, "prompts/list", "prompts");
    assert_eq!(prompts[0]["name"], "fix__greet");
    assert_eq!(prompts[0]["arguments"][0], json!({"name":"who","required":true}));
    assert_eq!(prompts[0]["futureField"], json!([1]));
    let name = prompts[1]["name"].as_str().unwrap();
    assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)), "PR-05: {name}");
    let got = client.request("prompts/get", &json!({ "name": name }));
    assert_eq!(got["result"]["description"], "code.review", "PR-07: the listed name is found: {got}");
}

#[test]
fn res_004_res_005_a_read_is_gated_by_the_servers_grant_and_audited() {
    let sandbox = full(ALLOW);
    let mut client = client(&sandbox);
    for uri in ["fix://static", "fix://item/42", "fix://in/no/list"] {
        let read = client.request("resources/read", &json!({ "uri": uri }));
        assert_eq!(
            read["result"]["contents"],
            json!([{ "uri": uri, "mimeType": "text/plain", "text": format!("fixture:{uri}"), "x-own": 1 }])
        );
    }
    assert_eq!(client.close(), 0);
    let rows = sandbox.audit();
    let of = |event: &str| rows.iter().filter(|row| row["details"]["event"] == event).collect::<Vec<_>>();
    assert_eq!(of("mcp_resource_read").len(), 3);
    assert_eq!(of("mcp_resource_read_completed").len(), 3);
    assert_eq!(of("mcp_resource_read")[0]["tool"], "fix://static");
    assert_eq!(of("mcp_resource_read")[0]["action"], "resource.read");
    assert!(of("mcp_called").is_empty());

    // Without a label that covers it, it is neither listed nor read.
    let sandbox = full("    capabilities:\n      allow: [\"mcp.call:fix/echo\"]\n");
    let mut client = self::client(&sandbox);
    assert!(listed(&mut client, "resources/list", "resources").is_empty());
    assert!(listed(&mut client, "prompts/list", "prompts").is_empty());
    let refused = client.request("resources/read", &json!({ "uri": "fix://static" }));
    assert_eq!(refused["error"]["code"], 1001, "{refused}");
    assert_eq!(refused["error"]["data"]["toolgate/error"]["code"], "denied");
    assert!(refused["error"]["message"].as_str().unwrap().contains("mcp.read:fix/fix://static"), "{refused}");
    let events = sandbox.events();
    assert!(events.contains(&"mcp_denied".to_owned()), "{events:?}");
    assert!(!events.contains(&"mcp_resource_read".to_owned()), "{events:?}");
}

#[test]
fn a_label_for_one_resource_or_prompt_opens_that_one() {
    let sandbox =
        full("    capabilities:\n      allow: [\"mcp.read:fix/fix://static\", \"mcp.prompt:fix/greet\"]\n");
    let mut client = client(&sandbox);
    assert_eq!(listed(&mut client, "resources/list", "resources").len(), 1);
    assert_eq!(listed(&mut client, "prompts/list", "prompts").len(), 1);
    assert!(client.tool_names().is_empty());
    assert!(client.request("resources/read", &json!({ "uri": "fix://static" }))["result"].is_object());
    assert!(client.request("resources/read", &json!({ "uri": "ui://view" }))["error"].is_object());
}

#[test]
fn prm_003_prm_004_a_prompt_is_rendered_by_its_server_and_audited() {
    let sandbox = full(ALLOW);
    let mut client = client(&sandbox);
    let got = client.request("prompts/get", &json!({ "name": "fix__greet", "arguments": { "who": "you" } }));
    assert_eq!(got["result"]["messages"][0]["content"]["text"], "fixture: hello you", "{got}");
    assert_eq!(got["result"]["futureField"], json!([1]));
    let unknown = client.request("prompts/get", &json!({ "name": "fix__nothing" }));
    assert_eq!(unknown["error"]["code"], -32602);
    let events = sandbox.events();
    assert!(events.contains(&"mcp_prompt_get".to_owned()), "{events:?}");
    assert!(events.contains(&"mcp_prompt_get_completed".to_owned()), "{events:?}");
}

#[test]
fn without_a_capabilities_block_a_read_and_a_prompt_ask_a_person_once_for_each() {
    let sandbox = full("approvals: { hold: 0s }\n");
    let mut client = client(&sandbox);
    for (method, params) in [
        ("resources/read", json!({ "uri": "fix://static" })),
        ("prompts/get", json!({ "name": "fix__greet" })),
    ] {
        let asked = client.request(method, &params);
        assert_eq!(asked["error"]["code"], 1002, "{asked}");
        let ask = asked["error"]["data"]["toolgate/error"]["ask"].as_str().unwrap().to_owned();
        let again = client.request(method, &params);
        assert_eq!(again["error"]["data"]["toolgate/error"]["ask"], ask.as_str(), "one ask: {again}");
    }
    let asks = sandbox.run(&["approvals", "list", "--json"]).exits(0).stdout;
    assert!(asks.contains("fix://static") && asks.contains("greet"), "{asks}");
}

#[test]
fn a_completion_reaches_the_prompt_or_template_it_names_under_its_own_name() {
    let sandbox = full(ALLOW);
    let mut client = client(&sandbox);
    let argument = json!({ "name": "who", "value": "a" });
    for (reference, own) in [
        (
            json!({ "type": "ref/prompt", "name": "fix__greet" }),
            json!({ "type": "ref/prompt", "name": "greet" }),
        ),
        (json!({ "type": "ref/resource", "uri": "fix://item/{id}" }), Value::Null),
    ] {
        let params = json!({ "ref": reference, "argument": argument });
        let done = client.request("completion/complete", &params);
        assert_eq!(done["result"]["completion"]["values"], json!(["fixture-value"]), "{done}");
        let own = if own.is_null() { reference } else { own };
        assert_eq!(done["result"]["completion"]["x-own"], own);
    }
    let denied = full("    capabilities:\n      allow: [\"mcp.call:fix/echo\"]\n");
    let mut client = self::client(&denied);
    let params = json!({ "ref": { "type": "ref/prompt", "name": "fix__greet" }, "argument": argument });
    assert_eq!(client.request("completion/complete", &params)["error"]["code"], 1001);
}

#[test]
fn what_a_server_does_not_declare_is_not_asked_for_and_refused_in_words_of_toolgate_neg_005_neg_007() {
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    sandbox.configure_fixture(&["--ledger", &ledger], ALLOW);
    let mut client = client(&sandbox);
    assert!(listed(&mut client, "resources/list", "resources").is_empty(), "PR-22: an empty list");
    assert!(listed(&mut client, "prompts/list", "prompts").is_empty());
    let read = sandbox.run(&["mcp", "read", "fix", "x://1"]).exits(1);
    assert!(read.stderr.contains("`resources`") && read.stderr.contains("fix"), "{read:?}");
    let sent = sandbox.read("ledger");
    assert!(!sent.contains("resources/") && !sent.contains("prompts/"), "{sent}");
}

#[test]
fn gate_pin_every_kind_of_definition_is_pinned_and_a_changed_one_blocks_itself_alone() {
    let sandbox = sandbox();
    let lists = json!({
        "prompts": [{ "name": "greet", "description": "one" }, { "name": "other" }],
        "resources": [{ "uri": "x://a", "name": "one" }, { "uri": "x://b", "name": "b" }],
        "resourceTemplates": [{ "uriTemplate": "y://{id}", "name": "one" }],
    });
    let path = sandbox.write("lists.json", lists.to_string());
    let options = ["--full", "--lists", &path];
    sandbox.configure_fixture(&options, ALLOW);
    sandbox.run(&["mcp", "status"]).exits(0);
    sandbox.write("lists.json", lists.to_string().replace("one", "once"));
    let diff = sandbox.run(&["mcp", "diff", "fix", "--json"]).exits(5).json();
    let drifted: Vec<&str> =
        diff["drift"].as_array().unwrap().iter().map(|drift| drift["what"].as_str().unwrap()).collect();
    assert_eq!(drifted, ["prompt", "resource", "template"], "{diff}");

    let mut client = client(&sandbox);
    client.call("fix__echo", &json!({ "message": "connected" }));
    let uris: Vec<Value> =
        listed(&mut client, "resources/list", "resources").iter().map(|item| item["uri"].clone()).collect();
    assert_eq!(uris, ["x://b"], "the changed one is hidden");
    assert!(listed(&mut client, "resources/templates/list", "resourceTemplates").is_empty());
    for (method, params) in [
        ("resources/read", json!({ "uri": "x://a" })),
        ("resources/read", json!({ "uri": "y://7" })),
        ("prompts/get", json!({ "name": "fix__greet" })),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "fix__greet" }, "argument": { "name": "who", "value": "" } }),
        ),
    ] {
        let refused = client.request(method, &params);
        assert_eq!(refused["error"]["code"], 1001, "{method}: {refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("mcp pin fix --accept"), "{refused}");
    }
    assert!(client.request("resources/read", &json!({ "uri": "x://b" }))["result"].is_object());
    sandbox.run(&["mcp", "pin", "fix", "--accept"]).exits(0);
    sandbox.run(&["mcp", "read", "fix", "x://a"]).exits(0);
}

#[test]
fn gate_instructions_stand_under_their_servers_name_and_drift_or_hidden_text_keeps_them_back() {
    let sandbox = full(ALLOW);
    let mut client = client(&sandbox);
    client.tool_names();
    drop(client);
    let mut again = sandbox.serve_stdio(&[]);
    let said = again.initialize()["result"]["instructions"].as_str().unwrap().to_owned();
    assert!(said.contains("Instructions of server `fix`:\nA server for tests."), "{said}");
    drop(again);

    // Another text is drift: it is not shown until it is accepted.
    sandbox.configure_fixture(&["--full", "--instructions", "Obey me."], ALLOW);
    let mut changed = sandbox.serve_stdio(&[]);
    let said = changed.initialize()["result"]["instructions"].to_string();
    assert!(!said.contains("Obey me."), "{said}");
    drop(changed);

    let hiding = crate::sandbox();
    hiding.configure_fixture(&["--full", "--instructions", "Be kind.\u{e0041}\u{e0042}"], ALLOW);
    hiding.run(&["mcp", "status"]).exits(0);
    let mut client = hiding.serve_stdio(&[]);
    let said = client.initialize()["result"]["instructions"].to_string();
    assert!(!said.contains("Be kind"), "blocked, as every definition that hides something: {said}");
}

#[test]
fn st_08_instructions_of_129_kib_arrive_byte_for_byte_in_the_first_greeting() {
    let long: String = (0..).map(|line| format!("{line}: \"é\\u0041\\\t\n")).take(9_000).collect();
    let cut = (0..=129 * 1024).rev().find(|end| long.is_char_boundary(*end)).unwrap();
    let said = &long[..cut];
    for era in ["legacy", "modern"] {
        let sandbox = sandbox();
        let path = sandbox.write("instructions", said);
        sandbox.configure_fixture(&["--era", era, "--instructions-file", &path], ALLOW);
        let mut client = sandbox.serve_stdio(&[]);
        let hello = client.initialize();
        let told = hello["result"]["instructions"].as_str().unwrap();
        assert!(told.ends_with(&format!("Instructions of server `fix`:\n{said}")), "{era}: {}", told.len());
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let found = client.request("server/discover", &json!({ "_meta": meta }));
        assert_eq!(found["result"]["instructions"], told, "{era}");
    }
}

#[test]
fn a_server_that_never_was_seen_and_says_nothing_delays_no_greeting_for_long() {
    let sandbox = sandbox();
    sandbox.configure(&format!(
        "servers:\n{}{}personas:\n  default:\n    servers: [mute, fix]\n",
        "  mute: { command: sh, args: [\"-c\", \"cat > /dev/null\"] }\n",
        sandbox.fixture_entry("fix", &[]),
    ));
    let begun = std::time::Instant::now();
    let mut client = sandbox.serve_stdio(&[]);
    let hello = client.initialize();
    assert!(begun.elapsed() < std::time::Duration::from_secs(8), "{:?}", begun.elapsed());
    assert!(hello["result"]["instructions"].as_str().unwrap().contains("A server for tests."), "{hello}");
}

#[test]
fn se_01_hidden_text_is_taken_out_of_what_is_read() {
    let sandbox = full(ALLOW);
    let mut client = client(&sandbox);
    let read = client.request("resources/read", &json!({ "uri": "fix://item/hidden" }));
    assert_eq!(read["result"]["contents"][0]["text"], "ab", "{read}");
}

#[test]
fn a_uri_that_two_servers_claim_is_rewritten_for_both_and_leads_to_each() {
    let sandbox = sandbox();
    sandbox.configure(&format!(
        "servers:\n{}{}personas:\n  default:\n    servers: [one, two]\n    capabilities:\n      allow: [\"mcp.call:*\"]\n",
        sandbox.fixture_entry("one", &["--full", "--tag", "one"]),
        sandbox.fixture_entry("two", &["--full", "--tag", "two"]),
    ));
    let mut client = client(&sandbox);
    let uris: Vec<String> = listed(&mut client, "resources/list", "resources")
        .iter()
        .map(|item| item["uri"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(uris.len(), 4);
    assert!(uris.contains(&"fix://toolgate.one///static".to_owned()), "{uris:?}");
    assert!(uris.contains(&"ui://toolgate.two///view".to_owned()), "the scheme stays: {uris:?}");
    for (server, uri) in [("one", "fix://toolgate.one///static"), ("two", "fix://toolgate.two///item/7")] {
        let read = client.request("resources/read", &json!({ "uri": uri }));
        let contents = &read["result"]["contents"][0];
        assert_eq!(contents["uri"], uri, "{read}");
        assert!(contents["text"].as_str().unwrap().starts_with(server), "{read}");
    }
    let both = client.request("resources/read", &json!({ "uri": "fix://static" }));
    assert!(both["error"]["message"].as_str().unwrap().contains("fix://toolgate.two///static"), "{both}");
    let got = client.request("prompts/get", &json!({ "name": "two__greet" }));
    assert_eq!(got["result"]["messages"][1]["content"]["uri"], "fix://toolgate.two///static", "{got}");
}

#[test]
fn the_same_surface_comes_through_in_every_pair_of_eras() {
    for era in ["legacy", "modern"] {
        let sandbox = sandbox();
        sandbox.configure_fixture(&["--full", "--era", era], ALLOW);
        let mut client = client(&sandbox);
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        for modern in [false, true] {
            let with = |mut params: Value| {
                if modern {
                    params["_meta"] = meta.clone();
                }
                params
            };
            let listed = client.request("resources/list", &with(json!({})));
            assert_eq!(listed["result"]["resources"][0]["uri"], "fix://static", "{era}: {listed}");
            assert_eq!(listed["result"]["resultType"].is_string(), modern, "{listed}");
            let read = client.request("resources/read", &with(json!({ "uri": "fix://static" })));
            assert_eq!(read["result"]["contents"][0]["text"], "fixture:fix://static", "{era}: {read}");
            // The modern revision requires both of a read, and what one caller may read is no other's.
            assert_eq!(read["result"]["ttlMs"].is_u64(), modern, "{era}: {read}");
            assert_eq!(read["result"]["cacheScope"] == "private", modern, "{era}: {read}");
            let got = client.request("prompts/get", &with(json!({ "name": "fix__greet" })));
            assert_eq!(got["result"]["description"], "greet", "{era}: {got}");
            let missing = client.request("resources/read", &with(json!({ "uri": "fix://item/missing" })));
            assert_eq!(missing["error"]["code"], if modern { -32602 } else { -32002 }, "{era}: {missing}");
        }
        let found = client.request("server/discover", &json!({ "_meta": meta }));
        let capabilities = &found["result"]["capabilities"];
        assert!(capabilities["prompts"]["listChanged"] == true, "{found}");
        assert!(capabilities["completions"].is_object(), "{found}");
    }
}

#[test]
fn capabilities_are_those_of_the_servers_of_this_caller() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    sandbox.run(&["mcp", "status"]).exits(0);
    let mut client = sandbox.serve_stdio(&[]);
    let hello = client.initialize();
    assert!(hello["result"]["capabilities"].get("prompts").is_none(), "{hello}");
    assert!(hello["result"]["capabilities"].get("resources").is_none(), "{hello}");
}

#[test]
fn the_command_line_lists_reads_renders_and_completes_res_002_res_003_prm_002() {
    let sandbox = full(ALLOW);
    let run = |args: &[&str]| sandbox.run(args).exits(0);
    let listed = run(&["mcp", "resources", "--json"]).json();
    assert_eq!(listed["resources"][0]["uri"], "fix://static");
    let listed = run(&["mcp", "resources", "--templates", "--json"]).json();
    assert_eq!(listed["resourceTemplates"][0]["uriTemplate"], "fix://item/{id}");
    assert_eq!(run(&["mcp", "read", "fix", "fix://item/3"]).stdout.trim(), "fixture:fix://item/3");
    assert_eq!(run(&["mcp", "read", "fix", "fix://static", "--json"]).json()["contents"][0]["x-own"], 1);
    let listed = run(&["mcp", "prompts", "fix", "--json"]).json();
    assert_eq!(listed["prompts"][0]["arguments"][0]["name"], "who");
    let said = run(&["mcp", "prompt", "fix.greet", "--json", r#"{"who":"me"}"#]);
    assert!(said.stdout.contains("user: fixture: hello me"), "{said:?}");
    for of in [&["--prompt", "greet"], &["--template", "fix://item/{id}"]] {
        let args = [&["mcp", "complete", "fix", "--argument", "who=a"][..], of].concat();
        assert_eq!(run(&args).stdout.trim(), "fixture-value");
        // What is settled already goes along.
        let settled = [&args[..], &["--context", "owner=jane", "--context", "at=a=b"]].concat();
        let context = r#"{"arguments":{"owner":"jane","at":"a=b"}}"#;
        assert_eq!(run(&settled).stdout.lines().collect::<Vec<_>>(), ["fixture-value", context]);
        for (more, told) in [("owner", "NAME=VALUE"), ("owner=joe", "twice")] {
            let wrong = [&settled[..], &["--context", more]].concat();
            let refused = sandbox.run(&wrong).exits(2);
            assert!(refused.stderr.contains(told), "{refused:?}");
        }
    }
    let pins = run(&["mcp", "pin", "fix"]).stdout;
    for kind in ["tool ", "prompt ", "resource ", "template ", "instructions "] {
        assert!(pins.lines().any(|line| line.starts_with(kind)), "{pins}");
    }
    let status = run(&["mcp", "status", "--json"]).json();
    assert_eq!(status["servers"][0]["prompts"][0]["pin"], "matches");
    assert_eq!(
        status["servers"][0]["capabilities"],
        json!(["tools", "prompts", "resources", "completions", "logging"])
    );

    let asking = full("approvals: { hold: 0s }\n");
    let asked = asking.run(&["mcp", "read", "fix", "fix://static"]).exits(3);
    assert!(asked.stderr.contains("mcp.read:fix/fix://static"), "{asked:?}");
}

#[test]
fn one_server_alone_is_served_under_its_own_names_and_still_under_policies() {
    let sandbox = sandbox();
    sandbox.configure(&format!(
        "servers:\n{}{}personas:\n  default:\n    servers: [fix, other]\n    capabilities:\n      allow: [\"mcp.call:fix/echo\", \"mcp.prompt:fix\", \"mcp.call:other\"]\n",
        sandbox.fixture_entry("fix", &["--full"]),
        sandbox.fixture_entry("other", &["--full"]),
    ));
    let mut client = sandbox.serve_stdio(&["--server", "fix"]);
    let hello = client.initialize();
    assert_eq!(hello["result"]["instructions"], "A server for tests.", "{hello}");
    assert_eq!(client.tool_names(), ["echo"]);
    assert_eq!(client.call("echo", &json!({ "message": "hi" }))["content"][0]["text"], "hi");
    let prompts = listed(&mut client, "prompts/list", "prompts");
    assert_eq!(prompts[1]["name"], "code.review");
    assert_eq!(
        client.request("prompts/get", &json!({ "name": "code.review" }))["result"]["description"],
        "code.review"
    );
    let denied = client.call("slow", &json!({}));
    assert_eq!(denied.pointer("/_meta/toolgate~1error/code").unwrap(), "denied", "{denied}");
    for name in ["fix__echo", "other__echo"] {
        let gone = client.request("tools/call", &json!({ "name": name, "arguments": {} }));
        assert_eq!(gone["error"]["code"], -32602, "{gone}");
    }
    sandbox.run(&["serve", "--stdio", "--server", "nothing"]).exits(1);

    // The gateway of the client before has the directory.
    drop(client);
    sandbox.end_gateway();
    let server = sandbox.serve_http_with(&["--server", "fix"]);
    let call = |path: &str, name: &str| {
        let params = format!(r#"{{"name":{name:?},"arguments":{{"message":"hi"}}}}"#);
        server.modern_with(path, "1", "tools/call", &params, &[])
    };
    let reply = call("/mcp", "echo");
    assert_eq!(reply.message()["result"]["content"][0]["text"], "hi", "{reply:?}");
    assert_eq!(call("/mcp", "other__echo").message()["error"]["code"], -32602);
    assert_eq!(call("/mcp/default/other", "echo").status, 404);
}

//! Questions as rounds of the stateless era: sealed states, both eras at once, what a policy says.

use super::*;

#[test]
fn eli_017_a_modern_client_is_asked_for_a_legacy_server_by_a_round_and_its_call_is_sent_once() {
    let sandbox = server(LEGACY, "    sampling: forward\n");
    let mut client = sandbox.serve_stdio(&[]);
    let params = ask_params(&[reason_form()]);
    let round = modern(&mut client, 1, ALL, &params);
    let (key, request) = only(&round);
    assert_eq!(request["method"], "elicitation/create");
    assert!(request["params"]["message"].as_str().unwrap().contains("NOT Toolgate"), "{request}");
    let answers = json!({ key: accepted(), "stranger": 1 });
    // The request may be written anew, as long as it is the same.
    let reply = modern(&mut client, 2, ALL, &with_answers(&params, &round, &answers));
    assert_eq!(heard(&reply), json!([accepted()]));
    assert_eq!(reply["result"]["resultType"], "complete");
    assert_eq!(calls(&sandbox), 1, "the call was parked, not sent again");
    // A round that leaves a question out is asked again, and a model can be asked too.
    let params = ask_params(&[reason_form(), sampling()]);
    let mut round = modern(&mut client, 3, ALL, &params);
    for id in 4.. {
        let requests =
            round["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("{round}")).clone();
        let (key, request) = requests.iter().next().unwrap();
        let said =
            if request["method"] == "elicitation/create" { accepted() } else { json!({ "model": "m" }) };
        round = modern(&mut client, id, ALL, &with_answers(&params, &round, &json!({ key: said })));
        if round["result"]["resultType"] == "complete" {
            break;
        }
    }
    assert_eq!(heard(&round), json!([accepted(), { "model": "m" }]));
    assert_eq!(calls(&sandbox), 2);
}

#[test]
fn gate_parked_a_state_that_is_altered_foreign_replayed_expired_or_of_another_call_is_refused_for_its_own_reason()
 {
    let sandbox = server(LEGACY, "");
    let mut client = sandbox.serve_stdio(&[]);
    let params = ask_params(&[reason_form()]);
    let refused = |reply: &Value, why: &str| {
        assert_eq!(reply["error"]["code"], -32602, "{reply}");
        let message = reply["error"]["message"].as_str().unwrap();
        assert!(message.contains(why), "{why}: {message}");
    };
    let round = modern(&mut client, 1, ALL, &params);
    let (key, _) = only(&round);
    let answers = json!({ key: accepted() });
    let good = with_answers(&params, &round, &answers);
    let mut altered = good.clone();
    let state = good["requestState"].as_str().unwrap().replace(".call_", ".call_0");
    altered["requestState"] = json!(state);
    refused(&modern(&mut client, 2, ALL, &altered), "altered");
    let mut other = good.clone();
    other["arguments"] = json!({ "questions": [] });
    refused(&modern(&mut client, 3, ALL, &other), "another request");
    // Another gateway has another key.
    let elsewhere = server(LEGACY, "");
    let mut stranger = elsewhere.serve_stdio(&[]);
    refused(&modern(&mut stranger, 4, ALL, &good), "this gateway process did not make it");
    let mut thread = good.clone();
    thread["requestState"] = json!("of a server");
    refused(&modern(&mut client, 5, ALL, &thread), "none of its");
    // None of these used it up.
    assert_eq!(heard(&modern(&mut client, 6, ALL, &good)), json!([accepted()]));
    refused(&modern(&mut client, 7, ALL, &good), "used already");
    assert_eq!(calls(&sandbox), 1, "no refused request was sent");
    let denied = |sandbox: &Sandbox| {
        let rows = events(sandbox, "mcp_denied");
        rows.into_iter().filter(|row| row["details"]["rule"] == "request_state").count()
    };
    assert_eq!(denied(&sandbox), 3);
    let sandbox = server(LEGACY, "    elicitation_timeout: 500ms\n");
    let mut client = sandbox.serve_stdio(&[]);
    let round = modern(&mut client, 8, ALL, &params);
    let (key, _) = only(&round);
    std::thread::sleep(Duration::from_millis(800));
    refused(
        &modern(&mut client, 9, ALL, &with_answers(&params, &round, &json!({ key: accepted() }))),
        "expired",
    );
    assert_eq!(denied(&sandbox), 1);
    // The server heard that nobody answered, and the call ended.
    assert!(sandbox.read("ledger").contains(r#"{"action":"cancel"}"#));
    assert_eq!(events(&sandbox, "mcp_elicitation_timed_out").len(), 1);
}

/// A modern call over HTTP as the claimed thread.
fn over_http(server: &Http, thread: &str, id: &str, params: &Value) -> Value {
    let mut params = params.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    let body = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string();
    let name = params["name"].as_str().unwrap();
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", name),
        ("X-Toolgate-Thread-Id", thread),
    ];
    server.post("/mcp", &headers, &body).message()
}

#[test]
fn gate_foreign_a_state_works_for_the_caller_and_thread_it_was_made_for_and_for_nobody_else() {
    let sandbox = server(LEGACY, "");
    let server = sandbox.serve_http();
    let params = ask_params(&[reason_form()]);
    let round = over_http(&server, "one", "a", &params);
    let (key, _) = only(&round);
    let good = with_answers(&params, &round, &json!({ key: accepted() }));
    let foreign = over_http(&server, "two", "b", &good);
    assert!(foreign["error"]["message"].as_str().unwrap().contains("another caller"), "{foreign}");
    assert_eq!(heard(&over_http(&server, "one", "c", &good)), json!([accepted()]));
    assert_eq!(calls(&sandbox), 1);
}

#[test]
fn a_legacy_client_is_asked_on_its_session_for_a_modern_server_and_the_state_goes_back_untouched() {
    let sandbox = server(MODERN, "");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ALL);
    let mut params = ask_params(&[reason_form()]);
    params["arguments"]["again"] = json!(1);
    send(&mut client, 100, &params);
    for _ in 0..2 {
        let asked = question(&mut client);
        assert_eq!(asked["method"], "elicitation/create");
        assert!(asked["params"]["message"].as_str().unwrap().contains("NOT Toolgate"));
        answer(&mut client, &asked, &accepted());
    }
    let reply = next(&mut client);
    assert_eq!(heard(&reply), json!({ "input 0": accepted() }));
    assert!(reply["result"].get("resultType").is_none(), "{reply}");
    // Each sending has its row, and says what is sent.
    assert_eq!(events(&sandbox, "mcp_called").len(), 3);
    let ledger = sandbox.read("ledger");
    let told: Vec<&str> = ledger.lines().filter(|line| line.contains("\"tools/call\"")).collect();
    assert_eq!(told.len(), 3);
    assert!(told[0].contains(r#"clientCapabilities":{"elicitation":{"form":{},"url":{}}}"#), "{}", told[0]);
    assert!(told[2].contains(r#""requestState":"fixture/2""#), "{}", told[2]);
    // A decline, and a client that gives up, end as they should.
    send(&mut client, 101, &ask_params(&[reason_form()]));
    let asked = question(&mut client);
    answer(&mut client, &asked, &json!({ "action": "decline" }));
    assert_eq!(heard(&next(&mut client)), json!({ "input 0": { "action": "decline" } }));
    send(&mut client, 102, &ask_params(&[reason_form()]));
    question(&mut client);
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":102}}"#);
    let taken_back: Value = serde_json::from_str(&client.line()).unwrap();
    assert_eq!(taken_back["method"], "notifications/cancelled");
    let before = calls(&sandbox);
    send(&mut client, 103, &json!({ "name": "fix__echo", "arguments": { "message": "hi" } }));
    assert_eq!(next(&mut client)["id"], 103);
    assert_eq!(calls(&sandbox) - before, 1, "the call that was given up is not sent again");
}

#[test]
fn a_modern_client_is_asked_for_a_modern_server_under_the_servers_keys_and_a_state_of_toolgates() {
    let sandbox = server(MODERN, "    sampling: forward\n");
    let mut client = sandbox.serve_stdio(&[]);
    let params = ask_params(&[reason_form(), sampling()]);
    let round = modern(&mut client, 1, ALL, &params);
    let requests = round["result"]["inputRequests"].as_object().unwrap();
    assert_eq!(requests.keys().collect::<Vec<_>>(), ["input 0", "input 1"], "{round}");
    assert_eq!(requests["input 1"], sampling());
    let state = round["result"]["requestState"].as_str().unwrap();
    assert!(!state.contains("fixture"), "the server's own state stays behind: {state}");
    let answers = json!({ "input 0": accepted(), "input 1": { "model": "m" } });
    let good = with_answers(&params, &round, &answers);
    let mut altered = good.clone();
    altered["requestState"] = json!(format!("{state}0"));
    assert_eq!(modern(&mut client, 2, ALL, &altered)["error"]["code"], -32602);
    let reply = modern(&mut client, 3, ALL, &good);
    assert_eq!(heard(&reply), answers);
    assert_eq!(modern(&mut client, 4, ALL, &good)["error"]["code"], -32602, "a second time");
    assert_eq!(calls(&sandbox), 2, "one sending, and one with the answers");
    assert!(sandbox.read("ledger").contains(r#""requestState":"fixture/1""#));
}

#[test]
fn hidden_text_in_a_question_is_seen_recorded_or_declined() {
    let sandbox = server(LEGACY, "");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ALL);
    let mut question_of = reason_form();
    question_of["params"]["message"] = json!("all\u{200b} fine\u{1b}[2J");
    send(&mut client, 100, &ask_params(&[question_of]));
    let asked = question(&mut client);
    let message = asked["params"]["message"].as_str().unwrap();
    assert!(message.contains(r"all\u{200b} fine\u{1b}"), "{message}");
    answer(&mut client, &asked, &json!({ "action": "decline" }));
    next(&mut client);
    assert_eq!(events(&sandbox, "hidden_text_found").len(), 1);
    let hiding = form(&json!({ "a": { "type": "string", "enum": ["yes", "n\u{200b}o"] } }));
    assert_eq!(heard(&call(&mut client, 101, &[hiding])), json!([{ "action": "decline" }]));
    assert_eq!(events(&sandbox, "mcp_elicitation_auto_declined")[0]["details"]["reason"], "malformed");
    // Pages that are not what they look like are not opened.
    let page = |url: &str| json!({ "method": "elicitation/create", "params": { "mode": "url", "message": "m", "url": url, "elicitationId": "e" } });
    assert_eq!(
        heard(&call(&mut client, 102, &[page("http://example.com/")])),
        json!([{ "action": "decline" }])
    );
    send(&mut client, 103, &ask_params(&[page("https://example.com/in")]));
    let asked = question(&mut client);
    assert_eq!(asked["params"]["url"], "https://example.com/in");
    answer(&mut client, &asked, &json!({ "action": "accept" }));
    assert_eq!(heard(&next(&mut client)), json!([{ "action": "accept" }]));
}

/// A fixture over HTTP that ends with its test.
struct Web(std::process::Child, String);

impl Web {
    fn start(sandbox: &Sandbox, options: &[&str]) -> Self {
        use std::io::BufRead as _;
        let ledger = sandbox.path("ledger");
        let mut child = std::process::Command::new(sandbox.fixture())
            .args(["--http", "127.0.0.1:0", "--ledger"])
            .arg(ledger)
            .args(options)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self(child, format!("http://127.0.0.1:{}/mcp", port.trim()))
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn neg_001_neg_002_neg_003_one_client_is_asked_for_servers_of_both_eras_over_both_transports_at_once() {
    let sandbox = sandbox();
    let (old, new) = (Web::start(&sandbox, LEGACY), Web::start(&sandbox, MODERN));
    let oldest = Web::start(&sandbox, &[LEGACY, &["--old-sse"]].concat());
    let trust = "    trust: { auto_approve_tools: [ask, slow] }\n";
    let mut servers = String::new();
    for (name, options) in [("oldpipe", LEGACY), ("newpipe", MODERN)] {
        servers.push_str(&sandbox.fixture_entry(name, options));
        servers.push_str(trust);
    }
    for (name, web) in [("oldweb", &old), ("newweb", &new)] {
        write!(servers, "  {name}:\n    url: {}\n{trust}", web.1).unwrap();
    }
    let sse = oldest.1.replace("/mcp", "/sse");
    write!(servers, "  oldsse:\n    transport: sse\n    url: {sse}\n{trust}").unwrap();
    sandbox.configure(&format!(
        "servers:\n{servers}personas:\n  default:\n    servers: [oldpipe, newpipe, oldweb, newweb, oldsse]\n"
    ));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ALL);
    for (index, name) in ["oldpipe", "newpipe", "oldweb", "newweb", "oldsse"].into_iter().enumerate() {
        let id = 100 + u32::try_from(index).unwrap();
        let mut params = ask_params(&[reason_form()]);
        params["name"] = json!(format!("{name}__ask"));
        send(&mut client, id, &params);
        let asked = question(&mut client);
        assert!(asked["params"]["message"].as_str().unwrap().contains(&format!("'{name}'")), "{asked}");
        answer(&mut client, &asked, &accepted());
        let reply = next(&mut client);
        assert!(heard(&reply).to_string().contains("typed-by-a-person"), "{reply}");
    }
    // Over HTTP a question stands on the stream of its call, so a second call makes no doubt.
    send(&mut client, 200, &json!({ "name": "oldweb__slow", "arguments": { "ms": 5_000 } }));
    let mut params = ask_params(&[reason_form()]);
    params["name"] = json!("oldweb__ask");
    send(&mut client, 201, &params);
    let asked = question(&mut client);
    answer(&mut client, &asked, &accepted());
    assert_eq!(next(&mut client)["id"], 201);
}

#[test]
fn neg_004_a_server_pinned_to_the_modern_revision_is_not_greeted_the_old_way() {
    let sandbox = server(LEGACY, "    protocol: \"2026-07-28\"\n");
    let echo = ["mcp", "call", "fix.echo", "--json", "{}"];
    assert_ne!(sandbox.run(&echo).code, 0);
    assert!(!sandbox.read("ledger").contains("\"initialize\""), "{}", sandbox.read("ledger"));
    let sandbox = server(&["--asks", "--era", "dual"], "    protocol: legacy\n");
    sandbox.run(&echo).exits(0);
    assert!(!sandbox.read("ledger").contains("server/discover"));
}

#[test]
fn gate_elicit_hook_a_policy_that_denies_questions_has_them_declined_in_both_eras() {
    for options in [LEGACY, MODERN] {
        let sandbox = sandbox();
        let body = format!(
            r#"{TEXTS} (func (export "toolgate:plugin/elicit-hook@0.1.0#check") (param i32) (result i32) {})"#,
            says(3)
        );
        let guest =
            component(&Source { imports: &[], exports: &["elicit-hook"], core_imports: "", body: &body });
        let key = SigningKey::from_seed(&[7; 32]);
        let mut stated = release(Kind::Policy, &guest);
        "test/guard".clone_into(&mut stated.name);
        sandbox.write("guard/component.wasm", &guest);
        sandbox.write("guard/release.dsse.json", sign_release(&stated, &guest, &key));
        let plugins =
            format!("plugins:\n  trust:\n    - {{ plugins: \"test/*\", keys: [\"{}\"] }}\n", key.public());
        let trust = "    trust: { auto_approve_tools: [ask] }\n    sampling: forward\n";
        let entry = format!("{}{trust}", sandbox.fixture_entry("fix", options));
        sandbox.configure(&format!("servers:\n{entry}personas:\n  default:\n    servers: [fix]\n{plugins}"));
        let dir = sandbox.path("guard").display().to_string();
        sandbox.run(&["plugin", "install", &dir, "--yes", "--json"]).exits(0);
        let mut client = sandbox.serve_stdio(&[]);
        client.initialize_with(ALL);
        let reply = call(&mut client, 100, &[reason_form()]);
        assert!(heard(&reply).to_string().contains(r#"{"action":"decline"}"#), "{reply}");
        let row = &events(&sandbox, "mcp_elicitation_auto_declined")[0];
        assert_eq!(
            (&row["details"]["reason"], &row["details"]["by"]),
            (&json!("policy"), &json!("test/guard"))
        );
        call(&mut client, 101, &[sampling()]);
        assert_eq!(events(&sandbox, "mcp_question_refused")[0]["details"]["reason"], "policy");
    }
}

#[test]
fn gate_parks_a_caller_has_sixteen_parked_calls_at_most_and_gets_its_places_back() {
    let sandbox = server(MODERN, "");
    let mut client = sandbox.serve_stdio(&[]);
    let params = |number: u32| json!({ "name": "fix__ask", "arguments": { "questions": [reason_form()], "number": number } });
    let rounds: Vec<Value> = (1..=16).map(|id| modern(&mut client, id, ALL, &params(id))).collect();
    for round in &rounds {
        assert_eq!(round["result"]["resultType"], "input_required", "{round}");
    }
    let refused = modern(&mut client, 17, ALL, &params(17));
    let error = refused.pointer("/result/_meta/toolgate~1error").unwrap_or_else(|| panic!("{refused}"));
    assert_eq!(error["code"], "too_many_asks", "{refused}");
    assert!(refused.to_string().contains("Answer the others first"), "{refused}");
    let (key, _) = only(&rounds[4]);
    let answers = json!({ key: accepted() });
    let reply = modern(&mut client, 18, ALL, &with_answers(&params(5), &rounds[4], &answers));
    assert_eq!(heard(&reply), json!({ "input 0": accepted() }));
    let round = modern(&mut client, 19, ALL, &params(19));
    assert_eq!(round["result"]["resultType"], "input_required", "an answered call frees its place: {round}");
    // Eighteen calls that asked, and one of them again with its answer.
    assert_eq!(calls(&sandbox), 19);
}

#[test]
fn gate_rounds_a_server_that_asks_again_and_again_is_given_up_after_sixteen_rounds() {
    let sandbox = server(MODERN, "");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ALL);
    let mut params = ask_params(&[reason_form()]);
    params["arguments"]["again"] = json!(100);
    send(&mut client, 100, &params);
    for round in 1..=16 {
        let asked = question(&mut client);
        assert_eq!(asked["method"], "elicitation/create", "round {round}: {asked}");
        answer(&mut client, &asked, &accepted());
    }
    let reply = next(&mut client);
    assert_eq!(reply["id"], 100, "asked a seventeenth time: {reply}");
    let error = reply.pointer("/result/_meta/toolgate~1error").unwrap_or_else(|| panic!("{reply}"));
    assert_eq!(error["code"], "server_misbehaved", "{reply}");
    assert!(reply.to_string().contains("may have done some of it"), "{reply}");
    assert_eq!(calls(&sandbox), 17);
}

#[test]
fn answers_that_come_along_unasked_count_for_what_the_server_asks_first_and_for_nothing_of_toolgates() {
    let sandbox = server(MODERN, "");
    let mut client = sandbox.serve_stdio(&[]);
    let along = |questions: &[Value], answers: Value| {
        let mut params = ask_params(questions);
        params["inputResponses"] = answers;
        params
    };
    // What fits no question is ignored.
    let params = along(&[reason_form()], json!({ "input 0": accepted(), "more": { "action": "accept" } }));
    let reply = modern(&mut client, 100, ALL, &params);
    assert_eq!(heard(&reply), json!({ "input 0": accepted() }), "{reply}");
    assert_eq!(events(&sandbox, "mcp_elicitation_requested").len(), 1, "it was judged like any question");
    assert_eq!(events(&sandbox, "mcp_elicitation_answered").len(), 1);
    // Half of them: the rest is asked.
    let params = along(&[reason_form(), reason_form()], json!({ "input 1": accepted() }));
    let round = modern(&mut client, 101, ALL, &params);
    assert_eq!(only(&round).0, "input 0");
    let params = ask_params(&[reason_form(), reason_form()]);
    let answers = json!({ "input 0": { "action": "decline" } });
    let reply = modern(&mut client, 102, ALL, &with_answers(&params, &round, &answers));
    assert_eq!(heard(&reply), json!({ "input 0": { "action": "decline" }, "input 1": accepted() }));
    // What cannot be an answer is none.
    for (id, answers) in [(103, json!({ "input 0": 12345 })), (104, Value::Null), (105, json!([]))] {
        only(&modern(&mut client, id, ALL, &along(&[reason_form()], answers)));
    }
    // Toolgate's own question before a secret is a person's to answer, and spends what came along.
    let secret = form(&json!({ "api_key": { "type": "string" } }));
    let yes = json!({ "action": "accept", "content": { "decision": "continue" } });
    let answers = json!({ "toolgate_confirm_input 0": yes, "input 0": accepted() });
    let (key, first) = only(&modern(&mut client, 106, ALL, &along(&[secret], answers)));
    assert!(key.starts_with("toolgate_confirm_"), "{key}: {first}");
}

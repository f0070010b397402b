//! Questions that servers ask in the middle of a call: to whom they go, in which words, and what becomes
//! of them, for clients and servers of both eras.

mod pages;
mod rounds;
mod sizes;

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_e2e::{Http, Sandbox, Stdio};
use toolgate_signing::{Kind, SigningKey, sign_release};

use crate::guests::{Source, TEXTS, component, release, says};
use crate::sandbox;

/// What a client can do that can do everything.
const ALL: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}"#;
const LEGACY: &[&str] = &["--asks", "--era", "legacy"];
const MODERN: &[&str] = &["--asks", "--era", "modern"];

/// A server that asks, with these lines in its entry.
fn server(options: &[&str], entry: &str) -> Sandbox {
    let sandbox = sandbox();
    configure(&sandbox, options, entry);
    sandbox
}

fn configure(sandbox: &Sandbox, options: &[&str], entry: &str) {
    sandbox.configure_trusted("ask, slow, echo", options, entry);
}

fn form(properties: &Value) -> Value {
    json!({
        "method": "elicitation/create",
        "params": {
            "message": "What now?",
            "requestedSchema": { "type": "object", "properties": properties },
        },
    })
}

fn reason_form() -> Value {
    form(&json!({ "reason": { "type": "string" } }))
}

fn sampling() -> Value {
    let text = json!({ "role": "user", "content": { "type": "text", "text": "hi" } });
    json!({ "method": "sampling/createMessage", "params": { "messages": [text], "maxTokens": 10 } })
}

fn roots() -> Value {
    json!({ "method": "roots/list", "params": {} })
}

fn accepted() -> Value {
    json!({ "action": "accept", "content": { "reason": "typed-by-a-person" } })
}

fn ask_params(questions: &[Value]) -> Value {
    json!({ "name": "fix__ask", "arguments": { "questions": questions } })
}

fn send(client: &mut Stdio, id: u32, params: &Value) {
    client.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string());
}

/// The next request or reply.
fn next(client: &mut Stdio) -> Value {
    loop {
        let message: Value = serde_json::from_str(&client.line()).unwrap();
        if message.get("id").is_some() {
            return message;
        }
    }
}

/// The next question of a call on a session.
fn question(client: &mut Stdio) -> Value {
    let message = next(client);
    assert!(message["method"].is_string(), "no question: {message}");
    message
}

fn answer(client: &mut Stdio, question: &Value, result: &Value) {
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }).to_string());
}

/// What the fixture was answered, from the reply to a call.
fn heard(reply: &Value) -> Value {
    let text = reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{reply}"));
    serde_json::from_str(text).unwrap_or_else(|_| panic!("{reply}"))
}

/// A call of a client on a session that is asked nothing.
fn call(client: &mut Stdio, id: u32, questions: &[Value]) -> Value {
    send(client, id, &ask_params(questions));
    let reply = next(client);
    assert_eq!(reply["id"], id, "a question came: {reply}");
    reply
}

/// A request of a client of the stateless era.
fn modern(client: &mut Stdio, id: u32, capabilities: &str, params: &Value) -> Value {
    let mut params = params.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": serde_json::from_str::<Value>(capabilities).unwrap(),
    });
    send(client, id, &params);
    let reply = next(client);
    assert_eq!(reply["id"], id, "{reply}");
    reply
}

fn with_answers(params: &Value, round: &Value, answers: &Value) -> Value {
    let mut params = params.clone();
    params["requestState"] = round["result"]["requestState"].clone();
    params["inputResponses"] = answers.clone();
    params
}

/// The one question of a round, with its key.
fn only(round: &Value) -> (String, Value) {
    assert_eq!(round["result"]["resultType"], "input_required", "{round}");
    let requests = round["result"]["inputRequests"].as_object().unwrap();
    assert_eq!(requests.len(), 1, "{round}");
    let (key, request) = requests.iter().next().unwrap();
    (key.clone(), request.clone())
}

fn events(sandbox: &Sandbox, event: &str) -> Vec<Value> {
    sandbox.audit().into_iter().filter(|row| row["details"]["event"] == event).collect()
}

/// Waits for something that is about to be so.
#[track_caller]
fn until(is: impl Fn() -> bool) {
    let end = std::time::Instant::now() + toolgate_e2e::PATIENCE;
    while !is() {
        assert!(std::time::Instant::now() < end, "it did not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn calls(sandbox: &Sandbox) -> usize {
    sandbox.read("ledger").matches("\"tools/call\"").count()
}

#[test]
fn gate_elicit_eli_001_eli_002_eli_003_a_form_goes_to_the_client_of_its_call_and_says_who_asks() {
    let sandbox = server(LEGACY, "");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ALL);
    let properties =
        json!({ "reason": { "type": "string" }, "how": { "type": "string", "enum": ["now", "later"] } });
    send(&mut client, 100, &ask_params(&[form(&properties)]));
    let asked = question(&mut client);
    assert_eq!(asked["method"], "elicitation/create");
    let params = &asked["params"];
    let message = params["message"].as_str().unwrap();
    assert!(
        message.starts_with("⚠️ MCP server 'fix' asks (this is NOT Toolgate):")
            && message.ends_with("What now?")
    );
    let fields = &params["requestedSchema"]["properties"];
    assert_eq!(fields["reason"]["title"], "[MCP server 'fix'] reason");
    assert_eq!(fields["how"]["title"], "[MCP server 'fix'] how");
    assert_eq!(fields["how"]["enum"], json!(["now", "later"]));
    answer(&mut client, &asked, &accepted());
    let reply = next(&mut client);
    assert_eq!(heard(&reply), json!([accepted()]), "what was typed reaches the server as it was typed");
    // ELI-015, ELI-016: the names of the fields, and nothing of what was typed.
    let requested = &events(&sandbox, "mcp_elicitation_requested")[0];
    assert_eq!(requested["details"]["field_keys"], json!(["reason", "how"]));
    let answered = &events(&sandbox, "mcp_elicitation_answered")[0];
    assert_eq!(answered["details"]["action"], "accept");
    assert_eq!(answered["details"]["field_keys"], json!(["reason", "how"]));
    let audit = sandbox.run(&["audit", "tail", "-n", "10000", "--json"]).stdout;
    assert!(!audit.contains("typed-by-a-person") && !audit.contains("What now?"), "{audit}");
    // SEC-016: nothing that the environment holds stands in the form.
    assert!(fields["reason"].get("default").is_none());
}

#[test]
fn eli_009_nothing_is_filled_in_for_the_person_whatever_the_field_is_called() {
    let sandbox = server(LEGACY, "    env: { REGION: \"eu-value\", HOME: \"/home-value\" }\n");
    sandbox.run_with(&["secret", "set", "USER_ID"], "stored-value", &[]).exits(0);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ALL);
    let text = || json!({ "type": "string" });
    send(
        &mut client,
        100,
        &ask_params(&[form(&json!({ "REGION": text(), "HOME": text(), "USER_ID": text() }))]),
    );
    let asked = question(&mut client);
    for (name, field) in asked["params"]["requestedSchema"]["properties"].as_object().unwrap() {
        let keys: Vec<&String> = field.as_object().unwrap().keys().collect();
        assert_eq!(keys.len(), 2, "{name} has its type and its title: {field}");
    }
    assert!(!asked.to_string().contains("-value"), "{asked}");
    // An answer without the fields reaches the server without them.
    answer(&mut client, &asked, &json!({ "action": "accept", "content": {} }));
    assert_eq!(heard(&next(&mut client)), json!([{ "action": "accept", "content": {} }]));
}

#[test]
fn se_14_a_field_or_a_page_whose_name_looks_like_another_is_not_shown() {
    let sandbox = server(LEGACY, "");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ALL);
    let page = json!({ "method": "elicitation/create", "params": {
        "mode": "url", "message": "m", "url": "https://ex\u{430}mple.com/in", "elicitationId": "e" } });
    let field = form(&json!({ "p\u{430}th": { "type": "string" } }));
    let reply = call(&mut client, 100, &[page, field]);
    assert_eq!(heard(&reply), json!([{ "action": "decline" }, { "action": "decline" }]));
}

/// ELI-008: each of these is confirmed first, and the person may still see the form.
#[test]
fn eli_008_a_secret_is_noticed_in_disguise_in_other_languages_and_in_the_message_alone() {
    let sandbox = server(LEGACY, "");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ALL);
    let text = |more: Value| {
        let mut property = json!({ "type": "string" });
        property.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        property
    };
    let mut forms = vec![
        form(&json!({ "pass_word": text(json!({})) })),
        form(&json!({ "userPin": text(json!({})) })),
        form(&json!({ "cvv": { "type": "integer" } })),
        form(&json!({ "contrase\u{f1}a": text(json!({})) })),
        form(&json!({ "x": text(json!({ "title": "P\u{430}ssw\u{3bf}rd" })) })),
        form(&json!({ "x": text(json!({ "description": "your pass\u{200b}word" })) })),
        form(&json!({ "x": text(json!({ "format": "password" })) })),
    ];
    let mut message = reason_form();
    message["params"]["message"] = json!("To go on, type your P.I.N.");
    forms.push(message);
    for (index, asks) in forms.iter().enumerate() {
        let id = 300 + u32::try_from(index).unwrap();
        send(&mut client, id, &ask_params(std::slice::from_ref(asks)));
        let first = question(&mut client);
        let shown = first["params"]["message"].as_str().unwrap();
        assert!(shown.contains("looks like a secret"), "{asks}: {shown}");
        answer(&mut client, &first, &json!({ "action": "accept", "content": { "decision": "decline" } }));
        assert_eq!(heard(&next(&mut client)), json!([{ "action": "decline" }]), "{asks}");
    }
}

// FR-09
#[test]
fn eli_004_eli_005_eli_006_eli_007_a_form_is_one_form_whatever_it_asks() {
    let sandbox = server(LEGACY, "");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ALL);
    for (index, properties) in [
        json!({ "sure": { "type": "boolean" } }),
        json!({ "level": { "type": "string", "enum": ["a", "b"] } }),
        json!({ "text": { "type": "string" } }),
        json!({ "text": { "type": "string" }, "count": { "type": "integer" } }),
    ]
    .into_iter()
    .enumerate()
    {
        let id = 100 + u32::try_from(index).unwrap();
        send(&mut client, id, &ask_params(&[form(&properties)]));
        let asked = question(&mut client);
        let fields = asked["params"]["requestedSchema"]["properties"].as_object().unwrap().clone();
        assert_eq!(fields.len(), properties.as_object().unwrap().len());
        answer(&mut client, &asked, &json!({ "action": "decline" }));
        let reply = next(&mut client);
        assert_eq!(reply["id"], id, "one question and no other: {reply}");
    }
}

#[test]
fn gate_confirm_eli_008_a_secret_is_confirmed_before_its_form_is_shown() {
    let sandbox = server(LEGACY, "");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ALL);
    let secret = form(&json!({ "api_key": { "type": "string" } }));
    send(&mut client, 100, &ask_params(std::slice::from_ref(&secret)));
    let first = question(&mut client);
    let message = first["params"]["message"].as_str().unwrap();
    assert!(message.starts_with("Toolgate asks (this is not the server)"), "{message}");
    for part in ["'fix'", "api_key", "will be sent to that server", "never filled in from environment"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    answer(&mut client, &first, &json!({ "action": "accept", "content": { "decision": "continue" } }));
    let second = question(&mut client);
    assert!(second["params"]["message"].as_str().unwrap().contains("NOT Toolgate"));
    let typed = json!({ "action": "accept", "content": { "api_key": "k-123456" } });
    answer(&mut client, &second, &typed);
    assert_eq!(heard(&next(&mut client)), json!([typed]));
    // Declined at the first: the form is never shown.
    send(&mut client, 101, &ask_params(&[secret]));
    let first = question(&mut client);
    answer(&mut client, &first, &json!({ "action": "accept", "content": { "decision": "decline" } }));
    assert_eq!(heard(&next(&mut client)), json!([{ "action": "decline" }]));
    assert!(!sandbox.run(&["audit", "tail", "-n", "10000", "--json"]).stdout.contains("k-123456"));
    let rows = sandbox.audit();
    let about = |row: &&Value| row["details"]["field_keys"] == json!(["api_key"]);
    let said: Vec<&str> =
        rows.iter().filter(about).filter_map(|row| row["details"]["event"].as_str()).collect();
    assert!(
        said.contains(&"mcp_elicitation_requested") && said.contains(&"mcp_elicitation_answered"),
        "{said:?}"
    );
}

#[test]
fn eli_011_eli_012_a_decline_is_a_decline_and_silence_is_a_cancel() {
    let sandbox = server(LEGACY, "    elicitation_timeout: 1500ms\n");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ALL);
    send(&mut client, 100, &ask_params(&[reason_form()]));
    let asked = question(&mut client);
    // Of a decline only the decline goes on, whatever stands beside it.
    answer(
        &mut client,
        &asked,
        &json!({ "action": "decline", "content": { "reason": "typed-by-a-person" } }),
    );
    assert_eq!(heard(&next(&mut client)), json!([{ "action": "decline" }]));
    send(&mut client, 101, &ask_params(&[reason_form()]));
    let late = question(&mut client);
    let reply = next(&mut client);
    assert_eq!(heard(&reply), json!([{ "action": "cancel" }]));
    until(|| events(&sandbox, "mcp_elicitation_timed_out").len() == 1);
    // What comes after that is nothing.
    answer(&mut client, &late, &accepted());
    send(&mut client, 102, &ask_params(&[reason_form()]));
    let asked = question(&mut client);
    answer(&mut client, &asked, &json!({ "action": "cancel" }));
    assert_eq!(heard(&next(&mut client)), json!([{ "action": "cancel" }]));
}

#[test]
fn gate_auto_decline_eli_010_eli_013_a_server_that_may_not_ask_is_declined_and_nobody_sees_it() {
    for options in [LEGACY, MODERN] {
        let sandbox = server(options, "    elicitation: auto_decline\n");
        let mut client = sandbox.serve_stdio(&[]);
        client.initialize_with(ALL);
        let reply = call(&mut client, 100, &[reason_form()]);
        assert!(heard(&reply).to_string().contains(r#"{"action":"decline"}"#), "{reply}");
        let row = &events(&sandbox, "mcp_elicitation_auto_declined")[0];
        assert_eq!(row["details"]["reason"], "server_configured", "{row}");
        assert_eq!(row["details"]["field_keys"], json!(["reason"]));
    }
}

#[test]
fn gate_abilities_eli_014_a_client_that_shows_no_forms_is_not_asked_and_its_server_is_told_so() {
    let sandbox = server(LEGACY, "");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(r#"{"roots":{}}"#);
    let reply = call(&mut client, 100, &[reason_form()]);
    assert_eq!(heard(&reply), json!([{ "action": "decline" }]));
    assert_eq!(events(&sandbox, "mcp_elicitation_auto_declined")[0]["details"]["reason"], "headless");
    let greeting =
        |ledger: &str| ledger.lines().find(|line| line.contains("\"initialize\"")).unwrap().to_owned();
    assert!(greeting(&sandbox.read("ledger")).contains(r#""capabilities":{}"#), "{}", sandbox.read("ledger"));
    // The operator at a terminal is no listener either.
    let question = json!({ "questions": [reason_form()] }).to_string();
    let run = sandbox.run(&["mcp", "call", "fix.ask", "--json", &question]).exits(0);
    assert!(run.stdout.contains("decline"), "{run:?}");
    // One that can is told of, in words the server understands.
    let sandbox = server(LEGACY, "    sampling: forward\n");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ALL);
    client.tool_names();
    let told = greeting(&sandbox.read("ledger"));
    assert!(told.contains(r#""capabilities":{"elicitation":{"form":{},"url":{}},"sampling":{}}"#), "{told}");
}

#[test]
fn gate_sampling_smp_001_sampling_and_roots_are_refused_where_the_entry_does_not_forward_them() {
    let sandbox = server(LEGACY, "");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ALL);
    let reply = call(&mut client, 100, &[sampling(), roots()]);
    let answers = heard(&reply);
    for index in 0..2 {
        assert_eq!(answers[index]["error"]["code"], -32601, "{answers}");
    }
    let rows = events(&sandbox, "mcp_question_refused");
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0]["details"]["tool"].as_str().or(rows[0]["tool"].as_str()), Some("ask"));
    // A modern server was told that it cannot ask, so its asking is the end of the call.
    let sandbox = server(MODERN, "");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ALL);
    let reply = call(&mut client, 100, &[roots()]);
    assert_eq!(reply["result"]["isError"], true, "{reply}");
    let ledger = sandbox.read("ledger");
    assert!(
        !ledger.contains(r#""roots":{}"#) && ledger.contains(r#"clientCapabilities":{"elicitation":"#),
        "{ledger}"
    );
}

#[test]
fn sampling_and_roots_pass_both_eras_where_the_entry_forwards_them() {
    for options in [LEGACY, MODERN] {
        let sandbox = server(options, "    sampling: forward\n    roots: forward\n");
        let mut client = sandbox.serve_stdio(&[]);
        client.initialize_with(ALL);
        send(&mut client, 100, &ask_params(&[sampling(), roots()]));
        let message =
            json!({ "role": "assistant", "content": { "type": "text", "text": "yes" }, "model": "m" });
        let directories = json!({ "roots": [{ "uri": "file:///work" }] });
        for _ in 0..2 {
            let asked = question(&mut client);
            let sampled = asked["method"] == "sampling/createMessage";
            answer(&mut client, &asked, if sampled { &message } else { &directories });
        }
        let heard = heard(&next(&mut client)).to_string();
        assert!(heard.contains("file:///work") && heard.contains(r#""model":"m""#), "{heard}");
        assert_eq!(events(&sandbox, "mcp_question_forwarded").len(), 2);
        assert_eq!(events(&sandbox, "mcp_question_answered").len(), 2);
    }
}

#[test]
fn gate_attribution_a_question_of_a_shared_server_that_fits_two_calls_is_declined_and_one_without_a_call_refused()
 {
    let sandbox = server(&[LEGACY, &["--asks-idle"]].concat(), "    instance: shared\n");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ALL);
    let slow = json!({ "name": "fix__slow", "arguments": { "ms": 3_000 } });
    send(&mut client, 100, &slow);
    until(|| calls(&sandbox) == 1);
    send(&mut client, 101, &ask_params(&[reason_form()]));
    let reply = next(&mut client);
    assert_eq!(reply["id"], 101, "nobody was asked: {reply}");
    assert_eq!(heard(&reply), json!([{ "action": "decline" }]));
    assert_eq!(next(&mut client)["id"], 100);
    let rows = events(&sandbox, "mcp_question_refused");
    let reasons: Vec<&str> = rows.iter().map(|row| row["details"]["reason"].as_str().unwrap()).collect();
    assert!(reasons.iter().any(|reason| reason.contains("more than one running call")), "{reasons:?}");
    assert!(reasons.iter().any(|reason| reason.contains("no call is running")), "{reasons:?}");
    // Alone, the same question is the call's.
    send(&mut client, 102, &ask_params(&[reason_form()]));
    let asked = question(&mut client);
    answer(&mut client, &asked, &accepted());
    assert_eq!(heard(&next(&mut client)), json!([accepted()]));
}

#[test]
fn a_client_that_cancels_its_call_takes_the_question_with_it() {
    let sandbox = server(LEGACY, "");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ALL);
    send(&mut client, 100, &ask_params(&[reason_form()]));
    let asked = question(&mut client);
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":100}}"#);
    let taken_back: Value = serde_json::from_str(&client.line()).unwrap();
    assert_eq!(taken_back["method"], "notifications/cancelled", "{taken_back}");
    assert_eq!(taken_back["params"]["requestId"], asked["id"]);
    assert_eq!(call(&mut client, 101, &[])["id"], 101, "the server works on");
    let ledger = sandbox.read("ledger");
    assert!(ledger.contains("notifications/cancelled"), "the server was told: {ledger}");
}

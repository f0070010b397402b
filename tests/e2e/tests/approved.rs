//! What exactly was approved: all that is sent, read to its end, by whoever was asked.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_e2e::{Sandbox, Stdio};

use crate::asks::{
    ELICITS, HELD, answer, approved, asked, asking, calls, code, pending, result_of, send_call, the_ask,
};

const NOT_HELD: &str = "approvals: { hold: 0s }\n";
const TRACE: [&str; 2] = [
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "00-1111111111111111111111111111111f-2222222222222222-00",
];

/// A call with members beside its arguments.
fn with(beside: &Value) -> Value {
    let mut params = json!({ "name": "fix__echo", "arguments": { "message": "hi" } });
    for (name, value) in beside.as_object().unwrap() {
        params[name] = value.clone();
    }
    params
}

fn call_with(client: &mut Stdio, beside: &Value) -> Value {
    let reply = client.request("tools/call", &with(beside));
    assert!(reply.get("error").is_none(), "{reply}");
    reply["result"].clone()
}

fn ask_of(result: &Value) -> String {
    assert_eq!(code(result), "approval_required", "{result}");
    result["_meta"]["toolgate/error"]["ask"].as_str().unwrap().to_owned()
}

/// The ask that a form is about.
fn named(question: &Value) -> String {
    let message = question["params"]["message"].as_str().unwrap();
    let at = message.rfind("ask_").unwrap();
    message[at..].chars().take(20).collect()
}

fn hides(text: &str) -> bool {
    text.chars().any(|c| matches!(c, '\u{1b}' | '\u{202e}' | '\u{200b}'))
}

#[test]
fn gate_beside_what_goes_beside_the_arguments_is_shown_and_bound_and_reaches_the_server_as_it_was() {
    let sandbox = asking(NOT_HELD);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let pays = json!({ "_meta": { "vendor/pay": 100 }, "x-own": "a\u{1b}[2J\u{202e}b" });
    let id = ask_of(&call_with(&mut client, &pays));
    let listed = sandbox.run(&["approvals", "list", "--json"]).exits(0).json();
    let beside: Value = serde_json::from_str(listed["asks"][0]["beside"].as_str().unwrap()).unwrap();
    assert_eq!(beside, pays);
    let table = sandbox.run(&["approvals", "list"]).exits(0);
    let shown = sandbox.run(&["approvals", "show", &id]).exits(0);
    for told in [&table.stdout, &shown.stdout] {
        assert!(told.contains("beside them") && !hides(told), "{told}");
    }
    assert!(shown.stdout.contains("\"vendor/pay\": 100") && shown.stdout.contains("\\u{202e}"), "{shown:?}");
    sandbox.run(&["approvals", "grant", &id]).exits(0);
    // Everything that differs beside the arguments is another call.
    let others = [
        json!({}),
        json!({ "_meta": { "vendor/pay": 100 } }),
        json!({ "_meta": { "vendor/pay": 101 }, "x-own": "a\u{1b}[2J\u{202e}b" }),
        json!({ "_meta": { "vendor/pay": 100, "more": null }, "x-own": "a\u{1b}[2J\u{202e}b" }),
        json!({ "_meta": { "vendor/pay": 100, "traceparent": "pay 5" }, "x-own": "a\u{1b}[2J\u{202e}b" }),
    ];
    for other in &others {
        assert_ne!(ask_of(&call_with(&mut client, other)), id, "{other}");
    }
    assert_eq!(calls(&sandbox), 0);
    // What differs by its nature does not count: a trace, a token for progress, who the run says it is.
    let mut again = pays.clone();
    again["_meta"]["traceparent"] = json!(TRACE[1]);
    again["_meta"]["progressToken"] = json!(7);
    again["_meta"]["toolgate/run_id"] = json!("another-run");
    assert_eq!(code(&call_with(&mut client, &again)), "none");
    let sent = sandbox.read("ledger");
    let sent = sent.lines().find(|line| line.contains("tools/call")).unwrap();
    let sent: Value = serde_json::from_str(sent).unwrap();
    assert_eq!(sent["params"]["x-own"], pays["x-own"], "{sent}");
    assert_eq!(sent["params"]["_meta"]["vendor/pay"], 100, "{sent}");
    assert_eq!(sent["params"]["_meta"]["traceparent"], TRACE[1], "{sent}");
}

#[test]
fn gate_addressed_what_a_client_tells_toolgate_of_itself_reaches_no_server() {
    let sandbox = asking("    capabilities: { allow: [\"mcp.call:fix\"] }\n");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let claims = json!({ "_meta": {
        "toolgate/run_id": "run-7", "toolgate/thread_id": "t-3", "toolgate/lane": "main",
        "toolgate/persona": "default", "toolgate/servers": ["fix"], "vendor/k": true } });
    assert_eq!(code(&call_with(&mut client, &claims)), "none");
    let ledger = sandbox.read("ledger");
    let sent = ledger.lines().find(|line| line.contains("tools/call")).unwrap();
    assert!(sent.contains("vendor/k") && !sent.contains("run-7") && !sent.contains("toolgate/"), "{sent}");
    let row = sandbox.audit().into_iter().find(|row| row["details"]["event"] == "mcp_called").unwrap();
    assert_eq!((&row["run_id"], &row["thread_id"]), (&json!("run-7"), &json!("t-3")), "{row}");
}

#[test]
fn a_form_shows_what_goes_beside_the_arguments_and_a_round_is_for_exactly_that() {
    let sandbox = asking(HELD);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ELICITS);
    let params = with(&json!({ "_meta": { "vendor/pay": 100 } }));
    client
        .send(&json!({ "jsonrpc": "2.0", "id": 100, "method": "tools/call", "params": params }).to_string());
    let question = asked(&mut client);
    let message = question["params"]["message"].as_str().unwrap();
    assert!(message.contains("Sent beside them: {\"_meta\":{\"vendor/pay\":100}}"), "{message}");
    answer(&mut client, &question, &json!({ "action": "decline" }));
    assert_eq!(code(&result_of(&mut client, 100)), "denied");
    // The stateless era: the answer to one question is none to a call that pays more.
    let modern = |pay: u32| {
        with(&json!({ "_meta": {
            "vendor/pay": pay,
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
        } }))
    };
    let round = client.request("tools/call", &modern(1));
    let request = &round["result"]["inputRequests"]["toolgate_approval"]["params"]["message"];
    assert!(request.as_str().unwrap().contains("{\"_meta\":{\"vendor/pay\":1}}"), "{round}");
    let answered = |pay: u32| {
        let mut params = modern(pay);
        params["requestState"] = round["result"]["requestState"].clone();
        params["inputResponses"] = json!({ "toolgate_approval": approved() });
        params
    };
    let swapped = client.request("tools/call", &answered(2));
    assert_eq!(swapped["error"]["code"], -32602, "{swapped}");
    assert_eq!(calls(&sandbox), 0);
}

#[test]
fn gate_own_client_apr_003_a_yes_in_one_client_opens_no_call_of_another_that_is_the_same() {
    let sandbox = asking(HELD);
    let mut clients = [(); 2].map(|()| sandbox.serve_stdio(&[]));
    for client in &mut clients {
        client.initialize_with(ELICITS);
    }
    let [mut first, mut second] = clients;
    send_call(&mut first, 100, "hi");
    let of_first = asked(&mut first);
    send_call(&mut second, 200, "hi");
    let of_second = asked(&mut second);
    assert_ne!(named(&of_first), named(&of_second), "each is asked about its own call");
    answer(&mut second, &of_second, &approved());
    assert_eq!(result_of(&mut second, 200)["content"][0]["text"], "hi");
    assert_eq!((calls(&sandbox), first.line_within(Duration::from_millis(700))), (1, None));
    assert_eq!(pending(&sandbox), [named(&of_first)], "the first still waits for its own person");
    answer(&mut first, &of_first, &json!({ "action": "decline" }));
    assert_eq!(code(&result_of(&mut first, 100)), "denied");
    assert_eq!(calls(&sandbox), 1);
    let rows = sandbox.audit();
    let sessions: Vec<&str> = rows
        .iter()
        .filter(|row| row["details"]["event"] == "approval.request")
        .map(|row| row["details"]["session"].as_str().unwrap())
        .collect();
    assert!(sessions.len() == 2 && sessions[0] != sessions[1], "{sessions:?}");
}

#[test]
fn gate_asks_of_all_clients_a_client_with_eight_asks_takes_none_of_anothers_and_all_have_an_end() {
    let sandbox = asking(NOT_HELD);
    let clients = [(); 5].map(|()| sandbox.serve_stdio(&[]));
    let fill = |client: &mut Stdio, name: &str| {
        for number in 0..8 {
            let asked = client.call("fix__echo", &json!({ "message": format!("{name} {number}") }));
            assert_eq!(code(&asked), "approval_required", "{name}: {asked}");
        }
    };
    for (index, mut client) in clients.into_iter().enumerate() {
        client.initialize();
        if index < 4 {
            fill(&mut client, &index.to_string());
        }
        let refused = client.call("fix__echo", &json!({ "message": "one more" }));
        let limit = if index < 4 { "(limit 8)" } else { "(limit 32)" };
        assert_eq!(code(&refused), "too_many_asks", "client {index}");
        assert!(refused["content"][0]["text"].as_str().unwrap().contains(limit), "{refused}");
    }
    assert_eq!(pending(&sandbox).len(), 32);
}

/// What nobody reads in a form: its middle.
fn long() -> String {
    format!("BEGIN {} MIDDLE {} END", "a".repeat(9_000), "z".repeat(9_000))
}

fn choices(question: &Value) -> &Value {
    &question["params"]["requestedSchema"]["properties"]["decision"]["enum"]
}

#[test]
fn gate_cut_what_a_form_does_not_show_to_its_end_is_allowed_only_where_all_of_it_is_read() {
    let sandbox = asking(HELD);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ELICITS);
    send_call(&mut client, 100, &long());
    let question = asked(&mut client);
    let message = question["params"]["message"].as_str().unwrap();
    assert!(
        message.contains("BEGIN") && message.contains("END\"}") && !message.contains("MIDDLE"),
        "{message}"
    );
    assert!(message.contains("CUT, 18") && message.contains("approvals show ask_"), "{message}");
    assert_eq!(choices(&question), &json!(["leave it open", "deny"]));
    // A client that says yes all the same has said nothing.
    answer(&mut client, &question, &approved());
    let id = the_ask(&sandbox);
    assert_eq!((calls(&sandbox), client.line_within(Duration::from_millis(500))), (0, None));
    let listed = sandbox.run(&["approvals", "list"]).exits(0);
    assert!(
        listed.stdout.contains("bytes more") && listed.stdout.contains("approvals show ASK"),
        "{listed:?}"
    );
    let all = sandbox.run(&["approvals", "show", &id]).exits(0);
    assert!(all.stdout.contains(&long()), "{all:?}");
    let told = message.split_whitespace().find(|word| word.starts_with("sha256:")).unwrap();
    assert!(all.stdout.contains(told), "the form and the command speak of the same bytes: {told}");
    let json = sandbox.run(&["approvals", "show", &id, "--json"]).exits(0).json();
    assert_eq!(json["arguments"], json!({ "message": long() }).to_string());
    let granted = sandbox.run(&["approvals", "grant", &id, "--json"]).exits(0).json();
    assert_eq!((&granted["ask"]["id"], &granted["ask"]["state"]), (&json!(id), &json!("granted")));
    assert_eq!(result_of(&mut client, 100)["content"][0]["text"], long());
    // Of what is closed only the beginning is kept, and that is said.
    let closed = sandbox.run(&["approvals", "show", &id]).exits(0);
    assert!(closed.stdout.contains("not all of it") && !closed.stdout.contains("MIDDLE"), "{closed:?}");
}

#[test]
fn where_the_operator_wants_that_a_form_that_is_cut_can_be_allowed_and_says_what_is_missing() {
    let sandbox = asking(&format!("    approvals: {{ cut: ask }}\n{HELD}"));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ELICITS);
    send_call(&mut client, 100, &long());
    let question = asked(&mut client);
    assert_eq!(choices(&question), &json!(["allow once", "deny"]));
    let message = question["params"]["message"].as_str().unwrap();
    assert!(
        message.contains("You do not see all of it here") && message.contains("are not shown"),
        "{message}"
    );
    answer(&mut client, &question, &approved());
    assert_eq!(result_of(&mut client, 100)["content"][0]["text"], long());
    let config = sandbox.run(&["config", "show", "--json"]).exits(0).json();
    assert_eq!(config["personas"]["default"]["approvals"]["cut"], "ask", "{config}");
    unknown_word_is_an_error(&sandbox);
}

fn unknown_word_is_an_error(sandbox: &Sandbox) {
    sandbox.configure("personas:\n  default:\n    approvals: { cut: never }\n");
    let refused = sandbox.run(&["config", "check"]).exits(2);
    assert!(refused.stderr.contains("cli, ask"), "{refused:?}");
}

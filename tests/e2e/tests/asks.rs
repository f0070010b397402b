//! Asks: who is asked where, what an answer opens, and what it does not.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolgate_e2e::{Sandbox, Stdio};

use crate::sandbox;

/// Long enough for a person who is a test.
pub(crate) const HELD: &str = "approvals: { hold: 20s }\n";
pub(crate) const ELICITS: &str = r#"{"elicitation":{}}"#;

/// A server that asks about everything and writes down what reaches it.
pub(crate) fn asking(rest: &str) -> Sandbox {
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    sandbox.configure_fixture(&["--ledger", &ledger], rest);
    sandbox
}

pub(crate) fn calls(sandbox: &Sandbox) -> usize {
    sandbox.read("ledger").matches("tools/call").count()
}

pub(crate) fn pending(sandbox: &Sandbox) -> Vec<String> {
    let asks = sandbox.run(&["approvals", "list", "--json"]).exits(0).json();
    let of = |ask: &Value| ask["id"].as_str().unwrap().to_owned();
    asks["asks"].as_array().unwrap().iter().filter(|ask| ask["state"] == "pending").map(of).collect()
}

/// Waits until one ask is there.
pub(crate) fn the_ask(sandbox: &Sandbox) -> String {
    let until = Instant::now() + toolgate_e2e::PATIENCE;
    loop {
        if let [id] = &pending(sandbox)[..] {
            return id.clone();
        }
        assert!(Instant::now() < until, "no ask came");
    }
}

pub(crate) fn code(result: &Value) -> &str {
    result.pointer("/_meta/toolgate~1error/code").and_then(Value::as_str).unwrap_or("none")
}

pub(crate) fn send_call(client: &mut Stdio, id: u32, message: &str) {
    let params = json!({ "name": "fix__echo", "arguments": { "message": message } });
    client.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string());
}

/// The next request of the gateway to the client.
pub(crate) fn asked(client: &mut Stdio) -> Value {
    loop {
        let message: Value = serde_json::from_str(&client.line()).unwrap();
        if message.get("method").is_some() && message.get("id").is_some() {
            return message;
        }
    }
}

/// The next request or reply.
fn next_with_id(client: &mut Stdio) -> Value {
    loop {
        let message: Value = serde_json::from_str(&client.line()).unwrap();
        if message.get("id").is_some() {
            return message;
        }
    }
}

pub(crate) fn answer(client: &mut Stdio, question: &Value, result: &Value) {
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }).to_string());
}

pub(crate) fn result_of(client: &mut Stdio, id: u32) -> Value {
    let reply: Value = serde_json::from_str(&client.reply_to(&id.to_string())).unwrap();
    assert!(reply.get("error").is_none(), "{reply}");
    reply["result"].clone()
}

pub(crate) fn approved() -> Value {
    json!({ "action": "accept", "content": { "decision": "allow once" } })
}

#[test]
fn apr_003_apr_004_a_call_waits_for_the_person_at_its_own_client_and_passes_once() {
    let sandbox = asking(HELD);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ELICITS);
    send_call(&mut client, 100, "hi");
    let question = asked(&mut client);
    assert_eq!(question["method"], "elicitation/create");
    let message = question["params"]["message"].as_str().unwrap();
    assert!(
        message.contains("Toolgate asks") && message.contains("echo") && message.contains("hi"),
        "{message}"
    );
    assert_eq!(calls(&sandbox), 0, "nothing is sent while a person reads");
    answer(&mut client, &question, &approved());
    let result = result_of(&mut client, 100);
    assert_eq!(result["content"][0]["text"], "hi", "{result}");
    assert_eq!(calls(&sandbox), 1);
    // The answer was for once: the same call asks again.
    send_call(&mut client, 101, "hi");
    let again = asked(&mut client);
    answer(&mut client, &again, &json!({ "action": "decline" }));
    assert_eq!(code(&result_of(&mut client, 101)), "denied");
    assert_eq!(calls(&sandbox), 1);
    let rows = sandbox.audit();
    for event in ["approval.grant", "approval.reject"] {
        let row = rows.iter().find(|row| row["details"]["event"] == event).unwrap();
        assert_eq!(row["details"]["surface"], "client", "{row}");
        assert!(row["details"]["approver"].as_str().unwrap().contains("client of stdio"), "{row}");
    }
}

#[test]
fn apr_006_apr_007_a_question_that_nobody_answers_is_rejected_and_never_runs_late() {
    let sandbox = asking("approvals: { timeout: 1s, hold: 1s }\n");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ELICITS);
    send_call(&mut client, 100, "hi");
    let question = asked(&mut client);
    let result = result_of(&mut client, 100);
    assert!(["approval_timed_out", "approval_required"].contains(&code(&result)), "{result}");
    let id = result["_meta"]["toolgate/error"]["ask"].as_str().unwrap().to_owned();
    // Both a late answer at the client and a late grant are nothing.
    answer(&mut client, &question, &approved());
    std::thread::sleep(Duration::from_millis(1_100));
    sandbox.run(&["approvals", "grant", &id]).exits(1);
    assert_eq!(calls(&sandbox), 0);
    assert!(sandbox.events().contains(&"approval.timeout".to_owned()));
}

// FR-49
#[test]
fn a_cancelled_question_stays_open_for_the_operator_and_a_grant_elsewhere_wakes_the_call() {
    let sandbox = asking(HELD);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ELICITS);
    send_call(&mut client, 100, "hi");
    let question = asked(&mut client);
    answer(&mut client, &question, &json!({ "action": "cancel" }));
    let id = the_ask(&sandbox);
    assert_eq!(calls(&sandbox), 0);
    sandbox.run(&["approvals", "grant", &id]).exits(0);
    assert_eq!(result_of(&mut client, 100)["content"][0]["text"], "hi");
    assert_eq!(calls(&sandbox), 1);
    let row = sandbox.audit().into_iter().find(|row| row["details"]["event"] == "approval.grant").unwrap();
    assert_eq!(row["details"]["surface"], "cli", "{row}");
}

#[test]
fn a_question_is_taken_back_from_the_client_when_it_was_answered_elsewhere() {
    let sandbox = asking(HELD);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ELICITS);
    send_call(&mut client, 100, "hi");
    let question = asked(&mut client);
    sandbox.run(&["approvals", "deny", &the_ask(&sandbox)]).exits(0);
    let (mut denied, mut taken_back) = (false, false);
    while !(denied && taken_back) {
        let message: Value = serde_json::from_str(&client.line()).unwrap();
        taken_back |= message["method"] == "notifications/cancelled"
            && message["params"]["requestId"] == question["id"];
        denied |= message["id"] == 100 && code(&message["result"]) == "denied";
    }
    assert_eq!(calls(&sandbox), 0);
}

#[test]
fn a_call_whose_client_has_gone_never_runs_and_its_repetition_spends_the_grant_once() {
    let sandbox = asking(HELD);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    send_call(&mut client, 100, "hi");
    let id = the_ask(&sandbox);
    client.kill();
    sandbox.run(&["approvals", "grant", &id]).exits(0);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(calls(&sandbox), 0, "nothing runs for a caller who has gone");
    sandbox.kill_gateway();
    // The grant survived both kills; the same call of the same client's next session spends it.
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    assert_eq!(client.call("fix__echo", &json!({ "message": "hi" }))["content"][0]["text"], "hi");
    send_call(&mut client, 200, "hi");
    assert_ne!(the_ask(&sandbox), id, "a replayed grant opens nothing: the call asks anew");
    assert_eq!(calls(&sandbox), 1);
    let events = sandbox.events();
    let count = |event: &str| events.iter().filter(|one| *one == event).count();
    assert_eq!((count("approval.request"), count("approval.grant"), count("mcp_called")), (2, 1, 1));
}

#[test]
fn eight_asks_of_a_caller_are_open_at_a_time_and_the_next_call_is_refused_with_the_limit() {
    let sandbox = asking("approvals: { hold: 0s }\n");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let mut call = |number: u32| client.call("fix__echo", &json!({ "message": number.to_string() }));
    assert!((0..8).all(|number| code(&call(number)) == "approval_required"));
    let refused = call(8);
    assert_eq!(code(&refused), "too_many_asks", "{refused}");
    assert!(refused["content"][0]["text"].as_str().unwrap().contains('8'), "the limit is named: {refused}");
    assert_eq!(code(&call(0)), "approval_required", "an ask that is open is not another one");
    let open = pending(&sandbox);
    assert_eq!(open.len(), 8, "{open:?}");
    sandbox.run(&["approvals", "deny", &open[0]]).exits(0);
    assert_eq!(code(&call(8)), "approval_required", "one that was answered makes room");
    assert_eq!(calls(&sandbox), 0);
}

#[test]
fn arguments_that_were_swapped_after_the_question_are_another_question() {
    let sandbox = asking("approvals: { hold: 0s }\n");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let asked = client.call("fix__echo", &json!({ "message": "harmless" }));
    let id = asked["_meta"]["toolgate/error"]["ask"].as_str().unwrap().to_owned();
    sandbox.run(&["approvals", "grant", &id]).exits(0);
    let swapped = client.call("fix__echo", &json!({ "message": "harmful" }));
    assert_eq!(code(&swapped), "approval_required", "{swapped}");
    assert_eq!(calls(&sandbox), 0);
    client.call("fix__echo", &json!({ "message": "harmless" }));
    assert_eq!(calls(&sandbox), 1);
    let rows = sandbox.audit();
    let of = |event: &str| -> Vec<&Value> {
        let these = rows.iter().filter(|row| row["details"]["event"] == event);
        these.map(|row| &row["details"]["ask"]).collect()
    };
    let (asked, granted) = (of("approval.request"), of("approval.grant"));
    assert_eq!((asked.len(), granted.len()), (2, 1), "{rows:?}");
    assert!(asked[0] == granted[0] && asked[1] != granted[0], "the swapped call is an ask of its own");
}

/// A modern request on pipes.
fn modern(client: &mut Stdio, id: u32, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    client.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string());
    serde_json::from_str(&client.reply_to(&id.to_string())).unwrap()
}

#[test]
fn a_client_of_the_stateless_era_is_asked_by_an_input_round_that_works_once_for_its_call() {
    let sandbox = asking(HELD);
    let mut client = sandbox.serve_stdio(&[]);
    let call = |message: &str| json!({ "name": "fix__echo", "arguments": { "message": message } });
    let round = modern(&mut client, 1, call("hi"));
    assert_eq!(round["result"]["resultType"], "input_required", "{round}");
    let request = &round["result"]["inputRequests"]["toolgate_approval"];
    assert_eq!(request["method"], "elicitation/create");
    let answered = |message: &str| {
        let mut params = call(message);
        params["requestState"] = round["result"]["requestState"].clone();
        params["inputResponses"] = json!({ "toolgate_approval": approved() });
        params
    };
    // Arguments swapped during the question, a state that was altered: nothing.
    let swapped = modern(&mut client, 2, answered("other"));
    assert_eq!(swapped["error"]["code"], -32602, "{swapped}");
    assert_eq!(calls(&sandbox), 0);
    let again = modern(&mut client, 3, call("hi"));
    let mut params = answered("hi");
    params["requestState"] =
        json!(again["result"]["requestState"].as_str().unwrap().replace("tg1.ask", "tg1.asl"));
    assert_eq!(modern(&mut client, 4, params)["error"]["code"], -32602);
    let mut params = answered("hi");
    params["requestState"] = again["result"]["requestState"].clone();
    let passed = modern(&mut client, 5, params.clone());
    assert_eq!(passed["result"]["content"][0]["text"], "hi", "{passed}");
    assert_eq!(calls(&sandbox), 1);
    // A replayed state is none.
    assert_eq!(modern(&mut client, 6, params)["error"]["code"], -32602);
    assert_eq!(calls(&sandbox), 1);
    let rows = sandbox.audit();
    let refused = rows.iter().filter(|row| row["details"]["rule"] == "request_state");
    assert_eq!(refused.count(), 3, "swapped, altered and replayed are each written down: {rows:?}");
}

#[test]
fn apr_008_in_a_client_a_person_says_once_or_no_and_wider_words_are_the_operators() {
    let sandbox = asking(HELD);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ELICITS);
    send_call(&mut client, 100, "hi");
    let question = asked(&mut client);
    let decision = &question["params"]["requestedSchema"]["properties"]["decision"];
    assert_eq!(decision["enum"], json!(["allow once", "deny"]));
    assert_eq!(decision.get("default"), None, "nothing is a yes for somebody who only confirms");
    let wider = json!({ "action": "accept", "content": { "decision": "allow for this session" } });
    answer(&mut client, &question, &wider);
    let id = the_ask(&sandbox);
    assert_eq!(calls(&sandbox), 0, "a wider word at the client is no answer");
    sandbox.run(&["approvals", "grant", &id, "--for", "session"]).exits(0);
    assert_eq!(result_of(&mut client, 100)["content"][0]["text"], "hi");
    // The operator's is for the session: other arguments are not asked about.
    send_call(&mut client, 101, "other");
    assert_eq!(result_of(&mut client, 101)["content"][0]["text"], "other");
    let grants = sandbox.run(&["approvals", "list", "--json"]).exits(0).json()["grants"].clone();
    assert_eq!((&grants[0]["for"], &grants[0]["surface"]), (&json!("session"), &json!("cli")), "{grants}");
}

#[test]
fn a_persona_whose_client_may_not_answer_is_not_asked_there() {
    let sandbox = asking(&format!("    approvals: {{ in_client: false }}\n{}", HELD.replace("20s", "300ms")));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ELICITS);
    send_call(&mut client, 100, "hi");
    let line = next_with_id(&mut client);
    assert_eq!(line["id"], 100, "no question came before the reply: {line}");
    assert_eq!(code(&line["result"]), "approval_required");
}

#[test]
fn apr_020_no_question_about_a_server_with_host_escape_is_answered_in_a_client() {
    let sandbox = sandbox();
    let entry = format!("{}    trust: {{ host_escape: true }}\n", sandbox.fixture_entry("fix", &[]));
    sandbox.configure(&format!(
        "servers:\n{entry}personas:\n  default:\n    servers: [fix]\n{}",
        HELD.replace("20s", "300ms")
    ));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ELICITS);
    send_call(&mut client, 100, "hi");
    let line = next_with_id(&mut client);
    assert_eq!(line["id"], 100, "{line}");
    let id = line["result"]["_meta"]["toolgate/error"]["ask"].as_str().unwrap().to_owned();
    let refused = sandbox.run(&["approvals", "grant", &id, "--for", "persona"]).exits(2);
    assert!(refused.stderr.contains("host_escape"), "{refused:?}");
    sandbox.run(&["approvals", "grant", &id, "--for", "session"]).exits(0);
}

// FR-31
#[test]
fn a_wider_grant_covers_the_tool_until_it_is_revoked_or_expires() {
    let sandbox = asking("approvals: { hold: 0s }\n");
    let call = |message: &str, exit: i32| {
        let arguments = json!({ "message": message }).to_string();
        sandbox.run(&["mcp", "call", "fix.echo", "--json", &arguments]).exits(exit)
    };
    call("a", 3);
    sandbox.run(&["approvals", "grant", &the_ask(&sandbox), "--for", "persona", "--ttl", "1h"]).exits(0);
    call("b", 0);
    sandbox.run(&["mcp", "call", "fix.big", "--json", "{}"]).exits(3);
    let listed = sandbox.run(&["approvals", "list", "--json"]).json();
    let grant = listed["grants"][0]["id"].as_str().unwrap().to_owned();
    // What was granted is what is suggested, and what was taken back is not.
    let suggested = || sandbox.run(&["approvals", "suggest", "--since", "7d"]).exits(0).stdout;
    assert!(suggested().contains("\"mcp.call:fix/echo\"") && !suggested().contains("big"), "{}", suggested());
    sandbox.run(&["approvals", "revoke", &grant]).exits(0);
    assert!(!suggested().contains("mcp.call:fix/echo"), "{}", suggested());
    call("c", 3);
    assert!(sandbox.events().contains(&"approval.revoke".to_owned()));
}

#[test]
fn an_expired_grant_opens_nothing() {
    let sandbox = asking("approvals: { timeout: 1s, hold: 0s }\n");
    let call =
        |exit: i32| sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"a"}"#]).exits(exit);
    call(3);
    sandbox.run(&["approvals", "grant", &the_ask(&sandbox)]).exits(0);
    std::thread::sleep(Duration::from_millis(5_100));
    call(3);
    assert_eq!(calls(&sandbox), 0);
    assert!(sandbox.events().contains(&"approval.timeout".to_owned()), "{:?}", sandbox.events());
}

#[test]
fn fp_35_no_terminal_escape_of_an_agent_reaches_the_one_who_answers() {
    let sandbox = asking(HELD);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ELICITS);
    send_call(&mut client, 100, "\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}");
    let question = asked(&mut client);
    let hidden = |text: &str| text.chars().any(|c| matches!(c, '\u{1b}' | '\u{7}' | '\u{202e}'));
    assert!(!hidden(question["params"]["message"].as_str().unwrap()), "{question}");
    crate::operator::with_pin(&sandbox);
    let id = the_ask(&sandbox);
    let listed = sandbox.run(&["approvals", "list"]).exits(0);
    assert!(!hidden(&listed.stdout), "{listed:?}");
    let shown = sandbox.type_to(&["approvals", "grant", &id], &[("Operator PIN: ", crate::operator::PIN)]);
    assert!(!hidden(&shown.exits(0).stdout));
    result_of(&mut client, 100);
    assert!(sandbox.events().contains(&"approval.request".to_owned()));
    let log = sandbox.run(&["audit", "tail", "-n", "1000"]).exits(0);
    assert!(!hidden(&log.stdout), "whoever reads the log is not obeyed at either: {log:?}");
}

#[test]
fn a_freeze_ends_calls_voids_asks_and_denies_until_the_operator_thaws() {
    let sandbox = asking(&format!(
        "    capabilities:\n      allow: [\"mcp.call:fix/slow\"]\n      require_approval: [\"mcp.call:fix/echo\"]\n{HELD}"
    ));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let params = json!({ "name": "fix__slow", "arguments": { "ms": 20_000 } });
    client.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }).to_string());
    send_call(&mut client, 8, "hi");
    let id = the_ask(&sandbox);
    let until = Instant::now() + toolgate_e2e::PATIENCE;
    while calls(&sandbox) == 0 {
        assert!(Instant::now() < until, "the slow call did not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    let begun = Instant::now();
    sandbox.run(&["freeze", "--server", "fix", "--reason", "looks wrong"]).exits(0);
    // Both end, in whatever order.
    for _ in 0..2 {
        let ended = next_with_id(&mut client);
        let meant = if ended["id"] == 7 { "cancelled" } else { "denied" };
        assert_eq!(code(&ended["result"]), meant, "{ended}");
    }
    assert!(begun.elapsed() < Duration::from_secs(15));
    sandbox.run(&["approvals", "grant", &id]).exits(1);
    let denied = client.call("fix__slow", &json!({ "ms": 1 }));
    assert!(denied.to_string().contains("looks wrong"), "{denied}");
    assert_eq!(calls(&sandbox), 1);
    crate::operator::with_pin(&sandbox);
    sandbox.run_detached(&sandbox.command(&["thaw", "--server", "fix"]), "").exits(3);
    sandbox.type_to(&["thaw", "--server", "fix"], &[("Operator PIN: ", crate::operator::PIN)]).exits(0);
    let until = Instant::now() + toolgate_e2e::PATIENCE;
    while code(&client.call("fix__slow", &json!({ "ms": 1 }))) != "none" {
        assert!(Instant::now() < until, "the running gateway does not notice the thaw");
    }
    let events = sandbox.events();
    assert!(events.contains(&"frozen".to_owned()) && events.contains(&"thawed".to_owned()), "{events:?}");
}

#[test]
fn a_frozen_policy_denies_all_that_it_guards() {
    let sandbox = asking("    capabilities:\n      allow: [\"mcp.call:fix\"]\n");
    let call =
        |exit: i32| sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"a"}"#]).exits(exit);
    call(0);
    sandbox.run(&["freeze", "--plugin", "toolgate/capabilities", "--reason", "recalled"]).exits(0);
    assert!(call(3).stderr.contains("toolgate/capabilities is frozen"));
    sandbox.run(&["thaw", "--plugin", "toolgate/capabilities"]).exits(0);
    call(0);
}

#[test]
fn a_standing_decision_is_followed_by_the_policies_and_by_a_running_gateway() {
    let sandbox = asking("approvals: { hold: 0s }\n");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    assert_eq!(code(&client.call("fix__echo", &json!({ "message": "a" }))), "approval_required");
    sandbox.run(&["mcp", "allow", "fix/echo"]).exits(0);
    let until = Instant::now() + toolgate_e2e::PATIENCE;
    while code(&client.call("fix__echo", &json!({ "message": "b" }))) != "none" {
        assert!(Instant::now() < until, "the running gateway does not follow");
    }
    assert_eq!(code(&client.call("fix__big", &json!({}))), "approval_required", "nothing beside it");
    sandbox.run(&["mcp", "deny", "fix"]).exits(0);
    sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"c"}"#]).exits(3);
    let explained = sandbox.run(&["mcp", "explain", "fix.echo", "--json"]).exits(0).json();
    assert_eq!(explained["call"], "deny", "deny wins over allow: {explained}");
}

#[test]
fn mcp_allow_does_not_outrank_what_the_configuration_asks_about_and_says_so() {
    let sandbox = asking(
        "    capabilities:\n      require_approval: [\"mcp.call:fix/echo\"]\napprovals: { hold: 0s }\n",
    );
    sandbox.run(&["mcp", "tools", "fix"]).exits(0);
    let told = sandbox.run(&["mcp", "allow", "fix/echo"]).exits(0);
    assert!(told.stdout.contains("goes on asking"), "{told:?}");
    sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"c"}"#]).exits(3);
}

#[test]
fn rl_003_rl_004_rl_005_an_empty_bucket_holds_calls_and_refuses_none() {
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    let entry = format!(
        "{}    rate_limit: {{ requests_per_minute: 60 }}\n",
        sandbox.fixture_entry("fix", &["--ledger", &ledger])
    );
    sandbox.configure(&format!(
        "servers:\n{entry}personas:\n  default:\n    servers: [fix]\n    capabilities: {{ allow: [\"mcp.call:fix\"] }}\n"
    ));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let begun = Instant::now();
    for number in 0..62 {
        let result = client.call("fix__echo", &json!({ "message": number.to_string() }));
        assert_eq!(code(&result), "none", "{result}");
    }
    assert!(begun.elapsed() >= Duration::from_millis(900), "the 61st call and the 62nd waited for a token");
    assert_eq!(calls(&sandbox), 62);
    // A call that is given up while it waits is not sent.
    send_call(&mut client, 900, "gone");
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":900}}"#);
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(calls(&sandbox), 62);
}

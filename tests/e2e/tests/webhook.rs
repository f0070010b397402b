//! Asks that a webhook answers, with the built binary: what it is sent, and which answers count.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use toolgate_e2e::{PATIENCE, Received, Receiver, Sandbox, Stdio};
use toolgate_signing::{SigningKey, seal};

use crate::sandbox;

const ANSWER: &str = "application/vnd.toolgate.approval+json";
const LATER: &str =
    "HTTP/1.1 202 Accepted\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const DOWN: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

fn operators() -> SigningKey {
    SigningKey::from_seed(&[7; 32])
}

/// What a service answers once a person decided.
fn answer(request: &Received, key: &SigningKey, change: impl Fn(&mut Value)) -> String {
    let asked: Value = serde_json::from_str(&request.body).unwrap();
    let mut payload =
        json!({ "ask": asked["ask"], "call": asked["call"], "decision": "grant", "approver": "Ada" });
    change(&mut payload);
    let body = String::from_utf8(seal(ANSWER, payload.to_string().as_bytes(), &[key]).unwrap()).unwrap();
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

fn with_webhook(port: u16, approvals: &str) -> Sandbox {
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    let key = operators().public();
    sandbox.configure_fixture(
        &["--ledger", &ledger],
        &format!(
            "approvals:\n{approvals}  webhook: {{ url: \"http://127.0.0.1:{port}/asks\", secret: \"${{ASKS_SECRET}}\", keys: [\"{key}\"] }}\n"
        ),
    );
    sandbox.run_with(&["secret", "set", "ASKS_SECRET"], "whsec_aHVzaC1odXNo\n", &[]).exits(0);
    sandbox
}

/// Whether the secret signed this request.
fn is_signed(request: &Received) -> bool {
    let (id, at) = (request.header("webhook-id").unwrap(), request.header("webhook-timestamp").unwrap());
    let mut mac = Hmac::<Sha256>::new_from_slice(b"hush-hush").unwrap();
    mac.update(format!("{id}.{at}.{}", request.body).as_bytes());
    let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    request.header("webhook-signature") == Some(expected.as_str())
}

fn rows(sandbox: &Sandbox, event: &str) -> Vec<Value> {
    sandbox.audit().into_iter().filter(|row| row["details"]["event"] == event).collect()
}

#[test]
fn gate_answer_a_webhooks_answer_counts_when_the_operators_key_signed_it_for_this_call() {
    let receiver = Receiver::start(|request| match request.number {
        0 => LATER.to_owned(),
        1 => answer(request, &operators(), |payload| payload["call"] = json!("sha256:00")),
        2 => answer(request, &SigningKey::from_seed(&[8; 32]), |_| ()),
        _ => answer(request, &operators(), |_| ()),
    });
    let sandbox = with_webhook(receiver.port, "");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let result = client.call("fix__echo", &json!({ "message": "hi" }));
    assert_eq!(result.pointer("/_meta/toolgate~1error"), None, "{result}");
    assert_eq!(sandbox.read("ledger").matches("\"tools/call\"").count(), 1);
    let requests = receiver.requests();
    assert_eq!(requests.len(), 4, "and nobody is told what they decided themselves");
    let asked: Value = serde_json::from_str(&requests[0].body).unwrap();
    assert_eq!(
        (&asked["type"], &asked["persona"], &asked["server"], &asked["name"], &asked["arguments"]),
        (
            &json!("approval.request"),
            &json!("default"),
            &json!("fix"),
            &json!("echo"),
            &json!("{\"message\":\"hi\"}")
        )
    );
    for request in &requests {
        let id = request.header("webhook-id").unwrap();
        assert_eq!(id, asked["ask"], "each exchange about one ask has its id");
        assert!(is_signed(request), "{request:?}");
    }
    let refused = rows(&sandbox, "approval.answer_refused");
    let reasons: Vec<&str> = refused.iter().map(|row| row["details"]["reason"].as_str().unwrap()).collect();
    assert_eq!(refused.len(), 2, "{reasons:?}");
    assert!(reasons[0].contains("another call"), "{reasons:?}");
    assert!(refused.iter().all(|row| row["details"]["ask"] == asked["ask"]));
    let granted = rows(&sandbox, "approval.grant");
    assert_eq!(granted.len(), 1);
    assert_eq!(granted[0]["details"]["surface"], "webhook");
    assert!(granted[0]["details"]["approver"].as_str().unwrap().starts_with("Ada (key "), "{granted:?}");
    // One grant is one call: the same call is another ask.
    let again = client.call("fix__echo", &json!({ "message": "hi" }));
    assert_eq!(again.pointer("/_meta/toolgate~1error"), None, "{again}");
    assert_eq!(rows(&sandbox, "approval.request").len(), 2);
}

#[test]
fn a_webhook_that_says_no_rejects_the_call_and_is_named() {
    let receiver = Receiver::start(|request| {
        answer(request, &operators(), |payload| payload["decision"] = json!("deny"))
    });
    let sandbox = with_webhook(receiver.port, "");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let result = client.call("fix__echo", &json!({ "message": "hi" }));
    assert_eq!(result.pointer("/_meta/toolgate~1error/code").unwrap(), "denied", "{result}");
    assert!(!sandbox.read("ledger").contains("tools/call"));
    let rejected = rows(&sandbox, "approval.reject");
    assert_eq!(rejected[0]["details"]["surface"], "webhook");
    let listed = sandbox.run(&["approvals", "list", "--json"]).exits(0).json();
    assert!(listed["asks"][0]["answered_by"].as_str().unwrap().starts_with("Ada"), "{listed}");
}

#[test]
fn a_webhook_that_is_down_or_silent_opens_nothing_and_another_surface_still_answers() {
    let receiver = Receiver::start(|_| DOWN.to_owned());
    let sandbox = with_webhook(receiver.port, "  hold: 1500ms\n");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let result = client.call("fix__echo", &json!({ "message": "hi" }));
    let error = result.pointer("/_meta/toolgate~1error").unwrap_or_else(|| panic!("{result}"));
    assert_eq!(error["code"], "approval_required", "{result}");
    assert!(!receiver.requests().is_empty(), "it was asked");
    assert!(!sandbox.read("ledger").contains("tools/call"));
    sandbox.run(&["approvals", "grant", error["ask"].as_str().unwrap()]).exits(0);
    let result = client.call("fix__echo", &json!({ "message": "hi" }));
    assert_eq!(result.pointer("/_meta/toolgate~1error"), None, "{result}");
}

#[test]
fn a_webhook_whose_secret_is_not_set_is_named_by_doctor_and_masked_in_config_show() {
    let sandbox = with_webhook(9, "");
    let shown = sandbox.run(&["config", "show", "--json"]).exits(0);
    assert!(!shown.stdout.contains("aHVzaC1odXNo") && !shown.stdout.contains("/asks"), "{shown:?}");
    assert_eq!(shown.json()["approvals"]["webhook"]["secret"], "***");
    sandbox.run(&["secret", "clear", "ASKS_SECRET"]).exits(0);
    let doctor = sandbox.run(&["doctor", "--json"]).json();
    let said = doctor.to_string();
    assert!(said.contains("approvals webhook") && said.contains("ASKS_SECRET"), "{said}");
}

const TAKEN: &str = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";

fn is_closed(request: &Received) -> bool {
    request.body.contains("approval.closed")
}

/// Waits for requests of the webhook that are like this, and gives them.
fn until(receiver: &Receiver, what: &str, is_enough: impl Fn(&[Received]) -> bool) -> Vec<Received> {
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        let requests = receiver.requests();
        if is_enough(&requests) {
            return requests;
        }
        assert!(std::time::Instant::now() < deadline, "{what}: {requests:?}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Asks about a call, waits until the webhook was shown it, and gives the ask.
fn shown(client: &mut Stdio, receiver: &Receiver, message: &str) -> String {
    let result = client.call("fix__echo", &json!({ "message": message }));
    let ask = result.pointer("/_meta/toolgate~1error/ask").unwrap_or_else(|| panic!("{result}"));
    let ask = ask.as_str().unwrap().to_owned();
    until(receiver, "it is not shown", |all| all.iter().any(|one| one.header("webhook-id") == Some(&ask)));
    ask
}

/// What the webhook is told of the end of an ask.
fn told(receiver: &Receiver, ask: &str) -> Value {
    let id = format!("{ask}.closed");
    let is_it = |one: &&Received| one.header("webhook-id") == Some(&id);
    let requests = until(receiver, "its end is not told", |all| all.iter().any(|one| is_it(&one)));
    let closed = requests.iter().find(is_it).unwrap();
    assert!(is_signed(closed), "{closed:?}");
    serde_json::from_str(&closed.body).unwrap()
}

#[test]
fn gate_closed_an_ask_that_ended_elsewhere_is_told_to_the_webhook_until_it_takes_it() {
    let mut refused = 0;
    let receiver = Receiver::start(move |request| match is_closed(request) {
        true if refused < 2 => {
            refused += 1;
            DOWN.to_owned()
        }
        true => TAKEN.to_owned(),
        false => LATER.to_owned(),
    });
    let sandbox = with_webhook(receiver.port, "  hold: 100ms\n");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let granted = shown(&mut client, &receiver, "a");
    sandbox.run(&["approvals", "grant", &granted]).exits(0);
    let closed = told(&receiver, &granted);
    assert_eq!(
        (&closed["type"], &closed["ask"], &closed["outcome"], &closed["surface"]),
        (&json!("approval.closed"), &json!(granted), &json!("granted"), &json!("cli"))
    );
    assert!(closed["approver"].as_str().is_some_and(|who| !who.is_empty()), "{closed}");
    let first: Value = serde_json::from_str(&receiver.requests()[0].body).unwrap();
    assert_eq!(closed["call"], first["call"], "it is the call that was asked about");
    let id = format!("{granted}.closed");
    let times = |all: &[Received]| all.iter().filter(|one| one.header("webhook-id") == Some(&id)).count();
    until(&receiver, "it is told once and was not taken", |all| times(all) == 3);

    let denied = shown(&mut client, &receiver, "b");
    sandbox.run(&["approvals", "deny", &denied]).exits(0);
    assert_eq!(told(&receiver, &denied)["outcome"], "denied");
    let voided = shown(&mut client, &receiver, "c");
    sandbox.run(&["freeze", "--server", "fix", "--reason", "looks wrong"]).exits(0);
    assert_eq!(told(&receiver, &voided)["outcome"], "voided");
    let settled = receiver.requests();
    assert_eq!(times(&settled), 3, "what was taken is not told again");
    let shown_after = settled.iter().rposition(|one| one.header("webhook-id") == Some(&voided));
    let closed_at = settled.iter().position(is_closed_of(&voided));
    assert!(shown_after < closed_at, "and is not asked again");
}

fn is_closed_of(ask: &str) -> impl Fn(&Received) -> bool + use<> {
    let id = format!("{ask}.closed");
    move |request| request.header("webhook-id") == Some(&id)
}

#[test]
fn an_ask_that_nobody_answered_in_time_is_told_to_the_webhook_as_expired() {
    let receiver =
        Receiver::start(|request| if is_closed(request) { TAKEN.to_owned() } else { LATER.to_owned() });
    let sandbox = with_webhook(receiver.port, "  hold: 100ms\n  timeout: 1500ms\n");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let ask = shown(&mut client, &receiver, "a");
    let closed = told(&receiver, &ask);
    assert_eq!((&closed["outcome"], &closed["surface"]), (&json!("expired"), &Value::Null));
    assert!(!sandbox.read("ledger").contains("tools/call"));
}

#[test]
fn an_answer_of_the_webhook_that_comes_too_late_counts_for_nothing_and_it_is_told_whose_did() {
    let (answered, wait) = std::sync::mpsc::channel::<()>();
    let receiver = Receiver::start(move |request| {
        if is_closed(request) {
            return TAKEN.to_owned();
        }
        // Somebody reads, for as long as it takes another to answer.
        let _ = wait.recv_timeout(PATIENCE);
        answer(request, &operators(), |_| ())
    });
    let sandbox = with_webhook(receiver.port, "  hold: 100ms\n");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let result = client.call("fix__echo", &json!({ "message": "hi" }));
    let ask = result.pointer("/_meta/toolgate~1error/ask").unwrap().as_str().unwrap().to_owned();
    std::thread::sleep(std::time::Duration::from_millis(600));
    sandbox.run(&["approvals", "deny", &ask]).exits(0);
    answered.send(()).unwrap();
    let closed = told(&receiver, &ask);
    assert_eq!((&closed["outcome"], &closed["surface"]), (&json!("denied"), &json!("cli")));
    assert_eq!(rows(&sandbox, "approval.grant").len(), 0);
    assert!(!sandbox.read("ledger").contains("tools/call"));
}

#[test]
fn a_webhook_is_sent_all_of_a_call_or_told_how_much_of_it_is_missing() {
    let receiver = Receiver::start(|request| answer(request, &operators(), |_| ()));
    let sandbox = with_webhook(receiver.port, "");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    for length in [20_000, 400_000] {
        let mut params = json!({ "name": "fix__echo", "arguments": { "message": "m".repeat(length) } });
        params["_meta"] = json!({ "vendor/pay": length });
        let reply = client.request("tools/call", &params);
        assert_eq!(reply.pointer("/result/_meta/toolgate~1error"), None, "{length}");
        let sent: Value = serde_json::from_str(&receiver.requests().last().unwrap().body).unwrap();
        let whole = json!({ "message": "m".repeat(length) }).to_string();
        let is_cut = length > 262_144;
        assert_eq!((&sent["cut"], &sent["arguments_bytes"]), (&json!(is_cut), &json!(whole.len())));
        let arguments = sent["arguments"].as_str().unwrap();
        assert_eq!(arguments.len(), whole.len().min(262_144));
        assert!(whole.starts_with(arguments));
        assert_eq!(sent["beside"], json!({ "_meta": { "vendor/pay": length } }).to_string());
    }
}

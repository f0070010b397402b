//! What becomes of a subscription whose server is denied, dies or is given up.

use super::*;

#[test]
fn gate_subscription_again_one_that_is_denied_later_hears_nothing_more_and_ends_with_the_reason() {
    let world = World::new(&[], ALLOW);
    let mut client = world.sandbox.serve_stdio(&[]);
    // No number that the many reads below come to.
    let ack = listen(&mut client, "7000", &json!({ "resourceSubscriptions": [STATIC] }));
    assert_eq!(ack["params"]["notifications"]["resourceSubscriptions"], json!([STATIC]), "{ack}");
    world.touch(STATIC);
    next(&mut client, UPDATED);
    world.sandbox.run(&["freeze", "--server", "fix", "--reason", "looks wrong"]).exits(0);
    let until = Instant::now() + PATIENCE;
    // The freeze counts once the running gateway saw it.
    while !client.request("resources/read", &modern(json!({ "uri": STATIC })))["error"].is_object() {
        assert!(Instant::now() < until);
    }
    world.touch(STATIC);
    let end: Value = loop {
        let line = client.line();
        assert!(!line.contains(UPDATED), "nothing of a frozen server passes: {line}");
        if line.contains(r#""id":7000,"#) {
            break serde_json::from_str(&line).unwrap();
        }
    };
    assert_eq!(end["error"]["data"]["toolgate/error"]["code"], "denied", "{end}");
    assert!(end["error"]["message"].as_str().unwrap().contains("frozen"), "{end}");
    world.ledger_with("resources/unsubscribe", 1);
}

#[test]
fn res_011_res_012_after_a_server_died_its_subscriptions_stand_again_and_everybody_reads_again() {
    for era in ["legacy", "modern"] {
        let world = World::new(&["--era", era], ALLOW);
        let mut client = world.sandbox.serve_stdio(&[]);
        client.initialize();
        client.request("resources/subscribe", &json!({ "uri": STATIC }));
        let lost = client.call("fix__die", &json!({}));
        assert_eq!(lost["_meta"]["toolgate/error"]["code"], "may_have_run", "{lost}");
        // Nobody calls, and it is there again.
        assert_eq!(next(&mut client, UPDATED)["params"]["uri"], STATIC, "{era}");
        let asked = if era == "legacy" { "\"resources/subscribe\"" } else { "\"resourceSubscriptions\"" };
        world.ledger_with(asked, 2);
        world.touch(STATIC);
        assert_eq!(next(&mut client, UPDATED)["params"]["uri"], STATIC, "{era}");
        assert_eq!(client.close(), 0);
        let rows = world.sandbox.audit();
        let resync = rows.iter().filter(|row| row["details"]["resync"] == true).count();
        assert_eq!(resync, 1, "FR-07, {era}");
    }
}

#[test]
fn a_subscription_whose_server_is_given_up_ends_with_the_reason() {
    let sandbox = sandbox();
    sandbox.configure(&format!(
        "servers:\n{}    restarts: {{ starts: 1 }}\npersonas:\n  default:\n    servers: [fix]\n{ALLOW}",
        sandbox.fixture_entry("fix", &["--full"])
    ));
    let mut client = sandbox.serve_stdio(&[]);
    listen(&mut client, "7", &json!({ "resourceSubscriptions": [STATIC] }));
    client.send(&format!(
        r#"{{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{}}}"#,
        modern(json!({ "name": "fix__die", "arguments": {} }))
    ));
    let end: Value = serde_json::from_str(&client.reply_to("7")).unwrap();
    let text = end["error"]["message"].as_str().unwrap();
    assert!(text.contains(STATIC) && text.contains("restarts.starts"), "{end}");
    assert_eq!(end["error"]["data"]["toolgate/error"]["server"], "fix", "{end}");
}

//! Many subscriptions and many updates: what is too much is refused, and what comes at once is told together.

use super::*;

#[test]
fn pr_20_two_hundred_updates_at_once_are_told_a_few_times_and_the_last_is_not_lost() {
    for era in ["legacy", "modern"] {
        let world = World::new(&["--era", era], ALLOW);
        let mut client = world.sandbox.serve_stdio(&[]);
        client.initialize();
        client.request("resources/subscribe", &json!({ "uri": STATIC }));
        client.request("resources/subscribe", &json!({ "uri": "fix://item/1" }));
        world.touch("fix://static 200");
        world.touch("fix://item/1");
        let mut updates = 0;
        loop {
            let message = next(&mut client, UPDATED);
            if message["params"]["uri"] == "fix://item/1" {
                break;
            }
            updates += 1;
        }
        updates += updates_before_reply(&mut client);
        assert!((1..=3).contains(&updates), "{era}: {updates}");
    }
}

#[test]
fn gate_subscriptions_one_client_is_subscribed_to_so_many_resources_and_no_more() {
    let world = World::new(&[], ALLOW);
    let mut client = world.sandbox.serve_stdio(&[]);
    client.initialize();
    for number in 0..256 {
        let uri = format!("fix://item/{number}");
        assert_eq!(client.request("resources/subscribe", &json!({ "uri": uri }))["result"], json!({}));
    }
    let more = client.request("resources/subscribe", &json!({ "uri": "fix://item/256" }));
    assert!(more["error"]["message"].as_str().unwrap_or_default().contains("256 resources"), "{more}");
    client.request("resources/unsubscribe", &json!({ "uri": "fix://item/7" }));
    let more = client.request("resources/subscribe", &json!({ "uri": "fix://item/256" }));
    assert_eq!(more["result"], json!({}), "{more}");
    let uris: Vec<String> = (0..257).map(|number| format!("fix://item/{number}")).collect();
    let params = modern(json!({ "notifications": { "resourceSubscriptions": uris } }));
    let refused = client.request("subscriptions/listen", &params);
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

#[test]
fn gate_held_all_clients_of_one_connection_are_subscribed_to_1024_resources_and_no_more() {
    let world = World::new(&[], ALLOW);
    let mut clients: Vec<Stdio> = (0..4).map(|_| world.sandbox.serve_stdio(&[])).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        let uris: Vec<String> = (0..256).map(|n| format!("fix://item/{}", number * 256 + n)).collect();
        let ack = listen(client, "7", &json!({ "resourceSubscriptions": uris }));
        let accepted = &ack["params"]["notifications"]["resourceSubscriptions"];
        assert_eq!(accepted.as_array().map(Vec::len), Some(256), "{ack}");
    }
    let mut fifth = world.sandbox.serve_stdio(&[]);
    fifth.initialize();
    let mut subscribe = |uri: &str| fifth.request("resources/subscribe", &json!({ "uri": uri }));
    let refused = subscribe("fix://item/5000");
    let text = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(text.contains("1024 resources of this server are subscribed to"), "{refused}");
    // The server was asked about this one already.
    assert_eq!(subscribe("fix://item/7")["result"], json!({}));
    // Who goes away makes room.
    drop(clients.pop());
    let until = Instant::now() + PATIENCE;
    while subscribe("fix://item/5000")["result"] != json!({}) {
        assert!(Instant::now() < until, "a client has gone, and there is no room");
        std::thread::sleep(Duration::from_millis(50));
    }
}

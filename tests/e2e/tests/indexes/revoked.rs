//! What an index revoked, and a gateway that runs, starts or only checks its lock.

use super::*;

#[test]
fn gate_index_watch_a_revoked_release_leaves_a_running_gateway_within_one_period_and_says_so() {
    let (sandbox, _) = indexed(ABSTAIN);
    install(&sandbox, "acme/guard@^1").exits(0);
    let dir = path(&sandbox, "registry");
    change(&sandbox, &["yank", &dir, "acme/guard@1.0.0", "--reason", "slow"], &["publish"]).exits(0);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    until_says(&mut client, "hi");
    // Yanked: nobody new gets it, and what is installed goes on.
    let run = install(&sandbox, "acme/guard@^1").exits(1);
    assert!(run.stderr.contains("yanked: slow") && run.stderr.contains("next:"), "{run:?}");
    change(
        &sandbox,
        &["revoke", &dir, "acme/guard@1.0.0", "--reason", "it sends arguments away"],
        &["admin", "publish"],
    )
    .exits(0);
    let denied = until_says(&mut client, "it sends arguments away");
    assert!(denied.to_string().contains("acme/guard"), "{denied}");
    let rows = sandbox.audit();
    let row = rows.iter().find(|row| row["details"]["event"] == "plugin_revoked").unwrap();
    assert_eq!((&row["details"]["version"], &row["details"]["index"]), (&json!("1.0.0"), &json!("acme")));
    assert!(rows.iter().any(|row| row["details"]["event"] == "index_refreshed"));
    // It stays out: at the next start, with --locked or without, and without any index.
    std::fs::rename(sandbox.path("registry"), sandbox.path("gone")).unwrap();
    assert_eq!(sandbox.serve_stdio(&[]).close(), 5);
    let list = sandbox.run(&["plugin", "list"]).exits(5);
    assert!(list.stderr.contains("revoked by the index acme"), "{list:?}");
    sandbox.run(&["doctor"]).exits(1);
    std::fs::rename(sandbox.path("gone"), sandbox.path("registry")).unwrap();
    // The next release brings everything back, under the same gateway.
    publish(&sandbox, &plugin_that(&sandbox, "1.0.1", 2, ABSTAIN, |_| ()));
    sandbox.run(&["plugin", "update", "--any-age", "--yes"]).exits(0);
    let until = Instant::now() + PATIENCE;
    while client.call("fix__echo", &json!({ "message": "hi" }))["isError"] == true {
        assert!(Instant::now() < until, "the new release is in force");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_revoked_key_takes_a_plugin_out_of_a_running_gateway() {
    let (sandbox, _) = indexed(ABSTAIN);
    install(&sandbox, "acme/guard").exits(0);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    until_says(&mut client, "hi");
    let key = SigningKey::from_seed(&ACME).public().to_string();
    let dir = path(&sandbox, "registry");
    // From the end of the log on: what was published before stays.
    let stolen = ["revoke", &dir, &key, "--reason", "laptop was stolen"];
    change(&sandbox, &stolen, &["admin", "publish"]).exits(0);
    let until = Instant::now() + PATIENCE;
    while !sandbox.events().contains(&"index_refreshed".to_owned()) {
        assert!(Instant::now() < until, "the gateway saw the revocation");
        std::thread::sleep(Duration::from_millis(50));
    }
    until_says(&mut client, "hi");
    change(&sandbox, &[&stolen[..], &["--from-log", "0"]].concat(), &["admin", "publish"]).exits(0);
    until_says(&mut client, "laptop was stolen");
    let row = sandbox.audit().into_iter().find(|row| row["details"]["event"] == "plugin_revoked").unwrap();
    assert_eq!(row["details"]["by_key"], true, "{row}");
}

#[test]
fn lock_check_knows_what_an_index_revoked() {
    let (sandbox, root) = indexed(ABSTAIN);
    let guard = path(&sandbox, "plugin-1.0.0");
    let place = path(&sandbox, "registry");
    configure(&sandbox, &place, &root, &format!("  load: [{{ plugin: \"{guard}\" }}]\n"));
    sandbox.run(&["lock", "update"]).exits(0);
    sandbox.run(&["lock", "check"]).exits(0);
    change(
        &sandbox,
        &["revoke", &place, "acme/guard@1.0.0", "--reason", "it sends arguments away"],
        &["admin", "publish"],
    )
    .exits(0);
    // Not asked, not known; asked once, known from then on.
    sandbox.run(&["lock", "check", "--offline"]).exits(0);
    let run = sandbox.run(&["lock", "check", "--format", "json"]).exits(5);
    assert!(
        run.json()["mismatches"][0]["found"].as_str().unwrap().contains("it sends arguments away"),
        "{run:?}"
    );
    sandbox.run(&["lock", "check", "--offline"]).exits(5);
    assert_eq!(sandbox.serve_stdio(&["--locked"]).close(), 5);
}

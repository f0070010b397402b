//! Plugins by name from the indexes that the operator pinned: installed, updated, revoked under a running
//! gateway, and what an index that lies is refused for.

pub(crate) mod along;
mod revoked;

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolgate_e2e::{PATIENCE, Run, Sandbox, Stdio};
use toolgate_signing::SigningKey;

use crate::operator::with_pin;
use crate::registry::{ACME, Served, change, path, plugin, plugin_that, registry};
use crate::web::Files;
use crate::{ECHO, sandbox};

/// The key of the index as `toolgate key new --seed` writes one.
const SEED: &str = "0303030303030303030303030303030303030303030303030303030303030303\n";

pub(crate) const ABSTAIN: u32 = 0;
pub(crate) const DENY: u32 = 3;

/// A gateway that pinned an index at `place` by its root, and trusts the key of `acme/*`.
pub(crate) fn configure(sandbox: &Sandbox, place: &str, root: &str, rest: &str) {
    let key = SigningKey::from_seed(&ACME).public();
    sandbox.configure_fixture(
        &[],
        &format!(
            "    capabilities:\n      allow: [\"mcp.call:fix\"]\nplugins:\n  indexes: [{{ name: acme, url: \"{place}\", root: \"{root}\", refresh: 1s }}]\n  trust:\n    - {{ plugins: \"acme/*\", keys: [\"{key}\"], index: acme }}\n{rest}"
        ),
    );
}

/// An index in a directory with one release, 1.0.0, that says this to every call.
pub(crate) fn indexed(decision: u32) -> (Sandbox, String) {
    let sandbox = sandbox();
    let root = registry(&sandbox);
    let first = plugin_that(&sandbox, "1.0.0", 1, decision, |_| ());
    publish(&sandbox, &first);
    configure(&sandbox, &path(&sandbox, "registry"), &root, "");
    (sandbox, root)
}

pub(crate) fn publish(sandbox: &Sandbox, plugin: &str) {
    change(sandbox, &["publish", &path(sandbox, "registry"), plugin], &["publish"]).exits(0);
}

fn install(sandbox: &Sandbox, reference: &str) -> Run {
    sandbox.run(&["plugin", "install", reference, "--yes", "--json"])
}

fn versions(sandbox: &Sandbox) -> Vec<(String, String)> {
    let list: Value = serde_json::from_str(&sandbox.run(&["plugin", "list", "--json"]).stdout).unwrap();
    let rows = list["plugins"].as_array().unwrap().iter();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    rows.filter(|row| row["name"] == "acme/guard")
        .map(|row| (text(row, "version"), text(row, "state")))
        .collect()
}

#[track_caller]
fn until_says(client: &mut Stdio, said: &str) -> Value {
    let until = Instant::now() + PATIENCE;
    loop {
        let result = client.call("fix__echo", &json!({ "message": "hi" }));
        if result.to_string().contains(said) {
            return result;
        }
        assert!(Instant::now() < until, "never said {said}: {result}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn card_012_a_plugin_is_installed_by_name_and_range_and_updated_within_the_range() {
    let (sandbox, root) = indexed(DENY);
    publish(&sandbox, &plugin(&sandbox, "1.1.0", 2));
    publish(&sandbox, &plugin(&sandbox, "2.0.0", 3));
    let served = Served::start(&sandbox);
    configure(&sandbox, &served.url, &root, "");
    let found = sandbox.run(&["plugin", "search", "guard", "--json"]).exits(0).json();
    assert_eq!(found["plugins"][0]["version"], "2.0.0", "{found}");
    assert_eq!(found["plugins"][0]["versions"].as_array().unwrap().len(), 3, "{found}");
    let shown = sandbox.run(&["plugin", "search"]).exits(0);
    assert!(shown.stdout.contains("acme/guard"), "{shown:?}");
    let installed = install(&sandbox, "acme/guard@^1").exits(0).json();
    assert_eq!(installed["version"], "1.1.0", "{installed}");
    sandbox.run(&ECHO).exits(3);
    let row = sandbox.audit().into_iter().find(|row| row["details"]["event"] == "plugin_installed").unwrap();
    assert_eq!(
        (&row["details"]["index"], &row["details"]["source"]),
        (&json!("acme"), &json!("acme/guard@^1"))
    );
    let kept = std::fs::read_to_string(sandbox.data().join("plugins.d/acme.guard.toml")).unwrap();
    assert!(kept.contains("index = \"acme\"") && kept.contains("log = 1"), "{kept}");
    publish(&sandbox, &plugin_that(&sandbox, "1.2.0", 4, ABSTAIN, |_| ()));
    // What came into the index just now waits; what others had time to look at is taken.
    let waits = sandbox.run(&["plugin", "update", "--yes", "--json"]).exits(0).json();
    assert_eq!(waits["plugins"][0]["state"], "waits", "{waits}");
    configure(&sandbox, &served.url, &root, "  update: never\n");
    sandbox.run(&["plugin", "update", "--any-age", "--yes"]).exits(2);
    configure(&sandbox, &served.url, &root, "  min_age: 0s\n");
    let updated = sandbox.run(&["plugin", "update", "--yes", "--json"]).exits(0).json();
    assert_eq!(updated["plugins"][0]["reason"], "1.1.0 to 1.2.0", "{updated}");
    sandbox.run(&ECHO).exits(0);
    let same = sandbox.run(&["plugin", "update", "--yes", "--json"]).exits(0).json();
    assert_eq!(same["plugins"][0]["state"], "unchanged", "{same}");
}

#[test]
fn an_update_from_an_index_that_may_do_more_shows_it_and_wants_proof_auto_or_not() {
    let (sandbox, _) = indexed(DENY);
    sandbox.run(&["plugin", "install", "acme/guard@^1", "--yes", "--update", "auto"]).exits(0);
    with_pin(&sandbox);
    let narrow = |stated: &mut toolgate_signing::Release| stated.decisions = vec!["deny".to_owned()];
    publish(&sandbox, &plugin_that(&sandbox, "1.1.0", 2, DENY, narrow));
    let run = sandbox.run_detached(&sandbox.command(&["plugin", "update", "--any-age"]), "");
    assert_eq!(run.code, 0, "auto is the operator's choice: {run:?}");
    publish(&sandbox, &plugin_that(&sandbox, "1.2.0", 3, ABSTAIN, |_| ()));
    let yes = sandbox.command(&["plugin", "update", "--any-age", "--yes"]);
    let run = sandbox.run_detached(&yes, "");
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.stdout.contains("LET something pass"), "the difference is shown: {run:?}");
    assert_eq!(versions(&sandbox), [("1.1.0".to_owned(), "verified".to_owned())]);
}

#[test]
fn gate_auto_a_running_gateway_takes_what_may_do_no_more_and_asks_about_the_rest() {
    let (sandbox, root) = indexed(ABSTAIN);
    let place = path(&sandbox, "registry");
    let narrow = |stated: &mut toolgate_signing::Release| stated.decisions = vec!["deny".to_owned()];
    publish(&sandbox, &plugin_that(&sandbox, "1.0.1", 2, ABSTAIN, narrow));
    sandbox.run(&["plugin", "install", "acme/guard@^1", "--yes", "--update", "auto"]).exits(0);
    // Three days have to pass, by default.
    publish(&sandbox, &plugin_that(&sandbox, "1.1.0", 3, ABSTAIN, narrow));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    until_says(&mut client, "hi");
    let event = |sandbox: &Sandbox, name: &str| {
        let found = |row: &Value| row["details"]["event"] == name;
        let until = Instant::now() + PATIENCE;
        loop {
            let rows: Vec<Value> = sandbox.audit().into_iter().filter(found).collect();
            if let Some(row) = rows.last() {
                return (row.clone(), rows.len());
            }
            assert!(Instant::now() < until, "{name} is in the log");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    event(&sandbox, "index_refreshed");
    assert_eq!(versions(&sandbox)[0].0, "1.0.1");
    assert_eq!(client.close(), 0);
    // Where nothing has to pass it is taken, and while a call runs that call ends as it began.
    configure(&sandbox, &place, &root, "  min_age: 0s\n");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let installed = |version: &str| {
        let until = Instant::now() + PATIENCE;
        while versions(&sandbox) != [(version.to_owned(), "verified".to_owned())] {
            assert!(Instant::now() < until, "{version} is installed by itself");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    installed("1.1.0");
    client.send(
        r#"{"jsonrpc":"2.0","id":"long","method":"tools/call","params":{"name":"fix__slow","arguments":{"ms":6000,"say":"whole"}}}"#,
    );
    publish(&sandbox, &plugin_that(&sandbox, "1.1.1", 4, ABSTAIN, narrow));
    installed("1.1.1");
    let reply = client.reply_to("\"long\"");
    assert!(reply.contains("whole") && !reply.contains("isError\":true"), "{reply}");
    let (row, _) = event(&sandbox, "plugin_installed");
    assert_eq!(row["details"]["approver"], "nobody: its updates are automatic", "{row}");
    // A release that denies is adopted like any other; what it declares did not grow.
    publish(&sandbox, &plugin_that(&sandbox, "1.2.0", 5, DENY, narrow));
    until_says(&mut client, "acme/guard");
    publish(&sandbox, &plugin_that(&sandbox, "1.3.0", 6, ABSTAIN, |_| ()));
    let (row, _) = event(&sandbox, "plugin_update_left");
    assert!(row["details"]["wider"].as_str().unwrap().contains("LET something pass"), "{row}");
    assert_eq!(row["details"]["offered"], "1.3.0");
    // Visits later it still is what it was, and was said once.
    let visits = || sandbox.events().iter().filter(|name| *name == "index_refreshed").count();
    for (version, sequence) in [("2.0.0", 7), ("2.0.1", 8)] {
        let (before, until) = (visits(), Instant::now() + PATIENCE);
        publish(&sandbox, &plugin_that(&sandbox, version, sequence, ABSTAIN, |_| ()));
        while visits() == before {
            assert!(Instant::now() < until, "the index is visited again");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    assert_eq!(event(&sandbox, "plugin_update_left").1, 1);
    assert_eq!(versions(&sandbox)[0].0, "1.2.0");
    // It waits where an operator looks, with the difference and what to do; broken it is not.
    let listed = sandbox.run(&["plugin", "list"]).exits(0);
    for part in ["acme/guard 1.3.0", "+ ", "LET something pass", "next: toolgate plugin update acme/guard"] {
        assert!(listed.stdout.contains(part), "{part} is missing in {listed:?}");
    }
    let rows = sandbox.run(&["plugin", "list", "--json"]).exits(0).json();
    let waits: Vec<&Value> =
        rows["plugins"].as_array().unwrap().iter().filter(|row| !row["waiting"].is_null()).collect();
    assert!(waits.len() == 1 && waits[0]["waiting"]["offered"] == "1.3.0", "{rows}");
    let doctor = sandbox.run(&["doctor"]).exits(0);
    let line = doctor.stdout.lines().find(|line| line.contains("plugin update")).unwrap_or_default();
    assert!(
        line.contains("LET something pass") && line.contains("toolgate plugin update acme/guard"),
        "{line}"
    );
    let asked = sandbox.run_detached(&sandbox.command(&["plugin", "update"]), "");
    assert_eq!(asked.code, 3, "{asked:?}");
    assert!(asked.stderr.contains("LET something pass"), "and the difference is shown: {asked:?}");
}

#[test]
fn gate_index_root_an_index_counts_by_the_fingerprint_of_its_root_and_never_at_first_sight() {
    let (sandbox, root) = indexed(DENY);
    let place = path(&sandbox, "registry");
    let wrong = root.replace("sha256:", "sha256:0").chars().take(root.len()).collect::<String>();
    configure(&sandbox, &place, &wrong, "");
    let run = install(&sandbox, "acme/guard").exits(5);
    assert!(run.stderr.contains("fingerprint") && run.stderr.contains("another way"), "{run:?}");
    assert!(sandbox.events().contains(&"index_refused".to_owned()));
    sandbox.configure_fixture(&[], "");
    let run = install(&sandbox, "acme/guard").exits(2);
    assert!(run.stderr.contains("plugins.indexes"), "{run:?}");
    // An index says who may publish; who may sign here is still the operator's word.
    sandbox.configure_fixture(
        &[],
        &format!("plugins:\n  indexes: [{{ name: acme, url: \"{place}\", root: \"{root}\" }}]\n"),
    );
    let run = install(&sandbox, "acme/guard").exits(5);
    assert!(run.stderr.contains("plugins.trust"), "{run:?}");
    sandbox.run(&["plugin", "install", "acme/none"]).exits(1);
}

#[test]
fn gate_index_tie_a_name_is_looked_up_where_its_rule_says_and_a_blocked_index_chooses_no_other() {
    let (sandbox, root) = indexed(DENY);
    let place = path(&sandbox, "registry");
    let key = SigningKey::from_seed(&ACME).public();
    let both = |tie: &str| {
        format!(
            "plugins:\n  indexes:\n    - {{ name: first, url: \"http://127.0.0.1:9/\", root: \"{root}\" }}\n    - {{ name: second, url: \"{place}\", root: \"{root}\" }}\n  trust:\n    - {{ plugins: \"acme/*\", keys: [\"{key}\"]{tie} }}\n"
        )
    };
    sandbox.configure_fixture(&[], &both(""));
    let run = install(&sandbox, "acme/guard").exits(1);
    assert!(run.stderr.contains("index first"), "{run:?}");
    sandbox.configure_fixture(&[], &both(", index: second"));
    install(&sandbox, "acme/guard").exits(0);
}

#[test]
fn an_index_that_goes_back_mixes_or_rewrites_is_refused_and_what_runs_goes_on() {
    let (sandbox, _) = indexed(ABSTAIN);
    install(&sandbox, "acme/guard").exits(0);
    copy(&sandbox.path("registry"), &sandbox.path("old"));
    publish(&sandbox, &plugin(&sandbox, "1.1.0", 2));
    sandbox.run(&["plugin", "search"]).exits(0);
    copy(&sandbox.path("registry"), &sandbox.path("new"));
    let refused = |what: &str| {
        let run = install(&sandbox, "acme/guard").exits(5);
        assert!(run.stderr.contains(what) && run.stderr.contains("next:"), "{what}: {run:?}");
        let run = sandbox.run(&["plugin", "search", "--json"]).exits(5);
        assert_eq!(run.json()["unasked"][0]["index"], "acme");
        sandbox.run(&ECHO).exits(0);
    };
    replace(&sandbox, "old");
    refused("rolled it back");
    replace(&sandbox, "new");
    let index = "index/ac/me/acme/guard";
    std::fs::copy(sandbox.path("old").join(index), sandbox.path("registry").join(index)).unwrap();
    refused("lines");
    replace(&sandbox, "new");
    let tile = sandbox.path("registry/tile/0/000.p/2");
    let mut hashes = std::fs::read(&tile).unwrap();
    hashes[0] ^= 1;
    std::fs::write(&tile, hashes).unwrap();
    std::fs::remove_dir_all(sandbox.data().join("plugins/indexes")).unwrap();
    refused("log");
    assert!(sandbox.events().contains(&"index_refused".to_owned()));
    replace(&sandbox, "new");
    sandbox.run(&["plugin", "search"]).exits(0);
}

fn replace(sandbox: &Sandbox, with: &str) {
    std::fs::remove_dir_all(sandbox.path("registry")).unwrap();
    copy(&sandbox.path(with), &sandbox.path("registry"));
}

pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn gate_index_memory_what_was_seen_of_an_index_and_cannot_be_read_refuses_its_plugins() {
    let (sandbox, _) = indexed(ABSTAIN);
    install(&sandbox, "acme/guard").exits(0);

    sandbox.run(&ECHO).exits(0);
    let state = sandbox.data().join("plugins/indexes/acme/state.json");
    let good = std::fs::read(&state).unwrap();
    std::fs::write(&state, "{}").unwrap();
    let run = sandbox.run(&ECHO).exits(5);
    assert!(run.stderr.contains("what the index acme revoked cannot be read"), "{run:?}");
    let doctor: Value = serde_json::from_str(&sandbox.run(&["doctor", "--json"]).exits(1).stdout).unwrap();
    assert!(doctor.to_string().contains("its plugins are refused"), "{doctor}");
    std::fs::write(&state, good).unwrap();
    sandbox.run(&ECHO).exits(0);
    let status = sandbox.run(&["mcp", "status", "--json"]).exits(0).json();
    assert_eq!(status["indexes"][0]["state"], "fresh", "{status}");
}

/// This many days ago, standing still.
struct Ago(u64);

impl toolgate_base::Clock for Ago {
    fn now_ms(&self) -> u64 {
        toolgate_base::SystemClock.now_ms() - self.0 * 86_400_000
    }
}

#[test]
fn a_frozen_index_installs_nothing_is_reported_and_stops_nothing() {
    use std::sync::Arc;

    use toolgate_registry::{Client, Init, Plugin, Publisher, Role, Source};
    use toolgate_signing::Signer;

    let sandbox = sandbox();
    let keys = || -> Vec<Box<dyn Signer>> { vec![Box::new(SigningKey::from_seed(&[3; 32]))] };
    let admin = SigningKey::from_seed(&[3; 32]).public();
    let roles = Role::ALL.into_iter().map(|role| (role, (vec![admin], 1))).collect();
    let init =
        Init { name: "main".to_owned(), origin: "plugins.example/main".to_owned(), roles, refresh_days: 30 };
    // Forty days ago the index was made and seen, and nobody renewed it since.
    let then = Arc::new(Ago(40));
    let dir = sandbox.path("registry");
    let guard = plugin_that(&sandbox, "1.0.0", 1, ABSTAIN, |_| ());
    let root = tokio::runtime::Runtime::new().unwrap().block_on(async {
        let made = Publisher::init(&dir, &init, &keys(), then.clone()).unwrap();
        let publisher = Publisher::open_with(&dir, then.clone()).unwrap();
        let acme = SigningKey::from_seed(&ACME).public();
        publisher.rotate("acme/*", vec![acme], 1, &keys()).await.unwrap();
        let read = |name: &str| std::fs::read(Path::new(&guard).join(name)).unwrap();
        let plugin = Plugin {
            component: read("component.wasm"),
            release: read("release.dsse.json"),
            others: Vec::new(),
        };
        publisher.publish(&plugin, &keys()).await.unwrap();
        let root = made.fingerprint.unwrap();
        let memory = sandbox.data().join("plugins/indexes/acme");
        let client = Client::open_with(&memory, Source::directory(&dir), root, then).unwrap();
        client.refresh().await.unwrap();
        root.to_string()
    });
    configure(&sandbox, &dir.display().to_string(), &root, "");
    install(&sandbox, &guard).exits(0);
    let run = install(&sandbox, "acme/guard").exits(5);
    assert!(run.stderr.contains("expired") && run.stderr.contains("registry refresh"), "{run:?}");
    let run = sandbox.run(&["doctor"]).exits(1);
    assert!(run.stdout.contains("nothing is installed or updated from it"), "{run:?}");
    let status = sandbox.run(&["mcp", "status", "--json"]).exits(0).json();
    assert_eq!(status["indexes"][0]["state"], "stale", "{status}");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    until_says(&mut client, "hi");
    let until = Instant::now() + PATIENCE;
    let frozen =
        |row: &Value| row["details"]["event"] == "index_refused" && row["details"]["code"] == "freeze";
    while !sandbox.audit().iter().any(frozen) {
        assert!(Instant::now() < until, "the log says so");
        std::thread::sleep(Duration::from_millis(50));
    }
    // Its maintainers renew it, and all is well.
    let key = sandbox.write("admin", SEED);
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    sandbox.run(&["registry", "refresh", &dir.display().to_string(), "--key", &key]).exits(0);
    install(&sandbox, "acme/guard").exits(0);
    let status = sandbox.run(&["mcp", "status", "--json"]).exits(0).json();
    assert_eq!(status["indexes"][0]["state"], "fresh", "{status}");
}

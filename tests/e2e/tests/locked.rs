//! Names in `plugins.load` that an index has: only the lock says which release they stand for.

use serde_json::json;
use toolgate_e2e::{Run, Sandbox};

use crate::ECHO;
use crate::indexes::{ABSTAIN, DENY, configure, indexed, publish};
use crate::operator::with_pin;
use crate::registry::{change, path, plugin, plugin_that};

/// The index of [`indexed`], with these entries of `plugins.load`.
fn loading(sandbox: &Sandbox, root: &str, load: &str) {
    let rest = format!("  min_age: 0s\n  load: [{load}]\n");
    configure(sandbox, &path(sandbox, "registry"), root, &rest);
}

fn lock_text(sandbox: &Sandbox) -> String {
    sandbox.read("config/toolgate/toolgate.lock")
}

fn held(sandbox: &Sandbox) -> Run {
    sandbox.run(&[&["--locked"], &ECHO[..]].concat())
}

#[test]
fn a_name_of_an_index_stands_for_the_release_that_the_lock_names() {
    let (sandbox, root) = indexed(DENY);
    loading(&sandbox, &root, r#"{ plugin: "acme/guard@^1" }"#);
    // Nothing chooses a version but `lock update`.
    let run = sandbox.run(&ECHO).exits(2);
    assert!(
        run.stderr.contains("there is no toolgate.lock") && run.stderr.contains("lock update"),
        "{run:?}"
    );
    sandbox.run(&["lock", "update"]).exits(0);
    let first = lock_text(&sandbox);
    assert!(first.contains("index = \"acme\"\nlog = 0\n"), "{first}");
    sandbox.run(&ECHO).exits(3);
    held(&sandbox).exits(3);
    let list = sandbox.run(&["plugin", "list", "--json"]).exits(0).json();
    assert!(list.to_string().contains("\"acme/guard\""), "{list}");
    sandbox.run(&["plugin", "verify", "acme/guard"]).exits(0);
    // A newer release changes nothing until somebody asks for it; then the lock shows the change.
    publish(&sandbox, &plugin_that(&sandbox, "1.1.0", 2, ABSTAIN, |_| ()));
    sandbox.run(&["lock", "update"]).exits(0);
    assert_eq!(lock_text(&sandbox), first);
    sandbox.run(&["lock", "check"]).exits(0);
    sandbox.run(&ECHO).exits(3);
    let told = sandbox.run(&["lock", "update", "--upgrade"]).exits(0);
    assert!(told.stdout.contains("acme/guard 1.0.0 to 1.1.0: it may do no more than before"), "{told:?}");
    assert!(
        told.stdout.contains("plugin acme/guard: version is 1.1.0 and was reviewed as 1.0.0"),
        "{told:?}"
    );
    sandbox.run(&ECHO).exits(0);
    // The old lock brings the old release back, from the index where its files are gone.
    sandbox.write("config/toolgate/toolgate.lock", &first);
    std::fs::remove_dir_all(sandbox.data().join("plugins")).unwrap();
    let missing = held(&sandbox).exits(2);
    assert!(missing.stderr.contains("not on this machine"), "--locked asks no index: {missing:?}");
    sandbox.run(&["lock", "check", "--offline"]).exits(2);
    sandbox.run(&["lock", "check"]).exits(0);
    held(&sandbox).exits(3);
    std::fs::remove_dir_all(sandbox.data().join("plugins")).unwrap();
    sandbox.run(&ECHO).exits(3);
}

#[test]
fn gate_lock_index_what_would_be_loaded_and_is_not_what_the_lock_names_is_exit_5() {
    let (sandbox, root) = indexed(ABSTAIN);
    let guard = r#"{ plugin: "acme/guard@^1" }"#;
    loading(&sandbox, &root, guard);
    sandbox.run(&["lock", "update"]).exits(0);
    let lock = lock_text(&sandbox);
    held(&sandbox).exits(0);
    let refused = |said: &str| {
        for run in [held(&sandbox).exits(5), sandbox.run(&["lock", "check", "--offline"]).exits(5)] {
            assert!(run.stderr.contains(said), "{said}: {run:?}");
        }
        assert_eq!(lock_text(&sandbox), lock, "nothing changes");
    };
    // Another range, another grant, an entry more.
    loading(&sandbox, &root, r#"{ plugin: "acme/guard@^2" }"#);
    refused("acme/guard 1.0.0, which is not what the configuration names");
    loading(&sandbox, &root, r#"{ plugin: "acme/guard@^1", decisions: [deny] }"#);
    refused("plugin acme/guard: grants");
    loading(&sandbox, &root, r#"{ plugin: "acme/guard@^1" }, { plugin: "acme/more" }"#);
    refused("plugin acme/more: the entry is toolgate.lock does not have it");
    // An index that the name may not come from.
    loading(&sandbox, &root, guard);
    let yaml = std::fs::read_to_string(sandbox.config_file()).unwrap();
    std::fs::write(
        sandbox.config_file(),
        yaml.replace("name: acme,", "name: other,").replace("index: acme", "index: other"),
    )
    .unwrap();
    refused("from the index acme, from which");
    loading(&sandbox, &root, guard);
    // Another release of the same name under the digest of the locked one, signed like it.
    let release = lock.split("[[plugin]]").find(|part| part.contains("\"acme/guard\"")).unwrap();
    let digest = release.split("release = \"sha256:").nth(1).unwrap().get(..64).unwrap();
    let store = sandbox.data().join("plugins").join(digest);
    let other = plugin_that(&sandbox, "1.0.5", 9, ABSTAIN, |_| ());
    for file in ["component.wasm", "release.dsse.json"] {
        std::fs::copy(std::path::Path::new(&other).join(file), store.join(file)).unwrap();
    }
    refused("was accepted when it was installed or locked");
    sandbox.run(&ECHO).exits(5);
    std::fs::remove_dir_all(&store).unwrap();
    sandbox.run(&["lock", "check"]).exits(0);
    held(&sandbox).exits(0);
}

#[test]
fn a_locked_release_loads_when_it_was_yanked_and_not_when_it_was_revoked() {
    let (sandbox, root) = indexed(ABSTAIN);
    loading(&sandbox, &root, r#"{ plugin: "acme/guard" }"#);
    sandbox.run(&["lock", "update"]).exits(0);
    let dir = path(&sandbox, "registry");
    change(&sandbox, &["yank", &dir, "acme/guard@1.0.0", "--reason", "slow"], &["publish"]).exits(0);
    std::fs::remove_dir_all(sandbox.data().join("plugins")).unwrap();
    sandbox.run(&["lock", "check"]).exits(0);
    held(&sandbox).exits(0);
    let revoke = ["revoke", &dir, "acme/guard@1.0.0", "--reason", "it sends arguments away"];
    change(&sandbox, &revoke, &["admin", "publish"]).exits(0);
    let run = sandbox.run(&["lock", "check"]).exits(5);
    assert!(run.stderr.contains("it sends arguments away"), "{run:?}");
    held(&sandbox).exits(5);
    // Nor is it fetched where its files are gone.
    std::fs::remove_dir_all(sandbox.data().join("plugins")).unwrap();
    let run = sandbox.run(&ECHO).exits(5);
    assert!(run.stderr.contains("it sends arguments away"), "{run:?}");
}

#[test]
fn gate_lock_widening_a_locked_release_that_may_do_more_is_shown_and_wants_proof() {
    let (sandbox, root) = indexed(DENY);
    let narrow = |stated: &mut toolgate_signing::Release| stated.decisions = vec!["deny".to_owned()];
    publish(&sandbox, &plugin_that(&sandbox, "1.0.1", 2, DENY, narrow));
    loading(&sandbox, &root, r#"{ plugin: "acme/guard@^1" }"#);
    sandbox.run(&["lock", "update"]).exits(0);
    with_pin(&sandbox);
    publish(&sandbox, &plugin(&sandbox, "1.1.0", 3));
    let before = lock_text(&sandbox);
    let run = sandbox.run_detached(&sandbox.command(&["lock", "update", "--upgrade"]), "");
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.stderr.contains("LET something pass"), "the difference is shown: {run:?}");
    assert_eq!(lock_text(&sandbox), before);
}

#[test]
fn no_install_takes_the_place_of_a_name_in_the_operators_file() {
    let (sandbox, root) = indexed(DENY);
    loading(&sandbox, &root, r#"{ plugin: "acme/guard@^1" }"#);
    sandbox.run(&["lock", "update"]).exits(0);
    let run = sandbox.run(&["plugin", "install", "acme/guard", "--yes"]).exits(2);
    assert!(run.stderr.contains("plugins.load of toolgate.yaml, which decides"), "{run:?}");
    let shown = sandbox.run(&["config", "show", "--json"]).exits(0).json();
    assert_eq!(shown["plugins"]["load"][0]["origin"], json!("toolgate.yaml"), "{shown}");
}

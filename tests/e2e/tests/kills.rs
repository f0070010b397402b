//! `kill -9` at every step of an install, an update, a publish and a lock: the old state or the new one.
//!
//! Each command runs once to its end, where its steps are counted, and then again from the same state for
//! each of them, killed as it begins that step.

use std::process::Command;

use serde_json::Value;
use toolgate_e2e::{Run, Sandbox, kill_at};

use crate::ECHO;
use crate::indexes::{ABSTAIN, DENY, configure, copy, indexed, publish};
use crate::registry::{change, path, plugin_that};

/// Kills a command at each of its steps, from the state of these directories each time, and gives each state
/// that it leaves to `look`, which says whether it is the new one. At last the command runs to its end from
/// what a kill left.
fn at_each_step(
    sandbox: &Sandbox,
    state: &[&str],
    command: &dyn Fn() -> Command,
    look: &mut dyn FnMut(bool) -> bool,
) {
    let kept = |name: &str| sandbox.path(&format!("kept/{name}"));
    for name in state {
        copy(&sandbox.path(name), &kept(name));
    }
    let again = || {
        for name in state {
            std::fs::remove_dir_all(sandbox.path(name)).unwrap();
            copy(&kept(name), &sandbox.path(name));
        }
    };
    let whole = kill_at(&command(), usize::MAX);
    assert_eq!(whole.code, Some(0), "{whole:?}");
    assert!(whole.steps >= 10, "{whole:?}");
    assert!(look(true), "whole, it leaves the new state");
    let (mut old, mut new) = (0, 0);
    for step in 1..=whole.steps {
        again();
        let ended = kill_at(&command(), step);
        // Which thread comes first differs a little, so that one run may have a step less than another.
        assert!(ended.code.is_none() || step + 5 > whole.steps, "step {step} of {whole:?}: {ended:?}");
        if look(ended.code.is_some()) {
            new += 1;
        } else {
            old += 1;
        }
    }
    assert!(old > 0 && new > 0, "kills fell before and after: {old} and {new}");
    again();
    kill_at(&command(), whole.steps / 2);
    assert_eq!(kill_at(&command(), usize::MAX).code, Some(0), "and it can be done after a kill");
    assert!(look(true));
}

/// The version of `acme/guard` that is installed, if one is; everything that is read on the way is sound.
fn installed(sandbox: &Sandbox) -> Option<String> {
    let list = sandbox.run(&["plugin", "list", "--json"]).exits(0).json();
    let row = list["plugins"].as_array().unwrap().iter().find(|row| row["name"] == "acme/guard").cloned();
    row.map(|row| {
        assert_eq!(row["state"], "verified", "{list}");
        row["version"].as_str().unwrap().to_owned()
    })
}

#[test]
fn an_install_that_is_killed_at_any_step_leaves_no_plugin_or_the_whole_one() {
    let (sandbox, _) = indexed(DENY);
    sandbox.run(&ECHO).exits(0);
    let command = || sandbox.command(&["plugin", "install", "acme/guard", "--yes"]);
    at_each_step(&sandbox, &["data"], &command, &mut |whole| {
        let now = installed(&sandbox);
        sandbox.run(&ECHO).exits(if now.is_some() { 3 } else { 0 });
        assert!(!whole || now.as_deref() == Some("1.0.0"), "{now:?}");
        now.is_some()
    });
}

#[test]
fn an_update_that_is_killed_at_any_step_leaves_the_old_release_or_the_new_one() {
    let (sandbox, root) = indexed(DENY);
    configure(&sandbox, &path(&sandbox, "registry"), &root, "  min_age: 0s\n");
    sandbox.run(&["plugin", "install", "acme/guard", "--yes"]).exits(0);
    publish(&sandbox, &plugin_that(&sandbox, "1.1.0", 2, ABSTAIN, |_| ()));
    let command = || sandbox.command(&["plugin", "update", "--yes"]);
    at_each_step(&sandbox, &["data"], &command, &mut |whole| {
        let now = installed(&sandbox).unwrap();
        let is_new = now == "1.1.0";
        assert!(is_new || (now == "1.0.0" && !whole), "{now}");
        sandbox.run(&ECHO).exits(if is_new { 0 } else { 3 });
        is_new
    });
}

#[test]
fn a_publisher_that_is_killed_at_any_step_leaves_the_old_registry_or_the_new_one() {
    let (sandbox, root) = indexed(DENY);
    let next = plugin_that(&sandbox, "1.1.0", 2, ABSTAIN, |_| ());
    let (dir, key) = (path(&sandbox, "registry"), path(&sandbox, "keys/publish"));
    let command = || sandbox.command(&["registry", "publish", &dir, &next, "--key", &key]);
    let mut first = true;
    at_each_step(&sandbox, &["registry"], &command, &mut |whole| {
        let verified = sandbox.run(&["registry", "verify", &dir, "--root", &root, "--json"]).exits(0).json();
        let is_new = verified["releases"] == 2;
        assert!(is_new || (verified["releases"] == 1 && !whole), "{verified}");
        if !whole && std::mem::take(&mut first) {
            // Other changes go on from what a kill left, too.
            let yank = ["yank", &dir, "acme/guard@1.0.0", "--reason", "slow"];
            change(&sandbox, &yank, &["publish"]).exits(0);
        }
        is_new
    });
}

#[test]
fn a_lock_that_is_updated_and_killed_at_any_step_is_the_old_one_or_the_new_one() {
    let (sandbox, root) = indexed(DENY);
    let rest = "  min_age: 0s\n  load: [{ plugin: \"acme/guard@^1\" }]\n";
    configure(&sandbox, &path(&sandbox, "registry"), &root, rest);
    sandbox.run(&["lock", "update"]).exits(0);
    publish(&sandbox, &plugin_that(&sandbox, "1.1.0", 2, ABSTAIN, |_| ()));
    let locked = |sandbox: &Sandbox| -> Value {
        let lock = sandbox.read("config/toolgate/toolgate.lock");
        let part = lock.split("[[plugin]]").find(|part| part.contains("\"acme/guard\"")).unwrap().to_owned();
        Value::from(part.contains("version = \"1.1.0\""))
    };
    let command = || sandbox.command(&["lock", "update", "--upgrade"]);
    at_each_step(&sandbox, &["data", "config"], &command, &mut |whole| {
        let is_new = locked(&sandbox) == true;
        assert!(is_new || !whole);
        let run: Run = sandbox.run(&ECHO);
        assert_eq!(run.code, if is_new { 0 } else { 3 }, "{run:?}");
        sandbox.run(&["lock", "check", "--offline"]).exits(0);
        is_new
    });
}

//! Registries at the command line: made, filled, served, copied, and what is refused.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use toolgate_e2e::{Run, Sandbox};
use toolgate_signing::{Kind, Release, SigningKey, sign_release};

use crate::guests::{call_policy, release, says};
use crate::sandbox;

/// The author's key.
pub(crate) const ACME: [u8; 32] = [7; 32];

/// A signed plugin in `plugin-<version>/` that denies every call.
pub(crate) fn plugin(sandbox: &Sandbox, version: &str, sequence: u64) -> String {
    plugin_that(sandbox, version, sequence, 3, |_| ())
}

/// The same that says something else to every call, with a release changed before it is signed.
pub(crate) fn plugin_that(
    sandbox: &Sandbox,
    version: &str,
    sequence: u64,
    decision: u32,
    change: fn(&mut Release),
) -> String {
    let guest = call_policy(&says(decision));
    let mut stated = Release {
        name: "acme/guard".to_owned(),
        version: version.parse().unwrap(),
        sequence,
        ..release(Kind::Policy, &guest)
    };
    change(&mut stated);
    let dir = format!("plugin-{version}");
    sandbox.write(&format!("{dir}/component.wasm"), &guest);
    let signed = sign_release(&stated, &guest, &SigningKey::from_seed(&ACME));
    sandbox.write(&format!("{dir}/release.dsse.json"), signed);
    sandbox.path(&dir).display().to_string()
}

/// A registry in which acme may publish, with keys for each purpose; its fingerprint.
pub(crate) fn registry(sandbox: &Sandbox) -> String {
    let (dir, keys) = (path(sandbox, "registry"), path(sandbox, "keys"));
    let made = sandbox
        .run(&["registry", "init", &dir, "--origin", "plugins.example/main", "--new-keys", &keys, "--json"])
        .exits(0)
        .json();
    let acme = SigningKey::from_seed(&ACME).public().to_string();
    change(sandbox, &["rotate", &dir, "acme/*", "--to", &acme], &["admin", "publish"]).exits(0);
    made["fingerprint"].as_str().unwrap().to_owned()
}

/// A change with keys of [`registry`].
pub(crate) fn change(sandbox: &Sandbox, args: &[&str], keys: &[&str]) -> Run {
    let files: Vec<String> = keys.iter().map(|key| path(sandbox, &format!("keys/{key}"))).collect();
    let mut all = vec!["registry"];
    all.extend_from_slice(args);
    for file in &files {
        all.extend(["--key", file]);
    }
    sandbox.run(&all)
}

pub(crate) fn path(sandbox: &Sandbox, name: &str) -> String {
    sandbox.path(name).display().to_string()
}

#[test]
fn card_011_a_maintainer_publishes_yanks_revokes_and_sees_it_in_status() {
    let sandbox = sandbox();
    registry(&sandbox);
    let dir = path(&sandbox, "registry");
    let first = plugin(&sandbox, "0.1.0", 1);
    change(&sandbox, &["publish", &dir, &first], &["publish"]).exits(0);
    let again = change(&sandbox, &["publish", &dir, &first], &["publish"]).exits(2);
    assert!(again.stderr.contains("published already"), "{again:?}");
    change(&sandbox, &["yank", &dir, "acme/guard@0.1.0", "--reason", "slow"], &["publish"]).exits(0);
    change(&sandbox, &["yank", &dir, "acme/guard@0.1.0", "--reason", "fast", "--undo"], &["publish"])
        .exits(0);
    let revoke = ["revoke", &dir, "acme/guard@0.1.0", "--reason", "it steals"];
    change(&sandbox, &revoke, &["publish"]).exits(2);
    change(&sandbox, &revoke, &["admin", "publish"]).exits(0);
    let status = sandbox.run(&["registry", "status", &dir, "--json"]).exits(0).json();
    assert_eq!(status["plugins"], 1);
    assert_eq!(status["log"]["lines"], 3);
    assert_eq!(status["revoked"]["releases"], 1);
    let days: Vec<u64> =
        status["documents"].as_array().unwrap().iter().map(|row| row["days"].as_u64().unwrap()).collect();
    assert!(days.iter().zip([364, 29, 364, 364]).all(|(days, least)| *days >= least), "{status}");
    sandbox.run(&["registry", "status", &dir, "--fail-under", "40"]).exits(1);
    sandbox.run(&["registry", "status", &dir, "--fail-under", "7"]).exits(0);
    sandbox.run(&["registry", "verify", &dir]).exits(0);
}

#[test]
fn the_online_key_renews_and_can_do_nothing_else() {
    let sandbox = sandbox();
    registry(&sandbox);
    let dir = path(&sandbox, "registry");
    let plugin = plugin(&sandbox, "0.1.0", 1);
    change(&sandbox, &["refresh", &dir], &["refresh"]).exits(0);
    for verb in [
        vec!["publish", &dir, &plugin],
        vec!["rotate", &dir, "other/*", "--to", "ed25519:6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw="],
        vec!["revoke", &dir, "acme/guard@0.1.0", "--reason", "x"],
    ] {
        let run = change(&sandbox, &verb, &["refresh"]);
        assert_ne!(run.code, 0, "{verb:?}: {run:?}");
    }
    let refused = change(&sandbox, &["publish", &dir, &plugin], &["refresh"]).exits(2);
    assert!(refused.stderr.contains("the role `snapshot` needs 1 of its keys"), "{refused:?}");
    sandbox.run(&["registry", "verify", &dir]).exits(0);
}

#[test]
fn gate_registry_a_damaged_registry_is_refused_with_exit_5_and_its_reason() {
    let sandbox = sandbox();
    let root = registry(&sandbox);
    let dir = path(&sandbox, "registry");
    change(&sandbox, &["publish", &dir, &plugin(&sandbox, "0.1.0", 1)], &["publish"]).exits(0);
    let wrong = root.replace("sha256:", "sha256:0").chars().take(root.len()).collect::<String>();
    let run = sandbox.run(&["registry", "verify", &dir, "--root", &wrong]).exits(5);
    assert!(run.stderr.contains("fingerprint"), "{run:?}");
    let damages = [
        ("registry/snapshot/1.json", "snapshot"),
        ("registry/delegations/2.json", "delegations"),
        ("registry/index/ac/me/acme/guard", "index"),
        ("registry/root/1.json", "root"),
        ("registry/tile/0/000.p/1", "log"),
    ];
    for (file, what) in damages {
        let good = std::fs::read(sandbox.path(file)).unwrap();
        let mut bad = good.clone();
        let middle = bad.len() / 2;
        bad[middle] ^= 1;
        sandbox.write(file, bad);
        let run = sandbox.run(&["registry", "verify", &dir, "--root", &root]).exits(5);
        assert!(run.stderr.contains(what), "{file}: {run:?}");
        sandbox.write(file, good);
    }
    sandbox.run(&["registry", "verify", &dir, "--root", &root]).exits(0);
}

#[test]
fn two_holders_of_root_keys_sign_a_proposal_that_was_carried_to_them() {
    let sandbox = sandbox();
    let dir = path(&sandbox, "registry");
    let keys = ["alice", "bob", "admin", "publish", "refresh"];
    std::fs::create_dir_all(sandbox.path("keys")).unwrap();
    for key in keys {
        sandbox.run(&["key", "new", "--seed", &path(&sandbox, &format!("keys/{key}"))]).exits(0);
    }
    let role = |role: &str, key: &str| format!("{role}={}", path(&sandbox, &format!("keys/{key}.pub")));
    let roles = [
        role("root", "alice"),
        role("root", "bob"),
        role("delegate", "admin"),
        role("revoke", "admin"),
        role("snapshot", "publish"),
        role("refresh", "refresh"),
    ];
    let mut init = vec!["init", &dir, "--origin", "plugins.example/main", "--threshold", "root=2"];
    init.extend(roles.iter().flat_map(|role| ["--role", role.as_str()]));
    let made = change(&sandbox, &init, &["admin", "publish", "alice"]).exits(0);
    assert!(made.stdout.contains("missing signatures: 0 of the root before, 1 of its own"), "{made:?}");
    let waiting = change(&sandbox, &["refresh", &dir], &["refresh"]).exits(2);
    assert!(waiting.stderr.contains("not signed yet"), "{waiting:?}");
    sandbox.run(&["registry", "root", "finish", &dir]).exits(5);
    let carried = sandbox.write("stick/root.json", sandbox.read("registry/proposal/root.json"));
    let signed = change(&sandbox, &["root", "sign", &carried, "--json"], &["bob"]).exits(0).json();
    let signature = signed["signature"].as_str().unwrap();
    let back = sandbox.path("registry/proposal").join(std::path::Path::new(signature).file_name().unwrap());
    std::fs::copy(signature, back).unwrap();
    let finished = sandbox.run(&["registry", "root", "finish", &dir, "--json"]).exits(0).json();
    assert_eq!(finished["fingerprint"], signed["fingerprint"]);
    sandbox.run(&["registry", "verify", &dir, "--root", finished["fingerprint"].as_str().unwrap()]).exits(0);
}

/// A running `registry serve`, ended with the test.
pub(crate) struct Served {
    child: Child,
    pub(crate) url: String,
}

impl Served {
    pub(crate) fn start(sandbox: &Sandbox) -> Self {
        Self::start_with(sandbox, &[])
    }

    /// With further options.
    pub(crate) fn start_with(sandbox: &Sandbox, options: &[&str]) -> Self {
        let dir = path(sandbox, "registry");
        let serve = ["registry", "serve", &dir, "--listen", "127.0.0.1:0"];
        let mut command = sandbox.command(&[&serve, options].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().rsplit(' ').next().unwrap().to_owned();
        Self { child, url }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_registry_is_served_verified_and_mirrored_over_http() {
    let sandbox = sandbox();
    let root = registry(&sandbox);
    let dir = path(&sandbox, "registry");
    change(&sandbox, &["publish", &dir, &plugin(&sandbox, "0.1.0", 1)], &["publish"]).exits(0);
    sandbox.run(&["registry", "serve", &dir, "--listen", "0.0.0.0:0"]).exits(2);
    let served = Served::start(&sandbox);
    sandbox.run(&["registry", "verify", &served.url]).exits(2);
    let verified =
        sandbox.run(&["registry", "verify", &served.url, "--root", &root, "--json"]).exits(0).json();
    assert_eq!(verified["releases"], 1);
    let copy = path(&sandbox, "copy");
    sandbox.run(&["registry", "mirror", &served.url, &copy, "--root", &root]).exits(0);
    change(&sandbox, &["publish", &dir, &plugin(&sandbox, "0.2.0", 2)], &["publish"]).exits(0);
    let mirrored =
        sandbox.run(&["registry", "mirror", &served.url, &copy, "--root", &root, "--json"]).exits(0).json();
    assert_eq!(mirrored["releases"], 2);
    drop(served);
    sandbox.run(&["registry", "verify", &copy, "--root", &root]).exits(0);
}

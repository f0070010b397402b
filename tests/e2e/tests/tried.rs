//! What is looked at before it counts, on the built binary: an update that is only tried, sources that are
//! compiled again, documents asked of a plugin that wants capabilities.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::Ordering;

use toolgate_e2e::{Run, Sandbox};
use toolgate_signing::{Kind, Release, SigningKey, sign_release};

use crate::capabilities::{asks_http, http, keeps_values, reads_secret, server};
use crate::guests::{TEXTS, call_policy, described, release, says};
use crate::life::{guard, install, same, trusting};
use crate::{ECHO, sandbox};

const ABSTAIN: u32 = 0;
const DENY: u32 = 3;

fn record(sandbox: &Sandbox) {
    let record = ["mcp", "record", "fix", "--out", "documents", "--call", "echo={\"message\":\"hi\"}"];
    sandbox.run(&record).exits(0);
}

fn dry_run(sandbox: &Sandbox, more: &[&str]) -> Run {
    let all = ["plugin", "update", "--dry-run", "--documents", "documents", "--any-age"];
    sandbox.run(&[&all[..], more].concat())
}

#[test]
fn an_update_that_is_only_tried_shows_where_the_answers_differ_and_changes_nothing() {
    let sandbox = trusting();
    record(&sandbox);
    let dir = guard(&sandbox, "place", 1, &call_policy(&says(ABSTAIN)), same);
    install(&sandbox, &dir).exits(0);
    let unchanged = dry_run(&sandbox, &["--json"]).exits(0).json();
    assert_eq!(unchanged["plugins"][0]["state"], "not compared", "{unchanged}");

    guard(&sandbox, "place", 2, &call_policy(&says(DENY)), same);
    let run = dry_run(&sandbox, &["test/guard"]).exits(1);
    for part in [
        "1.0.1 -> 1.0.2",
        "DIFFERENT  call-echo",
        "-   \"decision\": \"abstain\"",
        "+   \"decision\": \"deny\"",
    ] {
        assert!(run.stdout.contains(part), "{part} is missing in {run:?}");
    }
    assert!(
        run.stderr.contains("1 of 1 documents differently") && run.stderr.contains("nothing was changed"),
        "{run:?}"
    );
    let told: serde_json::Value =
        serde_json::from_str(&dry_run(&sandbox, &["--json"]).exits(1).stdout).unwrap();
    let difference = &told["plugins"][0]["asked"][0]["differences"][0];
    assert_eq!(
        (&difference["document"], &difference["new"]["decision"]),
        (&"call-echo".into(), &"deny".into())
    );
    let row = |row: &serde_json::Value| row["details"]["event"] == "plugin_installed";
    assert_eq!(sandbox.audit().iter().filter(|one| row(one)).count(), 1, "nothing was installed");
    assert!(sandbox.read("data/plugins.d/test.guard.toml").contains("version = \"1.0.1\""));

    // The same answers, a fault, and more power.
    guard(&sandbox, "place", 3, &call_policy(&says(ABSTAIN)), same);
    let run = dry_run(&sandbox, &[]).exits(0);
    assert!(run.stdout.contains("1 documents, 0 answered differently, 0 faults"), "{run:?}");
    guard(&sandbox, "place", 4, &call_policy("unreachable"), same);
    let run = dry_run(&sandbox, &[]).exits(1);
    assert!(run.stdout.contains("FAULT  call-echo") && run.stderr.contains("fails on 1"), "{run:?}");
    let narrow = |stated: &mut Release| stated.decisions = vec!["deny".to_owned()];
    guard(&sandbox, "narrow", 5, &call_policy(&says(ABSTAIN)), narrow);
    dry_run(&sandbox, &["test/guard", "--from", "../narrow"]).exits(0);
    // Documents that it is not asked about compare nothing.
    sandbox.write("work/none/list.json", r#"{"format":1,"hook":"list"}"#);
    let none = ["plugin", "update", "test/guard", "--dry-run", "--documents", "none", "--any-age"];
    let run = sandbox.run(&none).exits(1);
    assert!(run.stderr.contains("nothing was compared"), "{run:?}");
    let run =
        sandbox.run(&["plugin", "update", "toolgate/ask", "--dry-run", "--documents", "documents"]).exits(2);
    assert!(run.stderr.contains("--from"), "{run:?}");
}

#[test]
fn gate_rehearsal_a_release_that_is_only_tried_reaches_no_host_and_sees_no_secret() {
    let (origin, met) = server("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nreached", false);
    let sandbox = trusting();
    record(&sandbox);
    let stated = |guest: &[u8], sequence: u64, dir: &str, capabilities| {
        let mut stated = release(Kind::Policy, guest);
        "test/guard".clone_into(&mut stated.name);
        (stated.sequence, stated.version) = (sequence, semver::Version::new(1, 0, sequence));
        stated.capabilities = capabilities;
        sandbox.write(&format!("{dir}/component.wasm"), guest);
        let signed = sign_release(&stated, guest, &SigningKey::from_seed(&[7; 32]));
        sandbox.write(&format!("{dir}/release.dsse.json"), signed);
        sandbox.path(dir).display().to_string()
    };
    let guest = asks_http(&origin);
    let first = stated(&guest, 1, "one", http());
    let grants = format!("{{\"http\":{{\"api\":[\"{origin}\"]}}}}");
    sandbox.run(&["plugin", "install", &first, "--yes", "--grants", &grants]).exits(0);
    // What is in force reaches it, so the rehearsal is what keeps the same guest from it.
    let run = sandbox.run(&ECHO).exits(3);
    assert!(run.stderr.contains("reached") && met.load(Ordering::SeqCst) == 1, "{run:?}");
    let second = stated(&guest, 2, "two", http());
    let run = dry_run(&sandbox, &["test/guard", "--from", &second, "--json"]).exits(0);
    assert!(run.stdout.contains("\"documents\": 1") || run.stdout.contains("\"documents\":1"), "{run:?}");
    assert_eq!(met.load(Ordering::SeqCst), 1, "nobody was asked");
    let label =
        toolgate_signing::SecretCapability { purpose: "test".to_owned(), send_to: Vec::new(), reveal: true };
    let secrets = [("token".to_owned(), label)].into();
    let secrets = toolgate_signing::Capabilities { secrets, ..toolgate_signing::Capabilities::default() };
    let third = stated(&reads_secret(), 3, "three", secrets);
    let run = dry_run(&sandbox, &["test/guard", "--from", &third]).exits(1);
    assert!(run.stdout.contains("SEE a secret itself") && !run.stdout.contains("s3cret"), "{run:?}");
}

#[test]
fn a_plugin_that_keeps_values_is_tested_with_a_store_that_begins_empty() {
    let sandbox = sandbox();
    let manifest = "manifest = 1\nname = \"acme/keeps\"\nversion = \"0.1.0\"\nsequence = 1\nkind = \"policy\"\ndecisions = [\"deny\"]\nmin-host = \"0.1.0\"\n[capabilities.kv.seen]\nmax-bytes = 64\n";
    sandbox.write("work/keeps/plugin.toml", manifest);
    sandbox.write("work/keeps/component.wasm", keeps_values());
    for name in ["a-first", "b-second"] {
        sandbox.write(&format!("work/keeps/documents/{name}.json"), r#"{"format":1,"hook":"call"}"#);
    }
    sandbox.run(&["plugin", "test", "keeps", "--update"]).exits(0);
    let answer = |name: &str| sandbox.read(&format!("work/keeps/documents/{name}.expected.json"));
    assert!(answer("a-first").contains("abstain"), "{}", answer("a-first"));
    assert!(answer("b-second").contains("stored before"), "{}", answer("b-second"));
    sandbox.run(&["plugin", "test", "keeps"]).exits(0);
}

#[test]
fn a_test_of_a_plugin_opens_directories_of_its_own_and_says_what_stays_closed() {
    let (origin, met) = server("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nreached", false);
    let sandbox = sandbox();
    let manifest = "manifest = 1\nname = \"acme/asks\"\nversion = \"0.1.0\"\nsequence = 1\nkind = \"policy\"\ndecisions = [\"deny\"]\nmin-host = \"0.1.0\"\n[capabilities.http.api]\nhosts = [\"https://api.example.com\"]\nmethods = [\"get\"]\n";
    sandbox.write("work/asks/plugin.toml", manifest);
    sandbox.write("work/asks/component.wasm", asks_http(&origin));
    sandbox.write("work/asks/documents/call.json", r#"{"format":1,"hook":"call"}"#);
    let run = sandbox.run(&["plugin", "test", "asks", "--update"]).exits(0);
    assert!(run.stderr.contains("http.api") && run.stderr.contains("reaches no host"), "{run:?}");
    let answer = sandbox.read("work/asks/documents/call.expected.json");
    assert!(answer.contains("is not among the hosts"), "{answer}");
    assert_eq!(met.load(Ordering::SeqCst), 0);
}

/// A project whose compiler is a script that copies `core.wasm`, and a signed release of it.
struct Sources {
    sandbox: Sandbox,
    path: String,
}

impl Sources {
    fn new() -> Self {
        let sandbox = sandbox();
        let bin = sandbox.path("bin").display().to_string();
        sandbox.write("lib/libstd-0.rlib", "");
        let built = Self { path: format!("{bin}:/usr/bin:/bin"), sandbox };
        built.compiler("9.9.9", "core.wasm");
        let world = "package test:guest; world guest { import toolgate:plugin/requests@0.1.0; export toolgate:plugin/call-hook@0.1.0; }";
        for (file, case) in [("core.wasm", DENY), ("other.wasm", ABSTAIN)] {
            let body = format!(
                r#"{TEXTS} (func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32) {})"#,
                says(case)
            );
            built.sandbox.write(&format!("work/guard/{file}"), described(&body, world));
        }
        built.sandbox.write("work/guard/Cargo.toml", "# the compiler of this test reads nothing");
        let manifest = "manifest = 1\nname = \"acme/guard\"\nversion = \"0.1.0\"\nsequence = 1\nkind = \"policy\"\ndecisions = [\"deny\"]\nmin-host = \"0.1.0\"\nsources = [\"Cargo.toml\", \"core.wasm\", \"other.wasm\"]\n";
        built.sandbox.write("work/guard/plugin.toml", manifest);
        for line in [
            ["key", "new", "author.seed", "--seed"].as_slice(),
            &["plugin", "build", "guard"],
            &["plugin", "sign", "guard", "--key", "author.seed"],
        ] {
            built.run(line).exits(0);
        }
        let key = built.sandbox.read("work/author.seed.pub");
        built.sandbox.configure(&format!(
            "plugins:\n  trust:\n    - {{ plugins: \"acme/*\", keys: [\"{}\"] }}\n",
            key.trim()
        ));
        fs::remove_file(built.sandbox.path("compiled")).unwrap();
        built
    }

    /// Writes the compiler: its version, and which of the sources it makes the module of.
    fn compiler(&self, version: &str, module: &str) {
        let root = self.sandbox.dir().display();
        let rustc = format!(
            "#!/bin/sh\ncase \"$*\" in\n*target-libdir*) echo '{root}/lib';;\n*--version*) echo 'rustc {version} (a test)';;\n*) echo /nonexistent;;\nesac\n"
        );
        let cargo = format!(
            "#!/bin/sh\nset -e\ntouch '{root}/compiled'\ntest ! -e beside\ntest ! -e component.wasm || test \"$PWD\" = '{root}/work/guard'\nmkdir -p target/wasm32-unknown-unknown/release\ncp {module} target/wasm32-unknown-unknown/release/plugin.wasm\n"
        );
        for (name, text) in [("rustc", rustc), ("cargo", cargo)] {
            let file = self.sandbox.write(&format!("bin/{name}"), text);
            fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    fn run(&self, args: &[&str]) -> Run {
        let temporary = self.sandbox.path("tmp").display().to_string();
        fs::create_dir_all(&temporary).unwrap();
        self.sandbox.run_with(args, "", &[("PATH", self.path.as_str()), ("TMPDIR", &temporary)])
    }

    fn verify(&self) -> Run {
        self.run(&["plugin", "verify", "./guard", "--rebuild", "guard"])
    }

    fn compiled(&self) -> bool {
        self.sandbox.path("compiled").exists()
    }
}

#[test]
fn gate_rebuild_a_release_is_compared_with_what_its_signed_sources_give() {
    let sources = Sources::new();
    // A file beside the sources has no say: the copy that is compiled does not have it.
    sources.sandbox.write("work/guard/beside", "");
    let run = sources.verify().exits(0);
    assert!(run.stdout.contains("give the same bytes, with rustc 9.9.9 (a test)"), "{run:?}");
    assert!(sources.compiled());
    assert_eq!(fs::read_dir(sources.sandbox.path("tmp")).unwrap().count(), 0, "nothing is left behind");
    sources.compiler("9.9.9", "other.wasm");
    let run = sources.verify().exits(5);
    assert!(run.stderr.contains("is not what its sources give") && run.stderr.contains("next:"), "{run:?}");
}

#[test]
fn gate_sources_nothing_is_compiled_that_was_not_signed_or_by_another_compiler() {
    let sources = Sources::new();
    sources.sandbox.write("work/guard/Cargo.toml", "# changed");
    let run = sources.verify().exits(5);
    assert!(run.stderr.contains("nothing was compiled") && !sources.compiled(), "{run:?}");
    sources.sandbox.write("work/guard/Cargo.toml", "# the compiler of this test reads nothing");
    sources.compiler("9.9.8", "core.wasm");
    let run = sources.verify().exits(1);
    assert!(run.stderr.contains("built with rustc 9.9.9") && !sources.compiled(), "{run:?}");
}

#[test]
fn verbs_for_authors_and_operators_say_what_to_do_next() {
    let sandbox = trusting();
    let dir = guard(&sandbox, "place", 1, &call_policy(&says(DENY)), same);
    let run = sandbox.run(&["plugin", "retry", "acme/nobody"]).exits(2);
    assert!(run.stderr.contains("acme/nobody") && run.stderr.contains("plugin list"), "{run:?}");
    for verb in [["plugin", "test", "nowhere"].as_slice(), &["plugin", "sign", "nowhere", "--key", "x"]] {
        let run = sandbox.run(verb).exits(2);
        assert!(run.stderr.contains("plugin.toml") && run.stderr.contains("plugin new"), "{run:?}");
    }
    sandbox.write("work/bad/plugin.toml", "manifest = one");
    let run = sandbox.run(&["plugin", "sign", "bad", "--key", "x"]).exits(2);
    assert!(run.stderr.contains("plugin.toml") && run.stderr.contains("next:"), "{run:?}");
    sandbox.write("place/component.wasm", b"\0asm\x0d\0\x01\0");
    let run = sandbox.run(&["plugin", "verify", &dir]).exits(5);
    assert!(run.stderr.contains("next: these bytes are not those that were signed"), "{run:?}");
}

//! Rows about plugins that no other test names: what may not start before it was decided, what a policy sees of
//! a plan, and what a plan may not say.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;
use toolgate_e2e::Sandbox;
use toolgate_signing::{Access, Capabilities, FilesCapability, Kind, SigningKey, sign_release};

use crate::capabilities::{asks_http, http, install, server};
use crate::guests::{Source, TEXTS, component, release, says};
use crate::{ECHO, sandbox};

/// A policy with one hook whose body says something; the request is local 0.
fn policy_of(hook: &str, imports: &[&str], core_imports: &str, body: &str) -> Vec<u8> {
    component(&Source {
        imports,
        exports: &[hook],
        core_imports,
        body: &format!(
            r#"{TEXTS} (func (export "toolgate:plugin/{hook}@0.1.0#check") (param i32) (result i32) {body})"#
        ),
    })
}

// FR-01
#[test]
fn fr_01_no_verb_starts_a_server_that_a_policy_does_not_let_connect() {
    let sandbox = sandbox();
    let guest = policy_of("connect-hook", &[], "", &says(3));
    let key = SigningKey::from_seed(&[7; 32]);
    sandbox.write("plugin/component.wasm", &guest);
    sandbox.write("plugin/release.dsse.json", sign_release(&release(Kind::Policy, &guest), &guest, &key));
    let (started, fixture) = (sandbox.path("started"), sandbox.fixture());
    let script = format!("#!/bin/sh\ntouch '{}'\nexec '{}'\n", started.display(), fixture.display());
    let server = sandbox.write("bin/server", script);
    std::fs::set_permissions(&server, std::fs::Permissions::from_mode(0o755)).unwrap();
    let base = format!(
        "servers:\n  fix:\n    command: {server}\npersonas:\n  default:\n    servers: [fix]\n    capabilities: {{ allow: [\"mcp.call:*\", \"mcp.read:*\"] }}\n"
    );
    let plugins = format!(
        "plugins:\n  trust: [{{ plugins: \"test/*\", keys: [\"{}\"] }}]\n  load: [{{ plugin: {:?} }}]\n",
        key.public(),
        sandbox.path("plugin").display().to_string()
    );
    let out = sandbox.path("recorded").display().to_string();
    let verbs: [&[&str]; 10] = [
        &ECHO,
        &["mcp", "tools", "fix"],
        &["mcp", "status"],
        &["mcp", "refresh", "fix"],
        &["mcp", "reconnect", "fix"],
        &["mcp", "record", "fix", "--out", &out],
        &["mcp", "pin", "fix", "--accept"],
        &["mcp", "diff", "fix"],
        &["lock", "update"],
        &["lock", "check"],
    ];
    sandbox.configure(&format!("{base}{plugins}"));
    for verb in verbs {
        let run = sandbox.run(verb);
        assert!(!started.exists(), "`{}` started it: {run:?}", verb.join(" "));
        assert_ne!(run.code, 101, "{run:?}");
    }
    let denied = sandbox.run(verbs[0]).exits(3);
    assert!(denied.stderr.contains("does not connect to server 'fix'"), "{denied:?}");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    assert!(client.tool_names().is_empty(), "what is not connected shows nothing");
    assert!(!started.exists(), "a client started it");
    drop(client);
    // Without the policy the same entry starts.
    sandbox.configure(&base);
    sandbox.run(verbs[0]).exits(0);
    assert!(started.exists());
}

/// A project whose component is asked these documents, and what it answered.
fn asked(sandbox: &Sandbox, kind: &str, guest: &[u8], documents: &[(&str, Value)]) -> Vec<Value> {
    let decisions = if kind == "policy" { "[\"deny\"]" } else { "[]" };
    let manifest = format!(
        "manifest = 1\nname = \"acme/rows\"\nversion = \"0.1.0\"\nsequence = 1\nkind = \"{kind}\"\ndecisions = {decisions}\nmin-host = \"0.1.0\"\n"
    );
    sandbox.write("work/rows/plugin.toml", manifest);
    sandbox.write("work/rows/component.wasm", guest);
    for (name, document) in documents {
        sandbox.write(&format!("work/rows/documents/{name}.json"), document.to_string());
    }
    let run = sandbox.run(&["plugin", "test", "rows", "--update", "--json"]);
    let told: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:?}"));
    told["documents"].as_array().unwrap_or_else(|| panic!("{told}")).clone()
}

// FR-34
#[test]
fn fr_34_a_policy_is_shown_the_whole_plan_before_a_server_is_installed() {
    let sandbox = sandbox();
    let guest = policy_of(
        "install-hook",
        &["documents"],
        r#"(import "toolgate:plugin/requests@0.1.0" "[method]request.document" (func $document (param i32 i32)))
           (import "toolgate:plugin/documents@0.1.0" "[method]document.read" (func $read (param i32 i32)))"#,
        "(call $document (local.get 0) (i32.const 64)) (call $read (i32.load (i32.const 68)) (i32.const 80)) \
         (call $drop (local.get 0)) (call $said (i32.const 3) (i32.load (i32.const 84)) (i32.load (i32.const 88)))",
    );
    let plan = serde_json::json!({
        "id": "acme/notes", "version": "1.2.3", "suggested_name": "notes",
        "launch": { "stdio": { "program": "npx", "arguments": [{ "literal": "-y" }], "environment": [] } },
        "artifacts": [], "warnings": ["it reads your notes"],
    });
    let document = serde_json::json!({ "format": 1, "hook": "install", "document": plan });
    asked(&sandbox, "policy", &guest, &[("install", document)]);
    let answer: Value =
        serde_json::from_str(&sandbox.read("work/rows/documents/install.expected.json")).unwrap();
    assert_eq!(answer["decision"], "deny", "{answer}");
    assert_eq!(answer["reason"], plan.to_string(), "every word of it: {answer}");
}

/// An installer whose plan starts `program` with the id that it is asked for as its one argument.
fn installer(program: &str) -> Vec<u8> {
    component(&Source {
        imports: &[],
        exports: &["installer"],
        core_imports: "",
        body: &format!(
            r#"(data (i32.const 1024) "{program}") (data (i32.const 1100) "notes")
            (func (export "toolgate:plugin/installer@0.1.0#search") (param i32 i32 i32 i32 i32) (result i32) (i32.const 256))
            (func (export "toolgate:plugin/installer@0.1.0#lookup") (param i32 i32) (result i32) (i32.const 300))
            (func (export "toolgate:plugin/installer@0.1.0#resolve") (param $id i32) (param $length i32) (param i32 i32 i32) (result i32)
              (i32.store (i32.const 516) (local.get $id)) (i32.store (i32.const 520) (local.get $length))
              (i32.store (i32.const 536) (i32.const 1100)) (i32.store (i32.const 540) (i32.const 5))
              (i32.store (i32.const 568) (i32.const 1024)) (i32.store (i32.const 572) (i32.const {length}))
              (i32.store (i32.const 576) (i32.const 800)) (i32.store (i32.const 580) (i32.const 1))
              (i32.store (i32.const 804) (local.get $id)) (i32.store (i32.const 808) (local.get $length))
              (i32.const 512))"#,
            length = program.len()
        ),
    })
}

// FR-25, FM-03
#[test]
fn gate_plan_fr_25_fm_03_a_plan_that_names_no_program_or_a_variable_of_the_operators_is_a_fault() {
    let resolve = |id: &str| serde_json::json!({ "format": 1, "hook": "resolve", "input": { "id": id } });
    for (program, id, said) in [
        ("", "acme/notes", "launch.program is blank"),
        ("npx -y", "acme/notes", "white space"),
        ("npx", "${GITHUB_TOKEN}", "names a variable of the operator's"),
        ("npx", " ", "id is blank"),
    ] {
        let sandbox = sandbox();
        let rows = asked(&sandbox, "installer", &installer(program), &[("plan", resolve(id))]);
        let told = rows[0].to_string();
        assert!(told.contains("fault") && told.contains(said), "{said} is missing in {told}");
        assert_eq!(
            sandbox.read("work/rows/documents/plan.expected.json"),
            "",
            "a fault is nothing to expect"
        );
    }
    let sandbox = sandbox();
    asked(&sandbox, "installer", &installer("npx"), &[("plan", resolve("acme/notes"))]);
    assert!(sandbox.read("work/rows/documents/plan.expected.json").contains("acme/notes"));
}

// FR-33
#[test]
fn fr_33_a_grant_is_never_more_than_the_release_declares_and_a_release_never_more_than_the_grant() {
    let sandbox = sandbox();
    let (origin, met) = server("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhi", false);
    let guest = asks_http(&origin);
    let with = |grants: &str| {
        install(&sandbox, &guest, http(), grants, &[]);
        sandbox.run(&ECHO)
    };
    // More than was signed: another host, another method, another label.
    for (wider, said) in [
        ("{ http: { api: [\"https://other.example\"] } }", "not among what its release declares"),
        ("{ http: { api: { methods: [post] } } }", "post"),
        ("{ http: { other: true } }", "does not declare"),
    ] {
        let run = with(wider).exits(2);
        assert!(run.stderr.contains(said), "{wider}: {run:?}");
    }
    // Less than was signed: what was declared and not granted stays closed.
    let run = with("{ http: { api: [\"https://api.example.com\"] } }").exits(3);
    assert!(run.stderr.contains("is not among the hosts"), "{run:?}");
    assert_eq!(met.load(std::sync::atomic::Ordering::SeqCst), 0);
}

/// Installs a policy that denies with what it reads in this directory.
fn grant_directory(sandbox: &Sandbox, access: Access, directory: &Path) {
    let label = FilesCapability { access, settings: None };
    let capabilities = Capabilities { files: [("work".to_owned(), label)].into(), ..Capabilities::default() };
    let grants = format!("{{ files: {{ work: {:?} }} }}", directory.display().to_string());
    install(sandbox, &crate::hostile_bounds::reads("a.txt", 5), capabilities, &grants, &[]);
}

// FR-32
#[test]
fn gate_directory_fr_32_a_directory_that_takes_the_path_of_the_granted_one_is_denied() {
    let sandbox = sandbox();
    sandbox.write("granted/a.txt", "first");
    let granted = sandbox.path("granted");
    grant_directory(&sandbox, Access::Read, &granted);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let mut said =
        |message: &str| client.call("fix__echo", &serde_json::json!({ "message": message })).to_string();
    let first = said("one");
    assert!(first.contains("first"), "the policy denies with what it read: {first}");
    std::fs::rename(&granted, sandbox.path("away")).unwrap();
    sandbox.write("granted/a.txt", "other");
    let second = said("two");
    assert!(second.contains("another directory stands where") && !second.contains("other\""), "{second}");
    std::fs::remove_dir_all(&granted).unwrap();
    std::os::unix::fs::symlink(sandbox.path("away"), &granted).unwrap();
    // A link to the very directory leads to what was granted.
    let third = said("three");
    assert!(third.contains("first"), "{third}");
}

#[test]
fn gate_own_fr_30_no_grant_leads_a_plugin_to_what_the_operator_approved() {
    let sandbox = sandbox();
    sandbox.write("elsewhere/a.txt", "first");
    let with = |directory: &Path| {
        grant_directory(&sandbox, Access::Write, directory);
        sandbox.run(&ECHO)
    };
    let passed = with(&sandbox.path("elsewhere")).exits(3);
    assert!(passed.stderr.contains("first"), "the policy denies with what it read: {passed:?}");
    let (data, config) = (sandbox.data(), sandbox.path("config/toolgate"));
    for directory in [data.clone(), data.join("servers.d"), config, sandbox.dir().to_owned()] {
        let refused = with(&directory).exits(2);
        assert!(refused.stderr.contains("Toolgate's own"), "{directory:?}: {refused:?}");
    }
}

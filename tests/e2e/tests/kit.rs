//! The author's kit on the built binary, as far as it needs no guest toolchain.

use std::fs;
use std::path::Path;

use toolgate_e2e::Sandbox;
use toolgate_signing::{Digest, Kind, Release, SigningKey, sign_release};

use crate::guests::{call_policy, release, says};
use crate::sandbox;

#[test]
fn a_new_project_has_contract_sdk_example_and_documents_and_overwrites_nothing() {
    let sandbox = sandbox();
    for kind in ["policy", "installer", "adapter"] {
        let name = format!("acme/my-{kind}");
        let told = sandbox.run(&["plugin", "new", kind, &name, "--json"]).exits(0).json();
        assert_eq!((&told["name"], &told["kind"]), (&name.as_str().into(), &kind.into()));
        let project = sandbox.path(&format!("work/my-{kind}"));
        for file in ["plugin.toml", "src/lib.rs", "wit/types.wit", "sdk/src/lib.rs", "settings.schema.json"] {
            assert!(project.join(file).is_file(), "{kind}: {file}");
        }
        let manifest = fs::read_to_string(project.join("plugin.toml")).unwrap();
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{manifest}");
    }
    let again = sandbox.run(&["plugin", "new", "policy", "acme/my-policy"]).exits(2);
    assert!(again.stderr.contains("not empty") && again.stderr.contains("--dir"), "{again:?}");
    let name = sandbox.run(&["plugin", "new", "policy", "Acme/../x"]).exits(2);
    assert!(name.stderr.contains("NAMESPACE/NAME"), "{name:?}");
}

#[test]
fn a_machine_without_a_toolchain_is_told_what_to_install() {
    let sandbox = sandbox();
    sandbox.run(&["plugin", "new", "policy", "acme/guard"]).exits(0);
    let nowhere = [("PATH", "/nonexistent")];
    let build = ["plugin", "build", "guard", "--toolchain", "rustup"];
    let run = sandbox.run_with(&build, "", &nowhere).exits(2);
    assert!(run.stderr.contains("rustup target add wasm32-unknown-unknown"), "{run:?}");
    // Debian's compiler may be there or not; the linker is not.
    let run = sandbox.run_with(&["plugin", "build", "guard"], "", &nowhere).exits(2);
    assert!(run.stderr.contains("apt-get install") && run.stderr.contains("lld"), "{run:?}");
    let run = sandbox.run(&["plugin", "build", "nothing"]).exits(2);
    assert!(run.stderr.contains("plugin new"), "{run:?}");
}

#[test]
fn card_008_inspect_says_in_plain_words_what_each_import_and_decision_means() {
    let sandbox = sandbox();
    sandbox.configure("");
    let run = sandbox.run(&["plugin", "inspect", "toolgate/hidden-text"]).exits(0);
    for part in [
        "toolgate:plugin/documents@0.1.0",
        "read the arguments, definitions and results that it is asked about",
        "be asked before a result reaches the agent",
        "take parts out of what a model sees",
        "asks for nothing: no network, no files, no secrets",
    ] {
        assert!(run.stdout.contains(part), "{part} is missing in: {run:?}");
    }
    let told = sandbox.run(&["plugin", "inspect", "toolgate/hidden-text", "--json"]).exits(0).json();
    for import in told["imports"].as_array().unwrap() {
        let meaning = &told["meaning"][import.as_str().unwrap()];
        assert!(meaning.as_str().is_some_and(|text| !text.contains("unknown")), "{import}: {meaning}");
    }
}

/// A signed policy with a schema for its settings, and the configuration that loads it.
fn policy_with_schema(settings: &str) -> Sandbox {
    let sandbox = sandbox();
    let schema = r#"{"type":"object","properties":{"deny":{"type":"array","items":{"type":"string"}}},"additionalProperties":false}"#;
    let guest = call_policy(&says(0));
    let stated = Release {
        name: "acme/guard".to_owned(),
        settings_schema: Some(Digest::of(schema.as_bytes())),
        ..release(Kind::Policy, &guest)
    };
    let key = SigningKey::from_seed(&[7; 32]);
    sandbox.write("guard/component.wasm", &guest);
    sandbox.write("guard/release.dsse.json", sign_release(&stated, &guest, &key));
    let schema = sandbox.write("guard/settings.schema.json", schema);
    let directory = Path::new(&schema).parent().unwrap().display().to_string();
    sandbox.configure(&format!(
        "plugins:\n  trust:\n    - {{ plugins: \"acme/*\", keys: [\"{}\"] }}\n  load:\n    - plugin: {directory}\n      settings:\n        {settings}\n",
        key.public()
    ));
    sandbox
}

#[test]
fn settings_that_do_not_fit_the_schema_of_a_plugin_are_told_by_line_and_column_without_the_value() {
    policy_with_schema("deny: [\"delete_*\"]").run(&["plugin", "list"]).exits(0);
    let wrong = policy_with_schema("deny: [\"fine\", 77123]");
    let run = wrong.run(&["plugin", "list"]).exits(2);
    assert!(
        run.stderr.contains(&place(&wrong, "77123")) && run.stderr.contains("settings.deny.1"),
        "{run:?}"
    );
    assert!(!run.stderr.contains("77123"), "{run:?}");
    for named in ["acme/guard", "../guard"] {
        let run = wrong.run(&["plugin", "verify", named]).exits(2);
        assert!(run.stderr.contains(&place(&wrong, "77123")), "verify names the line: {run:?}");
    }
    let wrong = policy_with_schema("dney: []");
    let run = wrong.run(&["serve", "--stdio"]).exits(2);
    assert!(run.stderr.contains(&place(&wrong, "dney")) && run.stderr.contains("'dney'"), "{run:?}");
}

#[test]
fn settings_on_the_command_line_and_of_a_project_are_told_by_line_and_column_too() {
    let sandbox = policy_with_schema("deny: []");
    let guard = sandbox.path("guard").display().to_string();
    let yaml = sandbox.read("config/toolgate/toolgate.yaml");
    sandbox.write("config/toolgate/toolgate.yaml", yaml.split("  load:").next().unwrap());
    let install =
        |settings: &str| sandbox.run(&["plugin", "install", &guard, "--yes", "--settings", settings]);
    let run = install("{\"deny\": [\"fine\",\n  77123]}").exits(2);
    assert!(run.stderr.contains("--settings:2:3: settings.deny.1"), "{run:?}");
    assert!(!run.stderr.contains("77123"), "{run:?}");
    install("{\"deny\": [\"fine\"]}").exits(0);
    // What is installed stands in a file of its own.
    let file = "data/plugins.d/acme.guard.toml";
    let installed = sandbox.read(file);
    sandbox.write(file, installed.replace("\"fine\"", "77123"));
    assert_ne!(installed, sandbox.read(file));
    let run = sandbox.run(&["plugin", "list"]).exits(2);
    assert!(run.stderr.contains("acme.guard.toml (its settings):1:11: settings.deny.0"), "{run:?}");

    let manifest = "manifest = 1\nname = \"acme/guard\"\nversion = \"0.1.0\"\nsequence = 1\nkind = \"policy\"\ndecisions = [\"deny\"]\nmin-host = \"0.1.0\"\nsettings-schema = \"settings.schema.json\"\n";
    sandbox.write("guard/plugin.toml", manifest);
    sandbox.write("guard/settings.json", "{\n  \"deny\": [77123]\n}\n");
    sandbox.write("guard/documents/call.json", r#"{"format":1,"hook":"call"}"#);
    let run = sandbox.run(&["plugin", "test", &guard]).exits(2);
    assert!(run.stderr.contains("settings.json:2:12: settings.deny.0"), "{run:?}");
    assert!(run.stderr.contains("next: correct settings.json") && !run.stderr.contains("77123"), "{run:?}");
}

#[test]
fn the_settings_of_an_adapter_are_judged_where_a_server_uses_it() {
    let (sandbox, guest) = (sandbox(), crate::hostile_bounds::slow_adapter("http://127.0.0.1:1"));
    let schema = r#"{"type":"object","properties":{"most":{"type":"integer"}},"additionalProperties":false}"#;
    let mut stated = release(Kind::Adapter, &guest);
    stated.settings_schema = Some(Digest::of(schema.as_bytes()));
    stated.capabilities = crate::capabilities::http();
    let key = SigningKey::from_seed(&[7; 32]);
    sandbox.write("guard/component.wasm", &guest);
    sandbox.write("guard/release.dsse.json", sign_release(&stated, &guest, &key));
    sandbox.write("guard/settings.schema.json", schema);
    let (directory, server) =
        (sandbox.path("guard").display().to_string(), sandbox.fixture_entry("fix", &[]));
    let configure = |settings: &str| {
        sandbox.configure(&format!(
            "servers:\n{server}    adapter:\n      plugin: test/guest\n      grants: {{ http: {{ api: true }} }}\n      settings:\n        {settings}\nplugins:\n  trust:\n    - {{ plugins: \"test/*\", keys: [\"{}\"] }}\n  load:\n    - {{ plugin: {directory:?} }}\n",
            key.public()
        ));
    };
    configure("most: 3");
    sandbox.run(&["plugin", "verify", "test/guest"]).exits(0);
    configure("most: many");
    for named in ["test/guest", directory.as_str()] {
        let run = sandbox.run(&["plugin", "verify", named]).exits(2);
        assert!(run.stderr.contains(&place(&sandbox, "most")) && !run.stderr.contains("many"), "{run:?}");
    }
    let doctor = sandbox.run(&["doctor"]).exits(1);
    assert!(doctor.stdout.contains(&place(&sandbox, "most")), "{doctor:?}");
}

/// Line and column of a word of the configuration, as a message has them.
fn place(sandbox: &Sandbox, word: &str) -> String {
    let text = sandbox.read("config/toolgate/toolgate.yaml");
    let (line, found) = text.lines().enumerate().find(|(_, line)| line.contains(word)).unwrap();
    format!("toolgate.yaml:{}:{}:", line + 1, found.find(word).unwrap() + 1)
}

#[test]
fn a_schema_that_is_not_the_signed_one_refuses_the_plugin() {
    let sandbox = policy_with_schema("deny: []");
    sandbox.write("guard/settings.schema.json", "{}");
    let run = sandbox.run(&["plugin", "list"]).exits(5);
    assert!(run.stderr.contains("not the one that was signed"), "{run:?}");
}

#[test]
fn record_keeps_what_plugins_are_asked_and_no_secret() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "    capabilities: { allow: [\"mcp.call:fix\"] }\n");
    let out = sandbox.path("work/documents").display().to_string();
    let call =
        r#"echo={"message":"say ghp_0123456789abcdef","password":"hunter22","n":12345678901234567890123}"#;
    let record = ["mcp", "record", "fix", "--out", &out, "--call", call];
    sandbox.run(&record).exits(0);
    let read = |name: &str| sandbox.read(&format!("work/documents/{name}.json"));
    for name in ["tools-echo", "list-echo", "arguments-echo", "call-echo", "content-echo", "result-echo"] {
        assert!(read(name).contains("\"format\": 1"), "{name}: {}", read(name));
    }
    let arguments = read("arguments-echo");
    assert!(arguments.contains("12345678901234567890123") && !arguments.contains("hunter22"), "{arguments}");
    assert!(read("content-echo").contains("content"));
    // What is there stays, and what is the same is not written twice.
    sandbox.write("work/documents/call-echo.json", "edited by hand");
    sandbox.run(&record).exits(0);
    assert_eq!(read("call-echo"), "edited by hand");
    assert!(read("call-echo-2").contains("\"hook\": \"call\""));
    assert_eq!(read("arguments-echo-2"), "");
    let unknown = sandbox.run(&["mcp", "record", "other", "--out", &out]).exits(2);
    assert!(unknown.stderr.contains("fix"), "{unknown:?}");
}

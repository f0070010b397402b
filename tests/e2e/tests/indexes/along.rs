//! What comes along with a release: its component beside it, the schema of its settings.

use super::*;

#[test]
fn card_012_a_plugin_is_installed_from_an_address_with_its_component_beside_it() {
    let sandbox = sandbox();
    configure(&sandbox, "/nowhere", &format!("sha256:{}", "0".repeat(64)), "");
    let guard = plugin(&sandbox, "1.0.0", 1);
    let served = Files::serve(Path::new(&guard));
    let address = format!("{}/release.dsse.json", served.url);
    let installed = install(&sandbox, &address).exits(0).json();
    assert_eq!(installed["version"], "1.0.0");
    let row = sandbox.audit().into_iter().find(|row| row["details"]["event"] == "plugin_installed").unwrap();
    assert_eq!(row["details"]["source"], address.as_str());
    // The component that comes must be the one that was signed.
    sandbox.write("plugin-1.0.0/component.wasm", b"\0asm");
    install(&sandbox, &address).exits(5);
    for (bad, code) in [
        (address.replace("release.dsse.json", "component.wasm"), 2),
        (address.replace("127.0.0.1", "192.0.2.1"), 2),
        (format!("{}/none/release.dsse.json", served.url), 1),
    ] {
        let run = install(&sandbox, &bad).exits(code);
        assert!(run.stderr.contains("next:"), "{bad}: {run:?}");
    }
}

/// What the schema of [`with_schema`] refuses.
const UNFIT: &str = r#"{"deny":["fine",77123]}"#;

/// A signed plugin with the schema of its settings beside it.
pub(crate) fn with_schema(sandbox: &Sandbox) -> String {
    const SCHEMA: &str = r#"{"type":"object","properties":{"deny":{"items":{"type":"string"}}}}"#;
    let guard = plugin_that(sandbox, "1.0.0", 1, ABSTAIN, |stated| {
        stated.settings_schema = Some(toolgate_signing::Digest::of(SCHEMA.as_bytes()));
    });
    std::fs::write(Path::new(&guard).join("settings.schema.json"), SCHEMA).unwrap();
    guard
}

/// Settings are judged before anything is installed, wherever the plugin came from.
pub(crate) fn judges_settings(sandbox: &Sandbox, reference: &str) {
    let run = sandbox.run(&["plugin", "install", reference, "--yes", "--settings", UNFIT]).exits(2);
    assert!(run.stderr.contains("settings.deny.1") && !run.stderr.contains("77123"), "{run:?}");
    let fit = r#"{"deny":["fine"]}"#;
    sandbox.run(&["plugin", "install", reference, "--yes", "--settings", fit]).exits(0);
    sandbox.run(&["plugin", "verify", "acme/guard"]).exits(0);
    sandbox.run(&["plugin", "remove", "acme/guard"]).exits(0);
}

#[test]
fn the_schema_of_the_settings_comes_along_from_an_index_a_mirror_and_an_address() {
    let sandbox = sandbox();
    let root = registry(&sandbox);
    let guard = with_schema(&sandbox);
    publish(&sandbox, &guard);
    let (place, copy) = (path(&sandbox, "registry"), path(&sandbox, "copy"));
    configure(&sandbox, &place, &root, "");
    judges_settings(&sandbox, "acme/guard@^1");
    sandbox.run(&["registry", "mirror", &place, &copy, "--root", &root]).exits(0);
    configure(&sandbox, &copy, &root, "");
    judges_settings(&sandbox, "acme/guard@^1");
    let served = Files::serve(Path::new(&guard));
    let address = format!("{}/release.dsse.json", served.url);
    judges_settings(&sandbox, &address);
    // Another schema than the signed one is refused; none at all leaves the settings to the plugin.
    let schema = Path::new(&guard).join("settings.schema.json");
    std::fs::write(&schema, "{}").unwrap();
    install(&sandbox, &address).exits(5);
    std::fs::remove_file(&schema).unwrap();
    install(&sandbox, &address).exits(0);
}

//! A whole file in, a configuration or a message out.

use std::time::Duration;

use super::*;
use crate::testing::{Home, all, config, refusal};
use crate::{Bundle, Durability, FirstUse, Instance, Origin, Protocol, Transport};

mod refusals;
mod servers;

/// Acceptance 2.2, reduced to what this version has.
const CANONICAL: &str = r#"
data_dir: ./data
on_missing_env: warn
managed: on
serve: { listen: 127.0.0.1:8848, max_tool_name: 49 }
servers:
  github:
    transport: stdio
    command: npx
    args: ["-y", "@modelcontextprotocol/server-github@2025.4.8"]
    env: { GITHUB_TOKEN: "${GITHUB_TOKEN}" }
    cwd: .
    enabled: true
    instance: per-caller
    timeouts: { init: 60s, call: 120s, probe: 5s, max_total: 15m, task_lost: 1h }
    tools: { allow: [], deny: [delete_repo] }
    trust: { auto_approve_tools: [github__get_issue], pinned_tool_hash: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", host_escape: false }
    adapter: { plugin: acme/github-adapter, settings: { read_only: true } }
  glean:
    transport: streamable-http
    url: https://example.com/mcp
    protocol: auto
    headers: { X-Team: core }
personas:
  assistant:
    servers: [github, glean]
    capabilities:
      allow: ["mcp.call:github", "memory.access:thread"]
      require_approval: ["db.query:own", "mcp.call:glean/*"]
    approvals: { in_client: true }
approvals: { timeout: 300s, hold: 50s }
pins: { first_use: pin }
plugins:
  bundle: default
  fallback: [toolgate/ask]
  update: ask
  min_age: 72h
  indexes: [{ name: acme, url: https://plugins.acme.example, refresh: 1h, root: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" }]
  load:
    - { plugin: acme/strict-policy@^1, grants: { kv: [cache] }, decisions: [ask, deny, redact], settings: {} }
    - { plugin: ./my-policy }
audit: { durability: process }
"#;

#[test]
fn the_documented_example_parses() {
    let mut home = Home::with_config(CANONICAL);
    home.set("GITHUB_TOKEN", "ghx_7");
    let config = home.load().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(config.data_dir, home.user_dir().join("data"));
    let github = &config.servers["github"];
    assert_eq!(github.origin, Origin::Operator);
    let Transport::Stdio { command, args, env, cwd } = &github.transport else { panic!() };
    assert_eq!((command.as_str(), args.len()), ("npx", 2));
    assert_eq!(env["GITHUB_TOKEN"].expose(), "ghx_7");
    assert_eq!(cwd.as_ref(), Some(&home.user_dir()));
    assert_eq!(github.timeouts, crate::Timeouts::default());
    assert_eq!(
        (github.tools.allow.len(), github.tools.deny.as_slice()),
        (0, ["delete_repo".to_owned()].as_slice())
    );
    assert_eq!(github.trust.auto_approve_tools, ["github__get_issue"]);
    assert_eq!(github.adapter.as_ref().unwrap().settings_json, r#"{"read_only":true}"#);
    assert_eq!(
        (github.instance, github.protocol, github.enabled),
        (Instance::PerCaller, Protocol::Auto, true)
    );
    let assistant = &config.personas["assistant"];
    assert_eq!(assistant.servers, ["github", "glean"]);
    assert_eq!(assistant.approvals.in_client, Some(true));
    let labels = assistant.capabilities.as_ref().unwrap();
    assert_eq!((labels.allow.len(), labels.require_approval.len()), (2, 2));
    assert!(config.personas["default"].servers.is_empty());
    assert_eq!(config.approvals.hold, Duration::from_secs(50));
    assert_eq!((config.pins.first_use, config.audit.durability), (FirstUse::Pin, Durability::Process));
    assert_eq!(
        (config.plugins.bundle, config.plugins.fallback.as_slice()),
        (Bundle::Default, ["toolgate/ask".to_owned()].as_slice())
    );
    let [strict, mine] = config.plugins.load.as_slice() else { panic!() };
    assert_eq!(
        (strict.plugin.as_str(), strict.version.as_ref().unwrap().to_string().as_str()),
        ("acme/strict-policy", "^1")
    );
    assert_eq!(mine.dir.as_ref(), Some(&home.user_dir().join("my-policy")));
    assert_eq!(mine.decisions, ["ask", "deny", "redact"]);
    assert!(config.warnings.iter().all(|notice| notice.level == Level::Info), "{}", all(&config.warnings));
}

#[test]
fn the_same_as_json_parses_c01() {
    let tree = node::parse(CANONICAL).unwrap().to_json(true);
    let loaded = config(&format!("{tree:#}"));
    assert_eq!(loaded.servers.len(), 2);
    assert_eq!(loaded.personas.len(), 2);
}

#[test]
fn defaults_are_those_of_the_design() {
    for text in ["", "# nothing\n", "{}", "servers:\npersonas:\n"] {
        let loaded = config(text);
        assert!(loaded.servers.is_empty() && loaded.warnings.is_empty(), "{text}");
        assert_eq!(loaded.serve.listen.to_string(), "127.0.0.1:8848");
        assert_eq!((loaded.serve.keep_alive, loaded.serve.max_tool_name), (Duration::from_secs(15), 49));
        assert_eq!(
            (loaded.approvals.timeout, loaded.approvals.hold),
            (Duration::from_mins(5), Duration::from_secs(50))
        );
        assert_eq!(loaded.plugins.fallback, ["toolgate/ask"]);
    }
}

#[test]
fn without_personas_default_has_every_server_and_with_them_only_its_own() {
    let servers = "servers: {b: {command: x}, a: {command: x, enabled: false}}\n";
    assert_eq!(config(servers).personas["default"].servers, ["a", "b"]);
    let loaded = config(&format!("{servers}personas: {{work: {{servers: [b]}}}}\n"));
    assert!(loaded.personas["default"].servers.is_empty());
    assert!(loaded.is_bound("work", "b") && !loaded.is_bound("work", "a") && !loaded.is_bound("nobody", "b"));
    let loaded = config(&format!("{servers}personas: {{default: {{servers: [a]}}}}\n"));
    assert_eq!(loaded.personas["default"].servers, ["a"]);
}

#[test]
fn a_persona_without_capabilities_is_not_one_with_empty_ones() {
    let loaded = config(
        "personas: {a: {}, b: {capabilities: {}}, c: {capabilities: {requireApproval: ['mcp.call:x']}}}\n",
    );
    assert!(loaded.personas["a"].capabilities.is_none());
    assert!(loaded.personas["b"].capabilities.as_ref().unwrap().allow.is_empty());
    assert_eq!(loaded.personas["c"].capabilities.as_ref().unwrap().require_approval.len(), 1);
}

#[test]
fn a_persona_that_names_an_unknown_server_is_told_with_the_nearest() {
    let loaded = config("servers: {github: {command: x}}\npersonas: {a: {servers: [gihub]}}\n");
    let told = all(&loaded.warnings);
    assert!(
        told.contains("toolgate.yaml:2:26: personas.a.servers[0]") && told.contains("did you mean `github`?"),
        "{told}"
    );
    assert!(loaded.personas["a"].servers.is_empty());
}

#[test]
fn without_the_bundle_there_is_no_fallback_either() {
    let root = "0".repeat(64);
    let loaded = config(&format!(
        "plugins: {{indexes: [{{name: a, url: \"http://127.0.0.1:1/x\", refresh: 5s, root: \"3:sha256:{root}\"}}, {{name: b, url: /srv/index, root: \"sha256:{root}\"}}]}}\n"
    ));
    let indexes = &loaded.plugins.indexes;
    assert_eq!((indexes[0].root_version, indexes[0].refresh), (3, Duration::from_secs(5)));
    assert_eq!((indexes[1].place.as_str(), indexes[1].refresh), ("/srv/index", Duration::from_hours(1)));
    let loaded = config("plugins: {bundle: none}\n");
    assert_eq!((loaded.plugins.bundle, loaded.plugins.fallback.len()), (Bundle::None, 0));
    assert_eq!(config("plugins: {bundle: none, fallback: [acme/ask]}\n").plugins.fallback, ["acme/ask"]);
}

#[test]
fn variables_are_expanded_in_every_text_sec_002_sec_013() {
    let mut home = Home::with_config(
        "data_dir: \"${D}\"\nservers: {a: {command: x, description: \"${D}\", adapter: {plugin: a/b, settings: {k: [\"${D}\"]}}}}\n",
    );
    home.set("D", "/d");
    let loaded = home.load().unwrap();
    assert_eq!(loaded.data_dir, Path::new("/d"));
    assert_eq!(loaded.servers["a"].adapter.as_ref().unwrap().settings_json, r#"{"k":["/d"]}"#);
    assert_eq!(loaded.servers["a"].description.as_deref(), Some("/d"));
    let uses: Vec<(&str, &str)> =
        loaded.variables.iter().map(|used| (used.name.as_str(), used.place.key.as_str())).collect();
    assert_eq!(
        uses,
        [("D", "data_dir"), ("D", "servers.a.description"), ("D", "servers.a.adapter.settings.k[0]")]
    );
}

#[test]
fn a_dotenv_beside_the_file_fills_variables_and_sets_nothing_sec_003() {
    let home = Home::with_config("servers: {a: {command: x, env: {A: \"${TOOLGATE_TEST_DOTENV}\"}}}\n");
    home.write(".config/toolgate/.env", "TOOLGATE_TEST_DOTENV=from-dotenv\nHOME=/elsewhere\n");
    let loaded = home.load().unwrap();
    let Transport::Stdio { env, .. } = &loaded.servers["a"].transport else { panic!() };
    assert_eq!(env["A"].expose(), "from-dotenv");
    assert_eq!(loaded.data_dir, home.data_dir());
    assert!(std::env::var("TOOLGATE_TEST_DOTENV").is_err());
}

#[test]
fn a_missing_variable_warns_or_stops_as_the_operator_chose_sec_012_c07() {
    let text = "servers: {a: {command: x, env: {A: \"${NOPE}\"}, args: [\"${NOPE}\"]}}\n";
    let loaded = config(text);
    assert!(
        loaded.servers["a"].missing_env.is_empty(),
        "an optional token does not keep a child from starting"
    );
    assert_eq!(loaded.warnings.len(), 1, "{}", all(&loaded.warnings));
    let told = refusal(&format!("on_missing_env: error\n{text}"));
    assert!(told.contains("toolgate.yaml:2:") && told.contains("NOPE is not set"), "{told}");
    let fallback = "on_missing_env: error\nservers: {a: {command: x, env: {A: \"${NOPE:-}\"}}}\n";
    assert!(config(fallback).warnings.is_empty());
}

#[test]
fn a_header_without_its_variable_keeps_the_server_from_being_connected_ft_15() {
    for (field, text) in [
        ("header", "url: https://h/, headers: {Authorization: \"Bearer ${NOPE}\"}"),
        ("url", "url: \"https://${NOPE}/mcp\""),
        ("command", "command: \"${NOPE}\""),
        ("cwd", "command: x, cwd: \"${NOPE}\""),
        ("empty", "url: https://h/, headers: {Authorization: \"Bearer ${NOPE:-}\"}"),
    ] {
        let loaded = config(&format!("servers: {{a: {{{text}}}}}\n"));
        assert_eq!(loaded.servers["a"].missing_env, ["NOPE"], "{field}");
    }
}

#[test]
fn listening_beyond_this_machine_needs_a_proxy_and_a_wildcard_needs_hosts() {
    assert!(refusal("serve: {listen: \"0.0.0.0:8848\"}\n").contains("behind_proxy"));
    assert!(refusal("serve: {listen: \"192.168.1.5:8848\"}\n").contains("behind_proxy"));
    assert!(refusal("serve: {listen: \"0.0.0.0:1\", behind_proxy: true}\n").contains("allowed_hosts"));
    config("serve: {listen: \"[::]:1\", behind_proxy: true, allowed_hosts: [tg.example]}\n");
    config("serve: {listen: \"192.168.1.5:8848\", behind_proxy: true}\n");
    assert_eq!(config("serve: {listen: \"localhost:9\"}\n").serve.listen.to_string(), "127.0.0.1:9");
}

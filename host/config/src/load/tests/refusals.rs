//! What is refused, word for word, and what no message may hold.

use super::*;

#[test]
fn messages_say_file_line_column_key_mistake_and_remedy() {
    let told = refusal(
        "servers:\n  github:\n    command: npx\n    argz: []\n    timeouts: { call: 60 }\n    enabled: \"yes\"\npersona: {}\napprovals:\n  timeout: 5 minutes\n",
    );
    let expected = "\
toolgate.yaml:4:5: servers.github.argz: unknown key `argz`; did you mean `args`?
toolgate.yaml:5:23: servers.github.timeouts.call: a duration without a unit; write a unit, such as 60s
toolgate.yaml:6:14: servers.github.enabled: true or false is needed here, and this is text; yes, no, on and off are text in YAML 1.2
toolgate.yaml:7:1: persona: unknown key `persona`; did you mean `personas`?
toolgate.yaml:9:12: approvals.timeout: no duration; a duration is a whole number and a unit, such as 500ms, 60s, 5m or 2h";
    assert_eq!(told, expected);
}

#[test]
fn single_mistakes_word_for_word() {
    let cases = [
        (
            "serve: {listen: here}\n",
            "toolgate.yaml:1:17: serve.listen: no address to listen on; write an IP address and a port, such as 127.0.0.1:8848 or [::1]:8848",
        ),
        (
            "servers: {a: {command: x, timeouts: {call: 60}}}\n",
            "toolgate.yaml:1:44: servers.a.timeouts.call: a duration without a unit; write a unit, such as 60s",
        ),
        ("servers: [a]\n", "toolgate.yaml:1:10: servers: a map is needed here, and this is a list"),
        (
            "pins: {first_use: pinn}\n",
            "toolgate.yaml:1:19: pins.first_use: `pinn` is not one of pin, review; did you mean `pin`?",
        ),
        (
            "approvals: {timeout: 10s, hold: 20s}\n",
            "toolgate.yaml:1:33: approvals.hold: a call cannot be held longer than its ask lives; make it at most approvals.timeout",
        ),
        (
            "serve: {max_tool_name: 500}\n",
            "toolgate.yaml:1:24: serve.max_tool_name: a whole number from 16 to 128 is needed here",
        ),
        (
            "audit: {sinks: [{name: siem, type: webhook, url: \"http://logs.example/in\"}]}\n",
            "toolgate.yaml:1:50: audit.sinks[0].url: no https URL; write https://HOST/PATH; plain http is for a loopback address only, and a credential goes into `headers`",
        ),
        (
            "audit: {sinks: [{name: siem, type: syslog, address: \"a:1\", path: x}]}\n",
            "toolgate.yaml:1:66: audit.sinks[0].path: `path` does not go with type syslog; remove it",
        ),
        ("a: 1\na: 2\n", "toolgate.yaml:2:1: the key `a` is here twice; keep one of the two"),
        ("- a\n", "toolgate.yaml:1:1: a map is needed here, and this is a list"),
    ];
    for (text, expected) in cases {
        assert_eq!(refusal(text), expected, "{text}");
    }
}

#[test]
fn what_is_not_built_yet_is_refused_and_never_ignored() {
    for (key, text) in [
        ("web.fetch", "permissions: {web.fetch: allow}\n"),
        ("registries", "registries: []\n"),
        ("agents", "agents: {}\n"),
        ("presets", "presets: {}\n"),
        ("tls", "serve: {tls: {}}\n"),
        ("auth", "servers: {a: {url: https://h/, auth: oauth}}\n"),
    ] {
        let told = refusal(text);
        assert!(told.contains(&format!("`{key}` is not supported by this version")), "{told}");
    }
}

#[test]
fn a_label_that_cannot_be_read_is_an_error_and_not_a_skip_ft_12() {
    for label in ["mcp.call:git*", "nonsense", "mcp.call:", "mcp.call:a/b*"] {
        let told = refusal(&format!("personas: {{a: {{capabilities: {{allow: [\"{label}\"]}}}}}}\n"));
        assert!(told.contains("personas.a.capabilities.allow[0]"), "{told}");
    }
}

#[test]
fn plugins_are_checked_by_name_version_and_key() {
    for (text, word) in [
        ("plugins: {fallback: [Ask]}\n", "no name of a plugin"),
        ("plugins: {load: [{plugin: acme/x@banana}]}\n", "no version after `@`"),
        ("plugins: {load: [{settings: {}}]}\n", "`plugin` is missing"),
        ("plugins: {load: [{plugin: acme/x, decisions: [alow]}]}\n", "did you mean `allow`?"),
        ("plugins: {trust: [{plugins: \"acme/*\"}]}\n", "a rule has `keys`, `any_of` or `all_of`"),
        ("plugins: {trust: [{plugins: \"*\", keys: [\"ed25519:AAAA\"]}]}\n", "no name of plugins"),
        ("plugins: {trust: [{plugins: \"acme/*\", keys: []}]}\n", "no key"),
        ("plugins: {trust: [{plugins: \"acme/*\", keys: [\"ed25519:AAAA\"]}]}\n", "plugins.trust[0].keys[0]"),
        ("servers: {a: {command: x, adapter: {}}}\n", "`plugin` is missing"),
        ("plugins: {update: always}\n", "is not one of ask, auto, never"),
    ] {
        let told = refusal(text);
        assert!(told.contains(word), "{text}: {told}");
    }
}

#[test]
fn an_index_is_named_reached_safely_and_pinned_by_its_root() {
    let root = format!("root: \"sha256:{}\"", "0".repeat(64));
    let of = |entry: &str| format!("plugins: {{indexes: [{{{entry}}}]}}\n");
    for (text, word) in [
        (of("name: acme, url: https://h/"), "`root` is missing"),
        (of(&format!("name: acme, {root}")), "`url` is missing"),
        (of(&format!("url: https://h/, {root}")), "`name` is missing"),
        (of(&format!("name: ../x, url: https://h/, {root}")), "no name of an index"),
        (of(&format!("name: a, url: http://h/, {root}")), "no https URL"),
        (of(&format!("name: a, url: \"https://u:p@h/\", {root}")), "a user"),
        (of(&format!("name: a, url: ftp://h/, {root}")), "no https URL"),
        (of("name: a, url: https://h/, root: \"sha256:12\""), "no fingerprint"),
        (of(&format!("name: a, url: https://h/, root: \"0:sha256:{}\"", "0".repeat(64))), "no fingerprint"),
        (of(&format!("name: a, url: https://h/, refresh: 10ms, {root}")), "too short"),
        (
            format!("plugins: {{indexes: [{{name: a, url: /x, {root}}}, {{name: a, url: /y, {root}}}]}}\n"),
            "two indexes have this name",
        ),
        (
            "plugins: {trust: [{plugins: \"a/*\", index: b, keys: [\"ed25519:6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw=\"]}]}\n"
                .to_owned(),
            "names the index `b`",
        ),
    ] {
        let told = refusal(&text);
        assert!(told.contains(word), "{text}: {told}");
    }
}

#[test]
fn keys_that_only_managed_files_have_are_refused_here() {
    assert!(refusal("servers: {a: {command: x, bind: [default]}}\n").contains("personas.<name>.servers"));
}

#[test]
fn secret_references_are_rejected_with_their_place_sec_018() {
    let told = refusal("servers:\n  a:\n    command: x\n    env: { T: \"${secret:gh}\" }\n");
    assert!(told.starts_with("toolgate.yaml:4:15: servers.a.env.T: `${secret:…}`"), "{told}");
}

/// Every way to break this file keeps its secrets out of the message (SE-12).
#[test]
fn no_message_holds_a_neighbouring_secret_se_12() {
    let whole = "servers:\n  a:\n    url: https://u:pw9hidden@h/?key=q1hidden\n    headers:\n      Authorization: Bearer sk-9f\n      X: \"y\"\n  b:\n    command: run --token sk-8e\n    env: { GH_TOKEN: ghx_7, N: 1 }\n    args: [\"--key\", sk-7d]\n    timeouts: { call: 1s }\n";
    let secrets = ["sk-9f", "pw9hidden", "q1hidden", "ghx_7", "sk-8e", "sk-7d"];
    let mut broken = 0;
    let mut check = |text: &str| {
        let told = match Home::with_config(text).load() {
            Ok(config) => all(&config.warnings),
            Err(error) => {
                broken += 1;
                format!("{error} {error:?}")
            }
        };
        for secret in secrets {
            assert!(!told.contains(secret), "{secret} in {told}\n{text}");
        }
    };
    check(whole);
    let lines: Vec<&str> = whole.lines().collect();
    for index in 0..lines.len() {
        for junk in ["{", "]", "\"", ": :", "\t", "&a *b", "%x", "- x", "!t ", "${", "  "] {
            let mut changed: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            changed[index].push_str(junk);
            check(&changed.join("\n"));
            changed[index] = format!("{junk}{}", lines[index]);
            check(&changed.join("\n"));
        }
        let mut dropped = lines.clone();
        dropped.remove(index);
        check(&dropped.join("\n"));
    }
    assert!(broken > 100, "{broken}");
}

//! The `plugins` block of the schema, with what a plugin can be granted.

use serde_json::{Value, json};

use super::{block, choice, duration, flag, object, text, texts};
use crate::read::keys;

pub(super) fn plugins() -> Value {
    let key_list = || json!({ "type": "array", "minItems": 1, "items": { "type": "string", "pattern": "^ed25519:" }, "description": "ed25519:<base64>" });
    block(&keys::PLUGINS, "Signed components that judge and adapt.", |key| match key {
        "bundle" => choice(
            &["default", "none"],
            "none: the components in the binary are not loaded. Default: default.",
        ),
        "fallback" => texts("Policies that are asked when all others abstain. Default: toolgate/ask."),
        "trust" => json!({
            "type": "array",
            "description": "Who may sign which plugins.",
            "items": block(&keys::TRUST_RULE, "One rule: `keys` or `any_of`, and `all_of`.", |key| match key {
                "plugins" => text("owner/name, or owner/*."),
                "index" => text("The one index that they come from. Default: any, in order."),
                "any_of" => block(&keys::ANY_OF, "At least `minimum` of `keys`.", |key| match key {
                    "minimum" => json!({ "type": "integer", "minimum": 1, "description": "Default: 1." }),
                    _ => key_list(),
                }),
                _ => key_list(),
            }),
        }),
        "managed" => choice(&["on", "off"], "off: plugins.d below the data directory does not count."),
        "update" => choice(
            &["ask", "auto", "never"],
            "What happens when a newer release of an installed plugin is found. Default: ask.",
        ),
        "indexes" => json!({
            "type": "array",
            "description": "Registries of plugins, asked in this order.",
            "items": block(&keys::INDEX, "One registry.", |key| match key {
                "name" => text("What you call it: lower-case letters, digits and `-`."),
                "url" => text("https://HOST/PATH, plain http to a loopback address, or the path of a directory."),
                "root" => text("The fingerprint of its root, sha256:… or N:sha256:…, as its maintainers tell it."),
                _ => duration("How often it is asked while Toolgate serves. Default: 1h, at least 1s."),
            }),
        }),
        "hosts" => json!({
            "type": "array",
            "description": "What is known of hosts that plugins come from.",
            "items": block(&keys::HOST, "One host.", |key| match key {
                "host" => text("HOST or HOST:PORT."),
                "ca" => text("A file with certificates of authorities, as PEM, that are believed for it too."),
                "private" => json!({
                    "type": "boolean",
                    "description": "Whether it has an address of a private network. Default: false.",
                }),
                "username" => text("As whom to sign in to an OCI registry."),
                _ => text("The password, as ${NAME}."),
            }),
        }),
        "min_age" => text("How old a release must be before an update takes it, as 3d. Default: 3d."),
        _ => json!({
            "type": "array",
            "description": "Further plugins.",
            "items": block(&keys::LOAD, "One plugin.", |key| match key {
                "plugin" => text("owner/name, owner/name@^1, or ./DIR."),
                "mode" => choice(
                    &["enforce", "monitor"],
                    "monitor: what this policy says is recorded and decides nothing. Default: enforce.",
                ),
                "decisions" => json!({
                    "type": "array",
                    "items": { "enum": ["allow", "ask", "deny", "redact"] },
                    "description": "Which of its decisions count. Default: ask, deny, redact.",
                }),
                "settings" => object("Its settings."),
                _ => grants(),
            }),
        }),
    })
}

pub(super) fn grants() -> Value {
    let labelled = |listed: bool, description: &str, entry: Value| {
        let map = json!({ "type": "object", "propertyNames": { "pattern": "^[a-z][a-z0-9-]{0,63}$" }, "additionalProperties": entry });
        let labels = texts("Labels, as the release declares them.");
        let choices = if listed { json!([labels, map]) } else { json!([map]) };
        json!({ "anyOf": choices, "description": description })
    };
    let whole = || json!({ "const": true, "description": "As the release declares it." });
    let bytes = |description: &str| json!({ "type": "integer", "minimum": 1, "description": description });
    block(&keys::GRANTS, "What it may reach beyond its own memory, by label of its release.", |key| match key
    {
        "http" => labelled(
            true,
            "Origins that it may send requests to.",
            json!({ "anyOf": [whole(), texts("Origins."),
            block(&keys::GRANT_HTTP, "What is left out is as the release declares it.", |key| match key {
                "hosts" => texts("Origins such as https://api.example.com; http only for a loopback address."),
                "methods" => texts("In small letters."),
                "max_response" => bytes("Most bytes of an answer."),
                _ => duration("Bound on one request, at most 30s. Default: 5s."),
            })] }),
        ),
        "secrets" => labelled(
            false,
            "Secrets that it may send, or see.",
            json!({ "anyOf": [text("Its value, as ${NAME}."),
            block(&keys::GRANT_SECRET, "One secret.", |key| match key {
                "value" => text("Its value, as ${NAME}."),
                "send_to" => texts("Origins that it may be sent to."),
                _ => flag("Whether the plugin may see it; each use is audited. Default: false."),
            })] }),
        ),
        "kv" => labelled(
            true,
            "What it may keep between calls.",
            json!({ "anyOf": [whole(),
            block(&keys::GRANT_KV, "One store.", |_| bytes("Most bytes of keys and values."))] }),
        ),
        _ => labelled(
            false,
            "Directories that it may open.",
            json!({ "anyOf": [text("A directory."), texts("Directories."),
            block(&keys::GRANT_FILES, "Directories.", |key| match key {
                "directories" => json!({ "anyOf": [text("A directory."), texts("Directories.")] }),
                _ => choice(&["read", "write"], "Default: what the release declares."),
            })] }),
        ),
    })
}

//! The published JSON Schema of `toolgate.yaml`.
//!
//! Contract: every block is closed and has exactly the keys and other spellings of the reader's
//! tables (a test walks both). The schema is for editors; the reader is what decides, and it knows
//! more: which keys exclude each other, names, labels, digests.

use serde_json::{Map, Value, json};

use crate::model::Config;
use crate::read::keys::{self, Keys};

mod plugins;
#[cfg(test)]
mod tests;

use plugins::{grants, plugins};

const DURATION: &str = "^[0-9]+(ms|s|m|h)$";

impl Config {
    /// The schema (JSON Schema 2020-12) of a configuration file of this version.
    pub fn json_schema() -> Value {
        let mut schema = block(&keys::TOP, "Toolgate configuration", |key| match key {
            "data_dir" => text("Where Toolgate keeps its data; relative paths count from this file."),
            "on_missing_env" => {
                choice(&["warn", "error"], "What a ${VAR} without a value is. Default: warn.")
            }
            "managed" => {
                json!({ "enum": ["on", "off", true, false], "description": "off: servers.d is ignored. Default: on." })
            }
            "serve" => serve(),
            "servers" => json!({
                "type": "object",
                "description": "The MCP servers agents can reach, by name.",
                "propertyNames": { "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" },
                "additionalProperties": server(),
            }),
            "personas" => json!({
                "type": "object",
                "description": "As whom agents act, by name. `default` always exists.",
                "additionalProperties": persona(),
            }),
            "skills" => json!({
                "type": "object",
                "description": "Servers that come with a skill, by its name; a persona enables it.",
                "additionalProperties": skill(),
            }),
            "permissions" => {
                block(&keys::PERMISSIONS, "What is said beforehand about whole servers.", |_| {
                    let word =
                        || choice(&["allow", "ask", "deny"], "allow: without an ask, where labels allow it.");
                    json!({
                        "description": "One word for every server, or one for each.",
                        "anyOf": [word(), { "type": "object", "additionalProperties": word() }],
                    })
                })
            }
            "approvals" => block(&keys::APPROVALS, "How long questions to a person live.", |key| match key {
                "timeout" => duration("How long an ask can be answered. Default: 300s."),
                "hold" => duration("How long a call waits for the answer. Default: 50s."),
                _ => approval_webhook(),
            }),
            "pins" => block(&keys::PINS, "What happens when a server is seen first.", |_| {
                choice(&["pin", "review"], "pin: as first seen. review: hidden until accepted. Default: pin.")
            }),
            "plugins" => plugins(),
            _ => audit(),
        });
        if let Value::Object(schema) = &mut schema {
            schema.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
            schema.insert("title".to_owned(), json!("toolgate.yaml"));
        }
        schema
    }
}

fn approval_webhook() -> Value {
    block(
        &keys::APPROVALS_WEBHOOK,
        "A service that asks a person and brings signed answers.",
        |key| match key {
            "url" => text("Where asks are posted; https, or http to a loopback address."),
            "secret" => text("Signs the requests (Standard Webhooks); write ${NAME}."),
            _ => json!({
                "type": "array",
                "minItems": 1,
                "items": { "type": "string" },
                "description": "The public keys whose answers count, as ed25519:BASE64.",
            }),
        },
    )
}

fn audit() -> Value {
    block(&keys::AUDIT, "How the audit log is kept.", |key| match key {
        "durability" => choice(
            &["process", "disk"],
            "What a committed row survives: the process, or the machine. Default: process.",
        ),
        "arguments" => choice(
            &["digest", "redacted", "full"],
            "What a row keeps of a call's arguments beside their digest. Default: digest.",
        ),
        _ => json!({
            "type": "array",
            "maxItems": 16,
            "description": "Where rows go beside the log, each at least once.",
            "items": sink(),
        }),
    })
}

fn sink() -> Value {
    block(&keys::SINK, "One receiver of audit rows.", |key| match key {
        "name" => text("What it is called; also names its cursor."),
        "type" => choice(&["jsonl", "syslog", "otlp", "webhook"], "What it speaks."),
        "path" => text("jsonl: the file."),
        "rotate" => {
            json!({ "type": "integer", "minimum": 4096, "description": "jsonl: bytes at which another file is begun. Default: 64 MiB." })
        }
        "keep" => {
            json!({ "type": "integer", "minimum": 1, "maximum": 1000, "description": "jsonl: rotated files that are kept. Default: 10." })
        }
        "address" => {
            text("syslog: HOST:PORT of a receiver that speaks TLS (RFC 5425). Port 6514 by default.")
        }
        "url" => text("otlp, webhook: the endpoint with its path; https, or http to a loopback address."),
        "headers" => {
            json!({ "type": "object", "additionalProperties": scalar(), "description": "otlp, webhook: headers of every request; write secrets as ${NAME}." })
        }
        _ => {
            choice(&["toolgate", "ocsf"], "jsonl, syslog, webhook: what a row looks like. Default: toolgate.")
        }
    })
}

/// A closed object with the keys of a table and its other spellings.
fn block(table: &Keys, description: &str, of: impl Fn(&'static str) -> Value) -> Value {
    let mut properties = Map::new();
    for key in table.known.iter().filter(|key| !keys::MANAGED_ONLY.contains(key)) {
        properties.insert((*key).to_owned(), of(key));
    }
    for (alias, key) in table.aliases {
        let mut value = of(key);
        if let Value::Object(value) = &mut value {
            value.insert("description".to_owned(), json!(format!("Another spelling of `{key}`.")));
        }
        properties.insert((*alias).to_owned(), value);
    }
    // A key with nothing behind it counts as absent.
    json!({ "type": ["object", "null"], "description": description, "additionalProperties": false, "properties": properties })
}

fn serve() -> Value {
    block(&keys::SERVE, "How agents reach Toolgate over HTTP.", |key| match key {
        "listen" => text("IP address and port. Default: 127.0.0.1:8848."),
        "allowed_hosts" => texts("Host values that are accepted; needed beside a wildcard address."),
        "allowed_origins" => texts("Origin values that are accepted from browsers."),
        "keep_alive" => duration("How often an idle stream gets a comment. Default: 15s."),
        "head_timeout" => duration("Until a new connection has sent a request's head. Default: 10s."),
        "session_idle" => duration("Until an unused session ends. Default: 30m."),
        "idle_exit" => {
            duration("Until a gateway that a stdio client started ends after its last. Default: 60s.")
        }
        "max_sessions" => count("Sessions at a time. Default: 1024."),
        "max_sessions_per_token" => count("Sessions of one token at a time. Default: 128."),
        "max_running" => {
            count("Requests at once of one session, and of one token outside of sessions. Default: 128.")
        }
        "max_tool_name" => {
            json!({ "type": "integer", "minimum": 16, "maximum": 128, "description": "Longest exposed tool name. Default: 49." })
        }
        _ => flag("Something in front ends TLS and is reached by nobody else. Default: false."),
    })
}

fn server() -> Value {
    block(&keys::SERVER, "One MCP server: `command` or `url`.", |key| match key {
        "transport" => choice(
            &["stdio", "streamable-http", "sse", "http", "streamable_http"],
            "Default: stdio with `command`, streamable-http with `url`.",
        ),
        "command" => text("stdio: the program, or the program and its first arguments. No shell is started."),
        "args" => json!({ "type": "array", "items": scalar(), "description": "stdio: its arguments." }),
        "env" => {
            json!({ "type": "object", "additionalProperties": scalar(), "description": "stdio: its variables; write secrets as ${NAME}." })
        }
        "cwd" => text("stdio: its working directory."),
        "url" => text("streamable-http: its endpoint, http or https; sse: where its event stream is."),
        "headers" => {
            json!({ "type": "object", "additionalProperties": scalar(), "description": "streamable-http: headers of every request; write secrets as ${NAME}." })
        }
        "protocol" => {
            choice(&["auto", "legacy", "2026-07-28"], "The revision that is spoken. Default: auto.")
        }
        "enabled" => flag("false: never connected. Default: true."),
        "instance" => {
            choice(&["per-caller", "session", "shared"], "Who shares a connection. Default: per-caller.")
        }
        "timeouts" => block(&keys::TIMEOUTS, "Deadlines.", |key| match key {
            "init" => duration("Until it is ready. Default: 60s."),
            "call" => duration("One request; progress starts it again. Default: 120s."),
            "probe" => duration("The era probe. Default: 5s."),
            _ => duration("One request in all. Default: 15m."),
        }),
        "restarts" => {
            block(&keys::RESTARTS, "When it is started again, and when no more.", |key| match key {
                "first" => duration("The first pause; it doubles. Default: 1s."),
                "longest" => duration("No pause is longer. Default: 60s."),
                "starts" => count("So many starts within `within` are the last. Default: 6."),
                _ => duration("The time over which starts are counted. Default: 60s."),
            })
        }
        "max_connections" => count("Connections to it at a time. Default: 256."),
        "rate_limit" => block(
            &keys::RATE_LIMIT,
            "How often each persona may ask it.",
            |_| json!({ "type": "integer", "minimum": 1, "maximum": 1_000_000, "description": "Requests a minute; as many may come at once. More wait." }),
        ),
        "elicitation" => choice(
            &["prompt", "auto_decline"],
            "Its questions to a person: shown in the client that called, or declined. Default: prompt.",
        ),
        "elicitation_timeout" => duration("How long a person may take to answer it. Default: 120s."),
        "sampling" => choice(&["refuse", "forward"], "Its questions to the client's model. Default: refuse."),
        "logging" => {
            choice(&["refuse", "forward"], "What it logs during a call, for its client. Default: refuse.")
        }
        "roots" => {
            choice(&["refuse", "forward"], "Its questions for the client's directories. Default: refuse.")
        }
        "tools" => {
            block(&keys::TOOLS, "Which of its tools exist for agents; exact names.", |key| match key {
                "allow" => texts("Only these; empty: all."),
                _ => texts("Never these; wins over allow."),
            })
        }
        "trust" => block(&keys::TRUST, "Exceptions and locks.", |key| match key {
            "auto_approve_tools" => texts("<server>__<tool> names that need no approval."),
            "pinned_tool_hash" => {
                json!({ "type": "string", "pattern": "^sha256:[0-9a-f]{64}$", "description": "The digest its whole surface must have." })
            }
            _ => flag("It drives the real machine; grants last a session at most. Default: false."),
        }),
        "adapter" => block(&keys::ADAPTER, "The adapter in front of it.", |key| match key {
            "plugin" => text("owner/name of the adapter."),
            "settings" => object("Its settings."),
            _ => grants(),
        }),
        _ => text("Your own words about it."),
    })
}

fn skill() -> Value {
    block(&keys::SKILL, "One skill.", |key| match key {
        "directory" => text("Its directory; every mcp/NAME.json in it is a server."),
        "servers" => texts("Servers of `servers` that it needs."),
        _ => choice(
            &["any", "main", "background_job"],
            "In which lanes its servers exist; in `automation` always. Default: any.",
        ),
    })
}

fn persona() -> Value {
    block(&keys::PERSONA, "One persona.", |key| match key {
        "servers" => texts("The servers it may see."),
        "skills" => texts("The skills it has, with their servers."),
        "capabilities" => {
            block(&keys::CAPABILITIES, "Its labels; what matches none is denied.", |key| match key {
                "allow" => texts("Allowed, such as mcp.call:github/get_issue."),
                _ => texts("Asked for first; wins over allow."),
            })
        }
        _ => block(&keys::PERSONA_APPROVALS, "Where its asks are answered.", |key| match key {
            "cut" => choice(
                &["cli", "ask"],
                "Whether an ask that is too long for a form can be allowed there (ask), or only where all of it \
                 is read. Default: cli.",
            ),
            _ => flag(
                "Whether an ask may be shown in the client it came from. Default: yes on stdio, no over HTTP.",
            ),
        }),
    })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn texts(description: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "uniqueItems": true, "description": description })
}

fn flag(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

fn count(description: &str) -> Value {
    json!({ "type": "integer", "minimum": 1, "description": description })
}

fn object(description: &str) -> Value {
    json!({ "type": "object", "description": description })
}

fn scalar() -> Value {
    json!({ "type": ["string", "number", "boolean"] })
}

fn choice(words: &[&str], description: &str) -> Value {
    json!({ "enum": words, "description": description })
}

fn duration(description: &str) -> Value {
    json!({ "type": "string", "pattern": DURATION, "description": description })
}

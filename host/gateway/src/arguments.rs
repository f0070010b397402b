//! What of a call's arguments stands in its audit row (`audit.arguments`).
//!
//! The digest always does. `redacted` adds the arguments with what looks like a secret blanked, by the
//! name of the member, by the beginning of the value, and by the secrets that the server's own entry
//! holds; `full` adds them as they are sent. The store bounds both: a large member is its length and digest.
//!
//! Threat: a secret that looks like none is kept. So nothing but the digest is the default.

use serde_json::Value;
use toolgate_config::{Arguments, Server, looks_like_secret};
use toolgate_store::AuditRow;

/// In place of what looks like a secret.
const BLANK: &str = "[redacted]";

/// The row with as much of the arguments as the configuration keeps. `sent` is their JSON text.
pub(crate) fn kept(row: AuditRow, keep: Arguments, server: &Server, sent: Option<&str>) -> AuditRow {
    let Some(sent) = sent else { return row };
    match keep {
        Arguments::Digest => row,
        // The door has let the text through, so it is JSON; a text that is none is kept as text.
        Arguments::Full => row.with("arguments", parsed(sent)),
        Arguments::Redacted => row.with("arguments", redacted("", parsed(sent), server)),
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

fn redacted(name: &str, value: Value, server: &Server) -> Value {
    match value {
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .map(|(name, value)| {
                    let value = redacted(&name, value, server);
                    (name, value)
                })
                .collect(),
        ),
        Value::Array(values) => {
            Value::Array(values.into_iter().map(|value| redacted(name, value, server)).collect())
        }
        Value::String(_) | Value::Number(_) if is_secret_name(name) => Value::from(BLANK),
        Value::String(text) if looks_like_secret("", &text) => Value::from(BLANK),
        Value::String(text) => Value::from(server.without_secrets(&text)),
        other => other,
    }
}

/// Whether the name alone says that it is a secret, however short the value.
fn is_secret_name(name: &str) -> bool {
    looks_like_secret(name, "any text")
}

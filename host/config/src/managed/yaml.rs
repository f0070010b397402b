//! Writes an entry as block YAML that a person can read.
//!
//! Contract: keys in their order; every text in JSON's double quotes, which YAML reads as the same
//! text; nothing else of YAML is used. Depth is that of the entry.

use serde_json::{Map, Value};

const HEADER: &str = "# Written by Toolgate. It stands in for the server of this name in toolgate.yaml.\n\
                      # Change it with `toolgate mcp`, or by hand: it is read with the same rules.\n";

/// The whole file.
pub(super) fn document(entry: &Map<String, Value>) -> String {
    let mut text = String::from(HEADER);
    write_map(&mut text, entry, 0);
    text
}

fn write_map(text: &mut String, map: &Map<String, Value>, depth: usize) {
    for (key, value) in map {
        indent(text, depth);
        text.push_str(&write_key(key));
        text.push(':');
        write_value(text, value, depth);
    }
}

fn write_value(text: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            text.push('\n');
            write_map(text, map, depth + 1);
        }
        Value::Array(items) if !items.is_empty() => {
            text.push('\n');
            for item in items {
                indent(text, depth + 1);
                // Inside a list the flow form is one line and never ambiguous.
                text.push_str("- ");
                text.push_str(&item.to_string());
                text.push('\n');
            }
        }
        // Texts, numbers, booleans, null, `[]` and `{}` are the same in JSON and YAML.
        plain => {
            text.push(' ');
            text.push_str(&plain.to_string());
            text.push('\n');
        }
    }
}

/// A key stands bare where it is a plain word, and in quotes anywhere else.
fn write_key(key: &str) -> String {
    const WORDS: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    let plain = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && key.starts_with(|first: char| first.is_ascii_alphabetic())
        && !WORDS.contains(&key.to_ascii_lowercase().as_str());
    if plain { key.to_owned() } else { Value::from(key).to_string() }
}

fn indent(text: &mut String, depth: usize) {
    text.extend(std::iter::repeat_n("  ", depth));
}

//! Sorts the two sets that a JSON Schema writes as arrays, and leaves data alone.

use crate::canonical::Node;

/// Keywords whose value is a schema or an array of schemas, in any draft.
const SCHEMAS: [&str; 16] = [
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords whose value maps names to schemas.
const MAPS: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

/// Sorts `required` and `type` in this schema and in every schema below it.
pub(super) fn normalise(schema: &mut Node) {
    let Node::Object(members) = schema else { return };
    for (keyword, value) in members {
        match keyword.as_str() {
            "required" | "type" => sort_set(value),
            keyword if SCHEMAS.contains(&keyword) => each_schema(value),
            keyword if MAPS.contains(&keyword) => {
                if let Node::Object(named) = value {
                    for (_, schema) in named {
                        normalise(schema);
                    }
                }
            }
            _ => {}
        }
    }
}

fn each_schema(value: &mut Node) {
    match value {
        Node::Array(schemas) => schemas.iter_mut().for_each(normalise),
        schema => normalise(schema),
    }
}

/// Sorts an array of strings and drops repetitions. Anything else is no set and stays as it is.
fn sort_set(value: &mut Node) {
    let Node::Array(elements) = value else { return };
    if !elements.iter().all(|element| matches!(element, Node::String(_))) {
        return;
    }
    elements.sort_by(|left, right| match (left, right) {
        (Node::String(left), Node::String(right)) => left.encode_utf16().cmp(right.encode_utf16()),
        _ => std::cmp::Ordering::Equal,
    });
    elements.dedup();
}

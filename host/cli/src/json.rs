//! Members of JSON values that may not be there: absent is null, and null has no text.

use serde_json::Value;

/// A member; null where there is none.
pub(crate) fn at<'a>(value: &'a Value, key: &str) -> &'a Value {
    value.get(key).unwrap_or(&Value::Null)
}

/// A member's text; empty where there is none.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    at(value, key).as_str().unwrap_or("")
}

/// The texts of the content blocks of a tool result.
pub(crate) fn content_texts(result: &Value) -> Vec<&str> {
    let blocks = at(result, "content").as_array().into_iter().flatten();
    blocks.filter_map(|block| at(block, "text").as_str()).collect()
}

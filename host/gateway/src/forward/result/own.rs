//! Words that are Toolgate's own: members whose name begins with `toolgate/`.
//!
//! Threat: a server that writes `toolgate/error` into its answer speaks to the client as Toolgate does: that a
//! person has to allow something first, and how.

use serde_json::value::RawValue;
use toolgate_wire::{ErrorObject, edit};

/// How names of Toolgate's own members begin.
const OWN: &str = "toolgate/";

/// A server's result without what only Toolgate says.
pub(super) fn taken_out_of_result(result: Box<RawValue>) -> Box<RawValue> {
    without_own(result.get(), "/_meta").and_then(|text| edit::raw(text).ok()).unwrap_or(result)
}

/// A server's error without what only Toolgate says.
pub(super) fn taken_out_of_error(mut error: ErrorObject) -> ErrorObject {
    let changed = error.data.as_ref().and_then(|data| without_own(data.get(), ""));
    if let Some(data) = changed.and_then(|text| edit::raw(text).ok()) {
        error.data = Some(data);
    }
    error
}

/// The document without own members of the object at `place`; `None` where there are none.
fn without_own(document: &str, place: &str) -> Option<String> {
    // A name may be written with escapes.
    if !document.contains(OWN) && !document.contains("\\u") && !document.contains("\\/") {
        return None;
    }
    let object = if place.is_empty() { document } else { edit::get(document, place)? };
    let members = edit::members(object).ok()?;
    let pointers: Vec<String> = members
        .iter()
        .filter(|(name, _)| name.starts_with(OWN))
        .map(|(name, _)| format!("{place}/{}", name.replace('~', "~0").replace('/', "~1")))
        .collect();
    if pointers.is_empty() {
        return None;
    }
    let pointers: Vec<&str> = pointers.iter().map(String::as_str).collect();
    edit::drop_all(document, &pointers).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &str) -> String {
        taken_out_of_result(edit::raw(text.to_owned()).unwrap()).get().to_owned()
    }

    #[test]
    fn a_result_keeps_everything_but_what_only_toolgate_says() {
        for written in [r"toolgate/error", r"toolgate\/error", r"\u0074oolgate/error", r"toolgate/new"] {
            let text = format!(r#"{{"content":[],"_meta":{{"a":1,"{written}":{{"code":"denied"}},"b":2}}}}"#);
            assert_eq!(result(&text), r#"{"content":[],"_meta":{"a":1,"b":2}}"#, "{written}");
        }
        for kept in [
            r#"{"content":[{"type":"text","text":"toolgate/error"}]}"#,
            r#"{"_meta":{"x.toolgate/error":1}}"#,
            r#"{"toolgate/error":1,"content":[]}"#,
        ] {
            assert_eq!(result(kept), kept);
        }
    }

    #[test]
    fn an_error_keeps_everything_but_what_only_toolgate_says() {
        let error = ErrorObject::from_json(
            r#"{"code":1004,"message":"m","data":{"toolgate/error":{"code":"gateway_ended"},"more":[1]}}"#,
        );
        let kept = taken_out_of_error(error.unwrap());
        assert_eq!(kept.data.unwrap().get(), r#"{"more":[1]}"#);
    }
}

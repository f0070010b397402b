//! Applies what policies and adapters want changed to a document, and checks what comes out.

use toolgate_base::{display, hidden};
use toolgate_plugins::{Change, Edit, Redaction};
use toolgate_wire::edit::{self, EditError};
use toolgate_wire::{Limits, door};

/// Why a change could not be applied. The change came from a plugin, so the fault is the plugin's.
#[derive(Debug, thiserror::Error)]
#[error("the change at '{pointer}' cannot be applied: {reason}")]
pub(crate) struct ChangeError {
    /// Where in the document.
    pub pointer: String,
    /// What was wrong.
    pub reason: String,
}

/// The document after all redactions, in order.
pub(crate) fn redact(document: &str, redactions: &[Redaction]) -> Result<String, ChangeError> {
    let mut text = document.to_owned();
    for redaction in redactions {
        text = match redaction {
            Redaction::Edits(edits) => apply(&text, edits)?,
            Redaction::HiddenText => without_hidden(&text).map_err(|error| fault("", &error))?,
        };
    }
    checked(text)
}

/// The document after an adapter's change; `None` where nothing changes.
/// A refusal is the caller's business and gives `None` as well.
pub(crate) fn changed(document: &str, change: &Change) -> Result<Option<String>, ChangeError> {
    match change {
        Change::Unchanged | Change::Fail(_) => Ok(None),
        Change::Patch(edits) => checked(apply(document, edits)?).map(Some),
        Change::Replace(text) => checked(text.clone()).map(Some),
    }
}

fn apply(document: &str, edits: &[Edit]) -> Result<String, ChangeError> {
    let mut text = document.to_owned();
    for change in edits {
        text = edit::set_all(&text, &[(change.pointer.as_str(), change.value.as_deref())])
            .map_err(|error| fault(&change.pointer, &error))?;
    }
    Ok(text)
}

/// The document without what is hidden in its texts, blobs of text included; all other bytes stay as they
/// are. In a name of a member it is written out instead: without it the name could be one that means
/// something, `resultType` for one.
pub(crate) fn without_hidden(document: &str) -> Result<String, EditError> {
    let text = edit::map_keys_and_values(
        document,
        &|key| hidden::find(key).map(|_| display::escape(key)),
        &|text| hidden::find(text).map(|_| hidden::strip(text)),
    )?;
    let blobs = toolgate_plugins::stripped_blobs(&text);
    if blobs.is_empty() {
        return Ok(text);
    }
    let blobs: Vec<(String, String)> =
        blobs.into_iter().map(|(pointer, blob)| (pointer, edit::quote(&blob))).collect();
    let edits: Vec<(&str, Option<&str>)> =
        blobs.iter().map(|(pointer, blob)| (pointer.as_str(), Some(blob.as_str()))).collect();
    edit::set_all(&text, &edits)
}

/// What a plugin made passes the same door as what a peer sends.
fn checked(text: String) -> Result<String, ChangeError> {
    match door::scan(text.as_bytes(), &Limits::default()) {
        Ok(_) => Ok(text),
        Err(error) => Err(fault("", &error)),
    }
}

fn fault(pointer: &str, error: &dyn std::fmt::Display) -> ChangeError {
    ChangeError { pointer: pointer.to_owned(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redaction_takes_only_what_it_names() {
        let document = r#"{"content":[{"type":"text","text":"a\u200bb"}],"n":123456789012345678901234567890,"x":  [1, 2]}"#;
        let text = redact(document, &[Redaction::HiddenText]).unwrap();
        assert_eq!(
            text,
            r#"{"content":[{"type":"text","text":"ab"}],"n":123456789012345678901234567890,"x":  [1, 2]}"#
        );
    }

    #[test]
    fn no_name_of_a_member_becomes_another_when_something_is_taken_out() {
        let document = "{\"resultType\u{200b}\":\"input_required\",\"x\":{\"_meta\u{200b}\":\"a\u{200b}b\"}}";
        let text = redact(document, &[Redaction::HiddenText]).unwrap();
        assert_eq!(text, r#"{"resultType\\u{200b}":"input_required","x":{"_meta\\u{200b}":"ab"}}"#);
    }

    #[test]
    fn a_blob_of_text_is_redacted_like_text_and_no_other_blob_se_01() {
        // "a", U+200B and "b", as text and as a picture.
        let document = r#"{"contents":[{"blob":"YeKAi2I=","mimeType":"text/plain; charset=utf-8"},{"mimeType":"image/png","blob":"YeKAi2I="}]}"#;
        let text = redact(document, &[Redaction::HiddenText]).unwrap();
        assert_eq!(text, document.replacen("YeKAi2I=", "YWI=", 1));
    }

    #[test]
    fn an_edit_that_makes_no_json_is_the_plugins_fault() {
        let edits = vec![Edit { pointer: "/a".into(), value: Some("{\"k\":1,\"k\":2}".into()) }];
        assert!(changed(r#"{"a":1}"#, &Change::Patch(edits)).is_err());
    }
}

//! Applies what policies and adapters want changed to a document, and checks what comes out.

use toolgate_plugins::{Change, Edit, Redaction};
use toolgate_wire::{Limits, door, edit};

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
            Redaction::HiddenText => strip_hidden(&text)?,
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

/// Rewrites only the strings that hold something hidden; all other bytes stay as they are.
fn strip_hidden(document: &str) -> Result<String, ChangeError> {
    edit::map_strings(document, &|text| {
        toolgate_base::hidden::find(text).map(|_| toolgate_base::hidden::strip(text))
    })
    .map_err(|error| fault("", &error))
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
    fn an_edit_that_makes_no_json_is_the_plugins_fault() {
        let edits = vec![Edit { pointer: "/a".into(), value: Some("{\"k\":1,\"k\":2}".into()) }];
        assert!(changed(r#"{"a":1}"#, &Change::Patch(edits)).is_err());
    }
}

//! `approvals show`: an ask to its end, so that a person can read what they allow.
//!
//! Nothing is left out and nothing shortened, however long it is: each value stands on its line, every
//! character that a terminal would act on or an eye would miss is written out, and the digest is the one that a
//! cut form names. Of an ask that is closed only the beginning is kept, and that is said.

use serde_json::json;
use toolgate_signing::{Digest, indented};
use toolgate_store::{Ask, AskDocument, Store};

use crate::exit::Failure;
use crate::{context, output};

/// Prints one ask.
pub(super) fn show(store: &Store, ask: &Ask, as_json: bool) -> Result<(), Failure> {
    let document = store.ask_document(&ask.id).map_err(context::store_failure)?;
    let is_whole = document.is_some() || !ask.about.is_cut();
    let document = document.unwrap_or_else(|| AskDocument {
        arguments: ask.about.arguments.clone(),
        beside: ask.about.beside.clone(),
    });
    if as_json {
        let mut value = super::ask_json(ask);
        if let Some(members) = value.as_object_mut() {
            members.insert("arguments".to_owned(), json!(document.arguments));
            members.insert("beside".to_owned(), json!(document.beside));
            members.insert("cut".to_owned(), json!(!is_whole));
            members.insert("arguments_digest".to_owned(), json!(digest(&document.arguments)));
        }
        return output::json(&value);
    }
    output::line(&format!("{} is {}", ask.id, ask.state))?;
    for (name, text) in [
        ("persona", &ask.about.persona),
        ("server", &ask.about.server),
        ("name", &ask.about.tool),
        ("action", &ask.about.action),
        ("session", &ask.about.session),
        ("why", &ask.about.reason),
    ] {
        output::line(&format!("{name}: {}", super::one_line(text)))?;
    }
    section("arguments", &document.arguments, ask.about.arguments_bytes)?;
    if !document.beside.is_empty() {
        section("sent beside them", &document.beside, ask.about.beside_bytes)?;
    }
    if !is_whole {
        output::line("this is not all of it: the rest is kept only while an ask is open")?;
    }
    if ask.state == toolgate_store::AskState::Pending {
        output::line(&format!(
            "answer: toolgate approvals grant {0}   or   toolgate approvals deny {0}",
            ask.id
        ))?;
    }
    Ok(())
}

fn section(name: &str, text: &str, bytes: usize) -> Result<(), Failure> {
    output::line(&format!("{name} ({} bytes, {}):", bytes.max(text.len()), digest(text)))?;
    // Canonical JSON has no line breaks of its own, so those that are there are of the indentation.
    indented(text).lines().try_for_each(|line| output::line(&format!("  {}", super::one_line(line))))
}

fn digest(text: &str) -> String {
    Digest::of(text.as_bytes()).to_string()
}

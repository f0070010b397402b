//! What only the initialize era has: the handshake, and batches in the one revision that had them.

use serde_json::json;
use serde_json::value::RawValue;
use toolgate_wire::envelope::LEGACY;
use toolgate_wire::{ErrorObject, ListKind, codes, edit};

use crate::backend::{Abilities, Offers};
use crate::reply;

/// The revision that allowed JSON-RPC batches; they came and went with it.
const WITH_BATCHES: &str = "2025-03-26";

/// Longest capabilities of a client that are kept, in bytes.
const MAX_CAPABILITIES: usize = 16 * 1024;

/// The revision this session will speak: the client's if it is known, else the newest of this era.
///
/// A client that asks for a later revision learns what there is and decides by itself whether to go on
/// (specification, lifecycle, version negotiation).
pub(crate) fn negotiate(params: Option<&RawValue>) -> Result<&'static str, ErrorObject> {
    let asked = params.and_then(|raw| edit::get(raw.get(), "/protocolVersion")).and_then(edit::string);
    let Some(asked) = asked else {
        return Err(ErrorObject::new(
            codes::INVALID_PARAMS,
            "initialize needs a params.protocolVersion string",
        ));
    };
    Ok(LEGACY.into_iter().find(|known| *known == asked).unwrap_or_else(newest))
}

/// The newest revision of this era.
pub(crate) fn newest() -> &'static str {
    LEGACY.into_iter().max().unwrap_or(WITH_BATCHES)
}

/// True if a session of this revision may send a JSON array of messages.
pub(crate) fn has_batches(version: &str) -> bool {
    version == WITH_BATCHES
}

/// What a client declared in its handshake that it can be asked.
pub(crate) fn abilities(params: Option<&RawValue>) -> Abilities {
    let declared = params.and_then(|raw| edit::get(raw.get(), "/capabilities"));
    // What is no object, or longer than any client needs, declares nothing.
    let usable = declared.filter(|text| text.starts_with('{') && text.len() <= MAX_CAPABILITIES);
    Abilities::of(usable.unwrap_or("{}"))
}

/// The result of `initialize`.
pub(crate) fn initialize_result(
    version: &str,
    offers: Offers,
    instructions: Option<String>,
) -> Result<Box<RawValue>, ErrorObject> {
    let mut result = json!({
        "protocolVersion": version,
        "capabilities": reply::capabilities(offers),
        "serverInfo": reply::server_info(),
    });
    if let (Some(text), Some(object)) = (instructions, result.as_object_mut()) {
        object.insert("instructions".to_owned(), json!(text));
    }
    reply::raw(result.to_string())
}

/// Tells a client which of the listings that were declared to it changed.
pub(crate) fn list_changed(kinds: Vec<ListKind>, declared: Offers) -> Vec<String> {
    let declared = kinds.into_iter().filter(|kind| declared.lists(*kind));
    declared.map(|kind| reply::notification(kind.changed(), None)).collect()
}

#[cfg(test)]
mod tests;

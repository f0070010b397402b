//! From bytes of a client to messages, through the strict door.
//!
//! **Threat.** Two parsers that read the same bytes differently let a client show a policy one call and
//! a server another. So a message with a duplicate key, a lone surrogate, too deep nesting or bytes that
//! are not UTF-8 is refused here with `-32600` and reaches nothing else; its id, if it can be found, is
//! read only to tell the client which request failed.

use toolgate_base::display;
use toolgate_wire::door::{self, DoorErrorKind, Recovered};
use toolgate_wire::{ErrorObject, Id, Limits, Message, codes, edit};

/// Messages of one batch; more are refused as a whole.
pub(crate) const MAX_BATCH: usize = 64;

/// What a client sent.
#[derive(Debug)]
pub(crate) enum Inbound {
    /// One message.
    One(Message),
    /// A JSON array of messages (revision 2025-03-26 only), each read on its own.
    Batch(Vec<Result<Message, Refusal>>),
}

/// A message that goes no further, and what its sender is told.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The id of the refused request, if one could be found.
    pub(crate) id: Option<Id>,
    /// What is wrong with the message.
    pub(crate) error: ErrorObject,
}

/// Reads one frame: a line of stdio, or a body of HTTP.
pub(crate) fn read(bytes: &[u8], limits: &Limits) -> Result<Inbound, Refusal> {
    let text = door::scan(bytes, limits).map_err(|error| {
        let code = match error.kind {
            DoorErrorKind::Syntax => codes::PARSE_ERROR,
            _ => codes::INVALID_REQUEST,
        };
        // The place is told in the client's own keys, which may hold anything.
        let shown = display::escape(&error.to_string());
        tracing::warn!(error = shown, "refused a message at the door");
        let error = ErrorObject::new(code, format!("message refused: {shown}"));
        Refusal { id: id_of(&door::recover(bytes)), error }
    })?;
    if text.trim_start().starts_with('[') { read_batch(text) } else { parse(text).map(Inbound::One) }
}

/// The refusal of a frame that was too long to be kept.
pub(crate) fn too_long(recovered: &Recovered, limits: &Limits) -> Refusal {
    let text =
        format!("message refused: longer than the limit of {} bytes for one message", limits.max_message);
    Refusal { id: id_of(recovered), error: ErrorObject::new(codes::INVALID_REQUEST, text) }
}

/// The id of a broken message is repeated only if it was a request: the same number on a broken response
/// may be that of a request the client is waiting for.
fn id_of(recovered: &Recovered) -> Option<Id> {
    recovered.id.clone().filter(|_| recovered.is_call)
}

fn read_batch(text: &str) -> Result<Inbound, Refusal> {
    let refuse = |text: String| Refusal { id: None, error: ErrorObject::new(codes::INVALID_REQUEST, text) };
    let elements = edit::elements(text).map_err(|error| refuse(format!("batch refused: {error}")))?;
    if elements.is_empty() {
        return Err(refuse("batch refused: it is empty".to_owned()));
    }
    if elements.len() > MAX_BATCH {
        return Err(refuse(format!("batch refused: more than {MAX_BATCH} messages; send several batches")));
    }
    Ok(Inbound::Batch(elements.into_iter().map(parse).collect()))
}

fn parse(text: &str) -> Result<Message, Refusal> {
    Message::parse(text).map_err(|error| Refusal {
        id: id_of(&door::recover(text.as_bytes())),
        error: ErrorObject::new(codes::INVALID_REQUEST, format!("not a JSON-RPC 2.0 message: {error}")),
    })
}

#[cfg(test)]
mod tests;

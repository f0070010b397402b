//! Server-sent events (WHATWG HTML, 9.2), reading and writing.
//!
//! Contract: the events depend on the bytes alone, not on how they were cut. Lines end with LF, CRLF or CR (field
//! report HT-02), one byte order mark at the start is dropped, comments and unknown fields are passed over. An event
//! without data, or with empty data, is a keep-alive or a priming event (HT-01): its `id:` and `retry:` count, but it
//! is not handed out, because no message is empty. Events of unknown types are handed out: whoever reads decides
//! (HT-05).
//!
//! Bounds: at most `max_event` bytes of data (three times as many where they are no UTF-8) and of one line are held. A longer event is read to its end and
//! reported once. Ids longer than [`MAX_ID`] are passed over.

mod decoder;

pub use decoder::SseDecoder;

use crate::door::Recovered;

/// Longest event id that is kept, in bytes; it must fit a `Last-Event-ID` header.
pub const MAX_ID: usize = 4096;

/// A comment line that keeps a stream open and means nothing.
pub const KEEP_ALIVE: &str = ":\n\n";

/// What a stream yields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SseItem {
    /// An event with data.
    Event(SseEvent),
    /// An event was longer than the limit and is gone.
    TooLong {
        /// What the top level of its data said about whose message it was.
        recovered: Recovered,
    },
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    /// The `event:` field; `None` means `message`.
    pub event: Option<String>,
    /// The `data:` lines, joined by line feeds. Never empty.
    pub data: String,
    /// The `id:` field of this very event, if it had one.
    pub id: Option<String>,
    /// Whether the data was not UTF-8 and stands here with U+FFFD in its place: then the message must be refused as
    /// the door would have refused it (field report ST-11).
    pub lossy: bool,
}

impl SseEvent {
    /// Whether it carries a message: no type, or `message`.
    pub fn is_message(&self) -> bool {
        matches!(self.event.as_deref(), None | Some("message"))
    }
}

/// Writes one event, its blank line included. Data may hold any text; line breaks in `event` and `id` would start a
/// field of their own and are dropped, as is U+0000 in `id`.
pub fn encode(event: Option<&str>, id: Option<&str>, data: &str) -> String {
    let mut text = String::with_capacity(data.len() + 48);
    if let Some(event) = event {
        field(&mut text, "event", event.chars());
    }
    if let Some(id) = id {
        field(&mut text, "id", id.chars().filter(|&c| c != '\0'));
    }
    let mut rest = data;
    loop {
        let end = rest.find(['\n', '\r']);
        let (line, after) = match end {
            Some(end) => (rest.get(..end).unwrap_or_default(), rest.get(end..)),
            None => (rest, None),
        };
        text.push_str(if line.is_empty() { "data:" } else { "data: " });
        text.push_str(line);
        text.push('\n');
        let Some(after) = after else { break };
        rest = after.strip_prefix("\r\n").or_else(|| after.get(1..)).unwrap_or_default();
    }
    text.push('\n');
    text
}

/// Writes the field that tells a client how long to wait before it reconnects.
pub fn encode_retry(milliseconds: u64) -> String {
    format!("retry: {milliseconds}\n\n")
}

fn field(text: &mut String, name: &str, value: impl Iterator<Item = char>) {
    text.push_str(name);
    text.push_str(": ");
    text.extend(value.filter(|c| !matches!(c, '\n' | '\r')));
    text.push('\n');
}

#[cfg(test)]
mod tests;

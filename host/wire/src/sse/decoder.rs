//! The reading half of server-sent events.

use super::{MAX_ID, SseEvent, SseItem};
use crate::door::{Recovered, Recovery};

const BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// Cuts a byte stream into events.
#[derive(Debug)]
pub struct SseDecoder {
    max_event: usize,
    /// The line at hand, without its ending.
    line: Vec<u8>,
    /// The line at hand is too long and is being passed over.
    line_overflow: Option<Excess>,
    /// The last byte was a CR, so that an LF now belongs to it.
    after_cr: bool,
    /// Nothing but the start of a byte order mark has been seen.
    fresh: bool,
    event: Pending,
    last_event_id: Option<String>,
    retry_ms: Option<u64>,
}

/// What a line that is too long holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Excess {
    Data,
    Other,
}

/// The event at hand.
#[derive(Debug, Default)]
struct Pending {
    event: Option<String>,
    data: String,
    has_data: bool,
    id: Option<String>,
    lossy: bool,
    overflow: Option<Recovery>,
}

impl SseDecoder {
    /// `max_event` bounds the data of one event, and one line, in bytes.
    pub fn new(max_event: usize) -> Self {
        Self {
            max_event,
            line: Vec::new(),
            line_overflow: None,
            after_cr: false,
            fresh: true,
            event: Pending::default(),
            last_event_id: None,
            retry_ms: None,
        }
    }

    /// Takes the next bytes of the stream and returns the events they complete. What stands after the last blank line
    /// when the stream ends is no event, and its id does not count.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<SseItem> {
        let mut items = Vec::new();
        let mut rest = bytes;
        loop {
            if self.after_cr && !rest.is_empty() {
                self.after_cr = false;
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            let Some(end) = rest.iter().position(|&b| b == b'\n' || b == b'\r') else { break };
            let (piece, after) = rest.split_at(end);
            self.take(piece);
            self.after_cr = after.first() == Some(&b'\r');
            rest = after.get(1..).unwrap_or_default();
            items.extend(self.end_line());
        }
        self.take(rest);
        items
    }

    /// The id to resume from: that of the last complete event that had one. An empty id clears it.
    pub fn last_event_id(&self) -> Option<&str> {
        self.last_event_id.as_deref()
    }

    /// How long the server wants a client to wait before it reconnects, in milliseconds.
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    fn take(&mut self, piece: &[u8]) {
        if let Some(excess) = self.line_overflow {
            self.feed_overflow(excess, piece);
            return;
        }
        self.line.extend_from_slice(piece);
        if self.fresh && !(self.line.len() < BOM.len() && BOM.starts_with(&self.line)) {
            self.fresh = false;
            if self.line.starts_with(&BOM) {
                self.line.drain(..BOM.len());
            }
        }
        // The longest field name with its colon and space is not counted against the data.
        if self.line.len() > self.max_event.saturating_add("event: ".len()) {
            let line = std::mem::take(&mut self.line);
            let (name, value) = split_field(&line);
            let excess = if name == b"data" { Excess::Data } else { Excess::Other };
            self.line_overflow = Some(excess);
            // A comment may be as long as it likes: it takes nothing away from the event.
            if line.first() != Some(&b':') {
                self.overflow_event();
            }
            self.feed_overflow(excess, value);
        }
    }

    /// The event at hand has become too long: its text is dropped, its id is still looked for.
    fn overflow_event(&mut self) {
        let data = std::mem::take(&mut self.event.data);
        let has_data = self.event.has_data;
        let recovery = self.event.overflow.get_or_insert_with(Recovery::new);
        recovery.push(data.as_bytes());
        if has_data {
            recovery.push(b"\n");
        }
    }

    fn feed_overflow(&mut self, excess: Excess, piece: &[u8]) {
        if excess == Excess::Data
            && let Some(recovery) = &mut self.event.overflow
        {
            recovery.push(piece);
        }
    }

    fn end_line(&mut self) -> Option<SseItem> {
        self.fresh = false;
        if self.line_overflow.take().is_some() {
            return None;
        }
        let line = std::mem::take(&mut self.line);
        let item = if line.is_empty() {
            self.dispatch()
        } else {
            let (name, value) = split_field(&line);
            self.field(name, value);
            None
        };
        // Keeps the allocation for the next line.
        self.line = line;
        self.line.clear();
        item
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"data" => self.data(value),
            b"event" => self.event.event = Some(String::from_utf8_lossy(value).into_owned()),
            b"id" if value.len() <= MAX_ID && !value.contains(&0) => {
                self.event.id = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let digits = std::str::from_utf8(value).ok();
                self.retry_ms = digits.and_then(|digits| digits.parse().ok()).or(self.retry_ms);
            }
            _ => {}
        }
    }

    fn data(&mut self, value: &[u8]) {
        let joint = usize::from(self.event.has_data);
        if self.event.overflow.is_none() && self.event.data.len() + joint + value.len() > self.max_event {
            self.overflow_event();
        }
        if let Some(recovery) = &mut self.event.overflow {
            recovery.push(value);
            return;
        }
        if joint == 1 {
            self.event.data.push('\n');
        }
        self.event.has_data = true;
        let text = String::from_utf8_lossy(value);
        self.event.lossy |= matches!(text, std::borrow::Cow::Owned(_));
        self.event.data.push_str(&text);
    }

    fn dispatch(&mut self) -> Option<SseItem> {
        let Pending { event, data, id, lossy, overflow, .. } = std::mem::take(&mut self.event);
        if let Some(id) = &id {
            self.last_event_id = Some(id.clone()).filter(|id| !id.is_empty());
        }
        if let Some(recovery) = overflow {
            let recovered: Recovered = recovery.finish();
            return Some(SseItem::TooLong { recovered });
        }
        if data.is_empty() {
            return None;
        }
        let event = event.filter(|event| !event.is_empty());
        Some(SseItem::Event(SseEvent { event, data, id, lossy }))
    }
}

/// `name: value`, with one space after the colon dropped; a line without a colon is a name.
fn split_field(line: &[u8]) -> (&[u8], &[u8]) {
    let colon = line.iter().position(|&b| b == b':').unwrap_or(line.len());
    let (name, rest) = line.split_at(colon);
    let value = rest.get(1..).unwrap_or_default();
    (name, value.strip_prefix(b" ").unwrap_or(value))
}

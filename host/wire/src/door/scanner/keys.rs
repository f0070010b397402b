//! The keys of all open objects, and whether one occurs twice.
//!
//! Bounds: 16 bytes a key; a key without escapes is a span of the message, one with escapes is unescaped once into a
//! shared buffer. A closing object sorts its keys, so that a million of them cost `n log n` and no hash can be
//! attacked.

use crate::json::unescape;

/// Objects with at most this many keys are compared pair by pair, which is faster than a sort.
const FEW: usize = 8;

/// One key: where its text lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    start: u32,
    end: u32,
    /// Offset of the key's first byte in the message, for reports and for the order of occurrence.
    offset: u32,
    /// Whether `start..end` counts in the buffer of unescaped keys.
    unescaped: bool,
}

impl Key {
    pub(super) fn offset(self) -> usize {
        self.offset as usize
    }

    fn length(self) -> u32 {
        self.end - self.start
    }

    fn bytes<'t>(self, text: &'t [u8], buffer: &'t [u8]) -> &'t [u8] {
        let source = if self.unescaped { buffer } else { text };
        source.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// What was held at a moment, to be released to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    keys: u32,
    buffer: u32,
}

pub(super) struct Keys<'a> {
    text: &'a str,
    held: Vec<Key>,
    buffer: String,
}

impl<'a> Keys<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, held: Vec::with_capacity(32), buffer: String::new() }
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { keys: narrow(self.held.len()), buffer: narrow(self.buffer.len()) }
    }

    /// `start..end` lies between the key's quotes.
    pub(super) fn push(&mut self, start: usize, end: usize, escaped: bool) {
        let offset = narrow(start);
        if !escaped {
            self.held.push(Key { start: offset, end: narrow(end), offset, unescaped: false });
            return;
        }
        let before = narrow(self.buffer.len());
        self.buffer.extend(unescape(self.text.get(start..end).unwrap_or_default()));
        self.held.push(Key { start: before, end: narrow(self.buffer.len()), offset, unescaped: true });
    }

    /// The key's text, unescaped.
    pub(super) fn text(&self, key: Key) -> &str {
        let source = if key.unescaped { &self.buffer } else { self.text };
        source.get(key.start as usize..key.end as usize).unwrap_or_default()
    }

    /// The last key of the container opened at `from`, whose innermost open child was opened at `inner`.
    pub(super) fn last(&self, from: Mark, inner: Option<Mark>) -> Option<Key> {
        let end = inner.map_or(self.held.len(), |inner| inner.keys as usize);
        self.held.get(from.keys as usize..end)?.last().copied()
    }

    /// Every key that repeats an earlier one of the object opened at `from`, in order of occurrence.
    pub(super) fn duplicates(&mut self, from: Mark) -> Vec<Key> {
        let Self { text, held, buffer } = self;
        let Some(own) = held.get_mut(from.keys as usize..) else { return Vec::new() };
        let (text, buffer) = (text.as_bytes(), buffer.as_bytes());
        // Lengths differ more often than not, and comparing them reads nothing of the message.
        let order = |a: Key, b: Key| {
            a.length().cmp(&b.length()).then_with(|| a.bytes(text, buffer).cmp(b.bytes(text, buffer)))
        };
        let mut found = Vec::new();
        if own.len() <= FEW {
            for (position, key) in own.iter().enumerate() {
                if own.iter().take(position).any(|earlier| order(*earlier, *key).is_eq()) {
                    found.push(*key);
                }
            }
            return found;
        }
        own.sort_unstable_by(|a, b| order(*a, *b).then(a.offset.cmp(&b.offset)));
        for pair in own.windows(2) {
            if let [first, second] = pair
                && order(*first, *second).is_eq()
            {
                found.push(*second);
            }
        }
        found.sort_unstable_by_key(|key| key.offset);
        found
    }

    pub(super) fn release(&mut self, mark: Mark) {
        self.held.truncate(mark.keys as usize);
        self.buffer.truncate(mark.buffer as usize);
    }
}

/// A key for a report: at most 256 bytes of it.
pub(super) fn shorten(key: &str) -> String {
    let cut = key.floor_char_boundary(256);
    match key.get(..cut) {
        Some(head) if cut < key.len() => format!("{head}…"),
        _ => key.to_owned(),
    }
}

/// Offsets fit 32 bits: the door has refused longer messages, and an unescaped key is no longer than its source.
fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

//! Line framing of the stdio transport: bytes in any pieces, lines out.
//!
//! Contract: the lines depend on the bytes alone, not on how they were cut (field report ST-05). A byte order mark at
//! the start of the stream is dropped (ST-04), lines end with LF or CRLF, lines of blanks are no lines. A line is not
//! yet a message: it may be a banner, and it may be no UTF-8.
//!
//! Bounds: at most `max` bytes and the piece at hand are held. A longer line is read to its end and thrown away; its
//! id is picked out as it passes, so that only that one request fails.

use crate::door::{Recovered, Recovery};

const BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// The line without its ending. Not blank, not checked for UTF-8.
    Text(Vec<u8>),
    /// The line was longer than the limit and is gone.
    TooLong {
        /// How many bytes it had, without its ending.
        bytes: usize,
        /// What its top level said about whose message it was.
        recovered: Recovered,
    },
}

/// Cuts a byte stream into lines.
#[derive(Debug)]
pub struct LineDecoder {
    max: usize,
    buffer: Vec<u8>,
    /// Nothing but the start of a byte order mark has been seen.
    fresh: bool,
    overflow: Option<Overflow>,
}

/// A line that is being thrown away.
#[derive(Debug)]
struct Overflow {
    bytes: usize,
    ends_in_cr: bool,
    recovery: Recovery,
}

impl LineDecoder {
    /// `max` is the longest line in bytes, without its ending.
    pub fn new(max: usize) -> Self {
        Self { max, buffer: Vec::new(), fresh: true, overflow: None }
    }

    /// Takes the next bytes of the stream and returns the lines they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|&b| b == b'\n') {
            let (piece, after) = rest.split_at(end);
            self.take(piece);
            lines.extend(self.end_line());
            rest = after.get(1..).unwrap_or_default();
        }
        self.take(rest);
        lines
    }

    /// The stream has ended: its last line, if that had no ending.
    pub fn finish(&mut self) -> Option<Line> {
        self.end_line()
    }

    /// Adds bytes to the line at hand.
    fn take(&mut self, piece: &[u8]) {
        if let Some(overflow) = &mut self.overflow {
            overflow.take(piece);
            return;
        }
        self.buffer.extend_from_slice(piece);
        self.drop_mark();
        // While a mark may be arriving, at most two bytes are held.
        let ending = usize::from(self.buffer.last() == Some(&b'\r'));
        if self.buffer.len() - ending > self.max && !(self.fresh && BOM.starts_with(&self.buffer)) {
            let mut overflow = Overflow { bytes: 0, ends_in_cr: false, recovery: Recovery::new() };
            overflow.take(&self.buffer);
            self.overflow = Some(overflow);
            self.buffer = Vec::new();
        }
    }

    fn drop_mark(&mut self) {
        if !self.fresh || (self.buffer.len() < BOM.len() && BOM.starts_with(&self.buffer)) {
            return;
        }
        self.fresh = false;
        if self.buffer.starts_with(&BOM) {
            self.buffer.drain(..BOM.len());
        }
    }

    fn end_line(&mut self) -> Option<Line> {
        // An empty line leaves the stream fresh no longer: a mark stands at the start or is none.
        self.fresh = false;
        if let Some(overflow) = self.overflow.take() {
            let bytes = overflow.bytes - usize::from(overflow.ends_in_cr);
            return Some(Line::TooLong { bytes, recovered: overflow.recovery.finish() });
        }
        let mut line = std::mem::take(&mut self.buffer);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            // Keeps the allocation for the next line.
            line.clear();
            self.buffer = line;
            return None;
        }
        Some(Line::Text(line))
    }
}

impl Overflow {
    fn take(&mut self, piece: &[u8]) {
        self.bytes += piece.len();
        if let Some(&last) = piece.last() {
            self.ends_in_cr = last == b'\r';
        }
        self.recovery.push(piece);
    }
}

#[cfg(test)]
mod tests;

//! What a server says beside its messages, one line at a time, for whoever keeps it.
//!
//! Contract: lines come as they were written, with nothing escaped and nothing left out, but cut at
//! [`MAX_LINE`]. Whoever takes them must not block for long: a server that writes without end is read as
//! fast as its lines are taken.

use std::fmt;
use std::sync::Arc;

/// Longest line that is handed on, bytes; the rest of it is another line.
pub(crate) const MAX_LINE: usize = 8 * 1024;

/// Where a line was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogSource {
    /// Standard error of its process.
    Stderr,
    /// Standard output of its process, where it was no message (ST-01).
    Stdout,
    /// A `notifications/message`; the line is its params.
    Message,
}

/// Takes the lines of one server.
pub trait ServerLog: fmt::Debug + Send + Sync {
    /// Takes one line, without its end.
    fn line(&self, source: LogSource, text: &str);
}

/// Nobody, or somebody.
pub(crate) type Sink = Option<Arc<dyn ServerLog>>;

/// Cuts bytes into lines for a [`ServerLog`].
#[derive(Debug, Default)]
pub(crate) struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    /// Takes bytes in any pieces.
    pub(crate) fn push(&mut self, log: &dyn ServerLog, source: LogSource, bytes: &[u8]) {
        for byte in bytes {
            if *byte != b'\n' {
                self.begun.push(*byte);
            }
            if *byte == b'\n' || self.begun.len() >= MAX_LINE {
                self.end(log, source);
            }
        }
    }

    /// The line at hand is over.
    fn end(&mut self, log: &dyn ServerLog, source: LogSource) {
        let text = String::from_utf8_lossy(&self.begun);
        let text = text.strip_suffix('\r').unwrap_or(&text);
        if !text.trim().is_empty() {
            log.line(source, text);
        }
        self.begun.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Debug, Default)]
    struct Kept(Mutex<Vec<String>>);

    impl ServerLog for Kept {
        fn line(&self, _: LogSource, text: &str) {
            self.0.lock().unwrap().push(text.to_owned());
        }
    }

    #[test]
    fn bytes_in_any_pieces_are_the_same_lines_and_a_long_one_is_cut() {
        let (kept, mut lines) = (Kept::default(), Lines::default());
        for piece in [&b"one\r"[..], b"\n\n  \ntw", b"o\n", &[b'x'; MAX_LINE + 2], b"\n"] {
            lines.push(&kept, LogSource::Stderr, piece);
        }
        let lengths: Vec<usize> = kept.0.lock().unwrap().iter().map(String::len).collect();
        assert_eq!(lengths, [3, 3, MAX_LINE, 2]);
    }
}

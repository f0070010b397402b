//! What a server says beside its messages, one line at a time, for whoever keeps it.
//!
//! Contract: lines come as they were written, with nothing escaped, cut at [`MAX_LINE`] and without the secrets
//! that the [`Mask`] of the entry knows. It is applied before a line is cut: of a value that lies on the cut
//! neither half would be found. Whoever takes them must not block for long: a server that writes without end
//! is read as fast as its lines are taken.

use std::fmt;
use std::sync::Arc;

use crate::error::quote;

/// A text without what it must not show.
type Masking = dyn Fn(&str) -> String + Send + Sync;

/// Takes out of a text what a server may repeat of the secrets that it was given.
#[derive(Clone, Default)]
pub struct Mask {
    apply: Option<Arc<Masking>>,
    longest: usize,
}

impl Mask {
    /// A mask; whoever cuts a text keeps `longest` bytes more than it shows.
    pub fn new(longest: usize, apply: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self { apply: Some(Arc::new(apply)), longest }
    }

    /// The text without secrets.
    pub(crate) fn apply(&self, text: &str) -> String {
        self.apply.as_ref().map_or_else(|| text.to_owned(), |apply| apply(text))
    }

    /// Bytes to keep beyond a cut.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// A server's words for an error text, without secrets; see [`quote`].
    pub(crate) fn quote(&self, text: &str, max: usize) -> String {
        quote(&self.apply(text), max)
    }
}

impl fmt::Debug for Mask {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Mask")
    }
}

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
    mask: Mask,
}

impl Lines {
    pub(crate) fn new(mask: Mask) -> Self {
        Self { begun: Vec::new(), mask }
    }

    /// Takes bytes in any pieces.
    pub(crate) fn push(&mut self, log: &dyn ServerLog, source: LogSource, bytes: &[u8]) {
        for byte in bytes {
            if *byte == b'\n' {
                self.end(log, source);
                continue;
            }
            self.begun.push(*byte);
            // Behind the cut stands as much as the longest value has, so none lies on it unseen.
            if self.begun.len() >= MAX_LINE + self.mask.longest() {
                self.cut(log, source);
            }
        }
    }

    /// Hands on as much of a long line as a line may have; the rest of it stays.
    fn cut(&mut self, log: &dyn ServerLog, source: LogSource) {
        let text = self.mask.apply(&String::from_utf8_lossy(&self.begun));
        // Masking may have made it shorter, and half a value may stand at its end all the same.
        let whole = text.len().saturating_sub(self.mask.longest());
        let (line, rest) = text.split_at(text.floor_char_boundary(MAX_LINE.min(whole)));
        if !line.is_empty() {
            log.line(source, line);
        }
        self.begun = rest.as_bytes().to_vec();
    }

    /// The line at hand is over.
    fn end(&mut self, log: &dyn ServerLog, source: LogSource) {
        let text = self.mask.apply(&String::from_utf8_lossy(&self.begun));
        let mut rest = text.strip_suffix('\r').unwrap_or(&text);
        while !rest.trim().is_empty() {
            let (line, after) = rest.split_at(rest.floor_char_boundary(MAX_LINE));
            log.line(source, line);
            rest = after;
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

    #[test]
    fn a_secret_that_lies_on_the_cut_is_masked_whole() {
        let mask = Mask::new(6, |text| text.replace("secret", "***"));
        for before in MAX_LINE - 8..=MAX_LINE + 1 {
            let (kept, mut lines) = (Kept::default(), Lines::new(mask.clone()));
            let line = format!("{}secret{}\n", "x".repeat(before), "y".repeat(MAX_LINE));
            for byte in line.as_bytes().chunks(1_000) {
                lines.push(&kept, LogSource::Stderr, byte);
            }
            let said = kept.0.lock().unwrap().join("");
            assert_eq!(said, line.trim_end().replace("secret", "***"), "{before}");
            assert!(kept.0.lock().unwrap().iter().all(|line| line.len() <= MAX_LINE));
        }
    }
}

//! The last words of a child: a bounded window over what it wrote beside its messages.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use toolgate_base::display;

use crate::server_log::{Lines, LogSource, Sink};

/// Keeps the newest bytes up to a limit, however much is written (ST-06).
#[derive(Debug)]
pub(crate) struct Tail {
    max: usize,
    bytes: Mutex<VecDeque<u8>>,
    /// Who keeps all of it, and the line at hand.
    log: Sink,
    lines: Mutex<Lines>,
}

impl Tail {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, bytes: Mutex::default(), log: None, lines: Mutex::default() }
    }

    /// The same, with somebody who keeps all of it.
    pub(crate) fn logged(max: usize, log: Sink) -> Self {
        Self { log, ..Self::new(max) }
    }

    /// A line on standard output that was no message.
    pub(crate) fn push_line(&self, line: &[u8]) {
        self.keep(line);
        self.keep(b"\n");
        if let Some(log) = &self.log {
            log.line(LogSource::Stdout, &String::from_utf8_lossy(line));
        }
    }

    /// Bytes of standard error.
    pub(crate) fn push(&self, new: &[u8]) {
        if let Some(log) = &self.log {
            let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.push(log.as_ref(), LogSource::Stderr, new);
        }
        self.keep(new);
    }

    fn keep(&self, new: &[u8]) {
        let keep = new.len().saturating_sub(self.max);
        let new = new.get(keep..).unwrap_or_default();
        let mut bytes = self.lock();
        let excess = (bytes.len() + new.len()).saturating_sub(self.max).min(bytes.len());
        bytes.drain(..excess);
        bytes.extend(new);
    }

    /// Everything kept, with controls made visible and line ends kept: safe for a terminal.
    pub(crate) fn text(&self) -> String {
        let raw: Vec<u8> = self.lock().iter().copied().collect();
        display::escape_multiline(&String::from_utf8_lossy(&raw).replace("\r\n", "\n"))
    }

    /// The last `count` lines that are not blank, joined by ` | `, for an error text.
    pub(crate) fn last_lines(&self, count: usize) -> String {
        let text = self.text();
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let from = lines.len().saturating_sub(count);
        let joined = lines.get(from..).unwrap_or_default().join(" | ");
        let length = joined.chars().count();
        joined.chars().skip(length.saturating_sub(1_000)).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_holds_the_newest_bytes_only() {
        let tail = Tail::new(8);
        tail.push(b"0123456789");
        assert_eq!(tail.text(), "23456789");
        tail.push(b"ab\n");
        assert_eq!(tail.text(), "56789ab\n");
    }

    #[test]
    fn last_lines_skip_blanks_and_show_controls() {
        let tail = Tail::new(100);
        tail.push(b"one\n\n two\x1b[31m\r\nthree\n");
        let lines = tail.last_lines(2);
        assert!(lines.starts_with("two") && lines.ends_with("| three"), "{lines}");
        assert!(!lines.contains('\x1b'));
    }
}

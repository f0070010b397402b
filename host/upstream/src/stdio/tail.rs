//! The last words of a child: a bounded window over what it wrote beside its messages.
//!
//! What the child repeats of its secrets is taken out before anything is cut, so the window keeps as much
//! more as the longest of them has: one that lies on its edge is found whole.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use toolgate_base::display;

use crate::server_log::{Lines, LogSource, Mask, Sink};

/// Keeps the newest bytes up to a limit, however much is written (ST-06).
#[derive(Debug)]
pub(crate) struct Tail {
    max: usize,
    bytes: Mutex<VecDeque<u8>>,
    /// Who keeps all of it, and the line at hand.
    log: Sink,
    lines: Mutex<Lines>,
    mask: Mask,
}

impl Tail {
    #[cfg(test)]
    pub(crate) fn new(max: usize) -> Self {
        Self::logged(max, None, Mask::default())
    }

    /// The same, with somebody who keeps all of it, and what of it nobody may read.
    pub(crate) fn logged(max: usize, log: Sink, mask: Mask) -> Self {
        Self { max, bytes: Mutex::default(), log, lines: Mutex::new(Lines::new(mask.clone())), mask }
    }

    /// What is taken out of texts.
    pub(crate) fn mask(&self) -> &Mask {
        &self.mask
    }

    /// A line on standard output that was no message.
    pub(crate) fn push_line(&self, line: &[u8]) {
        self.keep(line);
        self.keep(b"\n");
        if let Some(log) = &self.log {
            log.line(LogSource::Stdout, &self.mask.apply(&String::from_utf8_lossy(line)));
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
        let max = self.max + self.mask.longest();
        let keep = new.len().saturating_sub(max);
        let new = new.get(keep..).unwrap_or_default();
        let mut bytes = self.lock();
        let excess = (bytes.len() + new.len()).saturating_sub(max).min(bytes.len());
        bytes.drain(..excess);
        bytes.extend(new);
    }

    /// Everything kept, without secrets, with controls made visible and line ends kept: safe for a terminal.
    pub(crate) fn text(&self) -> String {
        let raw: Vec<u8> = self.lock().iter().copied().collect();
        let text = self.mask.apply(&String::from_utf8_lossy(&raw).replace("\r\n", "\n"));
        // Half a value can stand at the very front of what is kept, and goes with what is too much.
        let excess = raw.len().saturating_sub(self.max).min(text.len());
        let (_, last) = text.split_at(text.ceil_char_boundary(excess));
        display::escape_multiline(last)
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
    fn a_secret_at_the_edge_of_the_window_is_masked_whole() {
        let mask = Mask::new(6, |text| text.replace("secret", "***"));
        for after in 1..10 {
            let tail = Tail::logged(8, None, mask.clone());
            tail.push(format!("xxxsecret{}", "y".repeat(after)).as_bytes());
            let text = tail.text();
            assert!(text.len() <= 8 && text.chars().all(|c| "xy*".contains(c)), "{after}: {text}");
            tail.push(b"secretsecret");
            assert!(tail.text().chars().all(|c| "xy*".contains(c)), "{after}: {}", tail.text());
        }
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

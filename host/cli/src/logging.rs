//! The log on standard error.
//!
//! Threat: a line holds a server's words, and a terminal obeys them (SE-03), or they forge a line of the
//! log. Everything is escaped as it is written, whichever crate wrote it: what is hidden stands there as
//! `\\u{1b}`, and a line break inside of an event is followed by a bar. Colours would be sequences of our
//! own in the same bytes, so there are none.

use std::io::{self, Write};

use toolgate_base::display;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Starts the log. It goes to standard error: standard output may be a protocol.
pub(crate) fn start(verbose: u8) {
    let default = match verbose {
        0 => "warn",
        1 => "info",
        _ => "debug",
    };
    let filter = EnvFilter::try_from_env("TOOLGATE_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(Escaped)
        .with_ansi(false)
        .with_target(false)
        .init();
}

/// Makes a writer for each event.
struct Escaped;

impl<'a> MakeWriter<'a> for Escaped {
    type Writer = Event;

    fn make_writer(&'a self) -> Event {
        Event(Vec::new())
    }
}

/// The bytes of one event, written escaped when it is complete.
struct Event(Vec<u8>);

impl Write for Event {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            let line = escaped(&String::from_utf8_lossy(&self.0));
            // A log that cannot be written is no reason to stop.
            let _ = io::stderr().lock().write_all(line.as_bytes());
        }
    }
}

/// One event as it may be shown, with its line break at the end.
fn escaped(event: &str) -> String {
    let event = event.strip_suffix('\n').unwrap_or(event);
    let mut line = display::escape_multiline(event).replace('\n', "\n  | ");
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn se_03_an_event_obeys_no_terminal_and_forges_no_line() {
        let said = escaped("WARN it said: \u{1b}[2J\u{202e}x\n2026-01-01 ERROR forged\n");
        assert_eq!(said, "WARN it said: \\u{1b}[2J\\u{202e}x\n  | 2026-01-01 ERROR forged\n");
    }
}

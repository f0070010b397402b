//! The log of this program: on standard error, and for whoever serves also in `<data_dir>/log/`.
//!
//! Contract: standard output may be a protocol, so nothing is ever written there. The file is found once
//! the configuration was read; until then, and where it cannot be written, a process without anybody at
//! its standard error writes there all the same.
//!
//! Bounds: [`MAX_BYTES`] a file, [`KEPT`] full ones beside it.
//!
//! Threat: a line holds a server's words, and a terminal obeys them (SE-03), or they forge a line of the
//! log. Everything is escaped as it is written, to either place, whichever crate wrote it: what is hidden
//! stands there as `\\u{1b}`, and a line break inside of an event is followed by a bar. Colours would be
//! sequences of our own in the same bytes, so there are none.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use toolgate_base::display;
use toolgate_base::rotate::RotatingFile;
use toolgate_gateway::CONNECT_LOG;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

/// A log file is put aside at this size, in bytes.
pub(crate) const MAX_BYTES: u64 = 8 * 1024 * 1024;
/// So many full files stay.
pub(crate) const KEPT: usize = 4;

/// How a line begins that goes on with the event before it.
pub(crate) const GOES_ON: &str = "  | ";

static FILE: OnceLock<RotatingFile> = OnceLock::new();
static ON_STDERR: OnceLock<bool> = OnceLock::new();

/// The log of the gateway of a data directory.
pub(crate) fn own_file(data_dir: &Path) -> PathBuf {
    data_dir.join("log").join("gateway.log")
}

/// Starts the log. `TOOLGATE_LOG` says how much, else `verbose`; the file has `info` at least. Where the
/// command `tells_failures` to connect itself, the log does not say them a second time.
pub(crate) fn start(verbose: u8, on_stderr: bool, tells_failures: bool) {
    let _ = ON_STDERR.set(on_stderr);
    let filter = |quiet: &str| {
        let default = match verbose {
            0 => quiet,
            1 => "info",
            _ => "debug",
        };
        EnvFilter::try_from_env("TOOLGATE_LOG").unwrap_or_else(|_| EnvFilter::new(default))
    };
    let quiet = format!("warn,{CONNECT_LOG}=off");
    let screen = on_stderr.then(|| {
        tracing_subscriber::fmt::layer()
            .with_writer(Escaped(to_stderr))
            .with_ansi(false)
            .with_target(false)
            .with_filter(filter(if tells_failures { &quiet } else { "warn" }))
    });
    let file = tracing_subscriber::fmt::layer()
        .with_writer(Escaped(to_file))
        .with_ansi(false)
        .with_target(false)
        .with_filter(filter("info"));
    tracing_subscriber::registry().with(screen).with(file).init();
}

/// Writes the log of this process into the data directory too, from now on.
pub(crate) fn keep_in(data_dir: &Path) {
    match RotatingFile::open(&own_file(data_dir), MAX_BYTES, KEPT) {
        Ok(file) => drop(FILE.set(file)),
        Err(error) => tracing::warn!(%error, "no log is kept in {}", own_file(data_dir).display()),
    }
}

fn to_stderr(line: &[u8]) -> io::Result<()> {
    io::stderr().lock().write_all(line)
}

fn to_file(line: &[u8]) -> io::Result<()> {
    match FILE.get() {
        Some(file) => file.append(line),
        None if ON_STDERR.get() == Some(&false) => to_stderr(line),
        None => Ok(()),
    }
}

/// Where a line goes.
type Place = fn(&[u8]) -> io::Result<()>;

/// Makes a writer for each event.
struct Escaped(Place);

impl<'a> MakeWriter<'a> for Escaped {
    type Writer = Event;

    fn make_writer(&'a self) -> Event {
        Event { bytes: Vec::new(), place: self.0 }
    }
}

/// The bytes of one event, written escaped when it is complete.
struct Event {
    bytes: Vec<u8>,
    place: Place,
}

impl Write for Event {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if !self.bytes.is_empty() {
            let line = escaped(&String::from_utf8_lossy(&self.bytes));
            // A log that cannot be written is no reason to stop.
            let _ = (self.place)(line.as_bytes());
        }
    }
}

/// One event as it may be shown, with its line break at the end.
fn escaped(event: &str) -> String {
    let event = event.strip_suffix('\n').unwrap_or(event);
    let mut line = display::show_multiline(event).replace('\n', &format!("\n{GOES_ON}"));
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

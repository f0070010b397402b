//! What a server says beside its messages, kept in `<data_dir>/log/servers/NAME.log`.
//!
//! One line of the file is a time, where it was said (`stderr`, `stdout`, `message`) and the text, with
//! every control and hidden character written out. The values of the entry's variables and headers were
//! taken away before it was cut into lines (`mask`): a server may print what it was given, and somebody will
//! `cat` the file.
//!
//! Bounds: 1 MiB a file, two full ones beside it, for each server; 8 KiB a line.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolgate_base::clock::utc_text;
use toolgate_base::rotate::RotatingFile;
use toolgate_base::{Clock as _, SystemClock, display};
use toolgate_config::Server;
use toolgate_upstream::{LogSource, ServerLog};

/// A file is put aside at this size, in bytes.
pub const MAX_BYTES: u64 = 1024 * 1024;
/// So many full files stay.
pub const KEPT: usize = 2;

/// The directory of the servers' logs.
pub fn directory(data_dir: &Path) -> PathBuf {
    data_dir.join("log").join("servers")
}

/// The log of one server; names of servers are file names (9a).
pub fn file_of(data_dir: &Path, server: &str) -> PathBuf {
    directory(data_dir).join(format!("{server}.log"))
}

/// Opens the log of a server. Where that fails the server is served all the same, and the failure told.
pub(crate) fn open(server: &Server, data_dir: &Path) -> Option<Arc<dyn ServerLog>> {
    match RotatingFile::open(&file_of(data_dir, &server.name), MAX_BYTES, KEPT) {
        Ok(file) => Some(Arc::new(Kept { server: server.name.clone(), file })),
        Err(error) => {
            tracing::warn!(server = %server.name, %error, "no log of it is kept");
            None
        }
    }
}

struct Kept {
    server: String,
    file: RotatingFile,
}

impl ServerLog for Kept {
    fn line(&self, source: LogSource, text: &str) {
        let source = match source {
            LogSource::Stderr => "stderr",
            LogSource::Stdout => "stdout",
            LogSource::Message => "message",
        };
        let time = utc_text(SystemClock.now_ms());
        let text = display::escape(text);
        if let Err(error) = self.file.append(format!("{time} {source} {text}\n").as_bytes()) {
            tracing::debug!(server = %self.server, %error, "a line of its log is lost");
        }
    }
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{}", self.file.path().display())
    }
}

//! `pins.known`: which servers are pinned, and as what, outside of `state.db`.
//!
//! A line a server: `<identity> <revision> <content digest> <name>`, sorted, under a title with
//! the format. It answers one question: is a server whose pins are not in the database a new one,
//! or one whose pins were taken away? (PI-05.) The revision grows with each change of a server's
//! pins, so that an older copy of `state.db` is noticed too.
//!
//! The database is changed first and this file after it. A process that ends in between leaves the
//! file behind the database, which the next start mends; the file is never ahead of a database
//! that nobody tampered with. Changes hold a lock, because two processes may pin at once.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

use toolgate_base::files;
use toolgate_base::lock::FileLock;
use toolgate_signing::Digest;

use crate::database::BUSY_TIMEOUT;
use crate::error::StoreError;
use crate::paths;

const TITLE: &str = "toolgate pinned servers, format 1";
/// More than a thousand servers of the longest name fit.
const MAX_BYTES: u64 = 1024 * 1024;

/// One pinned server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Grows with each change of the pins.
    pub(super) revision: i64,
    /// Digest of all pins.
    pub(super) content: Digest,
    /// The server's name, for messages.
    pub(super) server: String,
}

/// The whole file by identity.
pub(super) type Entries = BTreeMap<String, Entry>;

/// Reads the file. A missing one has no entries; an unreadable one is an error, because it is the
/// only witness of a deleted database.
pub(super) fn read(data_dir: &Path) -> Result<Entries, StoreError> {
    let path = data_dir.join(paths::PINS_KNOWN);
    let bytes = match files::read_bounded(&path, MAX_BYTES) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(Entries::new()),
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge) => {
            return Err(damaged(&path, error.to_string()));
        }
        Err(error) => return Err(StoreError::io("read", &path, error)),
    };
    let text = String::from_utf8(bytes).map_err(|_| damaged(&path, "it is no text".to_owned()))?;
    parse(&text).map_err(|what| damaged(&path, what))
}

/// Changes the file under its lock. `change` says whether there is something to write.
pub(super) fn change(data_dir: &Path, change: impl FnOnce(&mut Entries) -> bool) -> Result<(), StoreError> {
    let path = data_dir.join(paths::PINS_KNOWN);
    let _lock = FileLock::exclusive(&paths::pins_lock(data_dir), BUSY_TIMEOUT)
        .map_err(|error| StoreError::io("lock", &path, io::Error::other(error.to_string())))?;
    let mut entries = read(data_dir)?;
    if !change(&mut entries) {
        return Ok(());
    }
    files::write_private(&path, print(&entries).as_bytes())
        .map_err(|error| StoreError::io("write", &path, error))
}

fn parse(text: &str) -> Result<Entries, String> {
    let mut lines = text.split_terminator('\n');
    if lines.next() != Some(TITLE) {
        return Err("its first line is not the title of format 1".to_owned());
    }
    if !text.ends_with('\n') {
        return Err("its last line is cut".to_owned());
    }
    let mut entries = Entries::new();
    for (index, line) in lines.enumerate() {
        let (identity, entry) = parse_line(line).ok_or_else(|| format!("line {} is no entry", index + 2))?;
        if entries.insert(identity, entry).is_some() {
            return Err(format!("line {} repeats a server", index + 2));
        }
    }
    Ok(entries)
}

fn parse_line(line: &str) -> Option<(String, Entry)> {
    let mut fields = line.splitn(4, ' ');
    let identity: Digest = fields.next()?.parse().ok()?;
    let entry = Entry {
        revision: fields.next()?.parse().ok()?,
        content: fields.next()?.parse().ok()?,
        server: fields.next()?.to_owned(),
    };
    Some((identity.to_string(), entry))
}

fn print(entries: &Entries) -> String {
    let mut text = format!("{TITLE}\n");
    for (identity, entry) in entries {
        let Entry { revision, content, server } = entry;
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{identity} {revision} {content} {server}");
    }
    text
}

fn damaged(path: &Path, what: String) -> StoreError {
    StoreError::Damaged {
        path: path.to_owned(),
        what,
        repair: "restore it from a copy; if there is none, move it away, look at every server \
                 with `toolgate mcp diff` and accept it with `toolgate mcp pin NAME --accept`",
    }
}

#[cfg(test)]
mod tests;

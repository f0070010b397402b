//! JSON lines in a file that is rotated: `NAME`, `NAME.1`, … `NAME.<keep>`; the oldest goes.
//!
//! A batch is written and synced before the cursor moves. A kill in between may leave half a line; it is
//! cut off at the next start, because the batch comes again.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use toolgate_base::files;
use toolgate_config::SinkFormat;
use toolgate_store::ExportedRow;

use super::{Target, lines};
use crate::SinkError;

/// How much of the end is looked at for a line that was not finished.
const TAIL: u64 = 64 * 1024;

pub(super) struct Lines {
    path: PathBuf,
    rotate: u64,
    keep: u64,
    format: SinkFormat,
    /// Whether the end of the file was looked at.
    is_clean: bool,
}

impl Lines {
    pub(super) fn new(path: PathBuf, rotate: u64, keep: u64, format: SinkFormat) -> Self {
        Self { path, rotate, keep, format, is_clean: false }
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        if !self.is_clean {
            cut_unfinished(&self.path)?;
            self.is_clean = true;
        }
        let size = std::fs::metadata(&self.path).map_or(0, |found| found.len());
        if size > 0 && size.saturating_add(text.len() as u64) > self.rotate {
            rotate(&self.path, self.keep)?;
        }
        let mut file = files::open_private_append(&self.path)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_data());
        // What was written in part is cut off before the batch comes again.
        self.is_clean = written.is_ok();
        written
    }
}

#[async_trait]
impl Target for Lines {
    async fn deliver(&mut self, rows: &[ExportedRow]) -> Result<Option<String>, SinkError> {
        let text = lines(rows, self.format)?;
        // At most half a megabyte; the task has no other work.
        self.write(&text).map_err(|error| {
            SinkError::Receiver(format!("{} cannot be written: {error}", self.path.display()))
        })?;
        Ok(None)
    }
}

fn cut_unfinished(path: &Path) -> io::Result<()> {
    let mut file = match File::options().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let size = file.metadata()?.len();
    let begin = size.saturating_sub(TAIL);
    file.seek(SeekFrom::Start(begin))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    if tail.is_empty() || tail.ends_with(b"\n") {
        return Ok(());
    }
    let kept = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    file.set_len(begin + kept as u64)
}

fn rotate(path: &Path, keep: u64) -> io::Result<()> {
    let numbered = |number: u64| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    for number in (1..keep).rev() {
        match std::fs::rename(numbered(number), numbered(number + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    std::fs::rename(path, numbered(1))
}

//! Bounded reading of files.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use crate::error::RegistryError;

/// The bytes of a file, at most `limit`; nothing where there is none.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, RegistryError> {
    match read_head(path, limit.saturating_add(1))? {
        Some(bytes) if bytes.len() as u64 > limit => {
            Err(RegistryError::TooLarge { what: path.display().to_string(), limit })
        }
        read => Ok(read),
    }
}

/// At most the first `limit` bytes of a file; nothing where there is none.
pub(crate) fn read_head(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, RegistryError> {
    let mut bytes = Vec::new();
    match File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes)) {
        Ok(_) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(source) => Err(RegistryError::Io { path: path.to_owned(), doing: "read", source }),
    }
}

//! Which files of the managed layer Toolgate wrote.
//!
//! Contract: `servers.d/.written` holds, for each server, a MAC over its name and the bytes of its file,
//! with the key in `servers.key`. A file whose MAC is absent or another was written by somebody else. A
//! record that cannot be read is an error and not an empty one; a key that is gone makes every file
//! somebody else's.
//!
//! Threat: an agent with a shell writes or edits a file under `servers.d/`. It can read the key as well,
//! since it runs under the same account: this shows a careless edit and makes a careful one a forgery.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ring::hmac;
use serde::{Deserialize, Serialize};
use toolgate_base::files::write_private;
use toolgate_base::random_hex;

use super::DIRECTORY;
use crate::discover::read_text;
use crate::error::ConfigError;

const FILE: &str = ".written";
const KEY: &str = "servers.key";
const FORMAT: u64 = 1;
const MAX_BYTES: u64 = 1024 * 1024;
/// Random bytes of a key.
const KEY_BYTES: usize = 32;

/// The record of one data directory.
pub(super) struct Written {
    path: PathBuf,
    key_path: PathBuf,
    key: Option<hmac::Key>,
    record: Record,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    format: u64,
    servers: BTreeMap<String, String>,
}

impl Written {
    /// Reads the record; none is an empty one.
    pub(super) fn read(data_dir: &Path) -> Result<Self, ConfigError> {
        let path = data_dir.join(DIRECTORY).join(FILE);
        let key_path = data_dir.join(KEY);
        let record = match read_text(&path, MAX_BYTES)? {
            None => Record { format: FORMAT, ..Record::default() },
            Some(text) => {
                let record: Record = serde_json::from_str(text.expose())
                    .map_err(|error| unusable(&path, &error.to_string()))?;
                if record.format != FORMAT {
                    return Err(unusable(&path, &format!("its format is {}", record.format)));
                }
                record
            }
        };
        let key = read_text(&key_path, MAX_BYTES)?
            .map(|text| hmac::Key::new(hmac::HMAC_SHA256, text.expose().trim().as_bytes()));
        Ok(Self { path, key_path, key, record })
    }

    /// Whether these bytes are what Toolgate wrote for this server, or what the operator accepted.
    pub(super) fn is_by_us(&self, name: &str, bytes: &[u8]) -> bool {
        let tag = self.record.servers.get(name).and_then(|tag| hex::decode(tag).ok());
        match (&self.key, tag) {
            (Some(key), Some(tag)) => hmac::verify(key, &bound(name, bytes), &tag).is_ok(),
            _ => false,
        }
    }

    /// Records a file. Called under the lock of the directory.
    pub(super) fn record(mut self, name: &str, bytes: &[u8]) -> Result<(), ConfigError> {
        let key = if let Some(key) = self.key.take() {
            key
        } else {
            let text = random_hex(KEY_BYTES);
            write_private(&self.key_path, text.as_bytes())
                .map_err(|source| ConfigError::io("write", &self.key_path, source))?;
            hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes())
        };
        let tag = hex::encode(hmac::sign(&key, &bound(name, bytes)));
        self.record.servers.insert(name.to_owned(), tag);
        self.write()
    }

    /// Forgets a file that was removed. Called under the lock of the directory.
    pub(super) fn forget(mut self, name: &str) -> Result<(), ConfigError> {
        match self.record.servers.remove(name) {
            Some(_) => self.write(),
            None => Ok(()),
        }
    }

    fn write(&self) -> Result<(), ConfigError> {
        let text =
            serde_json::to_vec(&self.record).map_err(|error| unusable(&self.path, &error.to_string()))?;
        write_private(&self.path, &text).map_err(|source| ConfigError::io("write", &self.path, source))
    }
}

fn bound(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut all = format!("toolgate servers.d, version 1\n{name}\n").into_bytes();
    all.extend_from_slice(bytes);
    all
}

fn unusable(path: &Path, what: &str) -> ConfigError {
    ConfigError::State {
        path: path.to_owned(),
        what: format!(
            "cannot be used ({what}); move it away and accept each server with `toolgate mcp pin NAME --accept`"
        ),
    }
}

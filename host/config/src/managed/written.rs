//! Which files of the managed layer Toolgate wrote.
//!
//! Contract: `servers.d/.written` holds, for each server, a MAC over its name and the bytes of its file,
//! with the key in `servers.key`. A file whose MAC is absent or another was written by somebody else. A
//! record that cannot be read is an error and not an empty one; a key that is gone makes every file
//! somebody else's.
//!
//! Each change seals the whole record anew with a number that stands beside the key and is used once, so that a
//! record of before is none: what was removed does not come back with the record that knew it. The key file holds
//! both numbers while a change is written, so that a process that is killed in between leaves one that counts.
//!
//! Threat: an agent with a shell writes, edits or restores a file under `servers.d/`. It can read the key as well,
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
/// Random bytes of the number that a record is sealed with.
const NUMBER_BYTES: usize = 16;
/// Stands for the number of a record that an older Toolgate wrote, without a seal.
const UNSEALED: &str = "none";
/// How often a record and its key are read until they are of one change.
const READS: usize = 20;

/// The record of one data directory.
pub(super) struct Written {
    path: PathBuf,
    key_path: PathBuf,
    key: Option<KeyFile>,
    record: Record,
}

/// `servers.key`: the key, and a line for each number with which a record counts, the newest first.
#[derive(Clone, PartialEq, Eq)]
struct KeyFile {
    key: String,
    numbers: Vec<String>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    format: u64,
    servers: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seal: Option<String>,
}

impl KeyFile {
    fn read(path: &Path) -> Result<Option<Self>, ConfigError> {
        Ok(read_text(path, MAX_BYTES)?.map(|text| {
            let mut lines = text.expose().lines().map(|line| line.trim().to_owned());
            let key = lines.next().unwrap_or_default();
            Self { key, numbers: lines.filter(|line| !line.is_empty()).collect() }
        }))
    }

    fn write(&self, path: &Path) -> Result<(), ConfigError> {
        let lines: Vec<&str> = std::iter::once(&self.key).chain(&self.numbers).map(String::as_str).collect();
        write_private(path, lines.join("\n").as_bytes())
            .map_err(|source| ConfigError::io("write", path, source))
    }

    fn hmac(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, self.key.as_bytes())
    }

    /// The number of a record that counts; `None` for one that does not.
    fn number_of(&self, record: &Record) -> Option<&str> {
        let fits = |number: &str| match record.seal.as_ref().and_then(|seal| hex::decode(seal).ok()) {
            Some(seal) => hmac::verify(&self.hmac(), &sealed(number, record), &seal).is_ok(),
            None => number == UNSEALED,
        };
        if self.numbers.is_empty() {
            return record.seal.is_none().then_some(UNSEALED);
        }
        self.numbers.iter().map(String::as_str).find(|number| fits(number))
    }
}

impl Written {
    /// Reads the record; none is an empty one.
    pub(super) fn read(data_dir: &Path) -> Result<Self, ConfigError> {
        let path = data_dir.join(DIRECTORY).join(FILE);
        let key_path = data_dir.join(KEY);
        let mut key = KeyFile::read(&key_path)?;
        let mut record = Self::read_record(&path)?;
        for _ in 1..READS {
            let again = KeyFile::read(&key_path)?;
            if again == key {
                break;
            }
            // Somebody writes: the record may be of another change than the key.
            key = again;
            record = Self::read_record(&path)?;
        }
        if key.as_ref().is_none_or(|key| key.number_of(&record).is_none()) {
            record.servers.clear();
        }
        Ok(Self { path, key_path, key, record })
    }

    fn read_record(path: &Path) -> Result<Record, ConfigError> {
        let Some(text) = read_text(path, MAX_BYTES)? else {
            return Ok(Record { format: FORMAT, ..Record::default() });
        };
        let record: Record =
            serde_json::from_str(text.expose()).map_err(|error| unusable(path, &error.to_string()))?;
        if record.format != FORMAT {
            return Err(unusable(path, &format!("its format is {}", record.format)));
        }
        Ok(record)
    }

    /// Whether these bytes are what Toolgate wrote for this server, or what the operator accepted.
    pub(super) fn is_by_us(&self, name: &str, bytes: &[u8]) -> bool {
        let tag = self.record.servers.get(name).and_then(|tag| hex::decode(tag).ok());
        match (&self.key, tag) {
            (Some(key), Some(tag)) => hmac::verify(&key.hmac(), &bound(name, bytes), &tag).is_ok(),
            _ => false,
        }
    }

    /// Records a file. Called under the lock of the directory.
    pub(super) fn record(mut self, name: &str, bytes: &[u8]) -> Result<(), ConfigError> {
        let key = self.key.take();
        let key = key.unwrap_or_else(|| KeyFile { key: random_hex(KEY_BYTES), numbers: Vec::new() });
        let tag = hex::encode(hmac::sign(&key.hmac(), &bound(name, bytes)));
        self.record.servers.insert(name.to_owned(), tag);
        self.write(&key)
    }

    /// Forgets a file that was removed. Called under the lock of the directory.
    pub(super) fn forget(mut self, name: &str) -> Result<(), ConfigError> {
        match (self.record.servers.remove(name), self.key.take()) {
            (Some(_), Some(key)) => self.write(&key),
            _ => Ok(()),
        }
    }

    /// The record under a new number. The number of the record that it replaces counts until it is there.
    fn write(mut self, key: &KeyFile) -> Result<(), ConfigError> {
        let before = Self::read_record(&self.path)?;
        let number = random_hex(NUMBER_BYTES);
        let old = key.number_of(&before).map(str::to_owned);
        let both =
            KeyFile { key: key.key.clone(), numbers: std::iter::once(number.clone()).chain(old).collect() };
        both.write(&self.key_path)?;
        self.record.seal = Some(hex::encode(hmac::sign(&key.hmac(), &sealed(&number, &self.record))));
        let text =
            serde_json::to_vec(&self.record).map_err(|error| unusable(&self.path, &error.to_string()))?;
        write_private(&self.path, &text).map_err(|source| ConfigError::io("write", &self.path, source))?;
        KeyFile { numbers: vec![number], ..both }.write(&self.key_path)
    }
}

/// What a seal is over. A tag is hexadecimal and a name holds no line break, so the parts do not run together.
fn sealed(number: &str, record: &Record) -> Vec<u8> {
    let mut all = format!("toolgate servers.d record, version 1\n{number}\n");
    for (name, tag) in &record.servers {
        for part in [name, tag] {
            all.push_str(part);
            all.push('\n');
        }
    }
    all.into_bytes()
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

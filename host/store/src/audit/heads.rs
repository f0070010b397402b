//! `audit.heads`: the last row of every chain, kept outside the database, so that a tail that was
//! cut off shows.
//!
//! The file is readable and of fixed width: a title, then a slot for each chain, 128 bytes each,
//! `<chain> <seq> <hash> <check>`. A slot is rewritten in place by one write inside one page,
//! which kill -9 does not tear; its check (the first bytes of a sha256) shows a write that a power
//! cut did. Every access holds the file's lock, so that writers of several processes share it.
//!
//! Rules: a slot never goes backwards; it is written after the rows it speaks of; a file that is
//! missing or damaged beside existing rows is left as it is, because making a new one would hide
//! what happened to the old one.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use toolgate_signing::Digest;

use super::chain::{GENESIS, Hash};
use crate::error::StoreError;
use crate::{paths, sys};

/// Bytes of a slot. 32 of them fill a page, so that none lies on two.
const SLOT: usize = 128;
/// The most slots a file may have: 8 KiB.
const MAX_SLOTS: usize = 64;
const MAX_BYTES: usize = (MAX_SLOTS + 1) * SLOT;
/// The most characters of a chain's name in its column.
pub(crate) const MAX_CHAIN_NAME: usize = 24;
/// How often and how long the lock of the file is waited for: 2 s in all.
pub(crate) const LOCK_PAUSES: u32 = 1000;
const LOCK_PAUSE: Duration = Duration::from_millis(2);
const CHECK_DIGITS: usize = 16;
const TITLE: &str = "toolgate audit heads, format 1";

/// The last row of a chain, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// Its number; 0 where the chain has no row yet.
    pub(crate) seq: i64,
    /// Its hash.
    pub(crate) hash: Hash,
}

impl Head {
    /// The head of a chain without rows.
    pub(crate) const EMPTY: Self = Self { seq: 0, hash: GENESIS };
}

/// What the file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Anchors {
    /// There is no file, or an empty one.
    Missing,
    /// The file is not what this crate wrote; says where.
    Damaged(String),
    /// The slots in their order.
    Slots(Vec<(String, Head)>),
}

impl Anchors {
    /// The anchor of a chain, where the file has one.
    pub(crate) fn of(&self, chain: &str) -> Option<Head> {
        match self {
            Self::Slots(slots) => slots.iter().find(|(name, _)| name == chain).map(|(_, head)| *head),
            Self::Missing | Self::Damaged(_) => None,
        }
    }
}

/// The file of one data directory. Before each access it is looked up by its path, so that a file
/// that was moved away is missed instead of being written to in its new place.
#[derive(Debug)]
pub(crate) struct Heads {
    path: PathBuf,
    last: Option<Last>,
    /// The file that was written last, kept open, and which one it is.
    open: Option<(File, sys::FileId)>,
}

/// The file as this process left it, and the slot it wrote.
#[derive(Debug)]
struct Last {
    chain: String,
    index: usize,
    seq: i64,
    bytes: Vec<u8>,
}

impl Heads {
    /// The anchors of a data directory.
    pub(crate) fn of(data_dir: &Path) -> Self {
        Self { path: data_dir.join(paths::AUDIT_HEADS), last: None, open: None }
    }

    /// The same file, for somebody who writes it beside this one.
    pub(crate) fn beside(&self) -> Self {
        Self { path: self.path.clone(), last: None, open: None }
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads all slots.
    pub(crate) fn read(&self) -> Result<Anchors, StoreError> {
        match self.open_existing() {
            Ok(Some(mut file)) => read_all(&mut file),
            Ok(None) => Ok(Anchors::Missing),
            Err(source) => Err(source),
        }
        .map_err(|source| StoreError::io("read", &self.path, source))
    }

    /// Makes the file for a log that has no rows yet.
    pub(crate) fn create(&self) -> Result<(), StoreError> {
        let made = || {
            let mut file = sys::open_private(&self.path)?;
            lock(&file, LOCK_PAUSES)?;
            if file.metadata()?.len() == 0 {
                file.write_all(title().as_bytes())?;
                file.sync_all()?;
            }
            io::Result::Ok(())
        };
        made().map_err(|source| StoreError::io("create", &self.path, source))
    }

    /// Adds an empty slot for a chain that has none, before its first row is committed. False
    /// where the file is missing, damaged or full.
    pub(crate) fn reserve(&self, chain: &str) -> Result<bool, StoreError> {
        self.change(|file| {
            let Anchors::Slots(slots) = read_all(file)? else {
                return Ok(false);
            };
            if slots.iter().any(|(name, _)| name == chain) {
                return Ok(true);
            }
            if slots.len() >= MAX_SLOTS {
                return Ok(false);
            }
            write_slot(file, slots.len(), chain, &Head::EMPTY)?;
            Ok(true)
        })
    }

    /// Moves a chain's anchor forward. False where there is no slot to move.
    /// `pauses` of 2 ms are spent on the file's lock.
    pub(crate) fn advance(&mut self, chain: &str, head: &Head, pauses: u32) -> Result<bool, StoreError> {
        let advanced = match self.reopen() {
            Ok(Some((mut file, id))) => self.advance_in(&mut file, chain, head, pauses).inspect(|_| {
                // Where anything failed the file is closed, and its lock with it.
                self.open = file.unlock().is_ok().then_some((file, id));
            }),
            Ok(None) => Ok(false),
            Err(error) => Err(error),
        };
        advanced.map_err(|source| StoreError::io("write", &self.path, source))
    }

    fn advance_in(&mut self, file: &mut File, chain: &str, head: &Head, pauses: u32) -> io::Result<bool> {
        lock(file, pauses)?;
        let mut bytes = read_bytes(file)?;
        // Most often the file is as this process left it, and nothing has to be parsed.
        let known = self.last.take().filter(|last| last.chain == chain && last.bytes == bytes);
        let found = known.map(|last| (last.index, last.seq)).or_else(|| find(&bytes, chain));
        let Some((index, seq)) = found else { return Ok(false) };
        // A slower writer of the same chain may come late; its head is behind by then.
        if seq < head.seq {
            let slot = write_slot(file, index, chain, head)?;
            if let Some(old) = bytes.get_mut(offset(index)..offset(index + 1)) {
                old.copy_from_slice(slot.as_bytes());
                self.last = Some(Last { chain: chain.to_owned(), index, seq: head.seq, bytes });
            }
        }
        Ok(true)
    }

    /// The file that stands at the path now: the open one if it still is that, else opened anew.
    fn reopen(&mut self) -> io::Result<Option<(File, sys::FileId)>> {
        let there = match std::fs::metadata(&self.path) {
            Ok(metadata) => Some(sys::FileId::of(&metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if let Some((file, id)) = self.open.take().filter(|(_, id)| there.is_some_and(|there| id.is(there))) {
            return Ok(Some((file, id)));
        }
        let Some(file) = self.open_unlocked()? else { return Ok(None) };
        let id = sys::FileId::of(&file.metadata()?);
        Ok(Some((file, id)))
    }

    fn change(&self, change: impl FnOnce(&mut File) -> io::Result<bool>) -> Result<bool, StoreError> {
        let changed = match self.open_existing() {
            Ok(Some(mut file)) => change(&mut file),
            Ok(None) => Ok(false),
            Err(source) => Err(source),
        };
        changed.map_err(|source| StoreError::io("write", &self.path, source))
    }

    /// The locked file; the lock ends when the file is closed.
    fn open_existing(&self) -> io::Result<Option<File>> {
        let file = self.open_unlocked()?;
        if let Some(file) = &file {
            lock(file, LOCK_PAUSES)?;
        }
        Ok(file)
    }

    fn open_unlocked(&self) -> io::Result<Option<File>> {
        match sys::open_existing(&self.path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Takes the file's lock, but does not let somebody who never gives it back stop the log.
fn lock(file: &File, mut pauses: u32) -> io::Result<()> {
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if pauses > 0 => {
                pauses -= 1;
                std::thread::sleep(LOCK_PAUSE);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn read_all(file: &mut File) -> io::Result<Anchors> {
    Ok(parse(&read_bytes(file)?))
}

fn read_bytes(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(SLOT * 4);
    file.seek(SeekFrom::Start(0))?;
    // One byte more than allowed is enough to see that there is more.
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn parse(bytes: &[u8]) -> Anchors {
    if bytes.is_empty() {
        return Anchors::Missing;
    }
    if bytes.len() > MAX_BYTES || !bytes.len().is_multiple_of(SLOT) {
        return Anchors::Damaged(format!("it has {} bytes", bytes.len()));
    }
    let mut lines = bytes.chunks_exact(SLOT);
    if lines.next() != Some(title().as_bytes()) {
        return Anchors::Damaged("its first line is not the title of format 1".to_owned());
    }
    let mut slots: Vec<(String, Head)> = Vec::new();
    for (index, line) in lines.enumerate() {
        match parse_slot(line) {
            Some((name, head)) if slots.iter().all(|(other, _)| *other != name) => {
                slots.push((name, head));
            }
            Some((name, _)) => return Anchors::Damaged(format!("chain `{name}` is there twice")),
            None => return Anchors::Damaged(format!("line {} is no anchor", index + 2)),
        }
    }
    Anchors::Slots(slots)
}

fn parse_slot(line: &[u8]) -> Option<(String, Head)> {
    let line = std::str::from_utf8(line).ok()?;
    let mut fields = line.split_ascii_whitespace();
    let (chain, seq, hash) = (fields.next()?, fields.next()?, fields.next()?);
    let mut head = Head { seq: seq.parse().ok().filter(|seq| *seq >= 0)?, hash: GENESIS };
    hex::decode_to_slice(hash, &mut head.hash).ok()?;
    // Writing it again and comparing checks the width, the check digits and the end of the line.
    (slot(chain, &head) == line).then(|| (chain.to_owned(), head))
}

/// The place of a chain's slot and the number it holds.
fn find(bytes: &[u8], chain: &str) -> Option<(usize, i64)> {
    let Anchors::Slots(slots) = parse(bytes) else {
        return None;
    };
    slots.iter().enumerate().find(|(_, (name, _))| name == chain).map(|(index, (_, head))| (index, head.seq))
}

fn write_slot(file: &mut File, index: usize, chain: &str, head: &Head) -> io::Result<String> {
    let slot = slot(chain, head);
    file.seek(SeekFrom::Start(offset(index) as u64))?;
    file.write_all(slot.as_bytes())?;
    Ok(slot)
}

/// Where a slot begins: after the title.
const fn offset(index: usize) -> usize {
    (index + 1) * SLOT
}

fn slot(chain: &str, head: &Head) -> String {
    let body = format!("{chain:<MAX_CHAIN_NAME$} {:020} {}", head.seq, Digest::from_bytes(head.hash).hex());
    let check = Digest::of(body.as_bytes()).hex();
    let check = check.get(..CHECK_DIGITS).unwrap_or_default();
    format!("{body} {check}\n")
}

fn title() -> String {
    format!("{TITLE:<width$}\n", width = SLOT - 1)
}

#[cfg(test)]
mod tests;

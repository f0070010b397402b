//! Verifying rows as they left the log: JSON lines, one row each, with the hash before it.
//!
//! A sink delivers at least once, so a row may come again; it must then be the same. Bounds: 1 MiB a
//! line, and the last 8,192 rows are remembered for repetitions.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use super::Problem;
use super::pass::Pass;
use crate::audit::chain::{self, Hash};
use crate::audit::export::ExportedRow;
use crate::audit::heads::Head;
use crate::error::StoreError;

const MAX_LINE: u64 = 1024 * 1024;
const REMEMBERED: usize = 8_192;

/// Reads a file of exported rows.
pub(super) fn read(pass: &mut Pass, file: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::io("read", file, source);
    let mut lines = BufReader::new(std::fs::File::open(file).map_err(failed)?);
    let mut seen = Seen::default();
    let mut line = Vec::new();
    for number in 1u64.. {
        line.clear();
        let read = (&mut lines).take(MAX_LINE).read_until(b'\n', &mut line).map_err(failed)?;
        if read == 0 {
            break;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match serde_json::from_slice::<ExportedRow>(&line) {
            Ok(row) => take(pass, &mut seen, &row, number),
            Err(error) => {
                let detail = format!("line {number} is no row as `audit export` writes it: {error}");
                pass.find(None, None, Problem::RowChanged, detail);
            }
        }
    }
    Ok(())
}

fn take(pass: &mut Pass, seen: &mut Seen, row: &ExportedRow, number: u64) {
    let (Some(hash), Some(before)) = (row.hash(), row.previous()) else {
        let detail = format!("line {number}: a hash has not 64 hex digits");
        pass.find(Some(&row.chain), Some(row.seq), Problem::RowChanged, detail);
        return;
    };
    if let Some(had) = seen.of(&row.chain, row.seq) {
        if had != hash {
            let detail = format!("line {number} repeats the row with another hash");
            pass.find(Some(&row.chain), Some(row.seq), Problem::RowChanged, detail);
        }
        return;
    }
    pass.rows += 1;
    pass.meets_checkpoint(&row.chain, Head { seq: row.seq, hash });
    if chain::hash(&before, &row.columns()) != hash {
        let detail = format!("line {number}: its hash is not that of its columns and the hash before it");
        pass.find(Some(&row.chain), Some(row.seq), Problem::RowChanged, detail);
    } else if let Some(head) = pass.head(&row.chain) {
        if row.seq != head.seq.saturating_add(1) {
            let detail = format!("after row {} of the chain comes row {}", head.seq, row.seq);
            pass.find(Some(&row.chain), Some(row.seq), Problem::RowMissing, detail);
        } else if before != head.hash {
            let detail = "it follows another row than the one before it".to_owned();
            pass.find(Some(&row.chain), Some(row.seq), Problem::RowChanged, detail);
        }
    } else {
        // The rows may begin anywhere in a chain; the hash before the first is what a checkpoint shows.
        pass.meets_checkpoint(&row.chain, Head { seq: row.seq.saturating_sub(1), hash: before });
    }
    seen.keep(&row.chain, row.seq, hash);
    pass.stands_at(row.chain.clone(), Head { seq: row.seq, hash }, 1);
}

/// The rows that were read last.
#[derive(Default)]
struct Seen {
    hashes: BTreeMap<(String, i64), Hash>,
    order: VecDeque<(String, i64)>,
}

impl Seen {
    fn of(&self, chain: &str, seq: i64) -> Option<Hash> {
        self.hashes.get(&(chain.to_owned(), seq)).copied()
    }

    fn keep(&mut self, chain: &str, seq: i64, hash: Hash) {
        let key = (chain.to_owned(), seq);
        self.hashes.insert(key.clone(), hash);
        self.order.push_back(key);
        if self.order.len() > REMEMBERED
            && let Some(old) = self.order.pop_front()
        {
            self.hashes.remove(&old);
        }
    }
}

//! Verifying across the cut: the rows of each sealed segment are read before those of the log.

use std::path::Path;

use rusqlite::Connection;

use super::pass::Pass;
use super::{Problem, SegmentSummary};
use crate::audit::schema;
use crate::audit::segments::{self, Segment};
use crate::database::Database;
use crate::error::StoreError;

impl Pass {
    /// Reads the segments that the log knows, from `archive`; without it, their sealed heads are taken as
    /// they stand.
    pub(super) fn sealed(&mut self, snapshot: &Connection, archive: Option<&Path>) -> rusqlite::Result<()> {
        for segment in segments::all(snapshot)? {
            let read = archive.is_some_and(|archive| self.segment(&segment, archive));
            let heads = segments::heads_where(snapshot, segment.number)?;
            for (chain, head) in heads {
                if read && self.head(&chain) != Some(head) {
                    let detail = format!("segment {} does not end where it was sealed", segment.number);
                    self.find(Some(&chain), Some(head.seq), Problem::SegmentChanged, detail);
                } else if !read {
                    self.meets_checkpoint(&chain, head);
                }
                // What was sealed goes on, so that one segment does not accuse all that follows.
                self.stands_at(chain, head, 0);
            }
            self.last_id = segment.last_id;
            self.segments.push(SegmentSummary {
                number: segment.number,
                first_id: segment.first_id,
                last_id: segment.last_id,
                read,
            });
        }
        Ok(())
    }

    /// Whether the segment's rows were read.
    fn segment(&mut self, segment: &Segment, archive: &Path) -> bool {
        let path = segments::file(archive, segment.number);
        let digest = match segments::digest_of(&path) {
            Ok(digest) => digest.to_string(),
            Err(error) => {
                let detail = format!(
                    "segment {} (rows {} to {}) cannot be read at {}: {error}",
                    segment.number,
                    segment.first_id,
                    segment.last_id,
                    path.display()
                );
                self.find(None, None, Problem::SegmentMissing, detail);
                return false;
            }
        };
        if digest != segment.digest {
            let detail = format!("{} is {digest}, and {} was sealed", path.display(), segment.digest);
            self.find(None, None, Problem::SegmentChanged, detail);
        }
        if self.last_id.saturating_add(1) != segment.first_id {
            let detail = format!("segment {} begins at row {}", segment.number, segment.first_id);
            self.find(None, None, Problem::SegmentChanged, detail);
        }
        let read = Database::open_copy(&path, &schema::FORMAT).and_then(|database| {
            let failed = database.error("read all rows");
            self.table(&database.connection).map_err(&failed)?;
            self.pages(&database.connection).map_err(&failed)
        });
        match read {
            Ok(()) => true,
            Err(error) => {
                let what = match error {
                    StoreError::Damaged { what, .. } => what,
                    other => other.to_string(),
                };
                self.find(None, None, Problem::SegmentChanged, format!("{}: {what}", path.display()));
                false
            }
        }
    }
}

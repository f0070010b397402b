//! What the audit log is asked for, as the witness of decisions that stand in other files.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use serde::Serialize;
use toolgate_base::Clock;
use toolgate_signing::Digest;

use super::Store;
use crate::audit::event::Event;
use crate::audit::memory::{self, Memory};
use crate::audit::row::AuditRow;
use crate::audit::writer::Writer;
use crate::database::Durability;
use crate::error::StoreError;
use crate::paths;
use crate::state::lost;
use crate::state::standing::{Freeze, Frozen};

/// The servers that rows pinned, and the last row that was looked at.
pub(super) type PinnedByLog = (HashSet<String>, i64);

/// Who recovers a lost state, and what was configured there.
#[derive(Debug, Clone)]
pub struct Recovery {
    /// Who, and how the operator was proven, for the row.
    pub approver: String,
    /// Identity and name of each configured server.
    pub servers: Vec<(Digest, String)>,
}

/// What a recovered state holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recovered {
    /// What is frozen.
    pub frozen: Vec<Freeze>,
    /// How many standing denials and asks were put back.
    pub standing: usize,
    /// The servers that have to be accepted again.
    pub servers: Vec<String>,
    /// Why the audit log could not be believed, where it could not: everything is frozen then.
    pub distrusted: Option<String>,
}

impl Store {
    /// An error where the audit log tells that this server was pinned. Asked where nothing else knows of
    /// its pins, before that is called a first use (PI-05). Reads the log once, and later only what is new.
    pub fn expect_never_pinned(&self, server: &str) -> Result<(), StoreError> {
        let forgotten = || StoreError::PinsForgotten { server: server.to_owned() };
        let mut known = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        let after = known.as_ref().map_or(0, |(_, last)| *last);
        let (new, last) = memory::pinned_after(&self.data_dir, after)?;
        let mut all = if let Some((all, _)) = known.take() {
            all
        } else {
            let memory = Memory::read(&self.data_dir)?;
            let all: HashSet<String> = memory.pinned().map(str::to_owned).collect();
            match memory.missing().first() {
                // Nothing is kept, so that a segment that was brought back is read.
                Some(_) if all.contains(server) => return Err(forgotten()),
                Some(file) => {
                    let (server, file) = (server.to_owned(), file.clone());
                    return Err(StoreError::SegmentNeeded { server, file });
                }
                None => all,
            }
        };
        all.extend(new);
        let was_pinned = all.contains(server);
        *known = Some((all, last));
        if was_pinned { Err(forgotten()) } else { Ok(()) }
    }

    /// Writes down what the rows up to `last`, which were sealed, say and still counts. False where that
    /// cannot be known, because an older segment is missing: it has to be there then.
    pub async fn carry(&self, last: i64) -> Result<bool, StoreError> {
        let memory = Memory::until(&self.data_dir, last)?;
        if !memory.missing().is_empty() {
            return Ok(false);
        }
        for row in memory.carried(last) {
            self.append(row).await?;
        }
        Ok(true)
    }

    /// Makes a lost `state.db` anew from what the audit log remembers; the row is written first. Everything
    /// is frozen where the log is gone or not whole. The caller has proof of the operator.
    ///
    /// # Errors
    /// [`StoreError::StateIsThere`] where nothing is lost.
    pub async fn recover(
        data_dir: &Path,
        durability: Durability,
        clock: Arc<dyn Clock>,
        recovery: &Recovery,
    ) -> Result<Recovered, StoreError> {
        let now_ms = i64::try_from(clock.now_ms()).unwrap_or(i64::MAX);
        let distrusted = distrusted(data_dir)?;
        let memory = Memory::read(data_dir)?;
        let (mut frozen, standing) = (memory.frozen(), memory.standing());
        if let Some(why) = &distrusted {
            frozen.retain(|freeze| freeze.what != Frozen::All);
            frozen.push(Freeze {
                what: Frozen::All,
                reason: format!("state.db was lost, and what was frozen and denied cannot be known: {why}"),
                frozen_by: recovery.approver.clone(),
            });
        }
        let servers: Vec<(Digest, String)> = recovery
            .servers
            .iter()
            .filter(|(_, name)| distrusted.is_some() || memory.was_pinned(name))
            .cloned()
            .collect();
        if lost::is_there(data_dir)? {
            return Err(StoreError::StateIsThere { path: data_dir.join(paths::STATE_DB) });
        }
        let writer = Writer::start(data_dir, "operator", durability, clock)?;
        let row = AuditRow::new(Event::StateRecovered)
            .with("approver", recovery.approver.as_str())
            .with("frozen", frozen.len())
            .with("standing", standing.len())
            .with("servers", servers.len());
        writer.append(row.with_some("distrusted", distrusted.as_deref())).await?;
        lost::remember_pinned(data_dir, &servers)?;
        if !lost::recover(data_dir, &frozen, &standing, now_ms)? {
            return Err(StoreError::StateIsThere { path: data_dir.join(paths::STATE_DB) });
        }
        let servers = servers.into_iter().map(|(_, name)| name).collect();
        Ok(Recovered { frozen, standing: standing.len(), servers, distrusted })
    }
}

/// Why the audit log does not tell all that happened, if so.
fn distrusted(data_dir: &Path) -> Result<Option<String>, StoreError> {
    if !memory::has_rows(data_dir)? {
        return Ok(Some("there is no audit log with rows".to_owned()));
    }
    let report = Store::verify(data_dir)?;
    Ok(report.findings.first().map(|finding| format!("the audit log is not whole: {finding}")))
}

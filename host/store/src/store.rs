//! The store of one data directory, as the rest of Toolgate sees it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use toolgate_base::{Clock, SystemClock, files};
use toolgate_signing::Digest;

use crate::audit::archive::{self, SealedSegment};
use crate::audit::event::Event;
use crate::audit::reader::AuditReader;
use crate::audit::row::{AuditRow, Position};
use crate::audit::verify::{self, VerifyOptions, VerifyReport};
use crate::audit::writer::Writer;
use crate::database::Durability;
use crate::error::StoreError;
use crate::kv::{Kv, KvCondition, KvDone, KvPlace, KvValue};
use crate::state::State;
use crate::state::asks::{Answer, Ask};
use crate::state::pins::{KnownServer, PinnedDefinition, Pins};
use crate::state::standing::{Freeze, Frozen, StandingDecision};
use crate::state::tasks::{NewTask, Task, TaskUpdate};
use crate::state::tokens::{IssuedToken, TokenInfo, TokenOwner};

mod asks;
mod witness;

use witness::PinnedByLog;
pub use witness::{Recovered, Recovery};

/// The audit log and the state of one data directory, open for writing.
///
/// Methods without `async` take at most [`BUSY_TIMEOUT`](crate::BUSY_TIMEOUT) and usually a
/// fraction of a millisecond. Dropping the store writes the rows that wait.
pub struct Store {
    data_dir: PathBuf,
    /// None only where [`Self::open_without_audit_for_the_bench`] made the store.
    audit: Option<Writer>,
    state: State,
    kv: Kv,
    clock: Arc<dyn Clock>,
    /// Who runs this process, as rows name them.
    person: Option<String>,
    /// The servers that the log is known to have pinned, and up to which row that was looked for.
    pinned: Mutex<Option<PinnedByLog>>,
}

impl Store {
    /// Opens or creates the store. `writer` names the audit chain of this process: `gateway`,
    /// `cli`; 1 to 16 of a-z, 0-9 and `-`.
    pub fn open(data_dir: &Path, writer: &str) -> Result<Self, StoreError> {
        Self::open_with(data_dir, writer, Durability::Process, Arc::new(SystemClock))
    }

    /// As [`Self::open`], with the durability of audit commits and the clock chosen.
    pub fn open_with(
        data_dir: &Path,
        writer: &str,
        durability: Durability,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        files::create_private_dir(data_dir).map_err(|source| StoreError::io("create", data_dir, source))?;
        let store = Self {
            data_dir: data_dir.to_owned(),
            state: State::open(data_dir, Arc::clone(&clock))?,
            kv: Kv::new(data_dir, Arc::clone(&clock)),
            audit: Some(Writer::start(data_dir, writer, durability, Arc::clone(&clock))?),
            clock,
            person: None,
            pinned: Mutex::default(),
        };
        store.report_expired_asks()?;
        store.state.remove_old_tasks()?;
        Ok(store)
    }

    /// A store that forgets every audit row, to measure what the log costs. No configuration and no
    /// command leads here, and `cargo xtask check` refuses the name anywhere but in the bench.
    #[doc(hidden)]
    pub fn open_without_audit_for_the_bench(
        data_dir: &Path,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        files::create_private_dir(data_dir).map_err(|source| StoreError::io("create", data_dir, source))?;
        let state = State::open(data_dir, Arc::clone(&clock))?;
        Ok(Self {
            data_dir: data_dir.to_owned(),
            state,
            kv: Kv::new(data_dir, Arc::clone(&clock)),
            audit: None,
            clock,
            person: None,
            pinned: Mutex::default(),
        })
    }

    /// Says who runs this process: an account, such as `uid 1000`. Rows about a caller who came with a
    /// token of their own do not get it.
    #[must_use]
    pub fn run_by(mut self, person: String) -> Self {
        self.person = Some(person);
        self
    }

    /// The directory of this store.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Appends a row and resolves when it is committed. An error means that the row is not in the
    /// log, so that what it announces must not happen.
    pub async fn append(&self, row: AuditRow) -> Result<Position, StoreError> {
        match &self.audit {
            Some(audit) => audit.append(row.run_by(self.person.as_deref())).await,
            None => Ok(Position { id: 0, chain: String::new(), seq: 0 }),
        }
    }

    /// Appends a row without waiting. A commit that fails is tried again; a row that must be given
    /// up is counted in an `audit_gap` row.
    pub fn append_detached(&self, row: AuditRow) {
        if let Some(audit) = &self.audit {
            audit.append_detached(row.run_by(self.person.as_deref()));
        }
    }

    /// Resolves when every row handed over so far was written or refused.
    pub async fn flush(&self) {
        if let Some(audit) = &self.audit {
            audit.flush().await;
        }
    }

    /// A read-only view of the audit log: `tail`, `after`, `select`.
    pub fn reader(&self) -> Result<AuditReader, StoreError> {
        AuditReader::open(&self.data_dir)
    }

    /// Recomputes every audit chain of a data directory and compares it with its anchor. Needs no
    /// open store, and works beside one.
    pub fn verify(data_dir: &Path) -> Result<VerifyReport, StoreError> {
        verify::verify(data_dir, &VerifyOptions::default())
    }

    /// Seals the rows before the first one that was committed at or after `before` (Unix seconds), and
    /// none after row `delivered` where that is given, into files below the data directory. A row of
    /// each segment says so. Blocks for as long as it takes.
    pub fn archive(&self, before: i64, delivered: Option<i64>) -> Result<Vec<SealedSegment>, StoreError> {
        let now_ms = self.clock.now_ms();
        archive::archive(&self.data_dir, before, delivered, now_ms)
    }

    /// A number that changes when another process changed asks, grants, pins, tokens, standing
    /// decisions or what is frozen. Costs microseconds.
    pub fn state_version(&self) -> Result<i64, StoreError> {
        self.state.version()
    }

    /// Sets a standing decision; its row is written first. The caller has proof of the operator where
    /// it widens.
    ///
    /// False, and nothing is changed, where it would take back a part of what was decided and the operator
    /// was not `proven`.
    pub async fn set_standing(&self, decision: &StandingDecision, proven: bool) -> Result<bool, StoreError> {
        if !proven && self.state.takes_back(decision)? {
            return Ok(false);
        }
        self.state.standing_fits(decision)?;
        let row = AuditRow::standing_set(decision);
        // Not so where another process decided in between.
        self.recorded(row, || {
            if self.state.set_standing(decision, proven)? { Ok(true) } else { Err(StoreError::Overtaken) }
        })
        .await
    }

    /// The standing decision of a persona about exactly this pattern.
    pub fn standing_of(&self, persona: &str, pattern: &str) -> Result<Option<StandingDecision>, StoreError> {
        self.state.standing_of(persona, pattern)
    }

    /// Takes a standing decision back, so that nothing was decided about it; its row is written first. The
    /// caller has proof of the operator where it was an ask or a denial.
    ///
    /// # Errors
    /// [`StoreError::Overtaken`] where it is another decision by now.
    pub async fn forget_standing(&self, decision: &StandingDecision, by: &str) -> Result<(), StoreError> {
        let row = AuditRow::standing_forgotten(decision, by);
        self.recorded(row, || {
            if self.state.forget_standing(decision)? { Ok(()) } else { Err(StoreError::Overtaken) }
        })
        .await
    }

    /// Every standing decision.
    pub fn standing(&self) -> Result<Vec<StandingDecision>, StoreError> {
        self.state.standing()
    }

    /// Freezes, and takes back every ask and unused grant that it is about. Gives those.
    pub async fn freeze(&self, freeze: &Freeze) -> Result<Vec<Ask>, StoreError> {
        self.state.freeze_fits(&freeze.what)?;
        let row = AuditRow::new(Event::Frozen)
            .with("what", freeze.what.to_string())
            .with("reason", freeze.reason.as_str())
            .with("by", freeze.frozen_by.as_str());
        self.recorded(row, || self.state.freeze(freeze)).await?;
        let server = match &freeze.what {
            Frozen::All => None,
            Frozen::Server(name) => Some(name.as_str()),
            Frozen::Plugin(_) => return Ok(Vec::new()),
        };
        let voided = self.state.void_asks(server, &freeze.frozen_by, "freeze")?;
        for ask in &voided {
            let answer = Answer { grant: false, by: freeze.frozen_by.clone(), surface: "freeze" };
            self.append_detached(AuditRow::answered(ask, &answer));
        }
        Ok(voided)
    }

    /// Ends a freeze; its row is written first. False, and no row, where there was none. The caller has proof
    /// of the operator.
    pub async fn thaw(&self, what: &Frozen, by: &str) -> Result<bool, StoreError> {
        if !self.state.frozen()?.iter().any(|freeze| freeze.what == *what) {
            return Ok(false);
        }
        let row = AuditRow::new(Event::Thawed).with("what", what.to_string()).with("by", by);
        self.recorded(row, || if self.state.thaw(what)? { Ok(true) } else { Err(StoreError::Overtaken) })
            .await
    }

    /// Everything that is frozen.
    pub fn frozen(&self) -> Result<Vec<Freeze>, StoreError> {
        self.state.frozen()
    }

    /// Writes down what is about to be done, and does it. Where it is not done all the same, because another
    /// process was faster or the disk is full, a second row says so (`refused`): the first one said too much.
    async fn recorded<T>(
        &self,
        row: AuditRow,
        act: impl FnOnce() -> Result<T, StoreError> + Send,
    ) -> Result<T, StoreError> {
        self.append(row.clone()).await?;
        let done = act();
        if let Err(error) = &done {
            self.append_detached(row.with("refused", error.to_string()));
        }
        done
    }

    /// The pins of a server; `None` where it was never pinned. Pins that are unreadable, gone or
    /// altered are an error (PI-05). A server that changed its identity has none under the new
    /// one: compare with [`Self::known_servers`] before calling that a first use.
    pub fn pins_of(&self, identity: &Digest) -> Result<Option<Pins>, StoreError> {
        self.state.pins_of(identity)
    }

    /// Accepts definitions as the pins of a server, replacing those it had.
    pub fn write_pins(
        &self,
        identity: &Digest,
        server: &str,
        protocol_revision: &str,
        definitions: &[PinnedDefinition],
    ) -> Result<KnownServer, StoreError> {
        self.state.write_pins(identity, server, protocol_revision, definitions)
    }

    /// Every server that is pinned, by name, those included whose pins are gone from the database.
    pub fn known_servers(&self) -> Result<Vec<KnownServer>, StoreError> {
        self.state.known_servers()
    }

    /// Forgets a server that the operator removed. False where it was not pinned.
    pub fn forget_pins(&self, identity: &Digest) -> Result<bool, StoreError> {
        self.state.forget_pins(identity)
    }

    /// Issues a bearer token for a persona in a lane. It is stored as a digest only.
    pub fn issue_token(&self, persona: &str, lane: &str) -> Result<IssuedToken, StoreError> {
        self.state.issue_token(persona, lane)
    }

    /// Whose token this is; `None` where it is unknown or revoked.
    pub fn persona_of(&self, token: &str) -> Result<Option<TokenOwner>, StoreError> {
        self.state.persona_of(token)
    }

    /// Every token that was issued, revoked ones included, oldest first.
    pub fn tokens(&self) -> Result<Vec<TokenInfo>, StoreError> {
        self.state.tokens()
    }

    /// Revokes a token at once. False where there is none with this id that is valid.
    pub fn revoke_token(&self, id: &str) -> Result<bool, StoreError> {
        self.state.revoke_token(id)
    }

    /// Writes a task down, before anybody waits for it. Those that were over for long enough go.
    pub fn add_task(&self, task: &NewTask<'_>) -> Result<(), StoreError> {
        self.state.add_task(task)
    }

    /// Writes down what is known of a task now. The end of one that is over stays.
    pub fn update_task(&self, id: &str, update: &TaskUpdate<'_>) -> Result<(), StoreError> {
        self.state.update_task(id, update)
    }

    /// A task by its id, with its outcome where one is kept.
    pub fn task(&self, id: &str) -> Result<Option<Task>, StoreError> {
        self.state.task(id)
    }

    /// Every task that is kept, oldest first, without outcomes.
    pub fn tasks(&self) -> Result<Vec<Task>, StoreError> {
        self.state.tasks()
    }

    /// Notes that a task is to be cancelled, once. False where it is over, unknown or noted already.
    pub fn request_task_cancel(&self, id: &str, by: &str) -> Result<bool, StoreError> {
        self.state.request_task_cancel(id, by)
    }

    /// Gives the tasks of a process that ended, as far as they are not over, to another.
    pub fn adopt_tasks(&self, from: &str, to: &str) -> Result<usize, StoreError> {
        self.state.adopt_tasks(from, to)
    }

    /// Notes that a kept outcome was handed over. False where none waited for that.
    pub fn deliver_task(&self, id: &str) -> Result<bool, StoreError> {
        self.state.deliver_task(id)
    }

    /// Removes the tasks that were over for long enough; how many those were (TSK-017).
    pub fn remove_old_tasks(&self) -> Result<usize, StoreError> {
        self.state.remove_old_tasks()
    }

    /// What a plugin stored under a key and has not expired.
    pub fn kv_get(&self, place: &KvPlace<'_>, key: &str) -> Result<Option<KvValue>, StoreError> {
        self.kv.get(place, key)
    }

    /// Stores a plugin's value if the condition holds and it fits into `quota`, the bytes of all
    /// keys and values of the place. One step, also between processes.
    pub fn kv_write(
        &self,
        place: &KvPlace<'_>,
        key: &str,
        value: &[u8],
        ttl: Option<Duration>,
        condition: KvCondition,
        quota: u64,
    ) -> Result<KvDone, StoreError> {
        self.kv.write(place, key, value, ttl, condition, quota)
    }

    /// Removes a plugin's value. False where there was none.
    pub fn kv_delete(&self, place: &KvPlace<'_>, key: &str) -> Result<bool, StoreError> {
        self.kv.delete(place, key)
    }

    /// At most `limit` keys of a plugin that begin with `prefix` and come after `after`.
    pub fn kv_keys(
        &self,
        place: &KvPlace<'_>,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        self.kv.keys(place, prefix, after, limit)
    }

    /// Remembers the era a server answered in, as a word of the caller's.
    pub fn remember_era(&self, identity: &Digest, era: &str) -> Result<(), StoreError> {
        self.state.remember_era(identity, era)
    }

    /// The era a server answered in last, if it was remembered.
    pub fn era(&self, identity: &Digest) -> Result<Option<String>, StoreError> {
        self.state.era(identity)
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Store").field("data_dir", &self.data_dir).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

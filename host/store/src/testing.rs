//! What the tests of this crate share: a store in a directory of its own, and a way behind its back.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use tempfile::TempDir;
use toolgate_base::ManualClock;
use toolgate_signing::Digest;

use crate::{
    Actor, Ask, AskAbout, AskBinding, AuditRow, CallFacts, Durability, Recorded, Store, StoreError,
    VerifyReport,
};

/// 2026-11-29 00:00:00.123 UTC.
pub(crate) const NOW_MS: u64 = 1_795_910_400_123;

/// A data directory, its store and its clock.
pub(crate) struct Bench {
    pub(crate) dir: TempDir,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: Option<Store>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut bench = Self { dir, clock: Arc::new(ManualClock::new(NOW_MS)), store: None };
        bench.open();
        bench
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    pub(crate) fn open(&mut self) {
        self.store = None;
        self.store = Some(self.another("gateway"));
    }

    /// A second store over the same directory, as another process would have it.
    pub(crate) fn another(&self, writer: &str) -> Store {
        Store::open_with(self.path(), writer, Durability::Process, self.clock.clone()).unwrap()
    }

    pub(crate) fn close(&mut self) {
        self.store = None;
    }

    pub(crate) fn append(&self, rows: usize) {
        append(self.store(), rows);
    }

    /// Records an ask with its row, for five minutes; eight of a session may wait.
    pub(crate) fn record_ask(&self, binding: &AskBinding, about: &AskAbout) -> Result<Recorded, StoreError> {
        let row = |ask: &Ask| AuditRow::asked(&call(), &ask.id, "why", 0);
        run(self.store().record_ask(binding, about, std::time::Duration::from_mins(5), 8, row))
    }

    pub(crate) fn verify(&self) -> VerifyReport {
        Store::verify(self.path()).unwrap()
    }

    /// A connection that knows no rules.
    pub(crate) fn behind_its_back(&self, file: &str) -> Connection {
        let connection = Connection::open(self.path().join(file)).unwrap();
        connection.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
        connection
    }

    /// Runs statements on `audit.db` with the triggers out of the way, and puts these back.
    pub(crate) fn tamper(&self, sql: &str) {
        let connection = self.behind_its_back(crate::AUDIT_DB);
        let triggers: Vec<(String, String)> = connection
            .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        for (name, _) in &triggers {
            connection.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
        }
        connection.execute_batch(sql).unwrap();
        for (_, sql) in &triggers {
            connection.execute_batch(sql).unwrap();
        }
    }
}

/// Appends rows one after the other, each awaited.
pub(crate) fn append(store: &Store, rows: usize) {
    run(async {
        for number in 0..rows {
            store.append(AuditRow::called(&call(), &digest(&number.to_string()))).await.unwrap();
        }
    });
}

pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub(crate) fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

/// A call by a whole actor.
pub(crate) fn call() -> CallFacts {
    let some = |text: &str| Some(text.to_owned());
    CallFacts {
        deed: crate::Deed::Call,
        actor: Actor {
            run_id: some("run-7"),
            thread_id: some("thread-3"),
            persona: some("default"),
            lane: some("main"),
            credential: some("stdio"),
            session: some("s-1"),
        },
        server: some("github"),
        tool: some("issues/create"),
        exposed: some("github__issues_create_0123456789"),
        request_id: some("\"1\""),
    }
}

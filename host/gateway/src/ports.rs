//! What the plugin host is connected to: the state store for `kv`, the audit log for secrets that
//! are revealed. One place where the words of the two crates meet.

use std::sync::Arc;
use std::time::Duration;

use toolgate_plugins::{KvEntry, KvExpected, KvOutcome, KvSpace, KvStore, KvWrite, Ports, Record};
use toolgate_store::{AuditRow, KvCondition, KvDone, KvPlace, KvValue, Store, StoreError};

/// How long a row about a secret may take to be committed.
const ROW_WAIT: Duration = Duration::from_secs(5);

/// The ports of a gateway with this store.
pub fn ports(store: &Arc<Store>) -> Ports {
    Ports {
        kv: Some(Arc::new(Kept(Arc::clone(store)))),
        record: Some(Arc::new(Kept(Arc::clone(store)))),
        lookup: None,
        own: Arc::default(),
    }
}

struct Kept(Arc<Store>);

impl KvStore for Kept {
    fn get(&self, space: &KvSpace, key: &str) -> Result<Option<KvEntry>, String> {
        Ok(self.0.kv_get(&place(space), key).map_err(|error| told(&error))?.map(entry))
    }

    fn write(&self, space: &KvSpace, key: &str, write: &KvWrite<'_>) -> Result<KvOutcome, String> {
        let condition = match write.expected {
            KvExpected::Anything => KvCondition::None,
            KvExpected::Absent => KvCondition::Absent,
            KvExpected::Version(version) => KvCondition::Version(version),
        };
        let done = self.0.kv_write(&place(space), key, write.value, write.ttl, condition, write.quota);
        Ok(match done.map_err(|error| told(&error))? {
            KvDone::Written(version) => KvOutcome::Written(version),
            KvDone::Conflict(found) => KvOutcome::Conflict(found.map(entry)),
            KvDone::Full(used) => KvOutcome::Full(used),
        })
    }

    fn delete(&self, space: &KvSpace, key: &str) -> Result<bool, String> {
        self.0.kv_delete(&place(space), key).map_err(|error| told(&error))
    }

    fn keys(&self, space: &KvSpace, prefix: &str, after: &str, limit: usize) -> Result<Vec<String>, String> {
        self.0.kv_keys(&place(space), prefix, after, limit).map_err(|error| told(&error))
    }
}

impl Record for Kept {
    fn secret_revealed(&self, plugin: &str, label: &str, persona: &str) -> Result<(), String> {
        let row = AuditRow::secret_revealed(plugin, label, persona);
        let store = Arc::clone(&self.0);
        let (done, wait) = std::sync::mpsc::sync_channel(1);
        // The guest's thread waits for the row; it is written wherever the store's writer lives.
        let append = async move {
            let _ = done.send(store.append(row).await.map(|_| ()).map_err(|error| told(&error)));
        };
        toolgate_plugins::detached(append).map_err(str::to_owned)?;
        wait.recv_timeout(ROW_WAIT).unwrap_or_else(|_| Err("it took too long".to_owned()))
    }
}

fn place(space: &KvSpace) -> KvPlace<'_> {
    KvPlace { plugin: &space.plugin, label: &space.label, scope: space.scope, owner: &space.owner }
}

fn entry(found: KvValue) -> KvEntry {
    KvEntry { value: found.value, version: found.version }
}

/// The guest learns that it failed, the operator why: paths are no business of a plugin's.
fn told(error: &StoreError) -> String {
    tracing::warn!(%error, "the store failed a plugin");
    "the store cannot be used now".to_owned()
}

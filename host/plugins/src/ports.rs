//! What the plugin host needs from above it, stated as small traits that the gateway implements:
//! a store for `kv`, a place where the use of a secret is written down, a resolver.
//!
//! All of them are called on threads of the plugins' own pool, never on one that serves others.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolgate_net::guard::{Lookup, SystemLookup};

/// What the host is connected to. The default has no store and no record: `kv` is unavailable and
/// nothing can be revealed.
#[derive(Clone, Default)]
pub struct Ports {
    /// Where `kv` keeps its values.
    pub kv: Option<Arc<dyn KvStore>>,
    /// Where the use of a secret is written down.
    pub record: Option<Arc<dyn Record>>,
    /// How `http` finds addresses; none asks the operating system.
    pub lookup: Option<Arc<dyn Lookup>>,
    /// Toolgate's own: the directory of what is approved and recorded, and the files of what is configured.
    /// No `files` label leads into one, nor, to write, to what holds one.
    pub own: Arc<[PathBuf]>,
}

impl Ports {
    pub(crate) fn lookup(&self) -> Arc<dyn Lookup> {
        self.lookup.clone().unwrap_or_else(|| Arc::new(SystemLookup))
    }
}

/// Writes down what has to be known later.
pub trait Record: Send + Sync {
    /// A plugin is about to see the value of a secret. An error means that the row is not in the
    /// log, and then nothing is revealed.
    fn secret_revealed(&self, plugin: &str, label: &str, persona: &str) -> Result<(), String>;
}

/// To whom a stored value belongs. Two different spaces never share a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KvSpace {
    /// The plugin's name.
    pub plugin: String,
    /// The label.
    pub label: String,
    /// `plugin`, `persona` or `session`.
    pub scope: &'static str,
    /// Which persona or session; empty for the scope `plugin`.
    pub owner: String,
}

/// One stored value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvEntry {
    /// The bytes.
    pub value: Vec<u8>,
    /// Goes up with every write of its key; never 0.
    pub version: u64,
}

/// What has to be true for a write to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvExpected {
    /// Nothing has to be.
    Anything,
    /// The key has no value.
    Absent,
    /// The key has the value of this version.
    Version(u64),
}

/// One write.
#[derive(Clone, Copy, Debug)]
pub struct KvWrite<'a> {
    /// The bytes.
    pub value: &'a [u8],
    /// How long they are kept; none keeps them for ever.
    pub ttl: Option<Duration>,
    /// The condition.
    pub expected: KvExpected,
    /// Most bytes of keys and values in the space, this write included.
    pub quota: u64,
}

/// What a write did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KvOutcome {
    /// It wrote; the new version.
    Written(u64),
    /// The condition was not true; what is there.
    Conflict(Option<KvEntry>),
    /// It would exceed the quota; the bytes used now.
    Full(u64),
}

/// A store for `kv`. Every method is one step, also between processes. Errors are texts for the
/// guest and hold no value.
pub trait KvStore: Send + Sync {
    /// The value of a key that has not expired.
    fn get(&self, space: &KvSpace, key: &str) -> Result<Option<KvEntry>, String>;
    /// Writes a value.
    fn write(&self, space: &KvSpace, key: &str, write: &KvWrite<'_>) -> Result<KvOutcome, String>;
    /// Removes a key; whether there was one.
    fn delete(&self, space: &KvSpace, key: &str) -> Result<bool, String>;
    /// At most `limit` keys that begin with `prefix` and come after `after`, in the order of their bytes.
    fn keys(&self, space: &KvSpace, prefix: &str, after: &str, limit: usize) -> Result<Vec<String>, String>;
}

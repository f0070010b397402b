//! What one store holds while a guest runs, and what all stores of one plugin share.

use std::sync::Arc;
use std::time::Instant;

use wasmtime::component::{Resource, ResourceTable};

use crate::capability::matching::Matching;
use crate::facts::{Document, Facts, SharedFacts};
use crate::limits::{Growth, Limits, MAX_HANDLES, Meter};

/// Documents from this size on are worth a look at the clock while the host works on them: a scan
/// of fewer bytes takes less time than the look.
const TIMED_FROM: usize = 1 << 10;

/// What every store of one plugin shares. Made once, at load.
pub(crate) struct Shared {
    /// The plugin's name, from its release.
    pub(crate) name: String,
    /// Its limits, clamped.
    pub(crate) limits: Limits,
    /// Its settings: one JSON object.
    pub(crate) settings: Document,
    /// Patterns and paths compiled from those settings.
    pub(crate) matching: Matching,
}

/// The data of one store.
pub(crate) struct State {
    pub(crate) shared: Arc<Shared>,
    pub(crate) table: ResourceTable,
    pub(crate) growth: Growth,
    pub(crate) meter: Meter,
    /// Log lines written in this call.
    pub(crate) log_lines: u32,
}

impl State {
    /// For a new store.
    pub(crate) fn new(shared: Arc<Shared>, meter: Meter) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_HANDLES);
        let growth = Growth::new(shared.limits.memory);
        Self { shared, table, growth, meter, log_lines: 0 }
    }

    /// Makes a request for the guest. To be taken back with [`State::take_back`] after the call.
    pub(crate) fn lend(&mut self, facts: &Arc<Facts>) -> wasmtime::Result<Resource<SharedFacts>> {
        Ok(self.table.push(Arc::clone(facts))?)
    }

    /// Removes a request, whether the guest has dropped its handle or not: a warm instance that
    /// never drops anything must not fill its table.
    pub(crate) fn take_back(&mut self, rep: u32) {
        let request = Resource::<SharedFacts>::new_own(rep);
        // A guest that dropped its own handle has freed the place, and a document may have taken it.
        if self.table.get(&request).is_ok() {
            let _ = self.table.delete(request);
        }
    }

    /// Runs work on a document of `bytes` bytes and does not bill a large one to the guest.
    pub(crate) fn host_work<T>(&mut self, bytes: usize, work: impl FnOnce() -> T) -> T {
        if bytes < TIMED_FROM {
            return work();
        }
        let started = Instant::now();
        let done = work();
        self.meter.host_worked(started.elapsed());
        done
    }
}

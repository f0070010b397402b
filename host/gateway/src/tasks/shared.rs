//! What all gateways of one process know of tasks together.
//!
//! A process serves one data directory and has a gateway for each configuration that its clients come with.
//! An id is good for its caller through whichever of them it asks, an answer or a cancellation reaches the
//! one that observes the task, and the places of a server are counted once. So this is one for all.
//!
//! Bounds: [`MOST_MAKERS`] tools are remembered to have made a task; see `slots` and `listened` for the rest.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolgate_base::lock::FileLock;
use toolgate_base::random_hex;

use super::listened::Listeners;
use super::slots::Slots;
use super::{Entry, recover};
use crate::links::Live;

/// Tools that are remembered to have made a task.
const MOST_MAKERS: usize = 4_096;

/// The tasks of one process. Gateways of one data directory are given the same one.
#[derive(Default)]
pub struct SharedTasks {
    owner: Mutex<Option<Owner>>,
    entries: Mutex<HashMap<String, Arc<Entry>>>,
    /// Tasks that are being written down and have no entry yet.
    coming: Mutex<HashSet<String>>,
    makers: Mutex<HashSet<(String, String)>>,
    pub(super) slots: Slots,
    pub(super) listeners: Listeners,
}

/// This process as the journal names it. It holds a lock for as long as it lives, however it ends.
struct Owner {
    name: String,
    _alive: FileLock,
}

impl SharedTasks {
    /// The name of this process in the journal, made when there is a first task.
    pub(super) fn owner(&self, data_dir: &Path) -> Result<String, String> {
        let mut owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(owner) = owner.as_ref() {
            return Ok(owner.name.clone());
        }
        let name = format!("own_{}", random_hex(8));
        let alive = recover::lock_of(data_dir, &name)?;
        *owner = Some(Owner { name: name.clone(), _alive: alive });
        Ok(name)
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<Entry>> {
        self.lock().get(id).cloned()
    }

    pub(super) fn add(&self, entry: &Arc<Entry>) {
        self.lock().insert(entry.id.clone(), Arc::clone(entry));
    }

    pub(super) fn remove(&self, id: &str) -> Option<Arc<Entry>> {
        self.lock().remove(id)
    }

    /// The tasks that are observed over this connection.
    pub(super) fn over(&self, live: &Arc<Live>) -> Vec<Arc<Entry>> {
        let entries: Vec<Arc<Entry>> = self.lock().values().cloned().collect();
        let is_over =
            |entry: &Arc<Entry>| entry.view().live.as_ref().is_some_and(|own| Arc::ptr_eq(own, live));
        entries.into_iter().filter(is_over).collect()
    }

    /// A task is about to be written down by who observes it: nobody takes it for one that was left behind.
    pub(super) fn coming(self: &Arc<Self>, id: &str) -> Coming {
        self.coming.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned());
        Coming { of: Arc::clone(self), id: id.to_owned() }
    }

    /// Whether somebody here observes a task, or is about to.
    pub(super) fn is_known(&self, id: &str) -> bool {
        // In this order: a task has its entry before it stops coming.
        self.coming.lock().unwrap_or_else(PoisonError::into_inner).contains(id) || self.find(id).is_some()
    }

    /// Notes that a tool made a task, so that its next call waits for a place before it is sent.
    pub(super) fn note_maker(&self, server: &str, tool: &str) {
        let mut makers = self.makers.lock().unwrap_or_else(PoisonError::into_inner);
        if makers.len() < MOST_MAKERS {
            makers.insert((server.to_owned(), tool.to_owned()));
        }
    }

    pub(super) fn is_maker(&self, server: &str, tool: &str) -> bool {
        let makers = self.makers.lock().unwrap_or_else(PoisonError::into_inner);
        makers.contains(&(server.to_owned(), tool.to_owned()))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task that is being written down; dropped when it has its entry, or will not have one.
pub(super) struct Coming {
    of: Arc<SharedTasks>,
    id: String,
}

impl Drop for Coming {
    fn drop(&mut self) {
        self.of.coming.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

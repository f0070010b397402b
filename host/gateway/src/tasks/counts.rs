//! How the tasks of one server stand, in numbers, for the operator.

use serde::{Deserialize, Serialize};
use toolgate_store::{Delivery, Task, TaskStatus};

use crate::Gateway;

/// The tasks of one server, whoever they are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCounts {
    /// Places that are taken: its server works on these, at most 8.
    pub active: usize,
    /// What waits: calls and tasks for a place, at most 64, and open tasks of the journal for a gateway that
    /// observes them.
    pub queued: usize,
    /// Tasks that are lost, of those that the journal keeps.
    pub lost: usize,
    /// Outcomes and questions that came while nobody waited, and that nobody took yet.
    pub delivery_pending: usize,
}

impl TaskCounts {
    /// Whether there is nothing to tell.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Gateway {
    /// Counts the tasks of a server; `journal` has those of all servers.
    pub(crate) fn task_counts(&self, server: &str, journal: &[Task]) -> TaskCounts {
        let (active, queued) = self.tasks.shared.slots.counts(server);
        let mut counts = TaskCounts { active, queued, ..TaskCounts::default() };
        for task in journal.iter().filter(|task| task.server == server) {
            counts.queued += usize::from(!task.status.is_over() && !self.tasks.shared.is_known(&task.id));
            counts.lost += usize::from(task.status == TaskStatus::Lost);
            counts.delivery_pending += usize::from(task.delivery == Delivery::Pending);
        }
        counts
    }
}

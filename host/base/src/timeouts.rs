//! How long is waited for a server: said once, because configuration and connections both speak of it.

use std::time::Duration;

/// The deadlines of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// From the start of a connection to the end of its handshake, the era probe included. Default 60 s.
    pub init: Duration,
    /// One request without a sign of life from the server; progress starts it again. Default 120 s.
    pub call: Duration,
    /// How long a server may leave the era probe unanswered until `initialize` is tried beside it. Default 5 s.
    pub probe: Duration,
    /// One request in all, progress or not. Default 15 min.
    pub max_total: Duration,
    /// How long the server of a task may leave it unobserved, unreachable or silent, until the task counts
    /// as lost. Default 1 h.
    pub task_lost: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            init: Duration::from_mins(1),
            call: Duration::from_mins(2),
            probe: Duration::from_secs(5),
            max_total: Duration::from_mins(15),
            task_lost: Duration::from_hours(1),
        }
    }
}

//! The words of the journal of tasks: where a task stands, and what became of its outcome.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a task stands. The first five are the protocol's, the last two Toolgate's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Its server works on it.
    Working,
    /// Its server waits for answers.
    InputRequired,
    /// It has a result, which may be a tool's error.
    Completed,
    /// It ended with an error of the protocol.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// It is past the time for which its server keeps it.
    Expired,
    /// Its server does not know it any more, or could not be reached for too long.
    Lost,
}

/// What became of the outcome of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// There is none yet.
    Waiting,
    /// Something came while nobody waited for it, and is kept.
    Pending,
    /// It was handed over.
    Delivered,
    /// There is nothing to hand over.
    None,
}

impl TaskStatus {
    /// The word in the database, on the screen and, for the first five, in the protocol.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Lost => "lost",
        }
    }

    /// The status of that name.
    pub fn of(word: &str) -> Option<Self> {
        let all = [
            Self::Working,
            Self::InputRequired,
            Self::Completed,
            Self::Failed,
            Self::Cancelled,
            Self::Expired,
            Self::Lost,
        ];
        all.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether it is over.
    pub const fn is_over(self) -> bool {
        !matches!(self, Self::Working | Self::InputRequired)
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Delivery {
    /// The word in the database and on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::None => "none",
        }
    }

    /// The state of that name.
    pub fn of(word: &str) -> Option<Self> {
        let all = [Self::Waiting, Self::Pending, Self::Delivered, Self::None];
        all.into_iter().find(|delivery| delivery.as_str() == word)
    }
}

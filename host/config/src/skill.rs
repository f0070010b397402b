//! Skills and lanes: which servers an agent has beside those of its persona, by what kind of run it is
//! (rows SCP-006, SCP-007 and SCP-012 to SCP-017).
//!
//! Contract: a lane comes from the credential, never from the client. A persona's own servers exist in
//! every lane; a skill's exist where the skill's `runtime` says. A server of two skills is one server
//! only if both define it alike; which of two different ones is meant nobody can know, so that is an
//! error and neither wins (rows DED-002, DED-003).

use std::fmt;

/// What kind of run a caller is. It is fixed by the credential.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// A person's conversation with the main agent.
    #[default]
    Main,
    /// An agent that works in the background.
    BackgroundJob,
    /// A run without a model: it has the servers of every skill (row SCP-016).
    Automation,
}

impl Lane {
    /// Every lane.
    pub const ALL: [Self; 3] = [Self::Main, Self::BackgroundJob, Self::Automation];

    /// `main`, `background_job` or `automation`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::BackgroundJob => "background_job",
            Self::Automation => "automation",
        }
    }

    /// The lane of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|lane| lane.as_str() == name)
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.as_str())
    }
}

/// Which models may read a skill (row SCP-013).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Runtime {
    /// Every agent.
    #[default]
    Any,
    /// The main agent.
    Main,
    /// Agents in the background.
    BackgroundJob,
}

impl Runtime {
    /// `any`, `main` or `background_job`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Main => "main",
            Self::BackgroundJob => "background_job",
        }
    }

    /// Whether the servers of such a skill exist in that lane.
    pub fn admits(self, lane: Lane) -> bool {
        match (self, lane) {
            (Self::Any, _) | (_, Lane::Automation) => true,
            (Self::Main, lane) => lane == Lane::Main,
            (Self::BackgroundJob, lane) => lane == Lane::BackgroundJob,
        }
    }
}

/// One entry of `skills`.
#[derive(Debug, Clone, Default)]
pub struct Skill {
    /// In which lanes its servers exist.
    pub runtime: Runtime,
    /// Its servers: sorted, without doubles.
    pub servers: Vec<String>,
}

#[cfg(test)]
mod tests;

//! What went wrong inside or around a plugin, and whose fault it was.
//!
//! A fault is a value. It never stops the host, and it never lets anything pass: a policy's fault
//! is a denial, an adapter's fails the call, an installer's is an error (design.md 4 "Faults").

use std::fmt;

/// Who has to act on a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Whose {
    /// The plugin broke a rule of the contract: its author has to act.
    PluginMisbehaved,
    /// The plugin was made for another version of the contract: take another release.
    PluginTooOld,
    /// The operator's grant does not cover what the plugin did: widen the grant or drop the plugin.
    OperatorDenied,
    /// The host failed the plugin: report it.
    HostBug,
}

impl fmt::Display for Whose {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Whose::PluginMisbehaved => "the plugin misbehaved",
            Whose::PluginTooOld => "the plugin does not fit this host",
            Whose::OperatorDenied => "the operator's grant does not cover it",
            Whose::HostBug => "the host failed",
        })
    }
}

/// What kind of fault, with a stable code for audit rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The guest trapped.
    Trap,
    /// The guest ran longer than its deadline.
    Deadline,
    /// The guest met a limit: memory, tables, instances, handles, stack, host-call bytes.
    Limit,
    /// The number of decisions or changes is not the number of requests.
    WrongCount,
    /// A decision that the plugin may not give, or not in this hook.
    Unauthorised,
    /// An answer that breaks the contract: no JSON, a malformed pointer, too many edits, too large.
    BadAnswer,
    /// The plugin returned an error of its own.
    Refused,
    /// The plugin failed too often and was put aside until it is loaded again.
    PutAside,
    /// No free place to run it within the wait that the host allows.
    Busy,
    /// The host could not do its part.
    Internal,
}

impl FaultKind {
    /// The stable code, as `deadline`.
    pub fn code(self) -> &'static str {
        match self {
            FaultKind::Trap => "trap",
            FaultKind::Deadline => "deadline",
            FaultKind::Limit => "limit",
            FaultKind::WrongCount => "wrong-count",
            FaultKind::Unauthorised => "unauthorised",
            FaultKind::BadAnswer => "bad-answer",
            FaultKind::Refused => "refused",
            FaultKind::PutAside => "put-aside",
            FaultKind::Busy => "busy",
            FaultKind::Internal => "internal",
        }
    }
}

/// One fault of one plugin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("plugin {plugin}: {detail} ({whose})")]
pub struct Fault {
    /// The plugin's name.
    pub plugin: String,
    /// Who has to act.
    pub whose: Whose,
    /// What kind of fault.
    pub kind: FaultKind,
    /// What happened, for the operator; escaped, at most 1 KiB.
    pub detail: String,
}

impl Fault {
    /// The same fault with the function of the plugin that it happened in, for its author.
    pub(crate) fn within(mut self, function: &str) -> Self {
        if self.whose == Whose::PluginMisbehaved {
            self.detail = format!("in `{function}`: {}", self.detail);
        }
        self
    }
}

/// A call to an adapter that came to nothing. The tool call fails; nothing passes unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the adapter failed, so the call was not made: {0}")]
pub struct AdapterFault(#[from] pub Fault);

/// An operation of an installer that came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InstallerError {
    /// A fault of the plugin or the host.
    #[error("the installer failed: {0}")]
    Fault(#[from] Fault),
    /// The installer answered with an error of its own; the text is escaped and at most 1 KiB.
    #[error("the installer {plugin} answers: {message}")]
    Answer {
        /// The plugin's name.
        plugin: String,
        /// What kind of error it says it is, as `not-found`.
        kind: &'static str,
        /// What it says.
        message: String,
    },
}

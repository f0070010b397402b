//! Exit codes and the errors that carry them. The codes are part of the interface (design.md 6).

use std::fmt;
use std::process::ExitCode;

/// Why the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// Something failed: a server, a call, the machine.
    Failed = 1,
    /// The command line or the configuration cannot be used.
    Usage = 2,
    /// A policy denied, or a person has to answer first.
    Denied = 3,
    /// A server wants a sign-in.
    Authentication = 4,
    /// Something is not what was signed, pinned or recorded.
    Integrity = 5,
}

/// An error on its way to the terminal: what happened, and what to do next.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl fmt::Display) -> Self {
        Self { code, message: message.to_string(), hint: None }
    }

    pub(crate) fn failed(message: impl fmt::Display) -> Self {
        Self::new(Code::Failed, message)
    }

    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::new(Code::Usage, message)
    }

    pub(crate) fn integrity(message: impl fmt::Display) -> Self {
        Self::new(Code::Integrity, message)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Prints to stderr, escaped: a message may quote a server or a file.
    pub(crate) fn report(&self) -> ExitCode {
        use std::io::Write;
        let mut err = std::io::stderr().lock();
        // With no stderr left there is nobody to tell; the exit code still says it.
        let _ = writeln!(err, "error: {}", toolgate_base::display::show_multiline(&self.message));
        if let Some(hint) = &self.hint {
            let _ = writeln!(err, "  next: {}", toolgate_base::display::show_multiline(hint));
        }
        ExitCode::from(self.code as u8)
    }
}

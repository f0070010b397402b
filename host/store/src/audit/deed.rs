//! The things a caller can do at a server, and the events that each of them leaves.
//!
//! One table, so that the path of a request cannot leave a tool's event for a prompt.

use super::event::Event;

/// What a caller does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Deed {
    /// Calls a tool.
    #[default]
    Call,
    /// Reads a resource.
    Read,
    /// Asks for a rendered prompt.
    Prompt,
    /// Asks for the completion of an argument.
    Complete,
    /// Subscribes to a resource.
    Subscribe,
}

impl Deed {
    /// It is about to leave.
    pub const fn begun(self) -> Event {
        match self {
            Self::Call => Event::McpCalled,
            Self::Read => Event::McpResourceRead,
            Self::Prompt => Event::McpPromptGet,
            Self::Complete => Event::McpComplete,
            Self::Subscribe => Event::McpResourceSubscribe,
        }
    }

    /// The server answered.
    pub const fn completed(self) -> Event {
        match self {
            Self::Call => Event::McpCompleted,
            Self::Read => Event::McpResourceReadCompleted,
            Self::Prompt => Event::McpPromptGetCompleted,
            Self::Complete => Event::McpCompleteCompleted,
            Self::Subscribe => Event::McpResourceSubscribed,
        }
    }

    /// It has no answer.
    pub const fn failed(self) -> Event {
        match self {
            Self::Call => Event::McpFailed,
            Self::Read => Event::McpResourceReadFailed,
            Self::Prompt => Event::McpPromptGetFailed,
            Self::Complete => Event::McpCompleteFailed,
            Self::Subscribe => Event::McpResourceSubscribeFailed,
        }
    }

    /// The caller went away.
    pub const fn cancelled(self) -> Event {
        match self {
            Self::Call => Event::McpCancelled,
            Self::Read => Event::McpResourceReadCancelled,
            Self::Prompt => Event::McpPromptGetCancelled,
            Self::Complete => Event::McpCompleteCancelled,
            Self::Subscribe => Event::McpResourceSubscribeCancelled,
        }
    }
}

//! The port to what answers: exactly the part of the gateway that agents can reach.
//!
//! It is a trait so that the protocol can be tested without servers, plugins or a store, and so that
//! the list of things an agent can reach is short enough to read: four methods, none of them an
//! operator's.

use async_trait::async_trait;
use serde_json::value::RawValue;
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;
use toolgate_wire::envelope::Era;
use toolgate_wire::{ErrorObject, Id, Outcome};

/// What an agent can reach.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// One page of the tools that this caller may see. The cursor is one this method gave before.
    async fn list_tools(&self, caller: &Caller, cursor: Option<&str>) -> Result<ToolPage, ErrorObject>;
    /// Runs one call to its end. Refusals come back as results; the outcome has no era's envelope.
    async fn call_tool(&self, caller: &Caller, call: Call) -> Outcome;
    /// Text for the model about the servers of this caller.
    async fn instructions(&self, caller: &Caller) -> Option<String>;
    /// Tells of every change of what callers see. A receiver that lags has missed changes, not facts.
    fn changes(&self) -> broadcast::Receiver<Change>;
}

/// TEMPORARY stand-ins.
#[derive(Debug, Clone)]
pub struct Caller {
    /// p
    pub persona: String,
    /// l
    pub lane: String,
    /// c
    pub credential: String,
    /// s
    pub session: String,
    /// r
    pub run_id: Option<String>,
    /// t
    pub thread_id: Option<String>,
    /// e
    pub era: Era,
    /// o
    pub server_only: Option<String>,
}
/// c
pub struct Call {
    /// r
    pub request_id: Id,
    /// p
    pub params: Box<RawValue>,
    /// p
    pub progress: Option<mpsc::Sender<Progress>>,
    /// c
    pub cancel: CancellationToken,
    /// t
    pub timeout: Option<std::time::Duration>,
}
/// r
#[derive(Debug)]
pub struct Progress {
    /// p
    pub params: Box<RawValue>,
}
/// t
pub struct ToolPage {
    /// t
    pub tools: Vec<Box<RawValue>>,
    /// n
    pub next_cursor: Option<String>,
}
/// c
#[derive(Debug, Clone, Copy)]
pub enum Change {
    /// t
    Tools,
}

//! The extension for tasks (`io.modelcontextprotocol/tasks`): when a server may answer a call with one.
//!
//! Only a modern server that advertises the extension is told that its client has it (TSK-001), and only
//! then may the result of a `tools/call` be a task. What a task is and what becomes of it is the business
//! of whoever called; here it is one more kind of result.

use std::borrow::Cow;

use toolgate_wire::edit;
use toolgate_wire::envelope::ModernMeta;

use crate::connection::Connection;

/// Where servers and clients say that they have the extension, in their capabilities.
pub(crate) const EXTENSION: &str = "/extensions/io.modelcontextprotocol~1tasks";

impl Connection {
    /// Asks to be told of a task unasked, as [`crate::Event::Notification`] `notifications/tasks`, or no
    /// more. Nothing is waited for; a server that does not do it is asked as before.
    pub fn watch_task(&self, id: &str, wanted: bool) {
        self.core.listening.want_task(id, wanted);
    }

    /// Whether the server said that it tells of this task.
    pub fn is_task_watched(&self, id: &str) -> bool {
        self.core.listening.tells_of(id)
    }
}

/// The same capabilities with the extension among them.
pub(crate) fn declared(capabilities: &str) -> Cow<'_, str> {
    if edit::get(capabilities, EXTENSION).is_some() {
        return Cow::Borrowed(capabilities);
    }
    edit::ensure(capabilities, EXTENSION, "{}").map_or(Cow::Borrowed(capabilities), Cow::Owned)
}

/// Whether a result of this kind answers a request with this envelope.
pub(crate) fn answers(method: &str, meta: &ModernMeta, kind: &str) -> bool {
    kind == "task" && method == "tools/call" && edit::get(meta.client_capabilities.get(), EXTENSION).is_some()
}

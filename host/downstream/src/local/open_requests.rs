//! Which requests of a client have no reply yet, read from what passes in both directions.
//!
//! Nothing is changed or refused here; that is the gateway's business. A message that cannot be read
//! counts as none.

use std::collections::HashSet;

use toolgate_wire::{Id, door, edit};

/// The word by which a client gives a request up; such a request gets no reply.
const CANCELLED: &str = "notifications/cancelled";

/// The requests that wait for their reply.
#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    ids: HashSet<Id>,
}

impl OpenRequests {
    /// Notes what a client says.
    pub(super) fn sent(&mut self, line: &[u8]) {
        for message in messages(line) {
            let seen = door::recover(message);
            match seen.id {
                Some(id) if seen.is_call => drop(self.ids.insert(id)),
                None if seen.is_call => {
                    if let Some(id) = given_up(message) {
                        self.ids.remove(&id);
                    }
                }
                _ => {}
            }
        }
    }

    /// Notes what the gateway says.
    pub(super) fn answered(&mut self, line: &[u8]) {
        for message in messages(line) {
            let seen = door::recover(message);
            if let Some(id) = seen.id.filter(|_| !seen.is_call) {
                self.ids.remove(&id);
            }
        }
    }

    /// Those that will have no reply any more.
    pub(super) fn take(&mut self) -> Vec<Id> {
        self.ids.drain().collect()
    }
}

/// The messages of a line: itself, or the elements of a batch.
fn messages(line: &[u8]) -> Vec<&[u8]> {
    if !line.trim_ascii_start().starts_with(b"[") {
        return vec![line];
    }
    let text = std::str::from_utf8(line).unwrap_or_default();
    let elements = edit::elements(text.trim()).unwrap_or_default();
    elements.into_iter().map(str::as_bytes).collect()
}

fn given_up(message: &[u8]) -> Option<Id> {
    let text = std::str::from_utf8(message).ok()?;
    let method = edit::get(text, "/method").and_then(edit::string)?;
    (method == CANCELLED).then(|| edit::get(text, "/params/requestId").and_then(Id::from_json)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(mut open: OpenRequests) -> Vec<String> {
        let mut ids: Vec<String> = open.take().iter().map(Id::to_json).collect();
        ids.sort();
        ids
    }

    #[test]
    fn what_was_asked_and_not_answered_or_given_up_is_open() {
        let mut open = OpenRequests::default();
        open.sent(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#);
        open.sent(br#"{"jsonrpc":"2.0","id":"1","method":"tools/call"}"#);
        open.sent(br#"[{"jsonrpc":"2.0","id":3,"method":"ping"},{"jsonrpc":"2.0","id":4,"method":"ping"}]"#);
        open.sent(br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}"#);
        open.answered(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        // A question of the gateway's with the id of a request answers nothing, and neither does the
        // answer to it open anything.
        open.answered(br#"{"jsonrpc":"2.0","id":3,"method":"roots/list"}"#);
        open.sent(br#"{"jsonrpc":"2.0","id":9,"result":{}}"#);
        assert_eq!(left(open), ["\"1\"", "3"]);
    }

    #[test]
    fn bytes_that_are_no_message_change_nothing() {
        let mut open = OpenRequests::default();
        for line in [&b"\xff\xfe"[..], b"[", b"null", b"{", b""] {
            open.sent(line);
            open.answered(line);
        }
        assert!(left(open).is_empty());
    }
}

//! Finding the id in a message that cannot be used.
//!
//! Contract: a push machine, so that it works on lines too long to keep. It reads only top-level keys, tolerates any
//! bytes, and holds at most [`LONGEST`] of them.
//!
//! Threat: the answer is only good for ending one pending request early. A peer that lies here can end requests it
//! was sent, which it can do honestly as well.

use crate::{Id, json};

/// Longest key or id worth keeping, quotes included.
const LONGEST: usize = 1024;

/// What could be read from the top level of a broken message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovered {
    /// The `id`, unless there is none, it is no id, or two different ones are there.
    pub id: Option<Id>,
    /// Whether a top-level `method` was seen: then the id, if any, is the sender's own and answers nothing.
    pub is_call: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before the outermost `{`.
    Before,
    Key,
    Value,
    /// After the outermost `}`, or in something that is no object.
    After,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InString {
    No,
    Yes,
    /// Just after a backslash.
    Escaped,
}

/// The machine. Feed it the bytes of one message in any pieces.
#[derive(Debug)]
pub(crate) struct Recovery {
    place: Place,
    /// Open containers, the outermost object included.
    depth: usize,
    string: InString,
    /// The key or scalar being read at the top level; longer ones are cut, and then match nothing.
    token: Vec<u8>,
    key_is_id: bool,
    id: Option<Id>,
    conflict: bool,
    is_call: bool,
}

impl Recovery {
    pub(crate) fn new() -> Self {
        Self {
            place: Place::Before,
            depth: 0,
            string: InString::No,
            token: Vec::new(),
            key_is_id: false,
            id: None,
            conflict: false,
            is_call: false,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            match self.place {
                Place::After => return,
                Place::Before => self.before(byte),
                Place::Key | Place::Value if self.string != InString::No => self.string(byte),
                Place::Key | Place::Value => self.structure(byte),
            }
        }
    }

    pub(crate) fn finish(mut self) -> Recovered {
        // A message cut off inside the id itself has no trustworthy id: `"id":1` may have been `"id":12`.
        let id = if self.conflict { None } else { self.id.take() };
        Recovered { id, is_call: self.is_call }
    }

    fn before(&mut self, byte: u8) {
        match byte {
            b'{' => (self.place, self.depth) = (Place::Key, 1),
            // Blanks, and the bytes of a byte order mark.
            b' ' | b'\t' | b'\r' | b'\n' | 0xEF | 0xBB | 0xBF => {}
            _ => self.place = Place::After,
        }
    }

    fn string(&mut self, byte: u8) {
        self.keep(byte);
        if self.string == InString::Escaped {
            self.string = InString::Yes;
        } else if byte == b'\\' {
            self.string = InString::Escaped;
        } else if byte == b'"' {
            self.string = InString::No;
            if self.depth == 1 && self.place == Place::Key {
                let key = json::string(&String::from_utf8_lossy(&self.token));
                self.key_is_id = key.as_deref() == Some("id");
                self.is_call |= key.as_deref() == Some("method");
            }
        }
    }

    fn structure(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.string = InString::Yes;
                if self.depth == 1 {
                    self.token.clear();
                    self.keep(byte);
                }
            }
            b'{' | b'[' => {
                // Kept so that a container can never be taken for an id.
                self.keep(byte);
                self.depth += 1;
            }
            b'}' | b']' => {
                if self.depth == 1 {
                    self.end_value();
                    self.place = Place::After;
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b',' if self.depth == 1 => {
                self.end_value();
                self.place = Place::Key;
            }
            b':' if self.depth == 1 => {
                self.token.clear();
                self.place = Place::Value;
            }
            // Blanks are kept too, so that `1 2` is not taken for 12.
            _ => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() <= LONGEST {
            self.token.push(byte);
        }
    }

    fn end_value(&mut self) {
        if !self.key_is_id || self.place != Place::Value {
            return;
        }
        self.key_is_id = false;
        if self.token.len() > LONGEST {
            return;
        }
        if let Some(id) = Id::from_json(&String::from_utf8_lossy(&self.token)) {
            self.conflict |= self.id.as_ref().is_some_and(|known| *known != id);
            self.id = Some(id);
        }
    }
}

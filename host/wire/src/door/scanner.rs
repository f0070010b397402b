//! The walk behind the door: RFC 8259 syntax, one frame per open container, keys kept until their object closes.

mod keys;
mod tokens;

use super::{DoorError, DoorErrorKind};
use crate::json::skip_blank;
use keys::{Key, Keys};

/// Depth that even a survey does not follow: 16 frames of it are one cache line, all of it is 64 KiB.
const DEEPEST: usize = 4096;

/// One open container.
#[derive(Debug, Clone, Copy)]
struct Frame {
    object: bool,
    /// Index of the element being read; arrays only.
    index: u32,
    /// How many keys, and how many unescaped bytes, were held when the container opened.
    mark: keys::Mark,
}

pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    max_depth: usize,
    frames: Vec<Frame>,
    keys: Keys<'a>,
    /// How many defects may be collected before one is an error; 0 for a plain scan.
    tolerance: usize,
    defects: Vec<DoorError>,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str, max_depth: usize, tolerance: usize) -> Self {
        Self {
            bytes: text.as_bytes(),
            at: 0,
            max_depth,
            frames: Vec::with_capacity(16),
            keys: Keys::new(text),
            tolerance,
            defects: Vec::new(),
        }
    }

    /// Walks the whole text, which must be one value. Returns the tolerated defects.
    pub(super) fn run(mut self) -> Result<Vec<DoorError>, DoorError> {
        self.blank();
        loop {
            if self.enter_value()? {
                continue;
            }
            // A value has ended; so may have any number of containers around it.
            loop {
                self.blank();
                let Some(&frame) = self.frames.last() else {
                    return if self.at == self.bytes.len() { Ok(self.defects) } else { Err(self.syntax()) };
                };
                if self.after_value(frame)? {
                    break;
                }
            }
        }
    }

    /// Reads a scalar or an empty container (false), or opens a container and stands before its first value (true).
    fn enter_value(&mut self) -> Result<bool, DoorError> {
        match self.peek() {
            Some(b'{') => {
                self.open(true)?;
                if self.peek() == Some(b'}') {
                    self.close()?;
                    return Ok(false);
                }
                self.key()?;
                Ok(true)
            }
            Some(b'[') => {
                self.open(false)?;
                if self.peek() == Some(b']') {
                    self.close()?;
                    return Ok(false);
                }
                Ok(true)
            }
            Some(b'"') => self.string().map(|_| false),
            Some(b'-' | b'0'..=b'9') => self.number().map(|()| false),
            Some(b't') => self.literal(b"true").map(|()| false),
            Some(b'f') => self.literal(b"false").map(|()| false),
            Some(b'n') => self.literal(b"null").map(|()| false),
            _ => Err(self.syntax()),
        }
    }

    /// Reads what follows a value inside `frame`: true before another value, false when the container closed.
    fn after_value(&mut self, frame: Frame) -> Result<bool, DoorError> {
        match (self.peek(), frame.object) {
            (Some(b','), true) => {
                self.at += 1;
                self.blank();
                self.key()?;
                Ok(true)
            }
            (Some(b','), false) => {
                self.at += 1;
                if let Some(top) = self.frames.last_mut() {
                    top.index += 1;
                }
                self.blank();
                Ok(true)
            }
            (Some(b'}'), true) | (Some(b']'), false) => {
                self.close()?;
                Ok(false)
            }
            _ => Err(self.syntax()),
        }
    }

    fn open(&mut self, object: bool) -> Result<(), DoorError> {
        let depth = self.frames.len();
        // Reported where the limit is crossed, not again for everything below.
        if depth == self.max_depth {
            self.defect(DoorErrorKind::TooDeep(self.max_depth), self.at, None)?;
        } else if depth >= DEEPEST.max(self.max_depth) {
            return Err(self.error(DoorErrorKind::TooDeep(self.max_depth), self.at));
        }
        self.frames.push(Frame { object, index: 0, mark: self.keys.mark() });
        self.at += 1;
        self.blank();
        Ok(())
    }

    fn close(&mut self) -> Result<(), DoorError> {
        self.at += 1;
        let Some(frame) = self.frames.last().copied() else { return Ok(()) };
        if frame.object {
            for key in self.keys.duplicates(frame.mark) {
                let name = keys::shorten(self.keys.text(key));
                self.defect(DoorErrorKind::DuplicateKey(name), key.offset(), Some(key))?;
            }
        }
        self.frames.pop();
        self.keys.release(frame.mark);
        Ok(())
    }

    /// Reads a key and its colon, and stands before the value.
    fn key(&mut self) -> Result<(), DoorError> {
        if self.peek() != Some(b'"') {
            return Err(self.syntax());
        }
        let start = self.at;
        let escaped = self.string()?;
        self.keys.push(start + 1, self.at - 1, escaped);
        self.blank();
        if self.peek() != Some(b':') {
            return Err(self.syntax());
        }
        self.at += 1;
        self.blank();
        Ok(())
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn blank(&mut self) {
        self.at = skip_blank(self.bytes, self.at);
    }

    fn syntax(&self) -> DoorError {
        self.error(DoorErrorKind::Syntax, self.at)
    }

    fn error(&self, kind: DoorErrorKind, offset: usize) -> DoorError {
        DoorError { kind, pointer: self.pointer(None), offset }
    }

    /// Collects a defect, or fails where no more may be collected. `key` is the member meant, where it is not the
    /// last one read.
    fn defect(&mut self, kind: DoorErrorKind, offset: usize, key: Option<Key>) -> Result<(), DoorError> {
        let error = DoorError { kind, pointer: self.pointer(key), offset };
        if self.defects.len() >= self.tolerance {
            return Err(error);
        }
        self.defects.push(error);
        Ok(())
    }

    /// The RFC 6901 pointer of the place being read.
    fn pointer(&self, last: Option<Key>) -> String {
        let mut pointer = String::new();
        for (level, frame) in self.frames.iter().enumerate() {
            let inner = self.frames.get(level + 1).map(|inner| inner.mark);
            if !frame.object {
                pointer.push('/');
                pointer.push_str(&frame.index.to_string());
                continue;
            }
            let key =
                if inner.is_none() && last.is_some() { last } else { self.keys.last(frame.mark, inner) };
            if let Some(key) = key {
                pointer.push('/');
                pointer.push_str(&keys::shorten(self.keys.text(key)).replace('~', "~0").replace('/', "~1"));
            }
        }
        pointer
    }
}

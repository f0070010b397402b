//! Look-ups in JSON text without parsing the rest of it.
//!
//! One forward scan finds the value at an RFC 6901 pointer and returns its text exactly as
//! received; another visits every string below a value. Nothing is allocated for what is skipped,
//! and a look-up stops at its target.
//!
//! Bounds: one pass over the text, nesting up to [`MAX_DEPTH`] where the scan visits, no recursion.
//! Threat: documents come from servers. The door has checked them before (design.md 3.1); the
//! scan still answers [`LookupError::Malformed`] for what is no JSON, and never reads beyond the text.

use std::borrow::Cow;

/// Deepest nesting that [`visit_strings`] follows. The door admits 64.
const MAX_DEPTH: usize = 128;

/// Why a look-up gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LookupError {
    /// The pointer is not RFC 6901: it does not start with `/`, or has `~` before neither 0 nor 1.
    #[error(
        "the pointer is malformed: it is empty or starts with `/`, and `~` is written `~0`, `/` within a name `~1`"
    )]
    Pointer,
    /// The text is no JSON, or nested too deeply.
    #[error("the document is no well-formed JSON")]
    Malformed,
}

/// What [`visit_strings`] found a string as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A member's name; the pointer is the member's.
    Key,
    /// A value.
    Value,
}

/// Whether the visitor wants more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visit {
    /// Go on.
    On,
    /// Stop here.
    Stop,
}

/// The text of the value at `pointer`, or none where nothing is.
pub(crate) fn lookup<'a>(text: &'a str, pointer: &str) -> Result<Option<&'a str>, LookupError> {
    check_pointer(pointer)?;
    let mut cursor = Cursor::new(text);
    cursor.space();
    for segment in pointer.split('/').skip(1) {
        let segment = unescape_segment(segment);
        let found = match cursor.peek() {
            Some(b'{') => cursor.enter_member(&segment)?,
            Some(b'[') => cursor.enter_element(&segment)?,
            Some(_) => false,
            None => return Err(LookupError::Malformed),
        };
        if !found {
            return Ok(None);
        }
    }
    cursor.value().map(Some)
}

/// The string at `pointer`, unescaped; none where nothing or no string is.
pub(crate) fn string_at(text: &str, pointer: &str) -> Result<Option<String>, LookupError> {
    match lookup(text, pointer)? {
        Some(raw) if raw.starts_with('"') => unescape(raw).map(|value| Some(value.into_owned())),
        _ => Ok(None),
    }
}

/// Calls `visit` with pointer, raw text (quotes included) and role of every string in `text`, in
/// document order. `base` is put before every pointer.
pub(crate) fn visit_strings(
    text: &str,
    base: &str,
    visit: &mut dyn FnMut(&str, &str, Role) -> Visit,
) -> Result<(), LookupError> {
    let mut walk = Walk { cursor: Cursor::new(text), pointer: base.to_owned(), stack: Vec::new() };
    loop {
        if walk.open_value(visit)? == Step::Stopped {
            return Ok(());
        }
        match walk.close_values(visit)? {
            Step::Value => {}
            Step::Done | Step::Stopped => return Ok(()),
        }
    }
}

/// The value of a JSON string literal.
pub(crate) fn unescape(raw: &str) -> Result<Cow<'_, str>, LookupError> {
    let inner =
        raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).ok_or(LookupError::Malformed)?;
    if !inner.contains('\\') {
        return Ok(Cow::Borrowed(inner));
    }
    serde_json::from_str(raw).map(Cow::Owned).map_err(|_| LookupError::Malformed)
}

/// Whether `text` is one well-formed JSON text. Nesting beyond 128 counts as malformed.
pub(crate) fn is_well_formed(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Checks the syntax of an RFC 6901 pointer.
pub(crate) fn check_pointer(pointer: &str) -> Result<(), LookupError> {
    if !(pointer.is_empty() || pointer.starts_with('/')) {
        return Err(LookupError::Pointer);
    }
    let mut bytes = pointer.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'~' && !matches!(bytes.next(), Some(b'0' | b'1')) {
            return Err(LookupError::Pointer);
        }
    }
    Ok(())
}

fn unescape_segment(segment: &str) -> Cow<'_, str> {
    if segment.contains('~') {
        Cow::Owned(segment.replace("~1", "/").replace("~0", "~"))
    } else {
        Cow::Borrowed(segment)
    }
}

fn push_segment(pointer: &mut String, name: &str) {
    pointer.push('/');
    for character in name.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

/// What a step of the walk came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The cursor stands before a value.
    Value,
    /// The whole text was visited.
    Done,
    /// The visitor had enough.
    Stopped,
}

/// One open container of the walk.
struct Frame {
    /// Length of the pointer of the container itself.
    base: usize,
    /// The index of the element at hand; none in an object.
    index: Option<usize>,
}

/// The state of [`visit_strings`].
struct Walk<'a> {
    cursor: Cursor<'a>,
    pointer: String,
    stack: Vec<Frame>,
}

impl Walk<'_> {
    /// Opens containers until a scalar, or an empty container, was consumed.
    fn open_value(&mut self, visit: &mut dyn FnMut(&str, &str, Role) -> Visit) -> Result<Step, LookupError> {
        loop {
            self.cursor.space();
            match self.cursor.peek() {
                Some(b'"') => {
                    let raw = self.cursor.string()?;
                    return Ok(match visit(&self.pointer, raw, Role::Value) {
                        Visit::On => Step::Done,
                        Visit::Stop => Step::Stopped,
                    });
                }
                Some(open @ (b'{' | b'[')) => {
                    self.cursor.bump();
                    self.cursor.space();
                    if self.cursor.peek() == Some(if open == b'{' { b'}' } else { b']' }) {
                        self.cursor.bump();
                        return Ok(Step::Done);
                    }
                    if self.stack.len() >= MAX_DEPTH {
                        return Err(LookupError::Malformed);
                    }
                    let index = (open == b'[').then_some(0);
                    self.stack.push(Frame { base: self.pointer.len(), index });
                    if self.next_child(visit)? == Step::Stopped {
                        return Ok(Step::Stopped);
                    }
                }
                _ => {
                    self.cursor.scalar()?;
                    return Ok(Step::Done);
                }
            }
        }
    }

    /// After a value: closes what ends here and moves to the next value, if there is one.
    fn close_values(
        &mut self,
        visit: &mut dyn FnMut(&str, &str, Role) -> Visit,
    ) -> Result<Step, LookupError> {
        loop {
            let Some(frame) = self.stack.last_mut() else {
                self.cursor.space();
                // Whatever follows the value would be text that nobody has looked at.
                return if self.cursor.peek().is_none() {
                    Ok(Step::Done)
                } else {
                    Err(LookupError::Malformed)
                };
            };
            self.pointer.truncate(frame.base);
            self.cursor.space();
            match (self.cursor.take(), frame.index) {
                (Some(b','), index) => {
                    frame.index = index.map(|at| at.saturating_add(1));
                    return self.next_child(visit);
                }
                (Some(b'}'), None) | (Some(b']'), Some(_)) => {
                    self.stack.pop();
                }
                _ => return Err(LookupError::Malformed),
            }
        }
    }

    /// Puts the next child's name or index on the pointer and the cursor before its value.
    fn next_child(&mut self, visit: &mut dyn FnMut(&str, &str, Role) -> Visit) -> Result<Step, LookupError> {
        if let Some(index) = self.stack.last().and_then(|frame| frame.index) {
            self.pointer.push('/');
            self.pointer.push_str(&index.to_string());
            return Ok(Step::Value);
        }
        self.cursor.space();
        let raw = self.cursor.key()?;
        push_segment(&mut self.pointer, &unescape(raw)?);
        if visit(&self.pointer, raw, Role::Key) == Visit::Stop {
            return Ok(Step::Stopped);
        }
        Ok(Step::Value)
    }
}

/// A place in a JSON text.
struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn bump(&mut self) {
        self.at += 1;
    }

    fn take(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.bump();
        Some(byte)
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.bump();
        }
    }

    fn since(&self, start: usize) -> Result<&'a str, LookupError> {
        self.text.get(start..self.at).ok_or(LookupError::Malformed)
    }

    /// Consumes a string literal and returns it with its quotes.
    fn string(&mut self) -> Result<&'a str, LookupError> {
        let start = self.at;
        if self.take() != Some(b'"') {
            return Err(LookupError::Malformed);
        }
        loop {
            match self.take() {
                Some(b'"') => return self.since(start),
                Some(b'\\') => self.bump(),
                Some(_) => {}
                None => return Err(LookupError::Malformed),
            }
        }
    }

    /// Consumes a member's name and its colon; the cursor then stands before the value.
    fn key(&mut self) -> Result<&'a str, LookupError> {
        let raw = self.string()?;
        self.space();
        if self.take() != Some(b':') {
            return Err(LookupError::Malformed);
        }
        self.space();
        Ok(raw)
    }

    /// Consumes a number or a word.
    fn scalar(&mut self) -> Result<&'a str, LookupError> {
        let start = self.at;
        while self
            .peek()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
        {
            self.bump();
        }
        if self.at == start { Err(LookupError::Malformed) } else { self.since(start) }
    }

    /// Consumes any value. Brackets are counted, not matched by kind: the door has done that.
    fn value(&mut self) -> Result<&'a str, LookupError> {
        let start = self.at;
        match self.peek() {
            Some(b'"') => return self.string(),
            Some(b'{' | b'[') => {}
            _ => return self.scalar(),
        }
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.string()?;
                    continue;
                }
                Some(b'{' | b'[') => depth += 1,
                Some(b'}' | b']') => depth -= 1,
                Some(_) => {}
                None => return Err(LookupError::Malformed),
            }
            self.bump();
            if depth == 0 {
                return self.since(start);
            }
        }
    }

    /// At `{`: moves before the value of the member `name`. False where there is none.
    fn enter_member(&mut self, name: &str) -> Result<bool, LookupError> {
        self.bump();
        loop {
            self.space();
            match self.peek() {
                Some(b'}') => return Ok(false),
                Some(b',') => {
                    self.bump();
                    continue;
                }
                _ => {}
            }
            let raw = self.key()?;
            if *unescape(raw)? == *name {
                return Ok(true);
            }
            self.value()?;
        }
    }

    /// At `[`: moves before the element at the index. False where there is none, or no index.
    fn enter_element(&mut self, index: &str) -> Result<bool, LookupError> {
        let leading_zero = index.len() > 1 && index.starts_with('0');
        let digits = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
        let Some(mut left) = index.parse::<usize>().ok().filter(|_| digits && !leading_zero) else {
            return Ok(false);
        };
        self.bump();
        loop {
            self.space();
            match self.peek() {
                Some(b']') => return Ok(false),
                Some(b',') => {
                    self.bump();
                    continue;
                }
                _ => {}
            }
            if left == 0 {
                return Ok(true);
            }
            self.value()?;
            left -= 1;
        }
    }
}

#[cfg(test)]
mod tests;

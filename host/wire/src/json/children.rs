//! Walking the members of an object or the elements of an array, one span at a time.

use std::ops::Range;

use super::{skip_blank, string_end, value_end};

/// The text is not the JSON container it was taken for; `offset` counts bytes from the start of the walked text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub(crate) offset: usize,
}

/// One member or element. All ranges count from the start of the walked text.
#[derive(Debug, Clone)]
pub(crate) struct Child<'a> {
    /// The member's key as written, without its quotes; `None` in an array.
    pub(crate) key: Option<&'a str>,
    /// The value alone.
    pub(crate) value: Range<usize>,
    /// Everything between the separators on either side, blanks included: joined by commas, the chunks of a container
    /// give back its exact text.
    pub(crate) chunk: Range<usize>,
}

/// Iterates over a container. Ends after the first error.
pub(crate) struct Children<'a> {
    text: &'a str,
    /// Just after the last separator read.
    at: usize,
    object: bool,
    done: bool,
}

impl<'a> Children<'a> {
    /// `None` where `text` is neither an object nor an array.
    pub(crate) fn of(text: &'a str) -> Option<Self> {
        let open = skip_blank(text.as_bytes(), 0);
        let object = match text.as_bytes().get(open)? {
            b'{' => true,
            b'[' => false,
            _ => return None,
        };
        let first = skip_blank(text.as_bytes(), open + 1);
        let empty = matches!((object, text.as_bytes().get(first)), (true, Some(b'}')) | (false, Some(b']')));
        // An empty container has no chunk, so the walk begins, and ends, at its closing bracket.
        Some(Self { text, at: if empty { first } else { open + 1 }, object, done: empty })
    }

    /// Whether the container is an object.
    pub(crate) fn is_object(&self) -> bool {
        self.object
    }

    /// Where the next chunk starts; after the last child, the position of the closing bracket.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    fn read(&mut self) -> Result<Child<'a>, Malformed> {
        let bytes = self.text.as_bytes();
        let mut at = skip_blank(bytes, self.at);
        let mut key = None;
        if self.object {
            let close = match bytes.get(at) {
                Some(b'"') => string_end(bytes, at).ok_or(Malformed { offset: at })?,
                _ => return Err(Malformed { offset: at }),
            };
            key = Some(self.text.get(at + 1..close - 1).ok_or(Malformed { offset: at })?);
            at = skip_blank(bytes, close);
            if bytes.get(at) != Some(&b':') {
                return Err(Malformed { offset: at });
            }
            at = skip_blank(bytes, at + 1);
        }
        let end = value_end(bytes, at).ok_or(Malformed { offset: at })?;
        if !self.text.is_char_boundary(end) {
            return Err(Malformed { offset: end });
        }
        let next = skip_blank(bytes, end);
        let child = Child { key, value: at..end, chunk: self.at..next };
        match bytes.get(next) {
            Some(b',') => self.at = next + 1,
            Some(b'}') if self.object => (self.at, self.done) = (next, true),
            Some(b']') if !self.object => (self.at, self.done) = (next, true),
            _ => return Err(Malformed { offset: next }),
        }
        Ok(child)
    }
}

impl<'a> Iterator for Children<'a> {
    type Item = Result<Child<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let child = self.read();
        self.done |= child.is_err();
        Some(child)
    }
}

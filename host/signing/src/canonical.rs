//! One text for one JSON value: RFC 8785 with a number rule that loses nothing.
//!
//! Members are sorted by the UTF-16 code units of their names, white space is gone, strings have
//! the fewest escapes (`\"`, `\\`, `\b`, `\t`, `\n`, `\f`, `\r`, and `\u00xx` for the other controls).
//!
//! # Numbers
//! RFC 8785 prints every number as a double, which makes 9007199254740993 and 9007199254740992
//! one. Here:
//! 1. A number without fraction and exponent keeps its text; `-0` becomes `0`.
//! 2. Any other number that is zero becomes `0`.
//! 3. Any other number that a double *holds* is printed as ECMAScript prints that double, so that
//!    `1.0`, `1e0` and `1` agree. The nearest double holds a number if the shortest digits that
//!    identify the double are the number; or if the number is no integer and has at most 17
//!    significant digits, and the double is normal and below 2^53 (that is how printers write
//!    fractions).
//! 4. Every other number (too large, too small, too many digits, an integer beyond 2^53 between two
//!    doubles) keeps its text.
//!
//! Two numbers with one canonical text are therefore the same decimal, or fractions of 16 or 17 digits
//! that every reader of doubles takes for the same double. Two spellings of one value outside the
//! doubles (`1e400`, `10e399`), or of a large integer with and without exponent, may be told apart: a
//! digest may see a change where there is none, never the reverse.
//!
//! # Threat
//! A document that two readers read differently: duplicate keys and lone surrogates are refused, as
//! is depth over [`MAX_DEPTH`]. Time is n log n and memory a small multiple of the input, whose size
//! the caller bounds.

mod number;
mod parse;

use std::fmt::Write as _;

pub(crate) use parse::{Node, parse};

/// Deepest nesting of arrays and objects, as at the door of the wire format.
pub const MAX_DEPTH: usize = 64;

/// Why a text has no canonical form. Offsets count bytes from the start of the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CanonicalError {
    /// The text is not JSON.
    #[error("not JSON at byte {offset}: expected {expected}")]
    Syntax {
        /// Where reading stopped.
        offset: usize,
        /// What would have been right there.
        expected: &'static str,
    },
    /// An object has two members of one name; readers differ on which of them counts.
    #[error("the key {} comes twice in the object that begins at byte {offset}", quote(key))]
    DuplicateKey {
        /// Where the object begins.
        offset: usize,
        /// The name, unescaped.
        key: String,
    },
    /// A string holds half of a surrogate pair, which is no character.
    #[error("a string holds a lone surrogate at byte {offset}")]
    LoneSurrogate {
        /// Where the escape begins.
        offset: usize,
    },
    /// Arrays and objects are nested deeper than [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH} at byte {offset}")]
    TooDeep {
        /// Where the first one too deep begins.
        offset: usize,
    },
}

impl CanonicalError {
    /// A stable word for the reason, as the published vectors have it.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Syntax { .. } => "syntax",
            Self::DuplicateKey { .. } => "duplicate-key",
            Self::LoneSurrogate { .. } => "lone-surrogate",
            Self::TooDeep { .. } => "too-deep",
        }
    }
}

/// The canonical form of `json`. Equal values have equal canonical forms, whatever the order of
/// members, the white space and the escapes; the canonical form of a canonical form is itself.
pub fn canonical_json(json: &str) -> Result<String, CanonicalError> {
    parse(json).map(|node| node.to_text())
}

impl Node {
    /// The node as canonical text.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        write_node(self, &mut text);
        text
    }
}

/// A string as a canonical JSON string, quotes included.
pub(crate) fn quote(value: &str) -> String {
    let mut text = String::with_capacity(value.len() + 2);
    write_string(value, &mut text);
    text
}

fn write_node(node: &Node, text: &mut String) {
    match node {
        Node::Bare(bare) => text.push_str(bare),
        Node::String(value) => write_string(value, text),
        Node::Array(elements) => {
            text.push('[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_node(element, text);
            }
            text.push(']');
        }
        Node::Object(members) => {
            text.push('{');
            for (index, (name, value)) in members.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_string(name, text);
                text.push(':');
                write_node(value, text);
            }
            text.push('}');
        }
    }
}

fn write_string(value: &str, text: &mut String) {
    text.push('"');
    for character in value.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\u{8}' => text.push_str("\\b"),
            '\t' => text.push_str("\\t"),
            '\n' => text.push_str("\\n"),
            '\u{c}' => text.push_str("\\f"),
            '\r' => text.push_str("\\r"),
            '\0'..='\u{1f}' => {
                // Writing to a `String` cannot fail.
                let _ = write!(text, "\\u{:04x}", u32::from(character));
            }
            _ => text.push(character),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests;

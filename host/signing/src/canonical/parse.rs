//! A strict JSON reader that keeps what serde would lose: the text of numbers and duplicate names.
//!
//! Grammar of RFC 8259, nothing beside it. Recursion is bounded by [`MAX_DEPTH`].

use super::{CanonicalError, MAX_DEPTH, number};

/// A JSON value on its way to its canonical form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    /// `true`, `false`, `null`, or a number in its canonical text.
    Bare(String),
    /// A string, unescaped.
    String(String),
    /// An array.
    Array(Vec<Node>),
    /// An object; members sorted by the UTF-16 code units of their names, no name twice.
    Object(Vec<(String, Node)>),
}

/// Reads one JSON text.
pub(crate) fn parse(text: &str) -> Result<Node, CanonicalError> {
    let mut parser = Parser { text, at: 0 };
    parser.skip_space();
    let node = parser.value(0)?;
    parser.skip_space();
    if parser.at < text.len() {
        return Err(parser.wrong("the end"));
    }
    Ok(node)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn value(&mut self, depth: usize) -> Result<Node, CanonicalError> {
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Node::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => ["true", "false", "null"]
                .into_iter()
                .find(|word| self.take(word))
                .map(|word| Node::Bare(word.to_owned()))
                .ok_or_else(|| self.wrong("a value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Node, CanonicalError> {
        let offset = self.open(depth)?;
        let mut members: Vec<(String, Node)> = Vec::new();
        if !self.take("}") {
            loop {
                if self.peek() != Some(b'"') {
                    return Err(self.wrong("a string that names a member"));
                }
                let name = self.string()?;
                self.skip_space();
                self.expect(":", "`:`")?;
                self.skip_space();
                members.push((name, self.value(depth + 1)?));
                if self.ends("}", "`,` or `}`")? {
                    break;
                }
            }
        }
        members.sort_by(|(left, _), (right, _)| left.encode_utf16().cmp(right.encode_utf16()));
        let twice = members.windows(2).find_map(|pair| match pair {
            [(left, _), (right, _)] if left == right => Some(left.clone()),
            _ => None,
        });
        match twice {
            Some(key) => Err(CanonicalError::DuplicateKey { offset, key }),
            None => Ok(Node::Object(members)),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Node, CanonicalError> {
        self.open(depth)?;
        let mut elements = Vec::new();
        if !self.take("]") {
            loop {
                elements.push(self.value(depth + 1)?);
                if self.ends("]", "`,` or `]`")? {
                    break;
                }
            }
        }
        Ok(Node::Array(elements))
    }

    /// Steps over the opening bracket and the space after it; returns where the bracket stands.
    fn open(&mut self, depth: usize) -> Result<usize, CanonicalError> {
        let offset = self.at;
        if depth >= MAX_DEPTH {
            return Err(CanonicalError::TooDeep { offset });
        }
        self.at += 1;
        self.skip_space();
        Ok(offset)
    }

    /// After an element: `true` at the closing bracket, `false` after a comma.
    fn ends(&mut self, close: &str, expected: &'static str) -> Result<bool, CanonicalError> {
        self.skip_space();
        if self.take(close) {
            return Ok(true);
        }
        self.expect(",", expected)?;
        self.skip_space();
        Ok(false)
    }

    fn string(&mut self) -> Result<String, CanonicalError> {
        self.expect("\"", "a string")?;
        let mut value = String::new();
        loop {
            let rest = self.rest();
            let plain = rest.find(['"', '\\']).unwrap_or(rest.len());
            let run = rest.get(..plain).unwrap_or_default();
            if let Some(control) = run.find(|c: char| c < ' ') {
                self.at += control;
                return Err(self.wrong("an escape instead of a control character"));
            }
            value.push_str(run);
            self.at += plain;
            if self.take("\"") {
                return Ok(value);
            }
            self.expect("\\", "the end of the string")?;
            value.push(self.escape()?);
        }
    }

    /// The character of an escape whose backslash was just read.
    fn escape(&mut self) -> Result<char, CanonicalError> {
        let offset = self.at.saturating_sub(1);
        let escaped = self.peek().ok_or_else(|| self.wrong("an escape"))?;
        let character = match escaped {
            b'"' | b'\\' | b'/' => char::from(escaped),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                return self.code_point(offset);
            }
            _ => return Err(self.wrong("an escape")),
        };
        self.at += 1;
        Ok(character)
    }

    /// The character of `\uXXXX`, or of two of them that are a surrogate pair.
    fn code_point(&mut self, offset: usize) -> Result<char, CanonicalError> {
        let first = self.code_unit()?;
        let lone = CanonicalError::LoneSurrogate { offset };
        if !(0xd800..0xe000).contains(&first) {
            return char::from_u32(first).ok_or(lone);
        }
        if first >= 0xdc00 || !self.take("\\u") {
            return Err(lone);
        }
        match self.code_unit()? {
            second @ 0xdc00..=0xdfff => {
                char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)).ok_or(lone)
            }
            _ => Err(lone),
        }
    }

    fn code_unit(&mut self) -> Result<u32, CanonicalError> {
        let digits = self
            .text
            .get(self.at..self.at + 4)
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .ok_or_else(|| self.wrong("four hex digits"))?;
        let unit = u32::from_str_radix(digits, 16).map_err(|_| self.wrong("four hex digits"))?;
        self.at += 4;
        Ok(unit)
    }

    fn number(&mut self) -> Result<Node, CanonicalError> {
        let start = self.at;
        self.take("-");
        if !self.take("0") {
            self.digits()?;
        }
        if self.take(".") {
            self.digits()?;
        }
        if self.take("e") || self.take("E") {
            let _signed = self.take("+") || self.take("-");
            self.digits()?;
        }
        let literal = self.text.get(start..self.at).unwrap_or_default();
        Ok(Node::Bare(number::canonical(literal)))
    }

    fn digits(&mut self) -> Result<(), CanonicalError> {
        let count = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        if count == 0 {
            return Err(self.wrong("a digit"));
        }
        self.at += count;
        Ok(())
    }

    fn skip_space(&mut self) {
        let space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.at += self.rest().bytes().take_while(space).count();
    }

    fn take(&mut self, token: &str) -> bool {
        let there = self.rest().starts_with(token);
        if there {
            self.at += token.len();
        }
        there
    }

    fn expect(&mut self, token: &str, expected: &'static str) -> Result<(), CanonicalError> {
        if self.take(token) { Ok(()) } else { Err(self.wrong(expected)) }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    const fn wrong(&self, expected: &'static str) -> CanonicalError {
        CanonicalError::Syntax { offset: self.at, expected }
    }
}

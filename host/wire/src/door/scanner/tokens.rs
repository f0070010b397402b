//! The scalars of RFC 8259: strings with their escapes, numbers, literals.

use super::super::{DoorError, DoorErrorKind};
use super::Scanner;
use crate::json::plain_run;

impl Scanner<'_> {
    /// Stands on the opening quote and ends after the closing one. Tells whether there was an escape.
    pub(super) fn string(&mut self) -> Result<bool, DoorError> {
        let mut escaped = false;
        self.at += 1;
        loop {
            self.at = plain_run(self.bytes, self.at);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return Err(self.syntax()),
            }
        }
    }

    fn escape(&mut self) -> Result<(), DoorError> {
        let start = self.at;
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => match self.code_unit()? {
                0xD800..0xDC00 => {
                    let low = self.bytes.get(self.at..self.at + 2) == Some(b"\\u");
                    let resume = self.at;
                    if low {
                        self.at += 1;
                        if (0xDC00..0xE000).contains(&self.code_unit()?) {
                            return Ok(());
                        }
                        // What followed may open a pair of its own, so it is read again.
                        self.at = resume;
                    }
                    self.defect(DoorErrorKind::LoneSurrogate, start, None)
                }
                0xDC00..0xE000 => self.defect(DoorErrorKind::LoneSurrogate, start, None),
                _ => Ok(()),
            },
            _ => Err(self.syntax()),
        }
    }

    /// Stands on the `u` of an escape and ends after its four digits.
    fn code_unit(&mut self) -> Result<u32, DoorError> {
        let mut unit = 0;
        for _ in 0..4 {
            self.at += 1;
            let digit = self.peek().and_then(|b| char::from(b).to_digit(16));
            unit = unit * 16 + digit.ok_or_else(|| self.syntax())?;
        }
        self.at += 1;
        Ok(unit)
    }

    pub(super) fn number(&mut self) -> Result<(), DoorError> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), DoorError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start { Err(self.syntax()) } else { Ok(()) }
    }

    pub(super) fn literal(&mut self, word: &[u8]) -> Result<(), DoorError> {
        if self.bytes.get(self.at..self.at + word.len()) == Some(word) {
            self.at += word.len();
            return Ok(());
        }
        Err(self.syntax())
    }
}

//! Finds characters that a program reads and a person does not see.
//!
//! Threat: a tool description, a result or a server's name hides instructions for a model, or
//! rewrites an operator's terminal (SE-01, SE-03). The scan is one pass, linear in the text;
//! what it keeps of the text is bounded by [`MAX_CODE_POINTS`] and [`MAX_DECODED`].
//!
//! Which character draws nothing is not written here but taken from Unicode's properties ([`table`]), so
//! that a newer version of them knows newer characters.
//!
//! Not hidden: `\n`, `\t`, `\r`; an emoji presentation selector (VS15, VS16) after a character
//! that can take one; one blank Braille pattern between two others; a zero-width joiner between two emoji; the tag sequences of the three
//! subdivision flags that Unicode recommends; one joiner or non-joiner between two characters of a
//! script that spells words with them. Everything else that draws nothing is hidden.

mod scan;
mod table;

use scan::{Scanner, Span};

/// Most hidden characters that one finding lists.
pub const MAX_CODE_POINTS: usize = 64;

/// Most characters of decoded text that one finding carries.
pub const MAX_DECODED: usize = 256;

/// What kind of hidden text was found. The names are those of `finding.kind` in `wit/types.wit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A C0 or C1 control character, a line separator or a noncharacter.
    Control,
    /// A character that changes the direction in which text is shown.
    Bidi,
    /// A character without width: spaces, joiners, fillers, soft hyphens, invisible operators.
    ZeroWidth,
    /// A tag character or a variation selector that carries data instead of choosing a glyph.
    Tag,
    /// A terminal control sequence: CSI, OSC, DCS or another escape.
    Ansi,
    /// A private-use character, which looks like whatever the reader's font says.
    PrivateUse,
    /// A letter that is taken for another, in a name; found by [`crate::lookalike`] alone.
    LookAlike,
}

impl Kind {
    /// The kind as it is written in findings, logs and the plugin interface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Bidi => "bidi",
            Self::ZeroWidth => "zero-width",
            Self::Tag => "tag",
            Self::Ansi => "ansi",
            Self::PrivateUse => "private-use",
            Self::LookAlike => "look-alike",
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What is hidden in one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The kind of the first hidden character or sequence.
    pub kind: Kind,
    /// The hidden characters in order, at most [`MAX_CODE_POINTS`]; of a terminal sequence all of it.
    pub code_points: Vec<char>,
    /// What tag characters and variation selectors spell, printable characters only, at most
    /// [`MAX_DECODED`]; none where they spell nothing.
    pub decoded: Option<String>,
}

/// The first thing hidden in `text`, with everything else that is hidden in it; none if all of it is visible.
pub fn find(text: &str) -> Option<Finding> {
    // Printable ASCII is what nearly every text is made of, and it needs no scan.
    if text.bytes().all(is_plain) {
        return None;
    }
    let mut kind = None;
    let mut code_points = Vec::new();
    let mut decoder = Decoder::default();
    for span in Scanner::new(text) {
        let Some(found) = span.kind else { continue };
        kind.get_or_insert(found);
        for character in span.text.chars() {
            if code_points.len() < MAX_CODE_POINTS {
                code_points.push(character);
            }
            decoder.push(character);
        }
    }
    Some(Finding { kind: kind?, code_points, decoded: decoder.finish() })
}

/// `text` without anything [`find`] would report. A complete terminal sequence goes as a whole; of
/// one that never ends only its introducer goes, so that it cannot swallow the text after it.
pub fn strip(text: &str) -> String {
    if text.bytes().all(is_plain) {
        return text.to_owned();
    }
    // Removing a character can bring two others together that hide something only as neighbours
    // (an escape before a bracket, a selector after a selector), so this runs until nothing is left.
    // Each round but the last removes something; the bound keeps hostile text from asking for many.
    let mut text = strip_once(text);
    for _ in 0..MAX_ROUNDS {
        if find(&text).is_none() {
            return text;
        }
        text = strip_once(&text);
    }
    text.chars().filter(|c| table::kind_of(*c).is_none()).collect()
}

/// Whether `character` is hidden where nothing around it explains it. A variation selector 15 or 16
/// counts as visible here; whether one is justified only [`find`] can tell, which sees its neighbour.
pub fn is_hidden(character: char) -> bool {
    table::kind_of(character).is_some() && !table::is_presentation_selector(character)
}

/// The visible and hidden pieces of `text`, in order and without gaps.
pub(crate) fn spans(text: &str) -> impl Iterator<Item = Span<'_>> {
    Scanner::new(text)
}

/// How often [`strip`] looks again before it removes by character alone.
const MAX_ROUNDS: usize = 4;

fn strip_once(text: &str) -> String {
    Scanner::new(text).filter(|span| span.kind.is_none()).map(|span| span.text).collect()
}

const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\t' | b'\r')
}

/// Collects what hidden characters spell: tags are ASCII moved to plane 14, variation selectors
/// number the 256 bytes.
#[derive(Default)]
struct Decoder {
    text: String,
    bytes: Vec<u8>,
}

impl Decoder {
    fn push(&mut self, character: char) {
        if let Some(byte) = table::selector_byte(character) {
            if self.bytes.len() < MAX_DECODED {
                self.bytes.push(byte);
            }
            return;
        }
        self.flush_bytes();
        if let Some(ascii) = table::tag_ascii(character) {
            self.text.push(ascii);
        }
    }

    fn flush_bytes(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.text.push_str(&String::from_utf8_lossy(&bytes));
    }

    fn finish(mut self) -> Option<String> {
        self.flush_bytes();
        let printable: String = self
            .text
            .chars()
            .filter(|c| *c == ' ' || !c.is_whitespace() && *c != char::REPLACEMENT_CHARACTER)
            .filter(|c| table::kind_of(*c).is_none())
            .take(MAX_DECODED)
            .collect();
        (!printable.trim().is_empty()).then_some(printable)
    }
}

#[cfg(test)]
mod tests;

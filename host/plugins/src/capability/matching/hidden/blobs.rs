//! Text that stands in a document as base64: the `blob` of a resource whose type is a text (row SE-01).
//!
//! Contract: a client decodes such a blob and shows its text to a model, so it is looked at like any other
//! text. What is no text by its type, or no UTF-8, is left as it is: to take characters out of a picture
//! would break it.
//!
//! Bounds: a blob is no longer than the document. Of more than [`MAX_TYPED`] objects with a text type, what
//! comes after is taken for text too.

use std::collections::HashSet;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use toolgate_base::hidden;

use crate::json::Role;

/// Objects with a text type that are remembered until their blob comes.
const MAX_TYPED: usize = 4_096;

/// As clients read it: with or without its padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A blob with something hidden in its text.
#[derive(Debug)]
pub(super) struct Blob {
    /// RFC 6901 pointer to it.
    pub(super) pointer: String,
    pub(super) finding: hidden::Finding,
    /// The same in base64, without what is hidden.
    pub(super) stripped: String,
}

/// Collects the blobs of one document, string by string.
#[derive(Default)]
pub(super) struct Blobs {
    texts: HashSet<String>,
    hiding: Vec<Blob>,
}

impl Blobs {
    /// Takes note of one string.
    pub(super) fn note(&mut self, pointer: &str, value: &str, role: Role) {
        if role != Role::Value {
            return;
        }
        if let Some(object) = pointer.strip_suffix("/mimeType") {
            if self.texts.len() < MAX_TYPED && is_text(value) {
                self.texts.insert(object.to_owned());
            }
        } else if pointer.ends_with("/blob")
            && let Some(blob) = hiding(pointer, value)
        {
            self.hiding.push(blob);
        }
    }

    /// The blobs of text that hide something.
    pub(super) fn found(self) -> Vec<Blob> {
        let Self { texts, hiding } = self;
        let is_text = |blob: &Blob| {
            let object = blob.pointer.strip_suffix("/blob").unwrap_or_default();
            texts.len() >= MAX_TYPED || texts.contains(object)
        };
        hiding.into_iter().filter(is_text).collect()
    }
}

fn hiding(pointer: &str, value: &str) -> Option<Blob> {
    let compact: String;
    let encoded = if value.contains(|character: char| character.is_ascii_whitespace()) {
        compact = value.split_ascii_whitespace().collect();
        &compact
    } else {
        value
    };
    let text = String::from_utf8(LENIENT.decode(encoded).ok()?).ok()?;
    let finding = hidden::find(&text)?;
    let stripped = LENIENT.encode(hidden::strip(&text));
    Some(Blob { pointer: pointer.to_owned(), finding, stripped })
}

/// Whether what has this type is read as text.
fn is_text(mime: &str) -> bool {
    const OTHER_TEXTS: [&str; 7] = ["json", "xml", "yaml", "x-yaml", "toml", "javascript", "x-sh"];
    let mime = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let Some((kind, subtype)) = mime.split_once('/') else { return false };
    let suffix = subtype.rsplit('+').next().unwrap_or(subtype);
    kind == "text" || OTHER_TEXTS.contains(&suffix)
}

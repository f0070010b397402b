//! Hidden text in the strings and names of a document (row SE-01), and names that are made to be taken
//! for others (row SE-14).

mod blobs;

use toolgate_base::{hidden, lookalike};

use self::blobs::{Blob, Blobs};

use crate::json::{self, Role, Visit};

/// Most findings that a guest gets.
const MAX_FINDINGS: usize = 64;
/// Most code points of one finding.
const MAX_CODE_POINTS: usize = 16;

/// Hidden text in one string of a document (SE-01). `types.finding` has the same members.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// RFC 6901 pointer to the string, or to the member whose name it is.
    pub pointer: String,
    /// The kind, as `tag` or `zero-width`.
    pub kind: String,
    /// The characters as `U+200B`, at most 16.
    pub code_points: Vec<String>,
    /// What tag characters and their like spell.
    pub decoded: Option<String>,
}

/// Every string or name with hidden characters, in document order. A text that is no JSON is read
/// as one string: nothing is called clean because it could not be parsed.
pub fn findings(text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut blobs = Blobs::default();
    let whole = json::visit_strings(text, "", &mut |pointer, raw, role| {
        match json::unescape(raw) {
            Ok(value) => {
                blobs.note(pointer, &value, role);
                found.extend(hidden::find(&value).map(|finding| describe(pointer, finding)));
                if is_name(pointer, role) {
                    found.extend(lookalike::find(&value).map(|finding| describe(pointer, finding)));
                }
            }
            Err(_) => found.extend(hidden::find(raw).map(|finding| describe(pointer, finding))),
        }
        if found.len() < MAX_FINDINGS { Visit::On } else { Visit::Stop }
    });
    let room = MAX_FINDINGS.saturating_sub(found.len());
    let in_blobs = blobs.found().into_iter().take(room);
    found.extend(in_blobs.map(|blob| describe(&blob.pointer, blob.finding)));
    if whole.is_err() && found.is_empty() {
        found.extend(hidden::find(text).map(|finding| describe("", finding)));
    }
    found
}

/// Every blob of text that hides something, by its pointer, with what it is in base64 without that.
pub fn stripped_blobs(text: &str) -> Vec<(String, String)> {
    let mut blobs = Blobs::default();
    // A document that is no JSON has no blobs; whoever changes it finds out.
    let _ = json::visit_strings(text, "", &mut |pointer, raw, role| {
        if (pointer.ends_with("/blob") || pointer.ends_with("/mimeType"))
            && let Ok(value) = json::unescape(raw)
        {
            blobs.note(pointer, &value, role);
        }
        Visit::On
    });
    blobs.found().into_iter().map(|Blob { pointer, stripped, .. }| (pointer, stripped)).collect()
}

/// Whether a string names what a model calls or fills in: a definition itself, or a field of its schemas.
fn is_name(pointer: &str, role: Role) -> bool {
    const SCHEMAS: [&str; 3] = ["/inputSchema/", "/outputSchema/", "/requestedSchema/"];
    match role {
        Role::Value => pointer == "/name",
        Role::Key => {
            SCHEMAS.iter().any(|schema| pointer.starts_with(schema))
                && pointer.rsplit_once('/').is_some_and(|(parent, _)| parent.ends_with("/properties"))
        }
    }
}

fn describe(pointer: &str, finding: hidden::Finding) -> Finding {
    Finding {
        pointer: pointer.to_owned(),
        kind: finding.kind.as_str().to_owned(),
        code_points: finding
            .code_points
            .iter()
            .take(MAX_CODE_POINTS)
            .map(|character| format!("U+{:04X}", u32::from(*character)))
            .collect(),
        decoded: finding.decoded,
    }
}

//! Words for reasons, so that all plugins name a thing alike.

use crate::SurfaceKind;

/// What a request is about, in words: ``tool `read` ``, `the instructions`.
///
/// ```
/// use toolgate_sdk::{SurfaceKind, words};
/// assert_eq!(words::subject(SurfaceKind::Tool, "read"), "tool `read`");
/// assert_eq!(words::subject(SurfaceKind::Instructions, ""), "the instructions");
/// ```
pub fn subject(kind: SurfaceKind, name: &str) -> String {
    match kind {
        SurfaceKind::Server => "the server itself".to_owned(),
        SurfaceKind::Instructions => "the instructions".to_owned(),
        SurfaceKind::Tool => format!("tool `{name}`"),
        SurfaceKind::Prompt => format!("prompt `{name}`"),
        SurfaceKind::Resource => format!("resource `{name}`"),
        SurfaceKind::Template => format!("resource template `{name}`"),
        SurfaceKind::Question => "a question".to_owned(),
    }
}

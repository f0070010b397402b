//! Keeps every path argument of a filesystem server inside the configured directories.
//!
//! Settings: `{"roots": ["/abs", …]}`. A path argument is `path`, `paths`, `source`,
//! `destination`, or any member whose name ends with `path` or `paths`, at whatever depth; every
//! string in it, the elements of an array included, is read lexically below the roots by the host, and then
//! followed along the symbolic links that are there now. What comes out, absolute, normal and
//! without links below its root, is what the server gets. One that leaves the roots, by its text or
//! by a link, fails the call with the roots in the text, so that a model can correct itself.
//!
//! The threat is an argument that means another file to the server than to whoever judged the
//! call: `..`, a relative path that counts from the server's own directory, a `~` that the server
//! expands, a link that leads elsewhere. After this adapter there is one spelling, and policies see
//! that one. A link that somebody makes between this look and the server's own is not seen here.

use serde::Deserialize;
use toolgate_sdk::adapter::Change;
use toolgate_sdk::{Adapter, Edit, Error, Request, files, matching, settings};

/// The adapter `toolgate/filesystem`.
pub struct Filesystem {
    roots: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    roots: Vec<String>,
}

impl Adapter for Filesystem {
    fn configure() -> Result<Self, Error> {
        let Settings { roots } = settings::parse()?;
        Self::new(roots)
    }

    fn arguments(&self, request: &Request) -> Change {
        let Some(arguments) = request.document() else {
            return Change::Unchanged;
        };
        let paths = arguments.strings("").and_then(|pointers| {
            pointers
                .into_iter()
                .filter(|pointer| names_a_path(pointer))
                .filter_map(|pointer| match arguments.text(&pointer) {
                    Ok(text) => text.map(|text| Ok((pointer, text))),
                    Err(fault) => Some(Err(fault)),
                })
                .collect::<Result<Vec<_>, _>>()
        });
        match paths {
            Ok(paths) => self.correct(paths, within),
            Err(fault) => Change::Fail(format!(
                "the path arguments of this call cannot be checked, so it is not made: {fault}"
            )),
        }
    }
}

/// The host's reading of a path: by its text first, then along its links.
fn within(path: &str) -> Result<Option<String>, Error> {
    match matching::path_within("/roots", path)? {
        Some(normal) => files::locate("roots", &normal),
        None => Ok(None),
    }
}

impl Filesystem {
    /// Refuses settings under which nothing, or anything, would be inside.
    fn new(roots: Vec<String>) -> Result<Self, Error> {
        if roots.is_empty() {
            return Err(Error::Invalid("settings: `roots` names no directory".to_owned()));
        }
        match roots.iter().find(|root| !root.starts_with('/')) {
            Some(relative) => {
                Err(Error::Invalid(format!("settings: the root `{relative}` is not an absolute path")))
            }
            None => Ok(Self { roots }),
        }
    }

    /// One edit for every path that is not spelt as the server shall get it. `within` is the
    /// host's reading of a path below the roots.
    fn correct(
        &self,
        paths: Vec<(String, String)>,
        within: impl Fn(&str) -> Result<Option<String>, Error>,
    ) -> Change {
        let mut edits = Vec::new();
        for (pointer, path) in paths {
            match within(&path) {
                Ok(Some(normal)) if normal == path => {}
                Ok(Some(normal)) => {
                    let value = Some(serde_json::Value::String(normal).to_string());
                    edits.push(Edit { pointer, value });
                }
                Ok(None) => return Change::Fail(self.outside(&path)),
                Err(fault) => {
                    return Change::Fail(format!("the path `{path}` cannot be used: {fault}"));
                }
            }
        }
        if edits.is_empty() { Change::Unchanged } else { Change::Patch(edits) }
    }

    /// Tells the model where it may work.
    fn outside(&self, path: &str) -> String {
        let roots = self.roots.iter().map(|root| format!("`{root}`")).collect::<Vec<_>>().join(", ");
        format!(
            "the path `{path}` is outside the directories that this server may use, or a link on it leads \
             outside. Use a path \
             inside one of: {roots}; a relative path counts from the first"
        )
    }
}

/// Whether a pointer into the arguments leads into a path argument, by the name of any member on
/// its way. An escaped name (RFC 6901) ends as it does unescaped.
fn names_a_path(pointer: &str) -> bool {
    pointer.split('/').skip(1).any(|member| {
        let name = member.to_ascii_lowercase();
        name.ends_with("path") || name.ends_with("paths") || matches!(name.as_str(), "source" | "destination")
    })
}

toolgate_sdk::adapter!(Filesystem);

#[cfg(test)]
mod tests;

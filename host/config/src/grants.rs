//! Grants that stand alone, outside a configuration: those of an installed plugin.
//!
//! The reader knows shape and types; whether a grant fits the plugin's signed release is told when
//! the plugin is loaded.

use std::path::Path;

use toolgate_grants::Grants;

use crate::error::{ConfigError, Problem};
use crate::expand::{Variables, expand_tree};
use crate::node;
use crate::read::{Item, Reader, read_grants};

/// Reads one block of grants that stands alone, as JSON or YAML. `file` is for messages; relative
/// directories count from `base`.
pub(crate) fn parse(
    text: &str,
    file: &Path,
    base: &Path,
    variables: &Variables<'_>,
) -> Result<Grants, ConfigError> {
    let mut tree = node::parse(text).map_err(|error| crate::managed::invalid(file, error))?;
    let mut problems = Vec::new();
    expand_tree(&mut tree, "grants", file, variables, &mut Vec::new(), &mut |place, what| {
        problems.push(Problem { place, what: what.to_owned(), fix: String::new() });
    });
    let mut reader = Reader::new(file, base, None, variables);
    let grants = read_grants(&mut reader, Item { node: tree, key: "grants".to_owned() });
    problems.append(&mut reader.problems);
    if problems.is_empty() { Ok(grants) } else { Err(ConfigError::Invalid(problems)) }
}

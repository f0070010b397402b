//! Settings against the JSON Schema that a plugin's release names.
//!
//! Contract: the schema counts only if its digest is the signed one. Faults name the place by pointer
//! and say what the schema wants, never the value: settings may hold what a variable expanded to.
//!
//! Threat: the schema is the author's. It is bounded in size, loads nothing from anywhere (no resolver
//! is compiled in), and its patterns are matched without backtracking.

use jsonschema::PatternOptions;
use serde_json::Value;
use toolgate_signing::Digest;

use crate::error::LoadErrorKind;

/// Longest schema, bytes.
const MAX_SCHEMA: usize = 256 * 1024;
/// Most faults that are told.
const MAX_FAULTS: usize = 16;
/// Largest compiled pattern, bytes.
const MAX_PATTERN: usize = 1 << 20;

/// One setting that the schema does not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingFault {
    /// RFC 6901 pointer into the settings.
    pub pointer: String,
    /// What is wrong, without the value.
    pub what: String,
}

/// Checks settings, which are a JSON text, against a schema that has to have the signed digest.
pub(crate) fn check(schema: &[u8], signed: &Digest, settings: &str) -> Result<(), LoadErrorKind> {
    let unusable = |what: String| LoadErrorKind::Schema(what);
    if schema.len() > MAX_SCHEMA {
        return Err(unusable(format!("it has {} bytes, and the limit is {MAX_SCHEMA}", schema.len())));
    }
    if Digest::of(schema) != *signed {
        return Err(unusable("it is not the one that was signed; install the plugin again".to_owned()));
    }
    let schema: Value = serde_json::from_slice(schema).map_err(|error| unusable(error.to_string()))?;
    let settings: Value = serde_json::from_str(settings).map_err(|error| unusable(error.to_string()))?;
    let validator = jsonschema::options()
        .with_pattern_options(PatternOptions::regex().size_limit(MAX_PATTERN))
        .build(&schema)
        .map_err(|error| unusable(error.masked().to_string()))?;
    let faults: Vec<SettingFault> = validator
        .iter_errors(&settings)
        .take(MAX_FAULTS)
        .map(|error| SettingFault {
            pointer: error.instance_path().to_string(),
            what: error.masked_with("this value").to_string(),
        })
        .collect();
    if faults.is_empty() { Ok(()) } else { Err(LoadErrorKind::SettingsRefused(faults)) }
}

/// The faults as lines of a message.
pub(crate) fn listed(faults: &[SettingFault]) -> String {
    let lines = faults.iter().map(|fault| match fault.pointer.as_str() {
        "" => fault.what.clone(),
        pointer => format!("{pointer}: {}", fault.what),
    });
    lines.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests;

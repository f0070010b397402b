//! `plugin inspect`: what a plugin is and what it may do, in plain words.

use serde_json::{Map, Value, json};
use toolgate_config::Config;
use toolgate_plugins::{meaning, powers};
use toolgate_signing::{Release, VerifiedRelease};

use super::files;
use super::refusal::refused;
use crate::exit::Failure;
use crate::output;

/// What is said of a word that this version does not know.
const UNKNOWN: &str = "unknown to this version of Toolgate, which does not offer it";

/// The signed statement, for a reader who has not seen one.
pub(super) fn inspect(config: &Config, plugin: &str, as_json: bool) -> Result<(), Failure> {
    let files = files(config, plugin)?;
    let release = files.verify(&config.plugins.trust).map_err(|refusal| refused(&refusal))?;
    if as_json {
        return output::json(&with_meanings(&release)?);
    }
    let stated = release.release();
    output::line(&format!(
        "{} {} ({}, release {})",
        stated.name, stated.version, stated.kind, stated.sequence
    ))?;
    output::line(&format!("  {}", meaning::of_kind(stated.kind)))?;
    output::line(&format!("  component {}", release.component()))?;
    for signer in release.signers() {
        output::line(&format!("  signed by {signer}"))?;
    }
    explained("it may call, inside the host:", &stated.imports, meaning::of_interface)?;
    explained("the host may call of it:", &stated.exports, meaning::of_interface)?;
    explained("it may decide, within what you grant:", &stated.decisions, meaning::of_decision)?;
    let asked = beyond_memory(release.release());
    if asked.is_empty() {
        return output::line(
            "  beyond its own memory it asks for nothing: no network, no files, no secrets, no store",
        );
    }
    output::line("  beyond its own memory it asks for, and gets what you grant of it:")?;
    asked.iter().try_for_each(|line| output::line(&format!("    {line}")))
}

/// What it asks for that has to be granted, one line each.
fn beyond_memory(release: &Release) -> Vec<String> {
    let always = ["import", "hook", "decision", "limit", "server"];
    let asked = powers(release).into_values().filter(|power| !always.contains(&power.about));
    asked.map(|power| format!("{}: {}", power.about, power.words)).collect()
}

/// A list with one explained word on each line.
fn explained(
    title: &str,
    words: &[String],
    meaning: fn(&str) -> Option<&'static str>,
) -> Result<(), Failure> {
    if words.is_empty() {
        return output::line(&format!("  {title} nothing"));
    }
    output::line(&format!("  {title}"))?;
    let width = words.iter().map(|word| word.chars().count()).max().unwrap_or(0);
    words.iter().try_for_each(|word| {
        output::line(&format!("    {word:width$}  {}", meaning(word).unwrap_or(UNKNOWN)))
    })
}

/// The statement as it was signed, and beside it what its words mean.
fn with_meanings(release: &VerifiedRelease) -> Result<Value, Failure> {
    let stated = release.release();
    let mut value = serde_json::to_value(stated).map_err(Failure::failed)?;
    let interfaces = stated.imports.iter().chain(&stated.exports);
    let mut words: Map<String, Value> = interfaces
        .map(|word| (word.clone(), json!(meaning::of_interface(word).unwrap_or(UNKNOWN))))
        .collect();
    for word in &stated.decisions {
        words.insert(word.clone(), json!(meaning::of_decision(word).unwrap_or(UNKNOWN)));
    }
    let signers: Vec<String> = release.signers().iter().map(ToString::to_string).collect();
    if let Some(value) = value.as_object_mut() {
        value.insert("component".to_owned(), json!(release.component().to_string()));
        value.insert("signers".to_owned(), json!(signers));
        value.insert("meaning".to_owned(), Value::Object(words));
        value.insert("asks_for".to_owned(), json!(beyond_memory(release.release())));
    }
    Ok(value)
}

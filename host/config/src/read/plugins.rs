//! `plugins`: the bundle, the fallback, who may sign and what is loaded.

use std::time::Duration;

use serde_json::{Map, Value as Json};
use toolgate_grants::Grants;
use toolgate_signing::PublicKey;

use crate::commandline::resolve;
use crate::index::Updates;
use crate::model::{Bundle, Load, Plugins, TrustRule};
use crate::places::Places;

use super::grants::{read_grants, without_values};
use super::hosts::read_hosts;
use super::indexes::{check_rules, read_indexes};
use super::sections::read_switch;
use super::{Item, Reader, keys};

/// The decisions a grant can name. `abstain` needs none.
const DECISIONS: [(&str, &str); 4] =
    [("allow", "allow"), ("ask", "ask"), ("deny", "deny"), ("redact", "redact")];
/// What a plugin may decide where its entry does not say.
const DEFAULT_DECISIONS: [&str; 3] = ["ask", "deny", "redact"];

pub(crate) fn read_plugins(reader: &mut Reader<'_>, item: Item) -> Plugins {
    let mut plugins = Plugins::default();
    let whole = Item { node: item.node.clone(), key: item.key.clone() };
    let Some(mut fields) = reader.fields(item, &keys::PLUGINS) else { return plugins };
    if let Some(item) = fields.take("bundle") {
        let choices = [("default", Bundle::Default), ("none", Bundle::None)];
        plugins.bundle = reader.choice(&item, &choices).unwrap_or(Bundle::Default);
    }
    match fields.take("fallback") {
        Some(item) => plugins.fallback = read_names(reader, item),
        // The default fallback is part of the bundle.
        None if plugins.bundle == Bundle::None => plugins.fallback.clear(),
        None => {}
    }
    if let Some(item) = fields.take("trust") {
        plugins.trust = reader.list(item).into_iter().filter_map(|rule| read_rule(reader, rule)).collect();
    }
    if let Some(item) = fields.take("load") {
        plugins.load = reader.list(item).into_iter().filter_map(|entry| read_load(reader, entry)).collect();
    }
    if let Some(item) = fields.take("managed") {
        plugins.managed = read_switch(reader, &item).unwrap_or(true);
    }
    if let Some(item) = fields.take("min_age") {
        plugins.min_age = reader.duration(&item, Duration::ZERO).unwrap_or(plugins.min_age);
    }
    if let Some(item) = fields.take("update") {
        let choices = [("ask", Updates::Ask), ("auto", Updates::Auto), ("never", Updates::Never)];
        plugins.update = reader.choice(&item, &choices).unwrap_or_default();
    }
    if let Some(item) = fields.take("indexes") {
        plugins.indexes = read_indexes(reader, item);
    }
    if let Some(item) = fields.take("hosts") {
        plugins.hosts = read_hosts(reader, item);
    }
    check_rules(reader, &whole, &plugins.indexes, &plugins.trust);
    plugins
}

/// `owner/name`, each of lower-case letters, digits, `-`, `_` and `.`, beginning with a letter or digit.
pub(crate) fn is_plugin_name(text: &str) -> bool {
    let part = |part: &str| {
        part.bytes().enumerate().all(|(index, byte)| {
            byte.is_ascii_lowercase()
                || byte.is_ascii_digit()
                || (index > 0 && matches!(byte, b'-' | b'_' | b'.'))
        }) && (1..=64).contains(&part.len())
    };
    text.split_once('/').is_some_and(|(owner, name)| part(owner) && part(name))
}

const NAME_FORM: &str = "a plugin is named owner/name in lower case, such as toolgate/ask";

fn read_names(reader: &mut Reader<'_>, item: Item) -> Vec<String> {
    let mut names = Vec::new();
    for entry in reader.list(item) {
        let Some(text) = reader.filled(&entry) else { continue };
        if is_plugin_name(&text.value) {
            names.push(text.value);
        } else {
            reader.wrong(&entry, "no name of a plugin", NAME_FORM);
        }
    }
    names
}

fn read_rule(reader: &mut Reader<'_>, item: Item) -> Option<TrustRule> {
    let whole = Item { node: item.node.clone(), key: item.key.clone() };
    let mut fields = reader.fields(item, &keys::TRUST_RULE)?;
    let plugins = if let Some(item) = fields.take("plugins") {
        read_plugin_pattern(reader, &item)
    } else {
        reader.wrong(&whole, "`plugins` is missing", "say which plugins these keys may sign");
        None
    };
    let all_of = match fields.take("all_of") {
        Some(list) => read_keys(reader, list),
        None => Vec::new(),
    };
    let (mut keys, minimum) = match (fields.take("any_of"), fields.take("keys")) {
        (Some(any_of), None) => read_any_of(reader, any_of)?,
        (None, Some(list)) => {
            let keys = read_keys(reader, list);
            let all = u32::try_from(keys.len()).unwrap_or(u32::MAX);
            (keys, all.min(1))
        }
        (None, None) if !all_of.is_empty() => (Vec::new(), 0),
        _ => {
            reader.wrong(&whole, "a rule has `keys`, `any_of` or `all_of`", "write keys: [\"ed25519:…\"]");
            return None;
        }
    };
    let index = fields.take("index").and_then(|item| reader.filled(&item)).map(|text| text.value);
    if all_of.iter().any(|key| keys.contains(key)) {
        reader.wrong(&whole, "a key stands in `all_of` and in the other list", "keep it in one of them");
        return None;
    }
    // All of the one list and so many of the other are together so many of both.
    let minimum = minimum.saturating_add(u32::try_from(all_of.len()).unwrap_or(u32::MAX));
    keys.extend(&all_of);
    Some(TrustRule { plugins: plugins?, keys, minimum, all_of, index, added: false })
}

/// `owner/name` or `owner/*`.
fn read_plugin_pattern(reader: &mut Reader<'_>, item: &Item) -> Option<String> {
    let text = reader.filled(item)?.value;
    let name = match text.strip_suffix("/*") {
        Some(owner) => format!("{owner}/any"),
        None => text.clone(),
    };
    if is_plugin_name(&name) {
        return Some(text);
    }
    reader.wrong(item, "no name of plugins", "write owner/name, or owner/* for all of that owner");
    None
}

fn read_any_of(reader: &mut Reader<'_>, item: Item) -> Option<(Vec<PublicKey>, u32)> {
    let whole = Item { node: item.node.clone(), key: item.key.clone() };
    let mut fields = reader.fields(item, &keys::ANY_OF)?;
    let Some(list) = fields.take("keys") else {
        reader.wrong(&whole, "`keys` is missing", "list the keys that may sign");
        return None;
    };
    let keys = read_keys(reader, list);
    let most = u64::try_from(keys.len()).unwrap_or(u64::MAX).max(1);
    let minimum = match fields.take("minimum") {
        Some(item) => reader.number(&item, 1, most)?,
        None => 1,
    };
    Some((keys, u32::try_from(minimum).unwrap_or(u32::MAX)))
}

/// Distinct keys; the same key twice would count one signer as two.
pub(super) fn read_keys(reader: &mut Reader<'_>, item: Item) -> Vec<PublicKey> {
    let whole = Item { node: item.node.clone(), key: item.key.clone() };
    let mut keys: Vec<PublicKey> = Vec::new();
    for entry in reader.list(item) {
        let Some(text) = reader.filled(&entry) else { continue };
        match PublicKey::parse(&text.value) {
            Ok(key) if keys.iter().any(|known| known.to_bytes() == key.to_bytes()) => {
                reader.wrong(&entry, "this key is in the list twice", "keep one of the two");
            }
            Ok(key) => keys.push(key),
            Err(error) => reader.wrong(&entry, error.to_string(), "a key is written ed25519:<base64>"),
        }
    }
    if keys.is_empty() {
        reader.wrong(&whole, "no key", "list at least one key");
    }
    keys
}

fn read_load(reader: &mut Reader<'_>, item: Item) -> Option<Load> {
    let whole = Item { node: item.node.clone(), key: item.key.clone() };
    let mut fields = reader.fields(item, &keys::LOAD)?;
    let Some(named) = fields.take("plugin") else {
        reader.wrong(&whole, "`plugin` is missing", NAME_FORM);
        return None;
    };
    let (plugin, version, dir) = read_reference(reader, &named)?;
    let decisions = match fields.take("decisions") {
        Some(item) => reader
            .list(item)
            .iter()
            .filter_map(|entry| reader.choice(entry, &DECISIONS))
            .map(str::to_owned)
            .collect(),
        None => DEFAULT_DECISIONS.map(str::to_owned).to_vec(),
    };
    let monitor = fields
        .take("mode")
        .and_then(|item| reader.choice(&item, &[("enforce", false), ("monitor", true)]))
        .unwrap_or(false);
    let empty = || (Json::Object(Map::new()), Json::Object(Map::new()));
    let mut settings_places = Places::default();
    let (settings, shown_settings) = match fields.take("settings") {
        Some(item) => {
            settings_places = reader.places(&item);
            reader.object(&item)?
        }
        None => empty(),
    };
    let (granted, shown_grants) = match fields.take("grants") {
        Some(item) => {
            let (_, shown) = reader.object(&item)?;
            (read_grants(reader, item), without_values(shown))
        }
        None => (Grants::default(), Json::Object(Map::new())),
    };
    let settings_json = settings.to_string();
    Some(Load {
        plugin,
        dir,
        version,
        decisions,
        monitor,
        settings_json,
        settings_places,
        pinned: None,
        granted,
        shown_settings,
        shown_grants,
    })
}

type Reference = (String, Option<semver::VersionReq>, Option<std::path::PathBuf>);

/// `owner/name`, `owner/name@^1`, or a directory (`./DIR`, `../DIR`, `/DIR`, `~/DIR`).
fn read_reference(reader: &mut Reader<'_>, item: &Item) -> Option<Reference> {
    let text = reader.filled(item)?.value;
    if ["./", "../", "/", "~/"].iter().any(|start| text.starts_with(start)) {
        let dir = resolve(&text, &reader.base, reader.home.as_deref());
        return Some((text, None, Some(dir)));
    }
    let (name, version) = match text.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (text.as_str(), None),
    };
    if !is_plugin_name(name) {
        reader.wrong(item, "no name of a plugin", format!("{NAME_FORM}; a directory is written ./DIR"));
        return None;
    }
    let version = match version.map(semver::VersionReq::parse) {
        None => None,
        Some(Ok(version)) => Some(version),
        Some(Err(_)) => {
            reader.wrong(item, "no version after `@`", "write a requirement such as ^1, =1.2.3 or >=1.2, <2");
            return None;
        }
    };
    Some((name.to_owned(), version, None))
}

//! `grants`: what a plugin may reach, strictly, with a place for every mistake.

use std::collections::BTreeMap;
use std::time::Duration;

use toolgate_base::Secret;
use toolgate_grants::{FilesGrant, Grants, HttpGrant, KvGrant, SecretGrant};
use toolgate_signing::Access;

use crate::commandline::resolve;
use crate::node::Value;

use super::{Item, Reader, keys};

/// Longest label.
const MAX_LABEL: usize = 64;
/// Longest timeout of one request.
const MAX_TIMEOUT: Duration = Duration::from_secs(30);
/// Most bytes that a number may ask for: what a database or a message could ever hold.
const MAX_BYTES: u64 = 1 << 30;

/// What is wrong with a label, and how one looks.
const NO_LABEL: (&str, &str) =
    ("no label", "a label has small letters, digits and `-`, and begins with a letter");

/// Reads one block of grants.
pub(crate) fn read_grants(reader: &mut Reader<'_>, item: Item) -> Grants {
    let mut grants = Grants::default();
    let Some(mut fields) = reader.fields(item, &keys::GRANTS) else { return grants };
    if let Some(item) = fields.take("http") {
        grants.http = labels_or_list(reader, item, read_http);
    }
    if let Some(item) = fields.take("secrets") {
        grants.secrets = labels(reader, item, read_secret);
    }
    if let Some(item) = fields.take("kv") {
        grants.kv = labels_or_list(reader, item, read_kv);
    }
    if let Some(item) = fields.take("files") {
        grants.files = labels(reader, item, read_files);
    }
    grants
}

/// What may be shown of grants: the value of a secret only where it is a template.
pub(crate) fn without_values(mut shown: serde_json::Value) -> serde_json::Value {
    let secrets = shown.get_mut("secrets").and_then(serde_json::Value::as_object_mut);
    for secret in secrets.into_iter().flat_map(|secrets| secrets.values_mut()) {
        let value = match secret {
            serde_json::Value::Object(block) => block.get_mut("value"),
            other => Some(other),
        };
        if let Some(value) = value
            && !value.as_str().is_some_and(|text| text.starts_with("${") && text.ends_with('}'))
        {
            *value = serde_json::Value::from("***");
        }
    }
    shown
}

/// A map by label, or a list of labels that are granted as the release declares them.
fn labels_or_list<T: Default>(
    reader: &mut Reader<'_>,
    item: Item,
    read: impl Fn(&mut Reader<'_>, Item) -> Option<T>,
) -> BTreeMap<String, T> {
    if !matches!(item.node.value, Value::List(_)) {
        return labels(reader, item, read);
    }
    let mut found = BTreeMap::new();
    for entry in reader.list(item) {
        let Some(text) = reader.filled(&entry) else { continue };
        if is_label(&text.value) {
            found.insert(text.value, T::default());
        } else {
            reader.wrong(&entry, NO_LABEL.0, NO_LABEL.1);
        }
    }
    found
}

/// A map by label.
fn labels<T>(
    reader: &mut Reader<'_>,
    item: Item,
    read: impl Fn(&mut Reader<'_>, Item) -> Option<T>,
) -> BTreeMap<String, T> {
    let mut found = BTreeMap::new();
    for (name, entry) in reader.entries(item) {
        let label = name.name().to_owned();
        if !is_label(&label) {
            reader.wrong(&name, NO_LABEL.0, NO_LABEL.1);
        } else if let Some(grant) = read(reader, entry) {
            found.insert(label, grant);
        }
    }
    found
}

fn is_label(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=MAX_LABEL).contains(&text.len())
        && text.bytes().all(plain)
        && text.starts_with(|first: char| first.is_ascii_lowercase())
}

/// Whether the whole label is granted by one word. `false` is refused: a grant that is not meant
/// is left out, so that nobody has to guess.
fn whole(reader: &mut Reader<'_>, item: &Item) -> Option<bool> {
    match item.node.value {
        Value::Bool(true) => Some(true),
        Value::Bool(false) | Value::Null => {
            reader.wrong(
                item,
                "this grants nothing",
                "write true for what the release declares, or leave the label out",
            );
            None
        }
        _ => Some(false),
    }
}

/// `true`, a list of origins, or a block.
fn read_http(reader: &mut Reader<'_>, item: Item) -> Option<HttpGrant> {
    if matches!(item.node.value, Value::List(_)) {
        return Some(HttpGrant { hosts: Some(origins(reader, item)), ..HttpGrant::default() });
    }
    if whole(reader, &item)? {
        return Some(HttpGrant::default());
    }
    let mut fields = reader.fields(item, &keys::GRANT_HTTP)?;
    let mut grant = HttpGrant::default();
    if let Some(item) = fields.take("hosts") {
        grant.hosts = Some(origins(reader, item));
    }
    if let Some(item) = fields.take("methods") {
        grant.methods = Some(methods(reader, item));
    }
    if let Some(item) = fields.take("max_response") {
        grant.max_response = Some(reader.number(&item, 1, MAX_BYTES)?);
    }
    if let Some(item) = fields.take("timeout") {
        let timeout = reader.duration(&item, Duration::from_millis(10))?;
        if timeout > MAX_TIMEOUT {
            reader.wrong(&item, "a timeout that is too long", "give at most 30s");
            return None;
        }
        grant.timeout = Some(timeout);
    }
    Some(grant)
}

fn read_secret(reader: &mut Reader<'_>, item: Item) -> Option<SecretGrant> {
    let plain = |text: crate::node::Text| SecretGrant {
        value: Secret::new(text.value),
        send_to: None,
        reveal: false,
    };
    if matches!(item.node.value, Value::Text(_)) {
        return reader.filled(&item).map(plain);
    }
    let whole = Item { node: item.node.clone(), key: item.key.clone() };
    let mut fields = reader.fields(item, &keys::GRANT_SECRET)?;
    let Some(value) = fields.take("value") else {
        reader.wrong(
            &whole,
            "`value` is missing",
            "write value: \"${NAME}\", with the variable that holds it",
        );
        return None;
    };
    let mut grant = plain(reader.filled(&value)?);
    if let Some(item) = fields.take("send_to") {
        grant.send_to = Some(origins(reader, item));
    }
    if let Some(item) = fields.take("reveal") {
        grant.reveal = reader.flag(&item)?;
    }
    Some(grant)
}

fn read_kv(reader: &mut Reader<'_>, item: Item) -> Option<KvGrant> {
    if whole(reader, &item)? {
        return Some(KvGrant::default());
    }
    let mut fields = reader.fields(item, &keys::GRANT_KV)?;
    let mut grant = KvGrant::default();
    if let Some(item) = fields.take("max_bytes") {
        grant.max_bytes = Some(reader.number(&item, 1, MAX_BYTES)?);
    }
    Some(grant)
}

/// A directory, a list of them, or a block.
fn read_files(reader: &mut Reader<'_>, item: Item) -> Option<FilesGrant> {
    if matches!(item.node.value, Value::Text(_) | Value::List(_)) {
        return directories(reader, item).map(|directories| FilesGrant { directories, access: None });
    }
    let whole = Item { node: item.node.clone(), key: item.key.clone() };
    let mut fields = reader.fields(item, &keys::GRANT_FILES)?;
    let Some(item) = fields.take("directories") else {
        reader.wrong(&whole, "`directories` is missing", "name at least one directory");
        return None;
    };
    let mut grant = FilesGrant { directories: directories(reader, item)?, access: None };
    if let Some(item) = fields.take("access") {
        grant.access = Some(reader.choice(&item, &[("read", Access::Read), ("write", Access::Write)])?);
    }
    Some(grant)
}

fn directories(reader: &mut Reader<'_>, item: Item) -> Option<Vec<std::path::PathBuf>> {
    let whole = Item { node: item.node.clone(), key: item.key.clone() };
    let texts = match item.node.value {
        Value::List(_) => reader.texts(item),
        _ => vec![reader.filled(&item)?.value],
    };
    if texts.is_empty() {
        reader.wrong(&whole, "no directory", "name at least one directory");
        return None;
    }
    Some(texts.iter().map(|text| resolve(text, &reader.base, reader.home.as_deref())).collect())
}

/// Scheme, host and port of each; the plugin host reads them again, against the release.
fn origins(reader: &mut Reader<'_>, item: Item) -> Vec<String> {
    let mut found = Vec::new();
    for entry in reader.list(item) {
        let Some(text) = reader.filled(&entry) else { continue };
        let host = text.value.strip_prefix("https://").or_else(|| text.value.strip_prefix("http://"));
        let plain = |host: &str| !host.is_empty() && !host.contains(['/', '@', '?', '#', ' ']);
        if host.is_some_and(plain) {
            found.push(text.value);
        } else {
            reader.wrong(&entry, "no origin", "write scheme, host and port, such as https://api.example.com");
        }
    }
    found
}

fn methods(reader: &mut Reader<'_>, item: Item) -> Vec<String> {
    let mut found = Vec::new();
    for entry in reader.list(item) {
        let Some(text) = reader.filled(&entry) else { continue };
        if text.value.bytes().all(|byte| byte.is_ascii_lowercase()) {
            found.push(text.value);
        } else {
            reader.wrong(&entry, "no method", "write it in small letters, such as get");
        }
    }
    found
}

#[cfg(test)]
mod tests;

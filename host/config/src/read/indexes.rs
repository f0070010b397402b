//! `plugins.indexes`: registries of plugins, each with the fingerprint of its root.

use std::time::Duration;

use toolgate_net::{Url, is_loopback};
use toolgate_signing::Digest;

use crate::commandline::resolve;
use crate::index::{DEFAULT_REFRESH, Index};
use crate::model::TrustRule;

use super::{Item, Reader, keys};

/// Longest name.
const MAX_NAME: usize = 64;
/// An index is not asked more often.
const LEAST_REFRESH: Duration = Duration::from_secs(1);

pub(super) fn read_indexes(reader: &mut Reader<'_>, item: Item) -> Vec<Index> {
    let mut all: Vec<Index> = Vec::new();
    for entry in reader.list(item) {
        let whole = Item { node: entry.node.clone(), key: entry.key.clone() };
        let Some(index) = read_index(reader, entry) else { continue };
        if all.iter().any(|known| known.name == index.name) {
            reader.wrong(&whole, "two indexes have this name", "give one of them another name");
        } else {
            all.push(index);
        }
    }
    all
}

/// A rule may name only an index that is there: else nothing could ever be resolved by it, and no
/// revocation would reach its plugins.
pub(super) fn check_rules(reader: &mut Reader<'_>, whole: &Item, indexes: &[Index], rules: &[TrustRule]) {
    for rule in rules {
        let Some(name) = &rule.index else { continue };
        if !indexes.iter().any(|index| index.name == *name) {
            let what =
                format!("the rule for {} names the index `{name}`, which is not in `indexes`", rule.plugins);
            reader.wrong(whole, what, "add it to `indexes`, or remove `index` from the rule");
        }
    }
}

fn read_index(reader: &mut Reader<'_>, item: Item) -> Option<Index> {
    let whole = Item { node: item.node.clone(), key: item.key.clone() };
    let mut fields = reader.fields(item, &keys::INDEX)?;
    let name = fields.take("name");
    let name = needed(reader, &whole, name, "name", "call it something short, such as acme", read_name);
    let place = fields.take("url");
    let place = needed(
        reader,
        &whole,
        place,
        "url",
        "write https://HOST/PATH, or the path of a directory",
        read_place,
    );
    let root = fields.take("root");
    let root = needed(
        reader,
        &whole,
        root,
        "root",
        "write the fingerprint that its maintainers tell you; `toolgate registry status` prints it to them",
        read_root,
    );
    let refresh = match fields.take("refresh") {
        Some(item) => reader.duration(&item, LEAST_REFRESH),
        None => Some(DEFAULT_REFRESH),
    };
    let (root_version, root) = root?;
    Some(Index { name: name?, place: place?, root_version, root, refresh: refresh? })
}

/// A key without which an entry means nothing.
fn needed<T>(
    reader: &mut Reader<'_>,
    whole: &Item,
    found: Option<Item>,
    key: &str,
    fix: &str,
    read: impl FnOnce(&mut Reader<'_>, &Item) -> Option<T>,
) -> Option<T> {
    if let Some(item) = found {
        return read(reader, &item);
    }
    reader.wrong(whole, format!("`{key}` is missing"), fix);
    None
}

fn read_name(reader: &mut Reader<'_>, item: &Item) -> Option<String> {
    let text = reader.filled(item)?.value;
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if text.len() <= MAX_NAME && text.bytes().all(plain) && !text.starts_with('-') {
        return Some(text);
    }
    reader.wrong(item, "no name of an index", "use lower-case letters, digits and `-`, at most 64");
    None
}

fn read_place(reader: &mut Reader<'_>, item: &Item) -> Option<String> {
    let text = reader.filled(item)?.value;
    if !text.contains("://") {
        let directory = resolve(&text, &reader.base, reader.home.as_deref());
        return Some(directory.display().to_string());
    }
    let form = "write https://HOST/PATH; plain http is for a loopback address only";
    let Ok(url) = Url::parse(&text) else {
        reader.wrong(item, "no URL", form);
        return None;
    };
    let host = url.host_str().unwrap_or_default();
    let safe = !host.is_empty() && (url.scheme() == "https" || (url.scheme() == "http" && is_loopback(host)));
    if !safe {
        reader.wrong(item, "no https URL", form);
        return None;
    }
    if !url.username().is_empty()
        || url.password().is_some()
        || url.query().is_some()
        || url.fragment().is_some()
    {
        reader.wrong(item, "a URL with a user, a password, a query or a fragment", form);
        return None;
    }
    Some(text)
}

/// `sha256:…` of the first root, or `N:sha256:…` of root N.
fn read_root(reader: &mut Reader<'_>, item: &Item) -> Option<(u64, Digest)> {
    let text = reader.filled(item)?.value;
    let (version, digest) = match text.split_once(":sha256:") {
        Some((version, _)) => (version, text.get(version.len() + 1..).unwrap_or_default()),
        None => ("1", text.as_str()),
    };
    let number = version.bytes().all(|byte| byte.is_ascii_digit()) && !version.starts_with('0');
    let version: Option<u64> = number.then(|| version.parse().ok()).flatten();
    let read = version.zip(digest.parse().ok());
    if read.is_none() {
        let fix = "write sha256:<64 hex digits>, or 3:sha256:<64 hex digits> for root 3";
        reader.wrong(item, "no fingerprint of a root", fix);
    }
    read
}

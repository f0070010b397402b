//! Where what there is differs from what was reviewed, with both sides.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::surfaces::{LockedSurface, Surfaces};
use super::take::digest_of;
use super::{Lock, LockedPlugin, LockedServer};
use crate::pin;

/// Nothing on this side.
const NOTHING: &str = "(not there)";

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// `plugin`, `server`, `definition` or `surface`.
    pub about: &'static str,
    /// Which one: a plugin, a server, or `server/kind/name`.
    pub name: String,
    /// What of it.
    pub field: String,
    /// What was reviewed.
    pub locked: String,
    /// What there is.
    pub found: String,
    /// For a definition: a unified diff of both as indented JSON. It holds a server's words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub diff: String,
}

impl Mismatch {
    fn new(about: &'static str, name: &str, field: &str, locked: &str, found: &str) -> Self {
        Self {
            about,
            name: name.to_owned(),
            field: field.to_owned(),
            locked: locked.to_owned(),
            found: found.to_owned(),
            diff: String::new(),
        }
    }

    /// One sentence with both sides.
    pub fn sentence(&self) -> String {
        format!(
            "{} {}: {} is {} and was reviewed as {}",
            self.about, self.name, self.field, self.found, self.locked
        )
    }
}

/// Everything that can be compared without asking a server: plugins, identities, and the surface files
/// against the lock.
pub fn compare_all(lock: &Lock, found: &Lock, surfaces: &Surfaces) -> Vec<Mismatch> {
    let mut all = Vec::new();
    compare_lists(
        "plugin",
        &by_name(&lock.plugins, |plugin| &plugin.name),
        &by_name(&found.plugins, |plugin| &plugin.name),
        &mut all,
        |name, one, other, all| fields("plugin", name, &plugin_fields(one), &plugin_fields(other), all),
    );
    compare_lists(
        "server",
        &by_name(&lock.servers, |server| &server.name),
        &by_name(&found.servers, |server| &server.name),
        &mut all,
        |name, one, other, all| fields("server", name, &server_fields(one), &server_fields(other), all),
    );
    for server in &lock.servers {
        let file =
            surfaces.get(&server.name).map_or_else(|| NOTHING.to_owned(), |file| digest_of(file).to_string());
        let locked = server.surface.map_or_else(|| NOTHING.to_owned(), |digest| digest.to_string());
        if file != locked {
            all.push(Mismatch::new("surface", &server.name, "toolgate.surface file", &locked, &file));
        }
    }
    all
}

/// A name of the configuration of which the lock has no release that could be loaded.
pub fn unreviewed(plugin: &str, reason: &str) -> Mismatch {
    Mismatch::new("plugin", plugin, "the entry", NOTHING, reason)
}

/// A surface that a server shows now against the one that was reviewed.
pub fn compare_surface(
    server: &LockedServer,
    reviewed: &LockedSurface,
    era: &str,
    revision: &str,
    now: &LockedSurface,
) -> Vec<Mismatch> {
    let mut all = Vec::new();
    let ours = BTreeMap::from([("era", server.era.clone()), ("revision", server.revision.clone())]);
    let theirs = BTreeMap::from([("era", era.to_owned()), ("revision", revision.to_owned())]);
    fields("server", &server.name, &ours, &theirs, &mut all);
    let key = |kind: &str, name: &str| (kind.to_owned(), name.to_owned());
    let mut names: BTreeSet<(String, String)> =
        now.definitions.iter().map(|found| key(&found.kind, &found.name)).collect();
    names.extend(server.definitions.iter().map(|locked| key(&locked.kind, &locked.name)));
    for (kind, name) in names {
        // The lock decides; the surface file is only its words.
        let locked = server.definitions.iter().find(|locked| locked.kind == kind && locked.name == name);
        let found = now.get(&kind, &name);
        if locked.map(|locked| locked.digest) == found.map(|found| found.digest) {
            continue;
        }
        let side = |digest: Option<String>| digest.unwrap_or_else(|| NOTHING.to_owned());
        let mut mismatch = Mismatch::new(
            "definition",
            &format!("{}/{kind}/{name}", server.name),
            "digest",
            &side(locked.map(|locked| locked.digest.to_string())),
            &side(found.map(|found| found.digest.to_string())),
        );
        mismatch.diff = pin::unified(
            reviewed.get(&kind, &name).map_or("", |reviewed| &reviewed.definition_json),
            found.map_or("", |found| &found.definition_json),
        );
        all.push(mismatch);
    }
    all
}

fn by_name<T>(list: &[T], name: impl Fn(&T) -> &String) -> BTreeMap<String, &T> {
    list.iter().map(|entry| (name(entry).clone(), entry)).collect()
}

fn compare_lists<T>(
    about: &'static str,
    locked: &BTreeMap<String, &T>,
    found: &BTreeMap<String, &T>,
    all: &mut Vec<Mismatch>,
    each: impl Fn(&str, &T, &T, &mut Vec<Mismatch>),
) {
    let names: BTreeSet<&String> = locked.keys().chain(found.keys()).collect();
    for name in names {
        match (locked.get(name), found.get(name)) {
            (Some(one), Some(other)) => each(name, one, other, all),
            (Some(_), None) => all.push(Mismatch::new(about, name, "the entry", "there", NOTHING)),
            (None, _) => all.push(Mismatch::new(about, name, "the entry", NOTHING, "there")),
        }
    }
}

type Fields = BTreeMap<&'static str, String>;

fn fields(about: &'static str, name: &str, locked: &Fields, found: &Fields, all: &mut Vec<Mismatch>) {
    for (field, ours) in locked {
        let theirs = found.get(field).map_or(NOTHING, String::as_str);
        if theirs != ours {
            all.push(Mismatch::new(about, name, field, ours, theirs));
        }
    }
}

fn plugin_fields(plugin: &LockedPlugin) -> Fields {
    BTreeMap::from([
        ("component", plugin.component.to_string()),
        ("grants", plugin.grants.to_string()),
        ("imports", plugin.imports.join(" ")),
        ("index", plugin.index.clone().unwrap_or_else(|| NOTHING.to_owned())),
        ("kind", plugin.kind.clone()),
        ("release", plugin.release.to_string()),
        ("sequence", plugin.sequence.to_string()),
        ("signers", plugin.signers.join(" ")),
        ("version", plugin.version.clone()),
    ])
}

fn server_fields(server: &LockedServer) -> Fields {
    let text = |digest: Option<toolgate_signing::Digest>| {
        digest.map_or_else(|| NOTHING.to_owned(), |digest| digest.to_string())
    };
    let adapter = server.adapter.as_ref();
    BTreeMap::from([
        ("identity", server.identity.to_string()),
        ("artifact", text(server.artifact)),
        ("adapter", adapter.map_or_else(|| NOTHING.to_owned(), |adapter| adapter.name.clone())),
        ("adapter component", text(adapter.map(|adapter| adapter.component))),
        ("adapter release", text(adapter.map(|adapter| adapter.release))),
        ("adapter settings", text(adapter.map(|adapter| adapter.grants))),
    ])
}

//! The surface of one server as one caller gets it: instructions, tools, prompts, resources and
//! templates with their digests, pins and exposed names, computed once per listing so that a call
//! computes none of them.
//!
//! The digest is always that of the definition as the server gave it; what an adapter or a policy
//! changes is shown, never pinned. Threat: the definitions are a server's words. They are kept as
//! text and judged by policies; nothing here trusts a hint.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::value::RawValue;
use toolgate_config::Server;
use toolgate_plugins::{Document, PinState, SurfaceKind};
use toolgate_signing::{DefinitionKind, Digest, definition_digest, surface_digest};
use toolgate_wire::{ListKind, edit};

use crate::apps::{self, Audience};
use crate::caller::Caller;
use crate::pin::Approved;

/// The key of a server's instructions among its definitions; there is one at most.
pub(crate) const INSTRUCTIONS: &str = "instructions";

/// One definition of a server.
#[derive(Debug, Clone)]
pub struct Item {
    /// What it is.
    pub kind: DefinitionKind,
    /// The server's own name for it: a name, a URI or a URI template.
    pub name: String,
    /// The name a client sees; of a resource or template the URI, which a catalog may have to rewrite.
    pub exposed: String,
    /// The definition as received; of instructions the JSON string.
    pub definition: Document,
    /// Digest of the definition, as it is pinned.
    pub digest: Digest,
    /// Digest of every byte of the definition: what of it no pin holds counts for a view of it too.
    pub bytes: Digest,
    /// How it compares with its pin.
    pub pin: PinState,
    /// The server's claim that it only reads.
    pub read_only_hint: Option<bool>,
    /// The server's claim that it may destroy.
    pub destructive_hint: Option<bool>,
    /// Whom a tool is for; everything else is for everybody.
    pub audience: Audience,
}

/// Everything a server shows at one moment.
#[derive(Debug, Default)]
pub struct Surface {
    /// In the server's own order, kind by kind.
    items: Vec<Arc<Item>>,
    /// Definitions that were left out, with the reason.
    pub dropped: Vec<(String, String)>,
    /// How the whole compares with `trust.pinned_tool_hash`.
    pub surface_pin: Option<PinState>,
    /// Digest of the whole.
    pub digest: Option<Digest>,
    by_name: Index,
    by_exposed: Index,
    /// The views that its tools name; they need not stand in a list of resources.
    views: HashSet<String>,
}

/// Where the definition of a kind and name stands.
type Index = HashMap<DefinitionKind, HashMap<String, usize>>;

/// One definition on its way into a surface.
pub(crate) type Raw = (DefinitionKind, Box<RawValue>);

impl Surface {
    /// Builds the surface from raw definitions. A definition without a digest is left out and named.
    pub(crate) fn build(
        server: &Server,
        max_name: usize,
        approved: &Approved,
        definitions: &[Raw],
        mut dropped: Vec<(String, String)>,
    ) -> Self {
        let mut items = Vec::with_capacity(definitions.len());
        for (kind, raw) in definitions {
            match Item::read(server, max_name, approved, *kind, raw.get()) {
                Ok(item) => items.push(Arc::new(item)),
                Err(reason) => dropped.push(reason),
            }
        }
        leave_out_twins(&mut items, &mut dropped);
        let digest = digest_of(&items);
        let surface_pin =
            server.trust.pinned_tool_hash.as_deref().map(|pinned| {
                if pinned == digest.to_string() { PinState::Matches } else { PinState::Differs }
            });
        let by_name = index(&items, |item| &item.name);
        let by_exposed = index(&items, |item| &item.exposed);
        let tools = items.iter().filter(|item| item.kind == DefinitionKind::Tool);
        let views = tools.flat_map(|tool| apps::views_of(tool.definition.text())).collect();
        Self { items, dropped, surface_pin, digest: Some(digest), by_name, by_exposed, views }
    }

    /// The same definitions compared with other pins; no digest is computed again.
    pub(crate) fn compared_with(&self, approved: &Approved) -> Self {
        let again = |item: &Arc<Item>| {
            let pin = approved.state_of(item.kind, &item.name, &item.digest);
            Arc::new(Item { pin, ..Item::clone(item) })
        };
        Self {
            items: self.items.iter().map(again).collect(),
            dropped: self.dropped.clone(),
            surface_pin: self.surface_pin,
            digest: self.digest,
            by_name: self.by_name.clone(),
            by_exposed: self.by_exposed.clone(),
            views: self.views.clone(),
        }
    }

    /// Whether both show the same definitions of a kind in the same standing; order does not count.
    pub(crate) fn shows_the_same(&self, other: &Self, kind: DefinitionKind) -> bool {
        let standing = |surface: &Self| {
            let mut pins: Vec<_> =
                surface.of(kind).map(|item| (item.name.clone(), item.digest, item.pin)).collect();
            pins.sort_by(|left, right| left.0.cmp(&right.0));
            pins
        };
        standing(self) == standing(other)
    }

    /// Whether both hold the same definitions, byte for byte, in the same standing; order does not count.
    pub(crate) fn is_the_same(&self, other: &Self) -> bool {
        let same = |item: &Arc<Item>| {
            let there = other.item(item.kind, &item.name);
            there.is_some_and(|there| there.bytes == item.bytes && there.pin == item.pin)
        };
        self.items.len() == other.items.len() && self.items.iter().all(same)
    }

    /// Every definition.
    pub fn items(&self) -> &[Arc<Item>] {
        &self.items
    }

    /// The definitions of a kind, in the server's order.
    pub fn of(&self, kind: DefinitionKind) -> impl Iterator<Item = &Arc<Item>> {
        self.items.iter().filter(move |item| item.kind == kind)
    }

    /// The definition of that kind and original name.
    pub fn item(&self, kind: DefinitionKind, name: &str) -> Option<&Arc<Item>> {
        self.by_name.get(&kind)?.get(name).and_then(|index| self.items.get(*index))
    }

    /// The definition that a client sees under this name: the server's own where it is shown alone.
    pub(crate) fn shown_as(&self, kind: DefinitionKind, name: &str, plain: bool) -> Option<&Arc<Item>> {
        let index = if plain { &self.by_name } else { &self.by_exposed };
        index.get(&kind)?.get(name).and_then(|index| self.items.get(*index))
    }

    /// Whether tools of this server have views.
    pub(crate) fn has_views(&self) -> bool {
        !self.views.is_empty()
    }

    /// Whether this server says that a URI, or a template of that text, is its own: by a list, or as the
    /// view of a tool.
    pub(crate) fn claims(&self, uri: &str) -> bool {
        let kinds = [DefinitionKind::Resource, DefinitionKind::Template];
        kinds.into_iter().any(|kind| self.item(kind, uri).is_some()) || self.views.contains(uri)
    }

    /// All that [`Self::claims`] is true of; some stand here twice.
    pub(crate) fn claimed(&self) -> impl Iterator<Item = &str> {
        let listed = self.of(DefinitionKind::Resource).chain(self.of(DefinitionKind::Template));
        listed.map(|item| item.name.as_str()).chain(self.views.iter().map(String::as_str))
    }

    /// How the whole compares with the operator's pin of the whole.
    pub fn surface_pin(&self) -> PinState {
        self.surface_pin.unwrap_or(PinState::Unpinned)
    }
}

impl Item {
    fn read(
        server: &Server,
        max_name: usize,
        approved: &Approved,
        kind: DefinitionKind,
        definition: &str,
    ) -> Result<Self, (String, String)> {
        let name = match list_kind(kind) {
            None => INSTRUCTIONS.to_owned(),
            Some(list) => edit::get(definition, list.key())
                .and_then(edit::string)
                .ok_or_else(|| ("(unnamed)".to_owned(), format!("the {kind} has no name")))?,
        };
        let digest = definition_digest(kind, definition)
            .map_err(|error| (name.clone(), format!("the definition has no digest: {error}")))?;
        let hint = |pointer: &str| match edit::get(definition, pointer) {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        };
        let exposed = match kind {
            DefinitionKind::Tool | DefinitionKind::Prompt => {
                toolgate_labels::exposed_name(&server.name, &name, max_name)
            }
            _ => name.clone(),
        };
        Ok(Self {
            kind,
            exposed,
            pin: approved.state_of(kind, &name, &digest),
            read_only_hint: hint("/annotations/readOnlyHint"),
            destructive_hint: hint("/annotations/destructiveHint"),
            audience: match kind {
                DefinitionKind::Tool => Audience::of(definition),
                _ => Audience::ALL,
            },
            definition: Document::new(definition),
            bytes: Digest::of(definition.as_bytes()),
            digest,
            name,
        })
    }

    /// The name that this caller sees.
    pub(crate) fn shown_to(&self, caller: &Caller) -> &str {
        if caller.plain_names { &self.name } else { &self.exposed }
    }

    /// What can be read of a server without standing in any list: there is no definition to pin, and
    /// what is said of it to policies is the URI alone.
    pub(crate) fn unlisted(uri: &str) -> Self {
        let definition = format!(r#"{{"uri":{}}}"#, edit::quote(uri));
        Self {
            kind: DefinitionKind::Resource,
            name: uri.to_owned(),
            exposed: uri.to_owned(),
            digest: Digest::of(b"toolgate: a resource that no list has"),
            bytes: Digest::of(definition.as_bytes()),
            definition: Document::new(definition),
            pin: PinState::Unpinned,
            read_only_hint: None,
            destructive_hint: None,
            audience: Audience::ALL,
        }
    }
}

/// The listing a kind of definition comes from; instructions come with the greeting.
pub(crate) fn list_kind(kind: DefinitionKind) -> Option<ListKind> {
    match kind {
        DefinitionKind::Tool => Some(ListKind::Tools),
        DefinitionKind::Prompt => Some(ListKind::Prompts),
        DefinitionKind::Resource => Some(ListKind::Resources),
        DefinitionKind::Template => Some(ListKind::Templates),
        DefinitionKind::Instructions => None,
    }
}

/// What a listing holds.
pub(crate) fn definition_kind(kind: ListKind) -> DefinitionKind {
    match kind {
        ListKind::Tools => DefinitionKind::Tool,
        ListKind::Prompts => DefinitionKind::Prompt,
        ListKind::Resources => DefinitionKind::Resource,
        ListKind::Templates => DefinitionKind::Template,
    }
}

/// The word that plugins have for it.
pub(crate) fn plugin_kind(kind: DefinitionKind) -> SurfaceKind {
    match kind {
        DefinitionKind::Tool => SurfaceKind::Tool,
        DefinitionKind::Prompt => SurfaceKind::Prompt,
        DefinitionKind::Resource => SurfaceKind::Resource,
        DefinitionKind::Template => SurfaceKind::Template,
        DefinitionKind::Instructions => SurfaceKind::Instructions,
    }
}

fn index(items: &[Arc<Item>], name: impl Fn(&Item) -> &String) -> Index {
    let mut index = Index::new();
    for (place, item) in items.iter().enumerate() {
        index.entry(item.kind).or_default().insert(name(item).clone(), place);
    }
    index
}

/// Two tools (or prompts) that would be seen under one name are both left out: a caller could not say
/// which is meant, and a server could have made the name on purpose.
fn leave_out_twins(items: &mut Vec<Arc<Item>>, dropped: &mut Vec<(String, String)>) {
    let mut seen: HashMap<(DefinitionKind, String), usize> = HashMap::new();
    for item in items.iter() {
        *seen.entry((item.kind, item.exposed.clone())).or_default() += 1;
    }
    items.retain(|item| {
        let alone = seen.get(&(item.kind, item.exposed.clone())) == Some(&1);
        if !alone {
            let reason = format!("another {} is exposed as {} too", item.kind, item.exposed);
            dropped.push((item.name.clone(), reason));
        }
        alone
    });
}

fn digest_of(items: &[Arc<Item>]) -> Digest {
    let parts: Vec<(DefinitionKind, String, Digest)> =
        items.iter().map(|item| (item.kind, item.name.clone(), item.digest)).collect();
    surface_digest(&parts)
}

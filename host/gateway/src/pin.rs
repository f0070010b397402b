//! Pins: what the operator approved of a server, and how what it shows now compares.
//!
//! A pin store that cannot be read is never a first use; neither is a known server under a changed
//! identity (design.md 5 and 9a). Both leave every definition in a state that policies refuse.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;
use toolgate_config::{FirstUse, Server};
use toolgate_plugins::PinState;
use toolgate_signing::{DefinitionKind, Digest};
use toolgate_store::{AuditRow, PinnedDefinition, Store, StoreError};

use crate::Gateway;
use crate::caller::Caller;
use crate::links::Live;
use crate::notes::actor;
use crate::surface::{Item, Surface};

/// What is approved of one server.
#[derive(Debug, Clone)]
pub enum Approved {
    /// Nothing yet, and nothing ever was.
    Nothing,
    /// Nothing yet, and the operator wants to see it first (`pins.first_use: review`).
    Unreviewed,
    /// These definitions.
    Definitions(Definitions),
    /// The server's command line or URL is not the one that was pinned under this name.
    OtherIdentity,
    /// The pin store could not be read; the text says why.
    Unreadable(String),
}

/// The approved definitions of a server, in the server's own order.
#[derive(Debug, Clone, Default)]
pub struct Definitions {
    in_order: Vec<PinnedDefinition>,
    by_name: HashMap<String, HashMap<String, usize>>,
}

impl Definitions {
    fn new(in_order: Vec<PinnedDefinition>) -> Self {
        let mut by_name: HashMap<String, HashMap<String, usize>> = HashMap::new();
        for (index, pinned) in in_order.iter().enumerate() {
            by_name.entry(pinned.kind.clone()).or_default().insert(pinned.name.clone(), index);
        }
        Self { in_order, by_name }
    }

    /// In the order in which they were accepted.
    pub fn iter(&self) -> impl Iterator<Item = &PinnedDefinition> {
        self.in_order.iter()
    }

    /// The approved definition of that kind and original name.
    pub fn get(&self, kind: DefinitionKind, name: &str) -> Option<&PinnedDefinition> {
        self.by_name.get(kind.as_str())?.get(name).and_then(|index| self.in_order.get(*index))
    }
}

impl Approved {
    /// These definitions, from wherever they were approved.
    pub(crate) fn definitions(definitions: Vec<PinnedDefinition>) -> Self {
        Self::Definitions(Definitions::new(definitions))
    }

    /// Reads what is approved of a server.
    pub(crate) fn of(store: &Store, server: &Server, first_use: FirstUse) -> Self {
        match store.pins_of(&server.identity()) {
            Ok(Some(pins)) => Self::Definitions(Definitions::new(pins.definitions)),
            // No pins under this identity: a first use only if the name was never pinned either.
            Ok(None) => match store.known_servers() {
                Ok(known) if known.iter().any(|known| known.server == server.name) => Self::OtherIdentity,
                // Nor if the audit log, which is the last witness, tells of a pin (PI-05).
                Ok(_) => match store.expect_never_pinned(&server.name) {
                    Ok(()) if first_use == FirstUse::Review => Self::Unreviewed,
                    Ok(()) => Self::Nothing,
                    Err(error) => Self::Unreadable(error.to_string()),
                },
                Err(error) => Self::Unreadable(error.to_string()),
            },
            Err(error) => Self::Unreadable(error.to_string()),
        }
    }

    /// How a definition compares with what is approved.
    pub(crate) fn state_of(&self, kind: DefinitionKind, name: &str, digest: &Digest) -> PinState {
        match self {
            Self::Nothing => PinState::Unpinned,
            Self::Unreviewed | Self::OtherIdentity => PinState::Unknown,
            Self::Unreadable(_) => PinState::Unreadable,
            Self::Definitions(pinned) => match pinned.get(kind, name) {
                Some(pin) if pin.digest == *digest => PinState::Matches,
                Some(_) => PinState::Differs,
                None => PinState::Unknown,
            },
        }
    }
}

/// Whether a server that nothing is approved of is pinned at its first listing.
pub(crate) fn pins_at_first_use(approved: &Approved) -> bool {
    matches!(approved, Approved::Nothing)
}

/// Makes what the server shows now its approved surface.
pub(crate) fn accept(
    store: &Store,
    server: &Server,
    revision: &str,
    surface: &Surface,
) -> Result<(), StoreError> {
    store.write_pins(&server.identity(), &server.name, revision, &pinned(surface)).map(|_| ())
}

/// The definitions of a surface as they are pinned.
pub(crate) fn pinned(surface: &Surface) -> Vec<PinnedDefinition> {
    surface
        .items()
        .iter()
        .map(|item| PinnedDefinition {
            kind: item.kind.as_str().to_owned(),
            name: item.name.clone(),
            digest: item.digest,
            definition_json: item.definition.text().to_owned(),
        })
        .collect()
}

/// What became of one definition since it was approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DriftKind {
    /// It was not there when the server was approved.
    Added,
    /// It is no longer there.
    Removed,
    /// It says something else.
    Changed,
}

/// One difference between what is approved and what the server shows.
#[derive(Debug, Clone, Serialize)]
pub struct Drift {
    /// `tool`, `prompt`, `resource`, `template` or `instructions`.
    pub what: String,
    /// Its original name.
    pub tool: String,
    /// What became of it.
    pub kind: DriftKind,
    /// Digest of the approved definition.
    pub approved: Option<String>,
    /// Digest of the definition shown now.
    pub current: Option<String>,
    /// A unified diff of both definitions as indented JSON. It holds a server's words: whoever
    /// prints it escapes it.
    pub diff: String,
}

/// What an acceptance changed.
#[derive(Debug, Serialize)]
pub struct Accepted {
    /// How many definitions are approved now.
    pub definitions: usize,
    /// Digest of the surface.
    pub surface: String,
    /// How it differs from what was approved before; empty for a first acceptance.
    pub drift: Vec<Drift>,
}

impl Gateway {
    /// How the surface that a server shows now differs from the approved one, sorted by tool.
    pub async fn diff(self: &Arc<Self>, caller: &Caller, server: &str) -> Result<Vec<Drift>, String> {
        let (server, live) = self.connected(caller, server).await?;
        let approved = match self.approved(&server) {
            Approved::Definitions(definitions) => definitions,
            Approved::Nothing | Approved::Unreviewed | Approved::OtherIdentity => Definitions::default(),
            // All that is there is shown as new: that is what is accepted, if it is.
            Approved::Unreadable(reason) => {
                tracing::warn!(server = %server.name, "the pins cannot be read: {reason}");
                Definitions::default()
            }
        };
        Ok(drifts(&approved, &live.surface.load()))
    }

    /// Makes what a server shows now its approved surface; gives what that changes. With `expected`,
    /// only the surface of that digest is accepted: a server may show something else than before.
    /// `who` says who approves and how they were proven; the row with it is committed first.
    pub async fn accept(
        self: &Arc<Self>,
        caller: &Caller,
        server: &str,
        expected: Option<&str>,
        who: &str,
    ) -> Result<Accepted, String> {
        let (server, live) = self.connected(caller, server).await?;
        let surface = live.surface.load_full();
        let digest = surface.digest.map(|digest| digest.to_string()).unwrap_or_default();
        if expected.is_some_and(|expected| expected != digest) {
            return Err(format!("'{}' shows {digest} now, which is not the surface to accept", server.name));
        }
        let drift = match self.approved(&server) {
            Approved::Definitions(approved) => drifts(&approved, &surface),
            _ => Vec::new(),
        };
        let refused =
            |error: StoreError| format!("the surface of '{}' could not be pinned: {error}", server.name);
        if let Some(digest) = &surface.digest {
            let row = AuditRow::pinned(&server.name, digest, surface.items().len()).by(&actor(caller));
            self.store.append(row.with("approver", who)).await.map_err(refused)?;
        }
        accept(&self.store, &server, live.connection.protocol_version(), &surface).map_err(refused)?;
        let approved = self.approved(&server);
        live.surface.store(Arc::new(surface.compared_with(&approved)));
        self.surface_changed();
        Ok(Accepted { definitions: surface.items().len(), surface: digest, drift })
    }

    /// Makes what a server shows now its approved surface if nothing of it was ever approved.
    pub async fn accept_if_new(
        self: &Arc<Self>,
        caller: &Caller,
        server: &str,
        who: &str,
    ) -> Result<(), String> {
        let (found, _) = self.connected(caller, server).await?;
        if matches!(self.approved(&found), Approved::Nothing | Approved::Unreviewed) {
            self.accept(caller, server, None, who).await?;
        }
        Ok(())
    }

    async fn connected(
        self: &Arc<Self>,
        caller: &Caller,
        name: &str,
    ) -> Result<(Arc<Server>, Arc<Live>), String> {
        let servers = self.servers_of(caller);
        let server = servers.into_iter().find(|server| server.name == name).ok_or_else(|| {
            format!("persona '{}' has no enabled server '{name}'; see `toolgate mcp list`", caller.persona)
        })?;
        let live = self.live(caller, &server).await.map_err(|error| error.to_string())?;
        Ok((server, live))
    }
}

fn drifts(approved: &Definitions, surface: &Surface) -> Vec<Drift> {
    let mut found: Vec<Drift> = surface
        .items()
        .iter()
        .filter_map(|item| drift_of(approved.get(item.kind, &item.name), item))
        .collect();
    let still_there = |pinned: &PinnedDefinition| {
        let kind = pinned.kind.parse::<DefinitionKind>();
        kind.is_ok_and(|kind| surface.item(kind, &pinned.name).is_some())
    };
    let gone = approved.iter().filter(|pinned| !still_there(pinned));
    found.extend(gone.map(|pinned| Drift {
        what: pinned.kind.clone(),
        tool: pinned.name.clone(),
        kind: DriftKind::Removed,
        approved: Some(pinned.digest.to_string()),
        current: None,
        diff: unified(&pinned.definition_json, ""),
    }));
    found.sort_by(|left, right| (&left.tool, &left.what).cmp(&(&right.tool, &right.what)));
    found
}

fn drift_of(pinned: Option<&PinnedDefinition>, item: &Item) -> Option<Drift> {
    let kind = match pinned {
        Some(pinned) if pinned.digest == item.digest => return None,
        Some(_) => DriftKind::Changed,
        None => DriftKind::Added,
    };
    Some(Drift {
        what: item.kind.as_str().to_owned(),
        tool: item.name.clone(),
        kind,
        approved: pinned.map(|pinned| pinned.digest.to_string()),
        current: Some(item.digest.to_string()),
        diff: unified(pinned.map_or("", |pinned| pinned.definition_json.as_str()), item.definition.text()),
    })
}

/// A unified diff of two definitions as indented JSON; an empty one is none.
pub(crate) fn unified(old: &str, new: &str) -> String {
    let (old, new) = (indented(old), indented(new));
    similar::TextDiff::from_lines(&old, &new)
        .unified_diff()
        .context_radius(2)
        .header("approved", "current")
        .to_string()
}

/// Members are sorted, so that a server that shuffles them shows no difference where there is none.
fn indented(definition: &str) -> String {
    if definition.is_empty() {
        return String::new();
    }
    let canonical = toolgate_signing::canonical_json(definition).unwrap_or_else(|_| definition.to_owned());
    match serde_json::from_str::<serde_json::Value>(&canonical) {
        Ok(value) => serde_json::to_string_pretty(&value).unwrap_or(canonical) + "\n",
        Err(_) => canonical + "\n",
    }
}

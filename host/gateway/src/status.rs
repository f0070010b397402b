//! What an operator sees of servers and their tools. The same data for CLI and, later, console.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use toolgate_base::display::is_command_word;
use toolgate_config::{Config, Server};
use toolgate_plugins::{Facts, PinState};
use toolgate_signing::DefinitionKind;
use toolgate_store::Store;
use toolgate_wire::envelope::Era;

use crate::Gateway;
use crate::caller::Caller;
use crate::connect::OpenError;
use crate::decide::{Ruling, Verdict};
use crate::links::{Health, Key, LastError, Link, Live, Standing};
use crate::pin::Approved;
use crate::subscriptions::SubscriptionSummary;
use crate::surface::{Item, Surface};
use crate::tasks::TaskCounts;

/// Longer than any start may take.
const NO_HURRY: Duration = Duration::from_hours(24);

/// `connected`, `starting`, `disabled` or `failed` (acceptance C29).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    /// Open and listed.
    Connected,
    /// Never tried by this gateway, or being opened.
    Starting,
    /// `enabled: false`.
    Disabled,
    /// The last attempt failed.
    Failed,
}

/// One server as the operator sees it.
#[derive(Debug, Serialize, Deserialize)]
pub struct ServerStatus {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: ServerState,
    /// Why, where there is a why.
    pub detail: Option<String>,
    /// What was wrong last, and when, whether or not it is over.
    pub last_error: Option<LastError>,
    /// `legacy` or `modern`.
    pub era: Option<String>,
    /// The negotiated revision.
    pub protocol_version: Option<String>,
    /// Seconds until the next attempt.
    pub next_retry_in: Option<u64>,
    /// Whether its surface is pinned, and how the pins stand.
    pub pinned: String,
    /// Digest of the tool surface, for `trust.pinned_tool_hash`.
    pub surface: Option<String>,
    /// What it can do by its own word: the names of its capabilities.
    pub capabilities: Vec<String>,
    /// Its tools.
    pub tools: Vec<ItemStatus>,
    /// Its prompts.
    pub prompts: Vec<ItemStatus>,
    /// Its resources, by URI.
    pub resources: Vec<ItemStatus>,
    /// Its resource templates.
    pub templates: Vec<ItemStatus>,
    /// Its instructions, where it gives any.
    pub instructions: Option<ItemStatus>,
    /// What clients of this persona do not get although it is there, and why.
    #[serde(default)]
    pub blocked: Vec<Blocked>,
    /// Definitions that were left out, with the reason.
    pub dropped: Vec<(String, String)>,
    /// What clients of this gateway are subscribed to there, connection by connection.
    pub subscriptions: Vec<SubscriptionSummary>,
    /// How its tasks stand; none where the journal cannot be read.
    pub tasks: Option<TaskCounts>,
    /// The last lines of its standard error, for stdio servers.
    pub stderr: Option<String>,
}

impl ServerStatus {
    /// How the servers of a configuration stand as far as this can be said without any gateway: whether
    /// what is pinned lets anything of them pass.
    pub fn unconnected(config: &Config, store: &Store) -> Vec<Self> {
        config.servers.values().map(|server| Self::of_pins(config, store, server)).collect()
    }

    fn of_pins(config: &Config, store: &Store, server: &Server) -> Self {
        let approved = Approved::of(store, server, config.pins.first_use);
        Self {
            name: server.name.clone(),
            state: if server.enabled { ServerState::Starting } else { ServerState::Disabled },
            detail: None,
            last_error: None,
            era: None,
            protocol_version: None,
            next_retry_in: None,
            pinned: pinned_word(&approved),
            surface: None,
            capabilities: Vec::new(),
            tools: Vec::new(),
            prompts: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            instructions: None,
            blocked: blocked_server(server, &approved).into_iter().collect(),
            dropped: Vec::new(),
            subscriptions: Vec::new(),
            tasks: None,
            stderr: None,
        }
    }
}

/// One definition as the operator sees it.
#[derive(Debug, Serialize, Deserialize)]
pub struct ItemStatus {
    /// The server's own name.
    pub name: String,
    /// The name a client sees.
    pub exposed: String,
    /// How the definition compares with its pin.
    pub pin: String,
    /// Digest of the definition.
    pub digest: String,
    /// Its description, as received: whoever prints it escapes it.
    pub description: Option<String>,
}

/// One definition that is kept from clients, or a server all of which is.
///
/// Not here is what a persona simply does not have: definitions that no label of its covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    /// `server`, `tool`, `prompt`, `resource`, `template` or `instructions`.
    pub kind: String,
    /// The server's own name for it; of a server its name.
    pub name: String,
    /// Why, as a client is told. It may quote the server: whoever prints it escapes it.
    pub reason: String,
    /// The command to go on with.
    pub next: String,
}

/// The words for a pin state.
pub(crate) fn pin_word(pin: PinState) -> &'static str {
    match pin {
        PinState::Unpinned => "unpinned",
        PinState::Matches => "matches",
        PinState::Differs => "differs",
        PinState::Unknown => "not accepted",
        PinState::Unreadable => "pins unreadable",
    }
}

impl Gateway {
    /// The status of every server of the configuration that this caller may see. With `connect`,
    /// those that are not open are opened first.
    pub async fn status(self: &Arc<Self>, caller: &Caller, connect: bool) -> Vec<ServerStatus> {
        self.status_within(caller, connect.then_some(NO_HURRY)).await
    }

    /// The same, where a server is opened first, but waited for no longer than this, counted from the
    /// first who waited for it; it is `starting` then. Nothing is opened without a time.
    pub async fn status_within(
        self: &Arc<Self>,
        caller: &Caller,
        patience: Option<Duration>,
    ) -> Vec<ServerStatus> {
        let journal = self.store.tasks().inspect_err(|error| {
            tracing::error!(%error, "the journal of tasks cannot be read");
        });
        let journal = Arc::new(journal.ok());
        let waiting: Vec<_> = self
            .servers
            .values()
            .filter(|server| self.binding(caller, &server.name).holds())
            .map(|server| {
                let (gateway, caller, server) = (Arc::clone(self), caller.clone(), Arc::clone(server));
                let journal = Arc::clone(&journal);
                tokio::spawn(async move {
                    let mut status = gateway.status_of(&caller, &server, patience).await;
                    status.tasks =
                        journal.as_ref().as_ref().map(|tasks| gateway.task_counts(&server.name, tasks));
                    status
                })
            })
            .collect();
        let mut statuses = Vec::with_capacity(waiting.len());
        for task in waiting {
            if let Ok(status) = task.await {
                statuses.push(status);
            }
        }
        statuses
    }

    async fn status_of(
        self: &Arc<Self>,
        caller: &Caller,
        server: &Arc<Server>,
        patience: Option<Duration>,
    ) -> ServerStatus {
        let mut detail = None;
        // What the clients of this persona use is shown, whoever of them opened it.
        if let Some(patience) = patience
            && server.enabled
            && self.link_in_use(caller, server).is_none_or(|link| link.live().is_none())
        {
            let left = patience.saturating_sub(self.awaited(caller, server));
            if let Ok(opened) = tokio::time::timeout(left, self.live(caller, server)).await {
                detail = opened.err().map(|error| error.to_string());
            }
        }
        let link = self.link_in_use(caller, server);
        let (trouble, standing) = link.as_ref().map(|link| link.standing()).unwrap_or_default();
        let last_error = link.as_ref().and_then(|link| link.last_error());
        let live = link.and_then(|link| link.live());
        let detail = detail.or(trouble);
        let state = match (&live, server.enabled) {
            (_, false) => ServerState::Disabled,
            (Some(_), _) => ServerState::Connected,
            (None, _) if detail.is_some() => ServerState::Failed,
            (None, _) => ServerState::Starting,
        };
        let surface = live.as_ref().map(|live| live.surface.load_full());
        let of = |kind| {
            let items = surface.iter().flat_map(|surface| surface.of(kind));
            items.map(|item| item_status(item)).collect::<Vec<_>>()
        };
        let approved = self.approved(server);
        let mut blocked: Vec<Blocked> = blocked_server(server, &approved).into_iter().collect();
        if let Some(surface) = surface.as_deref().filter(|_| blocked.is_empty()) {
            blocked = self.blocked_items(caller, server, surface);
        }
        ServerStatus {
            name: server.name.clone(),
            state,
            blocked,
            detail: if live.is_some() { None } else { detail },
            last_error,
            era: live.as_ref().map(|live| era_word(live.connection.era()).to_owned()),
            protocol_version: live.as_ref().map(|live| live.connection.protocol_version().to_owned()),
            next_retry_in: match standing {
                Some(Standing::Due(due) | Standing::Ended(due)) if live.is_none() => {
                    Some(due.saturating_duration_since(Instant::now()).as_secs())
                }
                _ => None,
            },
            pinned: pinned_word(&approved),
            surface: surface.as_ref().and_then(|surface| surface.digest).map(|digest| digest.to_string()),
            capabilities: live.as_deref().map(capabilities_of).unwrap_or_default(),
            tools: of(DefinitionKind::Tool),
            prompts: of(DefinitionKind::Prompt),
            resources: of(DefinitionKind::Resource),
            templates: of(DefinitionKind::Template),
            instructions: of(DefinitionKind::Instructions).pop(),
            dropped: surface.as_ref().map_or_else(Vec::new, |surface| surface.dropped.clone()),
            subscriptions: self.subscriptions_of(&server.name, &caller.persona),
            tasks: None,
            stderr: live.as_deref().and_then(stderr_of).map(|tail| server.without_secrets(&tail)),
        }
    }
}

impl Gateway {
    /// What of a live surface clients of this persona do not get, whoever said so.
    fn blocked_items(&self, caller: &Caller, server: &Server, surface: &Surface) -> Vec<Blocked> {
        let items: Vec<&Arc<Item>> = surface.items().iter().collect();
        let facts = self.list_facts(caller, server, surface, &items);
        let verdicts = self.list_verdicts(caller, server, &facts);
        let judged = items.iter().zip(&facts).zip(verdicts);
        judged
            .filter(|((_, facts), verdict)| verdict.ruling == Ruling::Deny && !is_not_theirs(facts, verdict))
            .map(|((item, _), verdict)| Blocked {
                kind: item.kind.as_str().to_owned(),
                name: item.name.clone(),
                reason: verdict.reason,
                next: next_step(caller, server, item, surface),
            })
            .collect()
    }

    /// The place of a server that says most about it to this caller: its own where that is open, else one
    /// that is open, else its own, else any.
    fn link_in_use(&self, caller: &Caller, server: &Server) -> Option<Arc<Link>> {
        let own = Key::of(server, caller);
        let all = self.links.of_persona(&server.name, &caller.persona);
        let best = all.into_iter().max_by_key(|(key, link)| (link.live().is_some(), *key == own));
        best.map(|(_, link)| link)
    }

    /// Starts a server again, whatever became of earlier starts: every failure of it is forgotten, and what
    /// is open is closed. Calls that run on it end with their error.
    ///
    /// # Errors
    /// [`OpenError`] where there is no such server for this caller, or the start fails.
    pub async fn reconnect(self: &Arc<Self>, caller: &Caller, name: &str) -> Result<(), OpenError> {
        let servers = self.servers_of(caller);
        let Some(server) = servers.iter().find(|server| server.name == name) else {
            return Err(OpenError::Unusable(format!(
                "persona '{}' has no server '{name}' that is enabled",
                caller.persona
            )));
        };
        for (_, link) in self.links.of_persona(name, &caller.persona) {
            // A start that is under way ends first, and counts as one of before.
            let _turn = link.opening.lock().await;
            link.with_health(Health::anew);
            if let Some(live) = link.live.swap(None) {
                live.connection.close().await;
            }
        }
        self.live(caller, server).await.map(|_| ())
    }
}

/// Whether a persona does not have something, rather than that it is kept from it.
fn is_not_theirs(facts: &Facts, verdict: &Verdict) -> bool {
    let unlabelled = facts.has_capabilities && facts.matched_allow.is_none();
    let undecided = verdict.by.is_none() && !verdict.decisions.is_empty();
    is_as_approved(facts.pin) && is_as_approved(facts.surface_pin) && (unlabelled || undecided)
}

fn is_as_approved(pin: PinState) -> bool {
    matches!(pin, PinState::Unpinned | PinState::Matches)
}

fn next_step(caller: &Caller, server: &Server, item: &Item, surface: &Surface) -> String {
    let name = &server.name;
    if !is_as_approved(item.pin) {
        return format!("toolgate mcp diff {name}, then toolgate mcp pin {name} --accept");
    }
    if !is_as_approved(surface.surface_pin()) {
        return format!("toolgate mcp pin {name}, then put the hash into trust.pinned_tool_hash");
    }
    match item.kind {
        // A server chose the name, and a shell may be given this.
        DefinitionKind::Tool if !is_command_word(&item.name) => format!("toolgate mcp tools {name}"),
        DefinitionKind::Tool => {
            format!("toolgate mcp explain {name}.{} --persona {}", item.name, caller.persona)
        }
        _ => format!("toolgate audit tail --server {name}"),
    }
}

/// That nothing of a server is let through, whatever it shows.
fn blocked_server(server: &Server, approved: &Approved) -> Option<Blocked> {
    let reason = match approved {
        Approved::Nothing | Approved::Definitions(_) => return None,
        Approved::Unreviewed => "nothing of it was approved yet".to_owned(),
        Approved::OtherIdentity => {
            "another command or URL was approved under its name (its arguments count, and a secret in them)"
                .to_owned()
        }
        Approved::Unreadable(reason) => reason.clone(),
    };
    let name = server.name.clone();
    let next = format!("toolgate mcp diff {name}, then toolgate mcp pin {name} --accept");
    Some(Blocked { kind: "server".to_owned(), name, reason, next })
}

fn stderr_of(live: &Live) -> Option<String> {
    Some(live.connection.stderr_tail()).filter(|tail| !tail.is_empty())
}

fn capabilities_of(live: &Live) -> Vec<String> {
    let members = toolgate_wire::edit::members(live.connection.capabilities().get());
    let declared =
        members.unwrap_or_default().into_iter().filter(|(_, value)| !matches!(*value, "null" | "false"));
    declared.map(|(name, _)| name).collect()
}

fn item_status(item: &Item) -> ItemStatus {
    let description = toolgate_wire::edit::get(item.definition.text(), "/description");
    ItemStatus {
        name: item.name.clone(),
        exposed: item.exposed.clone(),
        pin: pin_word(item.pin).to_owned(),
        digest: item.digest.to_string(),
        description: description.and_then(toolgate_wire::edit::string),
    }
}

pub(crate) fn era_word(era: Era) -> &'static str {
    match era {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    }
}

fn pinned_word(approved: &Approved) -> String {
    match approved {
        Approved::Nothing => "no".to_owned(),
        Approved::Unreviewed => {
            "not yet: read it with `toolgate mcp diff NAME`, accept it with `toolgate mcp pin NAME --accept`"
                .to_owned()
        }
        Approved::Definitions(_) => "yes".to_owned(),
        Approved::OtherIdentity => {
            "for another command or URL (its arguments count, and a secret in them); accept the new one with \
             `toolgate mcp pin NAME --accept`"
                .to_owned()
        }
        Approved::Unreadable(reason) => format!("unreadable: {reason}"),
    }
}

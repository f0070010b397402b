//! What an operator sees of servers and their tools. The same data for CLI and, later, console.

use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use toolgate_config::Server;
use toolgate_plugins::PinState;
use toolgate_signing::DefinitionKind;
use toolgate_wire::envelope::Era;

use crate::Gateway;
use crate::caller::Caller;
use crate::connect::OpenError;
use crate::links::{Health, Key, LastError, Link, Live, Standing};
use crate::pin::Approved;
use crate::subscriptions::SubscriptionSummary;
use crate::surface::Item;
use crate::tasks::TaskCounts;

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
    /// Definitions that were left out, with the reason.
    pub dropped: Vec<(String, String)>,
    /// What clients of this gateway are subscribed to there, connection by connection.
    pub subscriptions: Vec<SubscriptionSummary>,
    /// How its tasks stand; none where the journal cannot be read.
    pub tasks: Option<TaskCounts>,
    /// The last lines of its standard error, for stdio servers.
    pub stderr: Option<String>,
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
                    let mut status = gateway.status_of(&caller, &server, connect).await;
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
        connect: bool,
    ) -> ServerStatus {
        let mut detail = None;
        // What the clients of this persona use is shown, whoever of them opened it.
        if connect
            && server.enabled
            && self.link_in_use(caller, server).is_none_or(|link| link.live().is_none())
        {
            detail = self.live(caller, server).await.err().map(|error| error.to_string());
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
        ServerStatus {
            name: server.name.clone(),
            state,
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
            pinned: pinned_word(&self.approved(server)),
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
            "for another command or URL; accept the new one with `toolgate mcp pin NAME --accept`".to_owned()
        }
        Approved::Unreadable(reason) => format!("unreadable: {reason}"),
    }
}

//! Which capabilities a caller's front door declares: those that at least one of its servers has.
//!
//! A server that is not connected counts by what is approved of it; one of which nothing is known yet
//! may have anything, and a listing that turns out empty harms nobody (PR-22).

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use toolgate_config::Server;
use toolgate_signing::DefinitionKind;
use toolgate_wire::ListKind;
use toolgate_wire::envelope::Era;

use crate::Gateway;
use crate::apps;
use crate::caller::Caller;

/// How long a client that reaches one server alone waits to learn what it can do.
const ALONE: Duration = Duration::from_secs(10);

/// How long one that reaches several waits for those of which nothing is known.
const FIRST_WORD: Duration = Duration::from_secs(2);

/// What may be declared to one caller. Tools are always declared.
// One flag for each capability, as a handshake has them.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offers {
    /// Prompts.
    pub prompts: bool,
    /// Resources and their templates.
    pub resources: bool,
    /// Completion of arguments.
    pub completions: bool,
    /// What a server logs during a call.
    pub logging: bool,
    /// Subscriptions to resources.
    pub subscribe: bool,
    /// Tasks, to clients of the stateless era.
    pub tasks: bool,
    /// Tools with views: the extension `io.modelcontextprotocol/ui`.
    pub views: bool,
}

impl Offers {
    /// Whether a client is told of this listing and of its changes; templates go with resources.
    pub fn lists(self, kind: ListKind) -> bool {
        match kind {
            ListKind::Tools => true,
            ListKind::Prompts => self.prompts,
            ListKind::Resources | ListKind::Templates => self.resources,
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            prompts: self.prompts || other.prompts,
            resources: self.resources || other.resources,
            completions: self.completions || other.completions,
            logging: self.logging || other.logging,
            subscribe: self.subscribe || other.subscribe,
            tasks: self.tasks || other.tasks,
            views: self.views || other.views,
        }
    }
}

impl Gateway {
    /// What this caller's servers offer together.
    pub async fn offers(self: &Arc<Self>, caller: &Caller) -> Offers {
        let servers = self.servers_of(caller);
        self.meet(caller, &servers).await;
        servers.iter().fold(Offers::default(), |sum, server| sum.or(self.offers_of(caller, server)))
    }

    /// Waits a little for servers of which nothing is known: what they offer and their instructions are
    /// told to a client in its greeting or never. Where something is approved nobody waits.
    async fn meet(self: &Arc<Self>, caller: &Caller, servers: &[Arc<Server>]) {
        let mut opening = JoinSet::new();
        for server in servers.iter().filter(|server| self.known_surface(caller, server).is_none()) {
            let (gateway, caller, server) = (Arc::clone(self), caller.clone(), Arc::clone(server));
            // A server that cannot be reached is told of when it is used.
            opening.spawn(async move { drop(gateway.live(&caller, &server).await) });
        }
        let patience = if caller.plain_names { ALONE } else { FIRST_WORD };
        let all = async { while opening.join_next().await.is_some() {} };
        if tokio::time::timeout(patience, all).await.is_err() {
            opening.detach_all();
        }
    }

    fn offers_of(&self, caller: &Caller, server: &Server) -> Offers {
        let logging = server.questions.logging;
        if let Some(live) = self.live_now(caller, server) {
            let declares = |name: &str| live.connection.declares(name);
            return Offers {
                prompts: declares("/prompts"),
                resources: declares("/resources"),
                completions: declares("/completions"),
                logging: logging && declares("/logging"),
                subscribe: declares("/resources/subscribe"),
                tasks: live.connection.has_tasks(),
                views: declares(apps::DECLARED) || live.surface.load().has_views(),
            };
        }
        // What it answered last may have changed, so only a server of the earlier era certainly has none.
        let tasks = self.era_of(server) != Some(Era::Legacy);
        let Some(surface) = self.approved_surface(server) else {
            return Offers {
                prompts: true,
                resources: true,
                completions: true,
                logging,
                subscribe: true,
                tasks,
                views: false,
            };
        };
        let has = |kind| surface.of(kind).next().is_some();
        let prompts = has(DefinitionKind::Prompt);
        let resources = has(DefinitionKind::Resource) || has(DefinitionKind::Template);
        // Whether its resources can be subscribed to is known when it runs; refused is clearer than never
        // offered.
        let completions = prompts || has(DefinitionKind::Template);
        Offers {
            prompts,
            resources,
            completions,
            logging,
            subscribe: resources,
            tasks,
            views: surface.has_views(),
        }
    }
}

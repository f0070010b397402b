//! The gateways of one process: one for each configuration that its clients come with.
//!
//! Contract: a client is served as it would be alone: by the configuration as it is when the client
//! comes, with the client's own values of the variables that the configuration names. Clients for whom
//! that is the same share a gateway, its servers and their connections; after a change the clients that
//! are there keep the old one, and it ends with the last of them and with the last task of a server. All write one audit chain and one
//! state, and have one plugin host.
//!
//! Bounds: as many gateways as there are different clients; an unused one stays only if it is the
//! newest, so that the next client finds its servers running.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_base::Secret;
use toolgate_config::{Config, FoundBy, Lane};
use toolgate_downstream::local::{Answering, Hello, Refused, Room, Want};
use toolgate_downstream::{StdioOptions, Unread};
use toolgate_gateway::{Caller, Gateway};
use toolgate_signing::Digest;
use toolgate_wire::envelope::Era;

use super::process::refused;
use crate::context::{self, Ground, Loaded};
use crate::couriers::Couriers;
use crate::exit::Failure;

/// Variables that say where things are. What they lead to is in the configuration that was read.
const PLACES: [&str; 3] = ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"];

/// How long whoever asks for the state of servers waits for those that start.
const AT_ONCE: Duration = Duration::from_secs(2);

/// All gateways of this process.
pub(super) struct Pool {
    explicit: Option<PathBuf>,
    from: PathBuf,
    data_dir: PathBuf,
    ground: Ground,
    generations: Mutex<Vec<Generation>>,
    /// Held while one is made, so that of two clients alike the second finds the first one's.
    making: tokio::sync::Mutex<()>,
    couriers: Mutex<Option<(String, Couriers)>>,
    unread: Arc<Unread>,
    ending: TaskTracker,
    shutdown: CancellationToken,
}

/// One gateway and how many use it. The last of the list is the newest.
struct Generation {
    digest: Digest,
    gateway: Arc<Gateway>,
    users: usize,
}

impl Pool {
    /// Makes the first gateway of this process. It is not ended as unused while the place in it is held.
    pub(super) async fn begin(
        loaded: Loaded,
        unread: Arc<Unread>,
        shutdown: CancellationToken,
    ) -> Result<(Arc<Self>, Arc<Gateway>, Used), Failure> {
        // Clients are served by the very file that this process was started with, however it was named.
        let is_named = matches!(loaded.found_by, FoundBy::Argument | FoundBy::Environment);
        let pool = Arc::new(Self {
            explicit: loaded.config.path.clone().filter(|_| is_named),
            from: loaded.from.clone(),
            data_dir: loaded.config.data_dir.clone(),
            ground: Ground::new(&loaded.config, "gateway")?,
            generations: Mutex::default(),
            making: tokio::sync::Mutex::default(),
            couriers: Mutex::default(),
            unread,
            ending: TaskTracker::new(),
            shutdown,
        });
        let digest = digest_of(&loaded);
        let gateway = pool.make(digest, loaded.config).await?;
        pool.find(digest);
        let used = Used { pool: Arc::downgrade(&pool), digest };
        Ok((pool, gateway, used))
    }

    /// Ends every gateway; their children are stopped and their rows delivered.
    pub(super) async fn end(&self) {
        let all: Vec<Generation> = std::mem::take(&mut *self.list());
        for generation in all {
            self.ending.spawn(async move { generation.gateway.shutdown().await });
        }
        self.ending.close();
        self.ending.wait().await;
        let couriers = self.couriers.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((_, couriers)) = couriers {
            couriers.finish().await;
        }
    }

    /// The gateway for somebody who comes with these variables, and its place among the users.
    async fn enter(self: &Arc<Self>, hello: &Hello) -> Result<(Arc<Gateway>, Used), Failure> {
        let _alone = self.making.lock().await;
        let loaded = self.load(hello).await?;
        if loaded.config.data_dir != self.data_dir {
            return Err(Failure::usage(format!(
                "the configuration leads to another data directory by now, {}",
                loaded.config.data_dir.display()
            ))
            .hint("start the client again"));
        }
        let digest = digest_of(&loaded);
        if let Some(gateway) = self.find(digest) {
            let used = Used { pool: Arc::downgrade(self), digest };
            // Each client is refused for what refuses a start, as where each has a gateway of its own.
            if let Some((plugin, reason)) = gateway.blocked() {
                return Err(Failure::integrity(format!("plugin {plugin} is not in force: {reason}"))
                    .hint("look at it with `toolgate plugin list`; nothing passes without it"));
            }
            context::check_offline(&loaded.config)?;
            context::compare_locked(&gateway, None).await?;
            return Ok((gateway, used));
        }
        tracing::info!("a client came with another configuration than those before; it gets its own servers");
        let gateway = self.make(digest, loaded.config).await?;
        // Of a number of clients that change the configuration each time, only the last is kept.
        self.leave_unused();
        self.find(digest);
        Ok((gateway, Used { pool: Arc::downgrade(self), digest }))
    }

    /// Reads the configuration as the client that came would read it.
    async fn load(&self, hello: &Hello) -> Result<Loaded, Failure> {
        let (explicit, from, variables) = (self.explicit.clone(), self.from.clone(), hello.variables.clone());
        let loading = tokio::task::spawn_blocking(move || {
            let env = |name: &str| variables.get(name).filter(|_| name != "TOOLGATE_CONFIG").cloned();
            context::load_from(explicit.as_deref(), &from, &env, None)
        });
        let mut loaded = loading.await.map_err(Failure::failed)??;
        let own = hello.variables.iter().map(|(name, value)| (name.clone(), Secret::new(value.clone())));
        loaded.config.process = Some(own.collect::<BTreeMap<_, _>>());
        Ok(loaded)
    }

    /// Counts somebody in, where there is such a gateway, which is the newest from then on.
    fn find(&self, digest: Digest) -> Option<Arc<Gateway>> {
        let mut list = self.list();
        let place = list.iter().position(|generation| generation.digest == digest)?;
        let mut generation = list.remove(place);
        generation.users += 1;
        let gateway = Arc::clone(&generation.gateway);
        list.push(generation);
        Some(gateway)
    }

    async fn make(self: &Arc<Self>, digest: Digest, config: Config) -> Result<Arc<Gateway>, Failure> {
        let gateway = context::serving_gateway(config, &self.ground)?;
        context::check_locked(&gateway, None).await?;
        self.deliver(gateway.config()).await;
        self.list().push(Generation { digest, gateway: Arc::clone(&gateway), users: 0 });
        self.leave_after_tasks(&gateway);
        Ok(gateway)
    }

    /// Looks for what nobody uses whenever the last task of this gateway is over.
    fn leave_after_tasks(self: &Arc<Self>, gateway: &Gateway) {
        let (pool, mut open) = (Arc::downgrade(self), gateway.open_tasks());
        tokio::spawn(async move {
            while open.changed().await.is_ok() {
                let Some(pool) = pool.upgrade() else { return };
                if *open.borrow_and_update() == 0 {
                    pool.leave_unused();
                }
            }
        });
    }

    /// Delivers to the receivers that the newest configuration names.
    async fn deliver(&self, config: &Config) {
        let named = format!("{:?} {:?}", config.audit, config.approvals);
        let before = {
            let mut current = self.couriers.lock().unwrap_or_else(PoisonError::into_inner);
            if current.as_ref().is_some_and(|(have, _)| *have == named) {
                return;
            }
            current.take()
        };
        if let Some((_, couriers)) = before {
            couriers.finish().await;
        }
        let couriers = Couriers::start(config);
        *self.couriers.lock().unwrap_or_else(PoisonError::into_inner) = Some((named, couriers));
    }

    /// Counts somebody out.
    fn leave(&self, digest: Digest) {
        if let Some(generation) = self.list().iter_mut().find(|generation| generation.digest == digest) {
            generation.users = generation.users.saturating_sub(1);
        }
        self.leave_unused();
    }

    /// Ends what nobody uses and what has no task, but for the newest.
    fn leave_unused(&self) {
        let mut list = self.list();
        let newest = list.last().map(|generation| generation.digest);
        let unused = list
            .extract_if(.., |one| one.users == 0 && Some(one.digest) != newest && !has_tasks(&one.gateway));
        for generation in unused {
            self.ending.spawn(async move { generation.gateway.shutdown().await });
        }
    }

    fn list(&self) -> MutexGuard<'_, Vec<Generation>> {
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a server works for somebody who may not be here any more.
fn has_tasks(gateway: &Gateway) -> bool {
    *gateway.open_tasks().borrow() > 0
}

/// A place among the users of a gateway, given back when it is dropped.
pub(super) struct Used {
    pool: Weak<Pool>,
    digest: Digest,
}

impl Drop for Used {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.leave(self.digest);
        }
    }
}

/// What stands behind the socket.
pub(super) struct Shared(pub(super) Arc<Pool>);

#[async_trait]
impl Answering for Shared {
    async fn room(&self, hello: &Hello) -> Result<Room, Refused> {
        let Want::Session { persona, lane, server, servers } = &hello.want else {
            return Err(Refused::usage("this is no session", "start the client again"));
        };
        let (gateway, used) = self.0.enter(hello).await.map_err(|failure| refused(&failure))?;
        let lane = known(&gateway, persona, lane)?;
        let options = StdioOptions {
            plain_names: server.is_some(),
            server_only: server.clone(),
            servers: servers.clone().map(Into::into),
            max_running: gateway.config().serve.max_running,
            lane,
            is_shared: true,
            unread: Arc::clone(&self.0.unread),
            shutdown: self.0.shutdown.clone(),
            ..StdioOptions::new(persona.clone())
        };
        Ok(Room { gateway, options, held: Box::new(used) })
    }

    fn is_busy(&self) -> bool {
        self.0.list().iter().any(|generation| has_tasks(&generation.gateway))
    }

    async fn answer(&self, hello: &Hello) -> Result<Value, Refused> {
        let (Want::Status { persona, lane } | Want::Reconnect { persona, lane, .. }) = &hello.want else {
            return Err(Refused::usage("this is no question", "start the client again"));
        };
        let (gateway, _used) = self.0.enter(hello).await.map_err(|failure| refused(&failure))?;
        let lane = known(&gateway, persona, lane)?;
        // The credential of clients on pipes: what is opened here is what they use.
        let caller = Caller { lane, ..Caller::new(persona.clone(), "stdio", "cli", Era::Modern) };
        if let Want::Reconnect { server, .. } = &hello.want {
            gateway.reconnect(&caller, server).await.map_err(|error| Refused {
                code: 1,
                message: error.to_string(),
                hint: Some("see `toolgate mcp list`".to_owned()),
            })?;
        }
        let statuses = gateway.status_within(&caller, Some(AT_ONCE)).await;
        serde_json::to_value(statuses).map_err(|error| refused(&Failure::failed(error)))
    }
}

/// The lane of that name, where the persona exists.
fn known(gateway: &Gateway, persona: &str, lane: &str) -> Result<Lane, Refused> {
    context::operator(gateway.config(), persona).map_err(|failure| refused(&failure))?;
    Lane::parse(lane).ok_or_else(|| {
        Refused::usage(format!("`{lane}` is no lane"), "a lane is main, background_job or automation")
    })
}

/// Two configurations with the same digest serve a client alike. What `plugins.d/` adds is left out: a
/// gateway that runs follows it by itself.
fn digest_of(loaded: &Loaded) -> Digest {
    let config = &loaded.config;
    let read = (
        (&config.path, &config.config_dir, config.managed),
        (&config.servers, &config.personas, &config.skills),
        (&config.serve, &config.approvals, &config.pins, &config.audit),
        &config.operator_plugins,
    );
    let mut text = format!("{read:?} {}", context::is_locked()).into_bytes();
    // Secrets print as `***`, so their sources count too.
    let beside = config.path.as_ref().and_then(|path| path.parent()).map(|dir| dir.join(".env"));
    let lock = config.path.as_ref().and_then(|path| path.parent());
    let lock = lock.map(|dir| dir.join(toolgate_gateway::lock::LOCK_FILE)).filter(|_| context::is_locked());
    let files = [config.path.clone(), Some(config.config_dir.join("secrets.env")), beside, lock];
    for file in files.into_iter().flatten() {
        let bytes = toolgate_base::files::read_bounded(&file, 4 * 1024 * 1024);
        text.extend(format!("\n{bytes:?}").into_bytes());
    }
    for (name, value) in loaded.variables.iter().filter(|(name, _)| !PLACES.contains(&name.as_str())) {
        text.extend(format!("\n{name}={value:?}").into_bytes());
    }
    Digest::of(&text)
}

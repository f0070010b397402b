//! `toolgate serve`: agents come in here.
//!
//! Over stdio this process is usually a [`client`] of the one gateway of its data directory, which it
//! starts where none runs ([`process`]). Whoever serves holds the directory ([`take`]).

pub(crate) mod client;
mod pool;
pub(crate) mod process;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use toolgate_config::{Config, Lane};
use toolgate_downstream::local::{Claim, ClaimError, Door, DoorOptions, Holder, Manner, Standing, Want};
use toolgate_downstream::{
    Credential, HttpOptions, HttpServer, StdioOptions, TokenCheck, TokenCheckError, Unread,
};
use toolgate_store::Store;

use crate::args::Serve;
use crate::context::{self, Loaded};
use crate::couriers::Couriers;
use crate::exit::Failure;
use crate::logging;
use crate::output;
use pool::{Pool, Shared};

/// How long a directory is waited for whose holder may be about to end.
const ENDING: Duration = Duration::from_secs(2);

/// Serves until the client goes, or until a signal comes.
pub(crate) async fn run(explicit: Option<&Path>, args: Serve, verbose: u8) -> Result<(), Failure> {
    let loaded = context::loaded(explicit)?;
    let config = &loaded.config;
    context::operator(config, &args.persona)?;
    if let Some(server) = &args.server {
        let bound =
            config.personas.get(&args.persona).is_some_and(|persona| persona.servers.contains(server));
        if !config.servers.contains_key(server) {
            return Err(super::mcp::no_server(config, server));
        }
        if args.stdio && !bound {
            return Err(Failure::usage(format!(
                "persona '{}' is not bound to server '{server}'",
                args.persona
            ))
            .hint(format!("add it under personas.{}.servers in toolgate.yaml", args.persona)));
        }
    }
    if !args.stdio && args.servers.is_some() {
        return Err(Failure::usage("--servers is about one client, so it goes with --stdio")
            .hint("over HTTP a client declares them itself, in the header X-Toolgate-Servers or in _meta"));
    }
    for name in args.servers.iter().flatten() {
        if !config.servers.contains_key(name) {
            return Err(super::mcp::no_server(config, name));
        }
    }
    if !args.stdio {
        let listen = args.listen.unwrap_or(config.serve.listen);
        return http(loaded, listen, args.server).await;
    }
    if args.no_share {
        return alone(loaded.config, args).await;
    }
    let want = Want::Session {
        persona: args.persona,
        lane: args.lane.as_str().to_owned(),
        server: args.server,
        servers: args.servers,
    };
    client::serve(&loaded, want, verbose).await
}

/// One client, in this process.
async fn alone(config: Config, args: Serve) -> Result<(), Failure> {
    let _claim = take(&config, Manner::Alone, ENDING)?;
    logging::keep_in(&config.data_dir);
    let ground = context::Ground::new(&config, "gateway")?;
    let gateway = context::serving_gateway(config.clone(), &ground)?;
    context::check_locked(&gateway, None).await?;
    let couriers = Couriers::start(&config);
    let stop = CancellationToken::new();
    let options = StdioOptions {
        plain_names: args.server.is_some(),
        server_only: args.server,
        servers: args.servers.map(Into::into),
        max_running: config.serve.max_running,
        unread: unread(&config.serve),
        lane: args.lane,
        shutdown: stop.clone(),
        ..StdioOptions::new(args.persona)
    };
    let signals = stop_on_signal(&stop);
    let served = toolgate_downstream::serve_stdio(Arc::clone(&gateway), options).await;
    signals.abort();
    gateway.shutdown().await;
    couriers.finish().await;
    served.map_err(Failure::failed)
}

/// Clients over HTTP, and those on pipes that come to the socket.
async fn http(loaded: Loaded, listen: SocketAddr, server_only: Option<String>) -> Result<(), Failure> {
    let config = &loaded.config;
    if let Some(reason) = config.serve.refusal(listen) {
        return Err(Failure::usage(reason));
    }
    let claim = take(config, Manner::Http, ENDING)?;
    logging::keep_in(&config.data_dir);
    let tokens = Arc::new(StoredTokens { store: context::store(config, "tokens")? });
    first_token(&config.data_dir, &tokens.store)?;
    let serve = config.serve.clone();
    let unread = unread(&serve);
    let standing = standing(config);
    let data_dir = config.data_dir.clone();
    let stop = CancellationToken::new();
    let options = HttpOptions {
        allowed_hosts: serve.allowed_hosts,
        allowed_origins: serve.allowed_origins,
        behind_proxy: serve.behind_proxy,
        keep_alive: serve.keep_alive,
        head_timeout: serve.head_timeout,
        session_idle: serve.session_idle,
        max_sessions: serve.max_sessions,
        max_sessions_per_token: serve.max_sessions_per_token,
        max_running: serve.max_running,
        unread: Arc::clone(&unread),
        server_only,
        shutdown: stop.clone(),
        ..HttpOptions::new(listen, tokens)
    };
    // Before any server is started: an address that is taken costs nobody anything.
    let http = HttpServer::bind(options).await.map_err(Failure::usage)?;
    let (pool, gateway, _used) = Pool::begin(loaded, unread, stop.clone()).await?;
    let door = open(&claim)?;
    let signals = stop_on_signal(&stop);
    let options_of_door = DoorOptions { standing, idle_exit: None, shutdown: stop.clone() };
    let local = tokio::spawn(door.keep(Arc::new(Shared(Arc::clone(&pool))), options_of_door));
    tell_address(http.local_addr(), &data_dir);
    let served = http.run(gateway).await;
    signals.abort();
    stop.cancel();
    // A door that panicked is closed as well.
    let _ = local.await;
    pool.end().await;
    served.map_err(Failure::usage)
}

/// Says where agents come in, and with what: somebody started this at a terminal and waits for it.
fn tell_address(address: SocketAddr, data_dir: &Path) {
    let token = data_dir.join(TOKEN_FILE);
    let token = if token.exists() {
        format!("the token in {}", token.display())
    } else {
        "a token of `toolgate token issue`".to_owned()
    };
    output::note(&format!("serving MCP on http://{address}/mcp; agents need {token}; end it with Ctrl-C"));
    tracing::info!(%address, "listening");
}

/// What may wait for the clients of this process to read.
fn unread(serve: &toolgate_config::Serve) -> Arc<Unread> {
    Arc::new(Unread::new(serve.max_unread_mib << 20, serve.max_unread_total_mib << 20))
}

/// Takes the data directory for this process, or says who has it.
fn take(config: &Config, manner: Manner, wait: Duration) -> Result<Claim, Failure> {
    let holder = Holder {
        pid: std::process::id(),
        manner,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        config: config.path.clone(),
    };
    let taken = tokio::task::block_in_place(|| Claim::take(&config.data_dir, &holder, wait));
    taken.map_err(|error| {
        let hint = matches!(error, ClaimError::Taken { .. })
            .then_some("end that process, or give this one a `data_dir` of its own; clients over stdio share one gateway without --no-share");
        let failure = Failure::failed(&error);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })
}

/// What clients on the socket have to agree with.
fn standing(config: &Config) -> Standing {
    Standing {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        build: context::build(),
        config: path_of(config),
        locked: context::is_locked(),
    }
}

/// The configuration file by the name that does not depend on how one came to it.
fn path_of(config: &Config) -> Option<PathBuf> {
    config.path.as_ref().map(|path| path.canonicalize().unwrap_or_else(|_| path.clone()))
}

fn open(claim: &Claim) -> Result<Door, Failure> {
    Door::open(claim).map_err(|error| {
        let path = claim.data_dir().join("run/gateway.sock");
        Failure::failed(format!("cannot listen on {}: {error}", path.display()))
    })
}

/// Ends the service on SIGINT and SIGTERM.
fn stop_on_signal(stop: &CancellationToken) -> tokio::task::JoinHandle<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let stop = stop.clone();
    tokio::spawn(async move {
        let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        stop.cancel();
    })
}

/// Where the first token is kept, for whoever owns the data directory.
const TOKEN_FILE: &str = "token";

/// The endpoint is never open: without any token one is made, readable by the owner alone.
fn first_token(data_dir: &Path, store: &Store) -> Result<(), Failure> {
    if !store.tokens().map_err(context::store_failure)?.is_empty() {
        return Ok(());
    }
    let issued = store
        .issue_token(toolgate_config::DEFAULT_PERSONA, Lane::Main.as_str())
        .map_err(context::store_failure)?;
    let path = data_dir.join(TOKEN_FILE);
    toolgate_base::files::write_private(&path, issued.secret.expose().as_bytes())
        .map_err(|error| Failure::failed(format!("{} cannot be written: {error}", path.display())))?;
    tracing::warn!("made a first token for persona default: {}", path.display());
    Ok(())
}

/// Looks tokens up on each request, so that an issued or revoked one counts at once.
struct StoredTokens {
    store: Store,
}

#[async_trait]
impl TokenCheck for StoredTokens {
    async fn check(&self, token: &str) -> Result<Option<Credential>, TokenCheckError> {
        let owner = self.store.persona_of(token).map_err(|error| TokenCheckError(error.to_string()))?;
        let Some(owner) = owner else { return Ok(None) };
        let Some(lane) = Lane::parse(&owner.lane) else {
            let what =
                format!("token {} has the lane '{}', which this version does not know", owner.id, owner.lane);
            return Err(TokenCheckError(what));
        };
        Ok(Some(Credential { lane, ..Credential::new(format!("token:{}", owner.id), owner.persona) }))
    }
}

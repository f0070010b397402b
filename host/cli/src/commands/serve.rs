//! `toolgate serve`: agents come in here.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use toolgate_config::Lane;
use toolgate_downstream::{Credential, HttpOptions, StdioOptions, TokenCheck, TokenCheckError};
use toolgate_gateway::Gateway;
use toolgate_store::Store;

use crate::args::Serve;
use crate::context;
use crate::couriers::Couriers;
use crate::exit::Failure;

/// Serves until the client goes, or until a signal comes.
pub(crate) async fn run(explicit: Option<&Path>, args: Serve) -> Result<(), Failure> {
    let config = context::config(explicit)?;
    context::operator(&config, &args.persona)?;
    let listen = args.listen.unwrap_or(config.serve.listen);
    if let Some(server) = &args.server {
        let bound =
            config.personas.get(&args.persona).is_some_and(|persona| persona.servers.contains(server));
        if !config.servers.contains_key(server) {
            return Err(super::mcp::no_server(server));
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
    let stop = CancellationToken::new();
    if args.stdio {
        let max_running = config.serve.max_running;
        let gateway = context::serving_gateway(config.clone())?;
        context::check_locked(&gateway, None).await?;
        let couriers = Couriers::start(&config);
        let options = StdioOptions {
            plain_names: args.server.is_some(),
            server_only: args.server,
            max_running,
            lane: args.lane,
            servers: args.servers.map(Into::into),
            shutdown: stop.clone(),
            ..StdioOptions::new(args.persona)
        };
        let signals = stop_on_signal(&stop);
        let served = toolgate_downstream::serve_stdio(Arc::clone(&gateway), options).await;
        signals.abort();
        gateway.shutdown().await;
        couriers.finish().await;
        return served.map_err(Failure::failed);
    }
    http(config, listen, args.server, stop).await
}

async fn http(
    config: toolgate_config::Config,
    listen: SocketAddr,
    server_only: Option<String>,
    stop: CancellationToken,
) -> Result<(), Failure> {
    if let Some(reason) = config.serve.refusal(listen) {
        return Err(Failure::usage(reason));
    }
    let tokens = Arc::new(StoredTokens { store: context::store(&config, "tokens")? });
    first_token(&config.data_dir, &tokens.store)?;
    let serve = config.serve.clone();
    let gateway: Arc<Gateway> = context::serving_gateway(config.clone())?;
    context::check_locked(&gateway, None).await?;
    let couriers = Couriers::start(&config);
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
        server_only,
        shutdown: stop.clone(),
        ..HttpOptions::new(listen, tokens)
    };
    let signals = stop_on_signal(&stop);
    let served = toolgate_downstream::serve_http(Arc::clone(&gateway), options).await;
    signals.abort();
    gateway.shutdown().await;
    couriers.finish().await;
    served.map_err(Failure::usage)
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

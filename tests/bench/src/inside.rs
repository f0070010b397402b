//! A gateway in this program, put together as the binary does it, with the audit log or without.
//!
//! Without is what no configuration can ask for; the comparison needs it, and so both are made here.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use toolgate_base::SystemClock;
use toolgate_downstream::{Credential, HttpOptions, TokenCheck, TokenCheckError};
use toolgate_gateway::{Gateway, Parts, assemble};
use toolgate_plugins::{HostOptions, PluginHost};
use toolgate_store::{Durability, Store};

use crate::Outcome;

/// The word for a gateway with the audit log, among this program's arguments.
pub(crate) const AUDIT: &str = "audit";
/// The word for one without.
pub(crate) const NO_AUDIT: &str = "no-audit";

/// Serves until it is killed.
pub(crate) fn serve(audit: &str, config: &Path, listen: SocketAddr) -> Outcome<()> {
    let env = |name: &str| std::env::var(name).ok();
    let found = toolgate_config::discover(Some(config), &env, &std::env::current_dir()?)?;
    let config = toolgate_config::load(&found, &env)?;
    let clock = Arc::new(SystemClock);
    let store = match audit {
        AUDIT => Store::open_with(&config.data_dir, "gateway", Durability::Process, clock)?,
        NO_AUDIT => Store::open_without_audit_for_the_bench(&config.data_dir, clock)?,
        other => return Err(format!("{other} is neither {AUDIT} nor {NO_AUDIT}").into()),
    };
    let store = Arc::new(store);
    let issued = store.issue_token(toolgate_config::DEFAULT_PERSONA, "main")?;
    toolgate_base::files::write_private(&config.data_dir.join("token"), issued.secret.expose().as_bytes())?;
    let host = PluginHost::new(HostOptions { cache_dir: Some(config.data_dir.join("aot")) })?;
    let plugins = assemble::assemble(&host, &config, &store)?;
    let parts = Parts {
        config: Arc::new(config),
        store: Arc::clone(&store),
        plugins,
        child_program: std::env::current_exe()?,
        tasks: Arc::default(),
    };
    let options = HttpOptions::new(listen, Arc::new(Tokens(store)));
    tokio::runtime::Runtime::new()?
        .block_on(async { toolgate_downstream::serve_http(Gateway::new(parts), options).await })?;
    Ok(())
}

/// As the binary looks them up: on each request.
struct Tokens(Arc<Store>);

#[async_trait]
impl TokenCheck for Tokens {
    async fn check(&self, token: &str) -> Result<Option<Credential>, TokenCheckError> {
        let owner = self.0.persona_of(token).map_err(|error| TokenCheckError(error.to_string()))?;
        Ok(owner.map(|owner| Credential::new(format!("token:{}", owner.id), owner.persona)))
    }
}

//! What most commands need: the configuration, the store, the plugins and a gateway over them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use toolgate_base::{Secret, SystemClock};
use toolgate_config::managed::ManagedServer;
use toolgate_config::{Config, FoundBy};
use toolgate_gateway::{Caller, Gateway, Parts, SharedTasks, assemble, ports};
use toolgate_plugins::{HostOptions, PluginHost, Ports};
use toolgate_store::Store;
use toolgate_wire::envelope::Era;

use crate::commands::lock;
use crate::exit::{Code, Failure};

/// Whether the layers below the data directory count, and whether a lock has to hold.
static LAYERS_OFF: AtomicBool = AtomicBool::new(false);
static LOCKED: AtomicBool = AtomicBool::new(false);

/// `--locked`: said once, before anything is read.
pub(crate) fn hold_to_lock() {
    LOCKED.store(true, Ordering::Relaxed);
    lock_layers();
}

/// The operator's file alone counts in this process.
pub(crate) fn lock_layers() {
    LAYERS_OFF.store(true, Ordering::Relaxed);
}

/// The merged configuration with its notices told.
pub(crate) fn config(explicit: Option<&Path>) -> Result<Config, Failure> {
    load(explicit, &[], None).inspect(tell_notices)
}

/// The same for who prints the notices itself.
pub(crate) fn quiet_config(explicit: Option<&Path>) -> Result<Config, Failure> {
    load(explicit, &[], None)
}

/// The configuration as it will be with one server more and these secrets stored; nothing is written.
pub(crate) fn config_with(
    explicit: Option<&Path>,
    server: &ManagedServer,
    secrets: &[(String, Secret)],
) -> Result<Config, Failure> {
    load(explicit, secrets, Some(server)).inspect(tell_notices)
}

fn tell_notices(config: &Config) {
    for notice in &config.warnings {
        let place = notice.place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
        tracing::warn!("{place}{}", notice.text);
    }
}

fn load(
    explicit: Option<&Path>,
    secrets: &[(String, Secret)],
    new: Option<&ManagedServer>,
) -> Result<Config, Failure> {
    let stored = |name: &str| secrets.iter().find(|(have, _)| have == name);
    let env = |name: &str| {
        let found = std::env::var(name).ok();
        found.or_else(|| stored(name).map(|(_, value)| value.expose().to_owned()))
    };
    load_from(explicit, &here()?, &env, new).map(|loaded| loaded.config)
}

/// The directory this process was started in.
fn here() -> Result<PathBuf, Failure> {
    std::env::current_dir()
        .map_err(|error| Failure::failed(format!("the current directory cannot be read: {error}")))
}

/// A configuration with what it was made of.
pub(crate) struct Loaded {
    pub(crate) config: Config,
    /// What led to it.
    pub(crate) found_by: FoundBy,
    /// The directory it was looked for in.
    pub(crate) from: PathBuf,
    /// The variables that had a say, with their values.
    pub(crate) variables: BTreeMap<String, String>,
}

/// The configuration for whoever serves, with its notices told.
pub(crate) fn loaded(explicit: Option<&Path>) -> Result<Loaded, Failure> {
    let env = |name: &str| std::env::var(name).ok();
    let loaded = load_from(explicit, &here()?, &env, None)?;
    tell_notices(&loaded.config);
    Ok(loaded)
}

/// The same from another directory and with other variables than this process has.
pub(crate) fn load_from(
    explicit: Option<&Path>,
    from: &Path,
    env: &dyn Fn(&str) -> Option<String>,
    new: Option<&ManagedServer>,
) -> Result<Loaded, Failure> {
    let variables = RefCell::new(BTreeMap::new());
    let env = |name: &str| {
        let value = env(name)?;
        variables.borrow_mut().insert(name.to_owned(), value.clone());
        Some(value)
    };
    let found = toolgate_config::discover(explicit, &env, from).map_err(config_failure)?;
    let mut config = if LAYERS_OFF.load(Ordering::Relaxed) {
        toolgate_config::load_locked(&found, &env)
    } else {
        toolgate_config::load_with(&found, &env, new)
    }
    .map_err(config_failure)?;
    toolgate_gateway::lock::resolve(&mut config);
    let (found_by, from) = (found.found_by, from.to_owned());
    Ok(Loaded { config, found_by, from, variables: variables.into_inner() })
}

/// Whether this process holds to the lock file.
pub(crate) fn is_locked() -> bool {
    LOCKED.load(Ordering::Relaxed)
}

/// The configuration that counts for this user wherever it stands: neither a variable nor the working
/// directory has a say.
pub(crate) fn own_config() -> Result<Config, Failure> {
    let all = |name: &str| std::env::var(name).ok();
    let env = |name: &str| (name != "TOOLGATE_CONFIG").then(|| all(name))?;
    let nowhere = Path::new("/");
    let found = toolgate_config::discover(None, &env, nowhere).map_err(config_failure)?;
    toolgate_config::load(&found, &all).map_err(config_failure)
}

pub(crate) fn config_failure(error: toolgate_config::ConfigError) -> Failure {
    Failure::usage(error)
}

/// Opens the store of the configuration's data directory.
pub(crate) fn store(config: &Config, writer: &str) -> Result<Store, Failure> {
    toolgate_base::files::create_private_dir(&config.data_dir).map_err(|error| {
        Failure::failed(format!("the data directory {} cannot be made: {error}", config.data_dir.display()))
    })?;
    Store::open_with(&config.data_dir, writer, durability(config), Arc::new(SystemClock))
        .map(|store| store.run_by(format!("uid {}", crate::sys::user())))
        .map_err(store_failure)
}

/// What a commit of an audit row survives.
pub(crate) fn durability(config: &Config) -> toolgate_store::Durability {
    match config.audit.durability {
        toolgate_config::Durability::Process => toolgate_store::Durability::Process,
        toolgate_config::Durability::Disk => toolgate_store::Durability::Disk,
    }
}

pub(crate) fn store_failure(error: toolgate_store::StoreError) -> Failure {
    let code = match error.class() {
        toolgate_store::ErrorClass::Integrity => Code::Integrity,
        toolgate_store::ErrorClass::Usage => Code::Usage,
        toolgate_store::ErrorClass::Failed => Code::Failed,
    };
    Failure::new(code, error)
}

/// The plugin host with its cache of native code below the data directory.
pub(crate) fn plugin_host(config: &Config, ports: Ports) -> Result<Arc<PluginHost>, Failure> {
    let options = HostOptions { cache_dir: Some(config.data_dir.join("aot")) };
    // What the operator approved and configured is no plugin's to change, whatever was granted (FR-30).
    let secrets = toolgate_config::secrets::path(&config.config_dir);
    let files = config.path.iter().cloned().chain([secrets, config.data_dir.clone()]);
    let ports = Ports { own: files.collect(), ..ports };
    PluginHost::connected(options, ports)
        .map_err(|error| Failure::failed(format!("the plugin host cannot start: {error}")))
}

/// Which build of its version this program is: its file, and when that was written. Two builds of one version
/// can differ in what they say to each other.
pub(crate) fn build() -> String {
    let Ok(program) = std::env::current_exe() else { return "a program without a file".to_owned() };
    let written = std::fs::metadata(&program).and_then(|found| found.modified()).ok();
    let since = written.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let time = since.and_then(|since| u64::try_from(since.as_millis()).ok());
    match time.map(toolgate_base::clock::utc_text) {
        Some(time) => format!("{}, written {time}", program.display()),
        None => program.display().to_string(),
    }
}

/// This program, which also starts the children of stdio servers.
pub(crate) fn own_program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| Failure::failed(format!("cannot find this program: {error}")))
}

/// A gateway in this process. A plugin that is configured and not in force refuses the start; with
/// `--locked`, so does everything that differs from the lock without a server being asked.
pub(crate) fn gateway(config: Config, writer: &str) -> Result<Arc<Gateway>, Failure> {
    let ground = Ground::new(&config, writer)?;
    held(config, &ground)
}

/// What gateways of one process share: the store, and the plugin host with its cache of native code.
pub(crate) struct Ground {
    store: Arc<Store>,
    host: Arc<PluginHost>,
    tasks: Arc<SharedTasks>,
}

impl Ground {
    pub(crate) fn new(config: &Config, writer: &str) -> Result<Self, Failure> {
        let store = Arc::new(store(config, writer)?);
        let host = plugin_host(config, ports::ports(&store))?;
        Ok(Self { store, host, tasks: Arc::default() })
    }
}

/// As [`gateway`], for whoever serves: it also asks the indexes of plugins what was revoked, once in each
/// period. With `--locked` no index is asked.
pub(crate) fn serving_gateway(config: Config, ground: &Ground) -> Result<Arc<Gateway>, Failure> {
    let gateway = held(config, ground)?;
    if !is_locked() {
        gateway.watch_indexes(&ground.host);
    }
    gateway.start_shared();
    gateway.resume_tasks();
    Ok(gateway)
}

fn held(config: Config, ground: &Ground) -> Result<Arc<Gateway>, Failure> {
    if !is_locked() {
        return bare(config, ground);
    }
    let locked = lock::read(&config)?;
    let mismatches = lock::offline(&config, &locked)?;
    if !mismatches.is_empty() {
        return Err(lock::differs(&mismatches));
    }
    let gateway = built(config, ground)?;
    gateway.hold_to(locked);
    Ok(gateway)
}

/// With `--locked`: asks servers what they show now, all of them or one, and refuses where that is not
/// what was reviewed; the gateway is ended then.
pub(crate) async fn check_locked(gateway: &Arc<Gateway>, only: Option<&str>) -> Result<(), Failure> {
    let compared = compare_locked(gateway, only).await;
    if compared.is_err() {
        gateway.shutdown().await;
    }
    compared
}

/// The same for a gateway that goes on for others. A server that does not answer shows nothing, so it is
/// only told.
pub(crate) async fn compare_locked(gateway: &Arc<Gateway>, only: Option<&str>) -> Result<(), Failure> {
    let (mismatches, silent) = gateway.check_locked(only).await;
    for (server, reason) in silent {
        tracing::warn!("{server} could not be compared with the lock: {reason}");
    }
    if mismatches.is_empty() { Ok(()) } else { Err(lock::differs(&mismatches)) }
}

/// With `--locked`: whether a configuration is the one that was reviewed, without asking a server.
pub(crate) fn check_offline(config: &Config) -> Result<(), Failure> {
    if !is_locked() {
        return Ok(());
    }
    let mismatches = lock::offline(config, &lock::read(config)?)?;
    if mismatches.is_empty() { Ok(()) } else { Err(lock::differs(&mismatches)) }
}

/// A gateway that no lock holds.
pub(crate) fn bare_gateway(config: Config, writer: &str) -> Result<Arc<Gateway>, Failure> {
    let ground = Ground::new(&config, writer)?;
    bare(config, &ground)
}

/// Without `--locked` the bytes of a locked release are fetched where they are missing.
fn bare(config: Config, ground: &Ground) -> Result<Arc<Gateway>, Failure> {
    let fetched = tokio::task::block_in_place(|| {
        tokio::runtime::Handle::current().block_on(toolgate_gateway::lock::fetch_missing(&config))
    });
    fetched.map_err(|error| lock::not_had(&config, &error))?;
    built(config, ground)
}

fn built(config: Config, ground: &Ground) -> Result<Arc<Gateway>, Failure> {
    let (store, host) = (Arc::clone(&ground.store), &ground.host);
    let assembled = assemble::assemble(host, &config, &store).map_err(|refusal| {
        let code = if refusal.is_integrity() { Code::Integrity } else { Code::Usage };
        Failure::new(code, &refusal).hint(
            "look at it with `toolgate plugin list`; nothing is served without a plugin that is configured",
        )
    })?;
    let gateway = Gateway::new(Parts {
        config: Arc::new(config),
        store,
        plugins: assembled,
        child_program: own_program()?,
        tasks: Arc::clone(&ground.tasks),
    });
    gateway.watch_plugins(Arc::clone(host));
    Ok(gateway)
}

/// The operator at this terminal, as a persona.
pub(crate) fn operator(config: &Config, persona: &str) -> Result<Caller, Failure> {
    if config.personas.contains_key(persona) {
        return Ok(Caller::new(persona, "cli", toolgate_base::random_hex(16), Era::Modern));
    }
    let known: Vec<&str> = config.personas.keys().map(String::as_str).collect();
    Err(Failure::usage(format!("there is no persona '{persona}'; there are: {}", known.join(", "))))
}

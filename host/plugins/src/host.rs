//! Loading plugins: everything that happens once, so that nothing of it happens in a call.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use toolgate_grants::Grants;
use toolgate_signing::{Digest, Kind, VerifiedRelease};
use wasmtime::component::{Component, InstancePre, Linker};

use crate::adapter::Adapter;
use crate::cache::{Cache, Found};
use crate::capability::wasi;
use crate::contract::{self, Offer};
use crate::decision::DecisionSet;
use crate::engine::{self, Core};
use crate::error::{HostError, LoadError, LoadErrorKind};
use crate::facts::Document;
use crate::guest::Prepared;
use crate::identity::Identity;
use crate::inspect::{self, Inspection};
use crate::installer::Installer;
use crate::limits::{Limits, MAX_SETTINGS};
use crate::opened::{Given, Opened};
use crate::policy::Policy;
use crate::ports::Ports;
use crate::schema;
use crate::state::{Shared, State};

/// How the plugin host is set up.
#[derive(Clone, Debug, Default)]
pub struct HostOptions {
    /// Where compiled plugins are kept, as `<data_dir>/aot`; none compiles them at every start.
    pub cache_dir: Option<PathBuf>,
}

/// What the operator admits a plugin with.
#[derive(Clone, Debug, PartialEq)]
pub struct Admission {
    /// The decisions it may give; what its release does not declare it may not give either.
    pub decisions: DecisionSet,
    /// Its settings: one JSON object of at most 256 KiB.
    pub settings: String,
    /// What it may reach outside its own memory.
    pub grants: Grants,
    /// Whether what a policy says is recorded and decides nothing (`mode: monitor`).
    pub monitored: bool,
    /// The schema of its settings as it came with the plugin; none where it came without one.
    pub schema: Option<Arc<[u8]>>,
}

/// Deny, ask and redact, with empty settings.
impl Default for Admission {
    fn default() -> Self {
        Self {
            decisions: DecisionSet::default(),
            settings: "{}".to_owned(),
            monitored: false,
            schema: None,
            grants: Grants::default(),
        }
    }
}

/// A loaded plugin.
#[derive(Debug)]
pub enum Plugin {
    /// It judges.
    Policy(Policy),
    /// It knows one server.
    Adapter(Adapter),
    /// It knows one source of servers.
    Installer(Installer),
}

/// Loads plugins into the engines of the process.
pub struct PluginHost {
    pooled: Workshop,
    sealed: OnceLock<Result<Workshop, String>>,
    cache_dir: Option<PathBuf>,
    ports: Ports,
    compilations: AtomicU64,
    replacements: AtomicU64,
}

/// Where plugins of one engine are compiled and linked.
struct Workshop {
    core: &'static Core,
    cache: Option<Cache>,
}

impl PluginHost {
    /// Starts the engine, if this process has none yet, and opens the cache. A cache that cannot
    /// be opened is logged and done without: it costs time, not safety.
    pub fn new(options: HostOptions) -> Result<Arc<Self>, HostError> {
        Self::connected(options, Ports::default())
    }

    /// As [`Self::new`], connected to what the capabilities of plugins need.
    pub fn connected(options: HostOptions, ports: Ports) -> Result<Arc<Self>, HostError> {
        let core = engine::shared().map_err(HostError::Engine)?;
        Ok(Arc::new(Self {
            pooled: Workshop::new(core, options.cache_dir.as_deref()),
            sealed: OnceLock::new(),
            cache_dir: options.cache_dir,
            ports,
            compilations: AtomicU64::new(0),
            replacements: AtomicU64::new(0),
        }))
    }

    /// Checks, compiles and links one plugin. The signature was verified by whoever made the
    /// [`VerifiedRelease`]; everything else is checked here, in the order of spec plugin-host 2.4.
    ///
    /// Compiling takes tens of milliseconds and more: not to be called where a caller waits.
    pub fn load(
        &self,
        component: &[u8],
        release: &VerifiedRelease,
        admission: &Admission,
    ) -> Result<Plugin, LoadError> {
        self.load_checked(component, release, admission)
            .map_err(|kind| LoadError { plugin: release.release().name.clone(), kind })
    }

    /// How often this host has compiled a component. A load that hits the cache, or is refused
    /// before, does not count.
    pub fn compilations(&self) -> u64 {
        self.compilations.load(Ordering::Relaxed)
    }

    /// How often a stale or damaged cache entry was replaced (WA-01).
    pub fn cache_replacements(&self) -> u64 {
        self.replacements.load(Ordering::Relaxed)
    }

    fn load_checked(
        &self,
        bytes: &[u8],
        verified: &VerifiedRelease,
        admission: &Admission,
    ) -> Result<Plugin, LoadErrorKind> {
        let inspection = inspect::admit(bytes, verified)?;
        let release = verified.release();
        check_settings(&admission.settings)?;
        if let (Some(signed), Some(given)) = (&release.settings_schema, &admission.schema) {
            schema::check(given, signed, &admission.settings)?;
        }
        let declared = DecisionSet::parse(&release.decisions)
            .map_err(|error| LoadErrorKind::Malformed(error.to_string()))?;
        let identity = Identity {
            name: release.name.clone(),
            component: verified.component(),
            release: verified.digest(),
            settings: Digest::of(admission.settings.as_bytes()),
            decisions: admission.decisions.and(declared),
            monitored: admission.monitored,
            grants: admission.grants.digest(),
        };
        let settings = Document::new(admission.settings.as_str());
        let mut shared = Shared::new(&identity.name, Limits::clamped(release), settings);
        shared.opened = Opened::validate(&Given {
            release,
            inspection: &inspection,
            grants: &admission.grants,
            settings: &shared.settings,
            ports: &self.ports,
            limits: &shared.limits,
        })?;
        shared.record.clone_from(&self.ports.record);
        let shared = Arc::new(shared);
        let workshop = self.workshop(shared.opened.sealed_wasi)?;
        let component = self.compile(workshop, bytes, &identity)?;
        let shared_looks_outside = shared.opened.waits();
        let prepared = Prepared { core: workshop.core, pre: workshop.link(&component, &inspection)?, shared };
        Ok(match release.kind {
            Kind::Policy => {
                let clock = shared_looks_outside
                    || inspection.imports.iter().any(|import| contract::is_clock(import));
                Plugin::Policy(Policy::new(
                    prepared,
                    identity.decisions,
                    identity,
                    clock,
                    admission.monitored,
                )?)
            }
            Kind::Adapter => Plugin::Adapter(Adapter::new(prepared, identity)?),
            Kind::Installer => Plugin::Installer(Installer::new(prepared, identity)?),
        })
    }

    /// Where a plugin is compiled: a sealed one apart from the others. The first sealed one makes
    /// that engine.
    fn workshop(&self, sealed: bool) -> Result<&Workshop, LoadErrorKind> {
        if !sealed {
            return Ok(&self.pooled);
        }
        let made = self
            .sealed
            .get_or_init(|| engine::sealed().map(|core| Workshop::new(core, self.cache_dir.as_deref())));
        made.as_ref().map_err(|why| LoadErrorKind::Host(why.clone()))
    }

    /// From the cache where it holds the right code, else by the compiler.
    fn compile(
        &self,
        workshop: &Workshop,
        bytes: &[u8],
        identity: &Identity,
    ) -> Result<Component, LoadErrorKind> {
        let Workshop { core, cache } = workshop;
        let found =
            cache.as_ref().map_or(Found::Nothing, |cache| cache.get(&core.engine, &identity.component));
        match found {
            Found::Code(component) => return Ok(component),
            Found::Nothing => {}
            Found::Unusable(why) => {
                self.replacements.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(
                    plugin = identity.name,
                    why,
                    "the cached code of the plugin is unusable; it is compiled again and replaced"
                );
            }
        }
        self.compilations.fetch_add(1, Ordering::Relaxed);
        let component = Component::new(&core.engine, bytes)
            .map_err(|error| LoadErrorKind::Compile(format!("{error:#}")))?;
        if let Some(cache) = cache
            && let Err(error) = cache.put(&identity.component, &component)
        {
            tracing::warn!(plugin = identity.name, %error, "the compiled plugin was not cached");
        }
        Ok(component)
    }
}

impl Workshop {
    /// With the cache below `directory`, if there is one and it opens.
    fn new(core: &'static Core, directory: Option<&Path>) -> Self {
        let cache = directory.and_then(|directory| match Cache::open(directory, &core.engine) {
            Ok(cache) => Some(cache),
            Err(error) => {
                tracing::warn!(directory = %directory.display(), %error, "no native-code cache; plugins are compiled at every start");
                None
            }
        });
        Self { core, cache }
    }

    /// The plugin's own linker: what it imports, and nothing more. All of it was declared and is
    /// offered, or the plugin had been refused before.
    fn link(
        &self,
        component: &Component,
        inspection: &Inspection,
    ) -> Result<InstancePre<State>, LoadErrorKind> {
        let mut linker = Linker::new(&self.core.engine);
        if inspection.imports.iter().any(|import| import.starts_with("wasi:")) {
            wasi::link(&mut linker).map_err(|error| LoadErrorKind::Host(format!("{error:#}")))?;
        }
        for import in inspection.imports.iter().filter(|import| !import.starts_with("wasi:")) {
            match contract::offer(import) {
                Offer::Here(link) => {
                    link(&mut linker).map_err(|error| LoadErrorKind::Host(format!("{error:#}")))?;
                }
                Offer::Missing(offered) => {
                    return Err(LoadErrorKind::Unknown { import: import.clone(), offered });
                }
            }
        }
        linker.instantiate_pre(component).map_err(|error| LoadErrorKind::DoesNotFit {
            contract: contract::VERSION,
            detail: format!("{error:#}"),
        })
    }
}

fn check_settings(settings: &str) -> Result<(), LoadErrorKind> {
    if settings.len() > MAX_SETTINGS {
        return Err(LoadErrorKind::Settings(format!(
            "{} bytes are more than the limit of {MAX_SETTINGS}",
            settings.len()
        )));
    }
    match serde_json::from_str::<serde_json::Value>(settings) {
        Ok(value) if value.is_object() => Ok(()),
        Ok(_) => Err(LoadErrorKind::Settings("they are no JSON object".to_owned())),
        // The text may hold what the operator would not have in a log: only the place is told.
        Err(error) => Err(LoadErrorKind::Settings(format!(
            "they are no JSON, at line {} column {}",
            error.line(),
            error.column()
        ))),
    }
}

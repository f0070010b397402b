//! From the configuration to the plugins in force: the bundle, then `plugins.load`, each verified by
//! the rules of `plugins.trust` before anything of it is compiled.
//!
//! Contract: a policy that is configured and cannot be loaded refuses the start, because a gateway
//! without it would allow what it denies. An adapter that cannot be loaded fails its own server's
//! calls and nothing else. Every plugin loaded or refused is in the audit log.
//!
//! Threat: the bytes come from disk and may be anything. Signature, name and digest are checked
//! first; only then is the component looked at.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolgate_config::{AdapterUse, Bundle, Config, Load, TrustRule};
use toolgate_plugins::{
    Adapter, Admission, DecisionSet, LoadError, Plugin, PluginHost, PluginSet, Policy, Whose,
};
use toolgate_signing::{Kind, PublicKey, Threshold, VerifiedRelease, VerifyError, verify_release};
use toolgate_store::{AuditRow, Store};

use crate::bundle;

/// Name of the component in a plugin's directory.
pub const COMPONENT_FILE: &str = "component.wasm";
/// Name of the signed release in a plugin's directory.
pub const RELEASE_FILE: &str = "release.dsse.json";
/// No component or release is read beyond this; the plugin host has its own, smaller bounds.
pub const MAX_FILE: u64 = 64 * 1024 * 1024;

/// Why a plugin is not in force.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Its files cannot be read.
    #[error("plugin {plugin}: {path} cannot be read: {source}")]
    Unreadable {
        /// The plugin as configured.
        plugin: String,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The release or the component is not what was signed by a trusted key.
    #[error("plugin {plugin} is refused before compilation: {source}")]
    Unverified {
        /// The plugin as configured.
        plugin: String,
        /// What did not match.
        source: Box<VerifyError>,
    },
    /// It is signed, and it is another plugin or version than the configuration names.
    #[error("plugin {plugin} is refused: the release is {found}, which is not what the configuration names")]
    Mismatch {
        /// The plugin as configured.
        plugin: String,
        /// Name and version that the release states.
        found: String,
    },
    /// It is signed and does not fit the host or the grant.
    #[error("{source}")]
    Unloadable {
        /// What did not fit.
        source: Box<LoadError>,
    },
    /// Nothing of that name is in the bundle, and no directory was given.
    #[error(
        "plugin {plugin} is neither in the bundle nor in a directory of plugins.load; add {{ plugin: ./DIR }} there"
    )]
    Unknown {
        /// The plugin as configured.
        plugin: String,
    },
    /// The entry itself cannot be used.
    #[error("plugin {plugin}: {reason}")]
    Entry {
        /// The plugin as configured.
        plugin: String,
        /// What is wrong with the entry.
        reason: String,
    },
}

impl Refusal {
    /// Whether something is not what was signed or named (exit code 5), as opposed to an entry that
    /// cannot be used.
    pub fn is_integrity(&self) -> bool {
        match self {
            Self::Unverified { .. } | Self::Mismatch { .. } => true,
            Self::Unloadable { source } => source.kind.whose() != Whose::OperatorDenied,
            Self::Unreadable { .. } | Self::Unknown { .. } | Self::Entry { .. } => false,
        }
    }
}

/// The plugins in force.
pub struct Assembled {
    /// Policies, fallbacks, and the adapter of each server that has one.
    pub plugins: PluginSet,
    /// Servers whose adapter could not be loaded, with the reason: their calls are refused.
    pub without_adapter: HashMap<String, String>,
}

/// The two files of a plugin.
#[derive(Debug, Clone)]
pub struct PluginFiles {
    /// As what it was asked for: a name or a directory.
    pub plugin: String,
    /// The component.
    pub component: Arc<[u8]>,
    /// The signed release.
    pub release: Arc<[u8]>,
}

impl PluginFiles {
    /// Reads a plugin's directory.
    pub fn read(dir: &Path) -> Result<Self, Refusal> {
        let plugin = dir.display().to_string();
        let read = |name: &str| {
            let path = dir.join(name);
            bounded(&path).map_err(|source| Refusal::Unreadable { plugin: plugin.clone(), path, source })
        };
        let (component, release) = (read(COMPONENT_FILE)?, read(RELEASE_FILE)?);
        Ok(Self { component: component.into(), release: release.into(), plugin })
    }

    /// Checks signature, name and digest; nothing of the component is parsed.
    pub fn verify(&self, trust: &[TrustRule]) -> Result<VerifiedRelease, Refusal> {
        let refused = |source| Refusal::Unverified { plugin: self.plugin.clone(), source: Box::new(source) };
        let release = verify_release(&self.release, &|name: &str| threshold(trust, name)).map_err(refused)?;
        release.check_component(&self.component).map_err(refused)?;
        Ok(release)
    }
}

fn bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    let bytes = toolgate_base::files::read_bounded(path, MAX_FILE)?;
    bytes.ok_or_else(|| std::io::ErrorKind::NotFound.into())
}

/// Who may sign a plugin: first-party keys for `toolgate/*`, which no rule of the operator's can
/// widen, and `plugins.trust` for everything else. No rule means: not loadable.
fn threshold(trust: &[TrustRule], name: &str) -> Option<Threshold> {
    if name.starts_with(bundle::PREFIX) {
        return Some(Threshold { keys: bundle::keys(), minimum: 1 });
    }
    let rule = trust.iter().find(|rule| covers(&rule.plugins, name))?;
    let keys: Vec<PublicKey> = rule.keys.clone();
    Some(Threshold { keys, minimum: rule.minimum })
}

/// `acme/*` covers everything of `acme`, and nothing of `acme-evil`.
fn covers(rule: &str, name: &str) -> bool {
    match rule.strip_suffix('*') {
        Some(prefix) if prefix.ends_with('/') => name.starts_with(prefix),
        _ => rule == name,
    }
}

/// Loads everything that the configuration names.
pub fn assemble(host: &Arc<PluginHost>, config: &Config, store: &Store) -> Result<Assembled, Refusal> {
    let loader = Loader { host, config, store };
    let mut policies = Vec::new();
    let mut fallbacks = Vec::new();
    for wanted in wanted(config)? {
        // An adapter is loaded once for each server, with that server's settings.
        if loader.noted(&wanted, loader.verified(&wanted))?.release().kind != Kind::Policy {
            continue;
        }
        if let Plugin::Policy(policy) = loader.noted(&wanted, loader.load(&wanted))? {
            if is_fallback(config, &policy) { fallbacks.push(policy) } else { policies.push(policy) }
        }
    }
    let mut plugins = PluginSet::new(policies, fallbacks);
    let without_adapter = loader.set_adapters(&mut plugins);
    Ok(Assembled { plugins, without_adapter })
}

/// One plugin that the configuration wants.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Its bytes.
    pub files: PluginFiles,
    /// What it may do.
    pub admission: Admission,
    /// The name that the entry states, where it states one.
    pub name: Option<String>,
    /// The versions that the entry accepts.
    pub version: Option<semver::VersionReq>,
}

/// Every plugin that the configuration wants, the bundle first. An entry of `plugins.load` with the
/// name of a plugin of the bundle takes its place and keeps its position.
pub fn wanted(config: &Config) -> Result<Vec<Wanted>, Refusal> {
    let mut all: Vec<Wanted> = Vec::new();
    if config.plugins.bundle == Bundle::Default {
        all.extend(bundle::policies().into_iter().map(|files| Wanted {
            name: Some(files.plugin.clone()),
            // The bundle comes with Toolgate; its releases declare no more than each needs.
            admission: Admission { decisions: DecisionSet::ALL, ..Admission::default() },
            version: None,
            files,
        }));
    }
    for entry in &config.plugins.load {
        let wanted = entry_wants(entry)?;
        match all.iter_mut().find(|other| other.name.is_some() && other.name == wanted.name) {
            Some(place) => *place = wanted,
            None => all.push(wanted),
        }
    }
    Ok(all)
}

fn entry_wants(entry: &Load) -> Result<Wanted, Refusal> {
    let files = match &entry.dir {
        Some(dir) => PluginFiles::read(dir)?,
        None => {
            bundle::find(&entry.plugin).ok_or_else(|| Refusal::Unknown { plugin: entry.plugin.clone() })?
        }
    };
    let decisions = DecisionSet::parse(&entry.decisions)
        .map_err(|error| Refusal::Entry { plugin: entry.plugin.clone(), reason: error.to_string() })?;
    if let Some(label) = entry.grants.keys().next() {
        let reason = format!("no plugin of this version can be granted `{label}`");
        return Err(Refusal::Entry { plugin: entry.plugin.clone(), reason });
    }
    Ok(Wanted {
        files,
        admission: Admission { decisions, settings: entry.settings_json.clone() },
        name: entry.dir.is_none().then(|| entry.plugin.clone()),
        version: entry.version.clone(),
    })
}

fn is_fallback(config: &Config, policy: &Policy) -> bool {
    config.plugins.fallback.iter().any(|name| name == policy.name())
}

struct Loader<'a> {
    host: &'a Arc<PluginHost>,
    config: &'a Config,
    store: &'a Store,
}

impl Loader<'_> {
    /// Signature, name and version; nothing of the component is parsed.
    fn verified(&self, wanted: &Wanted) -> Result<VerifiedRelease, Refusal> {
        let release = wanted.files.verify(&self.config.plugins.trust)?;
        let stated = release.release();
        let named = wanted.name.as_ref().is_none_or(|name| *name == stated.name);
        let fits = wanted.version.as_ref().is_none_or(|range| range.matches(&stated.version));
        if named && fits {
            return Ok(release);
        }
        let found = format!("{} {}", stated.name, stated.version);
        Err(Refusal::Mismatch { plugin: wanted.files.plugin.clone(), found })
    }

    fn load(&self, wanted: &Wanted) -> Result<Plugin, Refusal> {
        let release = self.verified(wanted)?;
        let plugin = self
            .host
            .load(&wanted.files.component, &release, &wanted.admission)
            .map_err(|source| Refusal::Unloadable { source: Box::new(source) })?;
        let stated = release.release();
        let version = stated.version.to_string();
        self.store.append_detached(AuditRow::plugin_loaded(&stated.name, &version, &release.component()));
        Ok(plugin)
    }

    /// A refusal is audited, whatever was refused.
    fn noted<T>(&self, wanted: &Wanted, outcome: Result<T, Refusal>) -> Result<T, Refusal> {
        outcome.inspect_err(|refusal| {
            self.store.append_detached(AuditRow::plugin_refused(&wanted.files.plugin, &refusal.to_string()));
        })
    }

    /// Gives each server its adapter; those that could not be loaded are returned.
    fn set_adapters(&self, plugins: &mut PluginSet) -> HashMap<String, String> {
        let mut missing = HashMap::new();
        for server in self.config.servers.values() {
            let Some(used) = &server.adapter else { continue };
            match self.adapter(used) {
                Ok(adapter) => {
                    plugins.set_adapter(&server.name, adapter);
                }
                Err(refusal) => {
                    tracing::error!(server = %server.name, %refusal, "this server's calls are refused");
                    missing.insert(server.name.clone(), refusal.to_string());
                }
            }
        }
        missing
    }

    fn adapter(&self, used: &AdapterUse) -> Result<Adapter, Refusal> {
        let wanted = Wanted {
            files: self.adapter_files(used)?,
            admission: Admission { settings: used.settings_json.clone(), ..Admission::default() },
            name: Some(used.plugin.clone()),
            version: None,
        };
        match self.noted(&wanted, self.load(&wanted))? {
            Plugin::Adapter(adapter) => Ok(adapter),
            Plugin::Policy(_) | Plugin::Installer(_) => {
                Err(Refusal::Entry { plugin: used.plugin.clone(), reason: "it is no adapter".to_owned() })
            }
        }
    }

    /// A directory of `plugins.load` whose release has that name, else the bundle.
    fn adapter_files(&self, used: &AdapterUse) -> Result<PluginFiles, Refusal> {
        for dir in self.config.plugins.load.iter().filter_map(|entry| entry.dir.as_ref()) {
            let files = PluginFiles::read(dir)?;
            if files.verify(&self.config.plugins.trust)?.release().name == used.plugin {
                return Ok(files);
            }
        }
        let bundled = (self.config.plugins.bundle == Bundle::Default).then(|| bundle::find(&used.plugin));
        bundled.flatten().ok_or_else(|| Refusal::Unknown { plugin: used.plugin.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::covers;

    #[test]
    fn a_rule_for_a_namespace_covers_nothing_that_only_begins_like_it() {
        assert!(covers("acme/*", "acme/guard"));
        assert!(!covers("acme/*", "acme-evil/guard"));
        assert!(!covers("acme*", "acme-evil/guard"));
        assert!(covers("acme/guard", "acme/guard"));
        assert!(!covers("acme/guard", "acme/guard2"));
    }
}

//! From the configuration to the plugins in force: the bundle, then `plugins.load`, each verified by
//! the rules of `plugins.trust` before anything of it is compiled.
//!
//! Contract: a policy that is configured and cannot be loaded refuses the start, because a gateway
//! without it would allow what it denies. An adapter that cannot be loaded fails its own server's
//! calls and nothing else. Every plugin loaded or refused is in the audit log.
//!
//! Threat: the bytes come from disk and may be anything. Signature, name and digest are checked
//! first; only then is the component looked at.

mod refusal;
mod uses;
mod wanted;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

use toolgate_config::denials::Denials;
use toolgate_config::{AdapterUse, Bundle, Config, Pinned, Places, TrustRule, grants_digest};
use toolgate_plugins::{
    Adapter, Admission, LoadError, LoadErrorKind, Plugin, PluginHost, PluginSet, Policy, SettingFault,
};
use toolgate_signing::{Kind, PublicKey, Threshold, VerifiedRelease, verify_release};
use toolgate_store::{AuditRow, Store};

use crate::bundle;
use crate::indexes::check_revoked;
use crate::monitor::Noted;
use crate::views::Views;

pub use refusal::{Refusal, Revoked};
pub use uses::{Use, uses};
use wanted::NotHad;
pub(crate) use wanted::each_wanted as wanted_each;
pub use wanted::{Wanted, wanted};

/// Name of the component in a plugin's directory.
pub const COMPONENT_FILE: &str = "component.wasm";
/// Name of the signed release in a plugin's directory.
pub const RELEASE_FILE: &str = "release.dsse.json";
/// Name of the schema of its settings, where it has one.
pub const SCHEMA_FILE: &str = "settings.schema.json";
/// No component or release is read beyond this; the plugin host has its own, smaller bounds.
pub const MAX_FILE: u64 = 64 * 1024 * 1024;

/// The plugins in force.
#[derive(Default)]
pub struct Assembled {
    /// Policies, fallbacks, and the adapter of each server that has one.
    pub plugins: PluginSet,
    /// Servers whose adapter could not be loaded, with the reason: their calls are refused.
    pub without_adapter: HashMap<String, String>,
    /// What these plugins hide of servers' surfaces.
    pub(crate) views: Views,
    /// Plugins of this set whose being put aside is in the audit log already.
    pub(crate) noted_aside: Mutex<HashSet<String>>,
    /// What policies in mode `monitor` said of definitions and is in the audit log already.
    pub(crate) noted_monitored: Noted,
}

/// The files of a plugin.
#[derive(Debug, Clone)]
pub struct PluginFiles {
    /// As what it was asked for: a name or a directory.
    pub plugin: String,
    /// The component.
    pub component: Arc<[u8]>,
    /// The signed release.
    pub release: Arc<[u8]>,
    /// The schema of its settings, where it lies beside them.
    pub schema: Option<Arc<[u8]>>,
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
        let schema = if dir.join(SCHEMA_FILE).exists() { Some(read(SCHEMA_FILE)?.into()) } else { None };
        Ok(Self { component: component.into(), release: release.into(), schema, plugin })
    }

    /// Checks signature, name and digest; nothing of the component is parsed.
    pub fn verify(&self, trust: &[TrustRule]) -> Result<VerifiedRelease, Refusal> {
        let refused = |source| Refusal::Unverified { plugin: self.plugin.clone(), source: Box::new(source) };
        let release = verify_release(&self.release, &|name: &str| threshold(trust, name)).map_err(refused)?;
        release.check_component(&self.component).map_err(refused)?;
        if let Some(rule) = rule_for(trust, &release.release().name) {
            release.require(&rule.all_of).map_err(refused)?;
        }
        Ok(release)
    }

    /// Whether neither component nor release is denied here, or revoked by an index. `from` is the index it
    /// was installed from, with its place in the log there.
    pub fn check_denied(
        &self,
        config: &Config,
        release: &VerifiedRelease,
        from: Option<(&str, u64)>,
    ) -> Result<(), Refusal> {
        let plugin = release.release().name.clone();
        let denials = Denials::read(&config.data_dir).map_err(|error| Refusal::DenialsUnreadable {
            plugin: plugin.clone(),
            reason: error.to_string(),
        })?;
        match denials.of(&[release.component(), release.digest()]) {
            Some(denial) => Err(Refusal::Denied {
                plugin,
                digest: denial.digest,
                reason: denial.reason.clone(),
                at: denial.at.clone(),
            }),
            None => check_revoked(config, release, from),
        }
    }
}

/// The schema of a plugin's settings in its directory, where one can be read.
pub(crate) fn schema_in(directory: &Path) -> Option<Arc<[u8]>> {
    bounded(&directory.join(SCHEMA_FILE)).ok().map(Into::into)
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
    let rule = rule_for(trust, name)?;
    let keys: Vec<PublicKey> = rule.keys.clone();
    Some(Threshold { keys, minimum: rule.minimum })
}

/// The first rule that covers a name decides; those of `toolgate.yaml` come first.
pub(crate) fn rule_for<'a>(trust: &'a [TrustRule], name: &str) -> Option<&'a TrustRule> {
    if name.starts_with(bundle::PREFIX) {
        return None;
    }
    trust.iter().find(|rule| covers(&rule.plugins, name))
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
    build(&Loader { host, config, store, running: false }, &mut |_, refusal| Err(refusal))
}

/// Loads everything anew for a gateway that runs. A policy that cannot be loaded does not stop it: it is
/// blocked, and while it is, nothing passes. An adapter that cannot be loaded fails its server's calls.
pub fn reassemble(host: &Arc<PluginHost>, config: &Config, store: &Store) -> Assembled {
    let mut blocked = Vec::new();
    let built = build(&Loader { host, config, store, running: true }, &mut |plugin, refusal| {
        blocked.push((plugin.to_owned(), refusal.to_string()));
        Ok(())
    });
    let mut assembled = built.unwrap_or_default();
    for (plugin, reason) in blocked {
        assembled.plugins.block(plugin, reason);
    }
    assembled
}

/// What became of a plugin that cannot be loaded: the end of it all, or a note.
type OnRefusal<'a> = dyn FnMut(&str, Refusal) -> Result<(), Refusal> + 'a;

fn build(loader: &Loader<'_>, on_refusal: &mut OnRefusal<'_>) -> Result<Assembled, Refusal> {
    let mut policies = Vec::new();
    let mut fallbacks = Vec::new();
    for wanted in wanted_each(loader.config) {
        let policy = wanted.and_then(|wanted| loader.policy(&wanted));
        match policy {
            Ok(None) => {}
            Ok(Some(policy)) if is_fallback(loader.config, &policy) => fallbacks.push(policy),
            Ok(Some(policy)) => policies.push(policy),
            Err(not_had) => on_refusal(&not_had.0, not_had.1)?,
        }
    }
    let mut plugins = PluginSet::new(policies, fallbacks);
    let without_adapter = loader.set_adapters(&mut plugins);
    Ok(Assembled { plugins, without_adapter, ..Assembled::default() })
}

/// Why a plugin was not loaded, with the line of the configuration where that is about settings.
pub fn not_loaded(source: LoadError, places: &Places) -> Refusal {
    let LoadErrorKind::SettingsRefused(faults) = &source.kind else {
        return Refusal::Unloadable { source: Box::new(source) };
    };
    Refusal::Settings { plugin: source.plugin, problems: setting_faults(faults, places) }
}

/// One line for each setting that a schema refuses, with the place where it stands.
pub fn setting_faults(faults: &[SettingFault], places: &Places) -> Vec<String> {
    let line = |fault: &SettingFault| match places.place(&fault.pointer) {
        Some(place) => format!("{place}: {}", fault.what),
        None => format!("settings{}: {}", fault.pointer.replace('/', "."), fault.what),
    };
    faults.iter().map(line).collect()
}

fn is_fallback(config: &Config, policy: &Policy) -> bool {
    config.plugins.fallback.iter().any(|name| name == policy.name())
}

struct Loader<'a> {
    host: &'a Arc<PluginHost>,
    config: &'a Config,
    store: &'a Store,
    /// Whether a gateway runs already, which must go on without what is refused.
    running: bool,
}

impl Loader<'_> {
    /// The policy that is wanted; none where the plugin is of another kind, and the reason with the name
    /// where it is refused. An adapter is loaded once for each server, with that server's settings.
    fn policy(&self, wanted: &Wanted) -> Result<Option<Policy>, NotHad> {
        let named = |refusal| Box::new((wanted.files.plugin.clone(), refusal));
        let verified = self.noted(wanted, wanted.verify(self.config));
        match verified {
            // Whoever writes it believes that something is watched and not enforced.
            Ok(release) if release.release().kind != Kind::Policy && wanted.admission.monitored => {
                let reason = "mode: monitor is about policies, and it is none; leave `mode` out".to_owned();
                Err(named(Refusal::Entry { plugin: wanted.files.plugin.clone(), reason }))
            }
            Ok(release) if release.release().kind != Kind::Policy => Ok(None),
            // The calls of its server fail instead; see `set_adapters`.
            Err(_) if self.running && wanted.is_no_policy() => Ok(None),
            Err(refusal) => Err(named(refusal)),
            Ok(_) => match self.noted(wanted, self.load(wanted)).map_err(named)? {
                Plugin::Policy(policy) => Ok(Some(policy)),
                Plugin::Adapter(_) | Plugin::Installer(_) => Ok(None),
            },
        }
    }

    fn load(&self, wanted: &Wanted) -> Result<Plugin, Refusal> {
        let release = wanted.verify(self.config)?;
        let plugin = self
            .host
            .load(&wanted.files.component, &release, &wanted.admission)
            .map_err(|source| not_loaded(source, &wanted.places))?;
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
        let wanted = adapter_wanted(self.config, used)?;
        match self.noted(&wanted, self.load(&wanted))? {
            Plugin::Adapter(adapter) => Ok(adapter),
            Plugin::Policy(_) | Plugin::Installer(_) => {
                Err(Refusal::Entry { plugin: used.plugin.clone(), reason: "it is no adapter".to_owned() })
            }
        }
    }
}

/// An adapter as a server's entry wants it.
pub(crate) fn adapter_wanted(config: &Config, used: &AdapterUse) -> Result<Wanted, Refusal> {
    let (files, pinned) = adapter_files(config, used)?;
    let (settings, schema) = (used.settings_json.clone(), files.schema.clone());
    Ok(Wanted {
        files,
        admission: Admission { settings, schema, grants: used.granted.clone(), ..Admission::default() },
        name: Some(used.plugin.clone()),
        version: None,
        grants: grants_digest(&[], &serde_json::Value::Null, &serde_json::Value::Null),
        pinned,
        places: used.settings_places.clone(),
    })
}

/// The files of an adapter: of `plugins.load`, or an installed one, whose release has that name, else the
/// bundle; with the release that was locked or accepted.
fn adapter_files(config: &Config, used: &AdapterUse) -> Result<(PluginFiles, Option<Pinned>), Refusal> {
    for entry in &config.plugins.load {
        let Some(dir) = &entry.dir else { continue };
        let files = PluginFiles::read(dir)?;
        if files.verify(&config.plugins.trust)?.release().name == used.plugin {
            return Ok((files, entry.pinned.clone()));
        }
    }
    let bundled = (config.plugins.bundle == Bundle::Default).then(|| bundle::find(&used.plugin));
    let files = bundled.flatten().ok_or_else(|| Refusal::Unknown { plugin: used.plugin.clone() })?;
    Ok((files, None))
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

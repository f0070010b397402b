//! Installing, updating and removing plugins: from bytes that came from anywhere to a plugin that the
//! layer `plugins.d` names, and back.
//!
//! Contract: nothing of a component is looked at before its signature, its digest and the denials; nothing
//! is written before it compiles; and the one rename of its entry in `plugins.d` is the moment in which it
//! is installed. A kill before leaves the old state with files that the next install clears away, a kill
//! after it leaves the new one. Who may accept is decided above: an [`Offer`] says what would change, and
//! [`commit`] is told that it was accepted.
//!
//! Threat: an older, weaker release offered as an update. The sequence of a name never goes back, not
//! even across a removal, unless the operator says so for that one install.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toolgate_base::files::{create_private_dir, write_private};
use toolgate_base::{Clock as _, SystemClock, clock};
use toolgate_config::plugins_layer::{Installed, PluginsLayer, STORE, UpdateMode};
use toolgate_config::{Bundle, Config, ConfigError, Places};
use toolgate_plugins::{Admission, DecisionSet, LoadErrorKind, PluginHost, Power, powers, widening};
use toolgate_signing::{Digest, Kind, VerifiedRelease};
use toolgate_store::{AuditRow, Event};

use crate::assemble::{COMPONENT_FILE, PluginFiles, RELEASE_FILE, Refusal, SCHEMA_FILE, not_loaded};
use crate::bundle;
use crate::indexes::{Found, Origin};

/// The highest sequence of each name that was ever installed here.
const SEEN: &str = "sequences.toml";
/// Longest file of sequences, bytes.
const MAX_SEEN: u64 = 1024 * 1024;
/// Directories that are not finished begin so.
const INCOMING: &str = ".incoming-";

/// Why nothing was installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The bytes are refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// An older release than one that was here.
    #[error(
        "{name} {version} has the sequence {found}, and {seen} was installed here before; a release that goes back could bring back what was mended"
    )]
    Older {
        /// The plugin.
        name: String,
        /// The version that is offered.
        version: String,
        /// Its sequence.
        found: u64,
        /// The highest that was installed.
        seen: u64,
    },
    /// The operator's file decides about this plugin.
    #[error("{0} is in plugins.load of toolgate.yaml, which decides; change it there")]
    Operators(String),
    /// The operator's file switches the layer off.
    #[error(
        "toolgate.yaml says `managed: off`, so nothing is installed; write the plugin into plugins.load there"
    )]
    Off,
    /// A plugin of that name is not installed.
    #[error("no plugin {0} is installed; see `toolgate plugin list`")]
    NotInstalled(String),
    /// The layer cannot be read or written.
    #[error(transparent)]
    Layer(#[from] ConfigError),
    /// Files cannot be written.
    #[error("{path} cannot be written: {source}")]
    Io {
        /// What.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file of sequences is damaged: nothing could be compared with it.
    #[error("{path} cannot be used, so no sequence can be compared: {what}")]
    Seen {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

impl InstallError {
    /// Whether something is not what was signed, accepted or installed before (exit code 5).
    pub fn is_integrity(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.is_integrity(),
            Self::Older { .. } | Self::Seen { .. } => true,
            _ => false,
        }
    }
}

/// A verified release that could be installed, and what that would change.
#[derive(Debug)]
pub struct Offer {
    files: PluginFiles,
    release: VerifiedRelease,
    origin: Origin,
    /// The one that is installed now.
    pub installed: Option<Installed>,
    /// What it may do that the installed one may not; for a first install everything it may do.
    pub wider: Vec<Power>,
}

impl Offer {
    /// The statement that was signed.
    pub fn release(&self) -> &VerifiedRelease {
        &self.release
    }

    /// Where it came from, for the reader.
    pub fn from(&self) -> String {
        match &self.origin.index {
            Some(index) => format!("{} in the index {index}", self.origin.source),
            None => self.origin.source.clone(),
        }
    }

    /// Whether exactly this release is installed already.
    pub fn is_installed(&self) -> bool {
        self.installed.as_ref().is_some_and(|installed| installed.release == self.release.digest())
    }

    /// How long ago it was published by its own word, in milliseconds.
    pub fn age_ms(&self) -> u64 {
        let published = clock::utc_ms(&self.release.release().published).unwrap_or(u64::MAX);
        SystemClock.now_ms().saturating_sub(published)
    }
}

/// What the operator accepted beside the release itself.
#[derive(Debug, Clone)]
pub struct Terms {
    /// Which of its decisions count.
    pub decisions: Vec<String>,
    /// Its settings, a JSON object.
    pub settings: String,
    /// What it may reach, a JSON object.
    pub grants: String,
    /// What happens when a newer release is found.
    pub update: UpdateMode,
    /// Whether it may be older than what was installed before.
    pub allow_older: bool,
}

/// Looks at the two files of a plugin: signature, digest, denials, name and sequence. Nothing is written.
pub fn offer(config: &Config, found: Found) -> Result<Offer, InstallError> {
    let Found { files, origin } = found;
    if !config.plugins.managed {
        return Err(InstallError::Off);
    }
    let release = files.verify(&config.plugins.trust)?;
    files.check_denied(config, &release, origin.place())?;
    let stated = release.release();
    let operators =
        config.plugins.load.iter().any(|entry| !entry.is_installed() && entry.plugin == stated.name);
    if operators {
        return Err(InstallError::Operators(stated.name.clone()));
    }
    let layer = PluginsLayer::of(&config.data_dir);
    let installed = layer.installed_one(&stated.name)?;
    let wider = match &installed {
        Some(installed) => {
            let before = PluginFiles::read(&layer.files_of(&installed.release))
                .and_then(|files| files.verify(&config.plugins.trust));
            match before {
                Ok(before) => widening(before.release(), stated),
                // What cannot be compared is treated as new.
                Err(_) => powers(stated).into_values().collect(),
            }
        }
        None => powers(stated).into_values().collect(),
    };
    Ok(Offer { files, release, origin, installed, wider })
}

/// Compiles and installs what was accepted. Seconds for a large component: never where a call waits.
pub fn commit(
    config: &Config,
    host: &Arc<PluginHost>,
    offer: &Offer,
    terms: &Terms,
) -> Result<Installed, InstallError> {
    let stated = offer.release.release();
    compile(config, host, offer, terms)?;
    let layer = PluginsLayer::of(&config.data_dir);
    let lock = layer.lock()?;
    // Since the offer was made, another install may have finished or the digest may have been denied.
    offer.files.check_denied(config, &offer.release, offer.origin.place())?;
    let mut seen = Seen::read(&config.data_dir)?;
    let highest = seen.highest(&stated.name).max(embedded_sequence(config, &stated.name));
    if stated.sequence < highest && !terms.allow_older {
        return Err(InstallError::Older {
            name: stated.name.clone(),
            version: stated.version.to_string(),
            found: stated.sequence,
            seen: highest,
        });
    }
    clear_away(config, &layer)?;
    place(&layer.files_of(&offer.release.digest()), &offer.files)?;
    // Before the entry: a kill in between forbids going back, and allows nothing.
    seen.raise(&config.data_dir, &stated.name, stated.sequence)?;
    let mut decisions = terms.decisions.clone();
    decisions.sort_unstable();
    let installed = Installed {
        name: stated.name.clone(),
        version: stated.version.clone(),
        sequence: stated.sequence,
        kind: stated.kind.as_str().to_owned(),
        component: offer.release.component(),
        release: offer.release.digest(),
        source: offer.origin.source.clone(),
        index: offer.origin.index.clone(),
        log: offer.origin.log,
        decisions,
        update: terms.update,
        installed: clock::utc_text(SystemClock.now_ms()),
        settings: terms.settings.clone(),
        grants: terms.grants.clone(),
    };
    layer.write_installed(&lock, &installed)?;
    Ok(installed)
}

/// The row of an install or an update; who accepted it is added by whoever knows.
pub fn row(installed: &Installed) -> AuditRow {
    AuditRow::new(Event::PluginInstalled)
        .with("plugin", installed.name.as_str())
        .with("version", installed.version.to_string())
        .with("release", installed.release.to_string())
        .with("component", installed.component.to_string())
        .with("source", installed.source.as_str())
        .with("index", installed.index.as_deref())
}

/// Removes an installed plugin; its files go with the next install.
pub fn remove(config: &Config, name: &str) -> Result<(), InstallError> {
    let layer = PluginsLayer::of(&config.data_dir);
    let lock = layer.lock()?;
    if layer.remove_installed(&lock, name)? {
        return Ok(());
    }
    Err(InstallError::NotInstalled(name.to_owned()))
}

/// The decisions that a plugin gets where nobody says: all it declares but `allow`.
pub fn default_decisions(release: &VerifiedRelease) -> Vec<String> {
    release.release().decisions.iter().filter(|decision| *decision != "allow").cloned().collect()
}

/// Everything a load checks; the compiled code is kept for the gateway that will load it.
fn compile(
    config: &Config,
    host: &Arc<PluginHost>,
    offer: &Offer,
    terms: &Terms,
) -> Result<(), InstallError> {
    let plugin = offer.release.release().name.clone();
    let entry = |reason: String| Refusal::Entry { plugin: plugin.clone(), reason };
    let decisions = DecisionSet::parse(&terms.decisions).map_err(|error| entry(error.to_string()))?;
    let grants = config.grants_of(&terms.grants)?;
    let admission = Admission {
        decisions,
        settings: terms.settings.clone(),
        schema: offer.files.schema.clone(),
        grants,
        ..Admission::default()
    };
    let is_adapter = offer.release.release().kind == Kind::Adapter;
    match host.load(&offer.files.component, &offer.release, &admission) {
        Ok(_) => Ok(()),
        // An adapter gets the settings of each server that uses it.
        Err(error) if matches!(error.kind, LoadErrorKind::NotConfigured(_)) => Ok(()),
        Err(error) if is_adapter && matches!(error.kind, LoadErrorKind::SettingsRefused(_)) => Ok(()),
        Err(source) => Err(not_loaded(source, &places(config, offer, terms)).into()),
    }
}

/// Where the settings stand: with the plugin that is replaced, or on the command line.
fn places(config: &Config, offer: &Offer, terms: &Terms) -> Places {
    match &offer.installed {
        Some(installed) if installed.settings == terms.settings => {
            PluginsLayer::of(&config.data_dir).settings_places(installed)
        }
        _ => Places::of_text("--settings".into(), "settings", &terms.settings),
    }
}

/// Puts the files into their directory in one step.
pub(crate) fn place(directory: &Path, files: &PluginFiles) -> Result<(), InstallError> {
    let failed = |path: &Path, source| InstallError::Io { path: path.to_owned(), source };
    if PluginFiles::read(directory).is_ok_and(|there| {
        (there.component, there.release, there.schema)
            == (files.component.clone(), files.release.clone(), files.schema.clone())
    }) {
        return Ok(());
    }
    let parent = directory.parent().unwrap_or(directory);
    let incoming = parent.join(format!("{INCOMING}{}", toolgate_base::random_hex(8)));
    create_private_dir(&incoming).map_err(|source| failed(&incoming, source))?;
    let schema = files.schema.iter().map(|schema| (SCHEMA_FILE, schema));
    for (name, bytes) in
        [(COMPONENT_FILE, &files.component), (RELEASE_FILE, &files.release)].into_iter().chain(schema)
    {
        let path = incoming.join(name);
        write_private(&path, bytes).map_err(|source| failed(&path, source))?;
    }
    if directory.exists() {
        // Damaged since it was written, or half removed; nothing loads from it as it is.
        std::fs::remove_dir_all(directory).map_err(|source| failed(directory, source))?;
    }
    std::fs::rename(&incoming, directory).map_err(|source| failed(directory, source))
}

/// Removes what no entry names and what was not finished. The caller holds the lock, so nobody else is
/// in the middle of an install.
fn clear_away(config: &Config, layer: &PluginsLayer) -> Result<(), InstallError> {
    let mut kept: Vec<PathBuf> =
        layer.installed()?.iter().map(|installed| layer.files_of(&installed.release)).collect();
    kept.extend(config.plugins.load.iter().filter_map(|entry| entry.dir.clone()));
    let store = config.data_dir.join(STORE);
    for entry in std::fs::read_dir(&store).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_release = path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with(INCOMING) || Digest::from_hex(name).is_ok());
        if path.is_dir() && is_release && !kept.contains(&path) {
            std::fs::remove_dir_all(&path).map_err(|source| InstallError::Io { path, source })?;
        }
    }
    Ok(())
}

/// A plugin of the bundle has been here too.
fn embedded_sequence(config: &Config, name: &str) -> u64 {
    if config.plugins.bundle != Bundle::Default {
        return 0;
    }
    let embedded = bundle::find(name).and_then(|files| files.verify(&[]).ok());
    embedded.map_or(0, |release| release.release().sequence)
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seen {
    #[serde(default)]
    sequences: BTreeMap<String, u64>,
}

impl Seen {
    fn read(data_dir: &Path) -> Result<Self, InstallError> {
        let path = data_dir.join(STORE).join(SEEN);
        let unusable = |what: String| InstallError::Seen { path: path.clone(), what };
        match std::fs::metadata(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(unusable(error.to_string())),
            Ok(found) if found.len() > MAX_SEEN => return Err(unusable("it is too large".to_owned())),
            Ok(_) => {}
        }
        let text = std::fs::read_to_string(&path).map_err(|error| unusable(error.to_string()))?;
        toml::from_str(&text).map_err(|error| unusable(error.message().to_owned()))
    }

    fn highest(&self, name: &str) -> u64 {
        self.sequences.get(name).copied().unwrap_or(0)
    }

    fn raise(&mut self, data_dir: &Path, name: &str, sequence: u64) -> Result<(), InstallError> {
        if self.highest(name) >= sequence {
            return Ok(());
        }
        self.sequences.insert(name.to_owned(), sequence);
        let path = data_dir.join(STORE).join(SEEN);
        let text = toml::to_string(self)
            .map_err(|error| InstallError::Seen { path: path.clone(), what: error.to_string() })?;
        write_private(&path, text.as_bytes()).map_err(|source| InstallError::Io { path, source })
    }
}

//! The plugins layer: what the CLI accepted for the operator, under `<data_dir>/plugins.d/`.
//!
//! Contract: `trust.toml` holds rules that `plugin trust add` made, `<owner>.<name>.toml` an installed
//! plugin with the digests that it was accepted by. Both may only add: a name that a rule of
//! `toolgate.yaml` covers is judged by that rule alone, an entry of `plugins.load` wins over an installed
//! plugin of its name, and `managed: off` there switches the layer off. Every change happens under one
//! lock and is one rename, so that a kill leaves the old file or the new one.
//!
//! A file of this layer that cannot be used is an error and not a notice: leaving out a policy that
//! somebody installed would allow what it denies.
//!
//! Bounds: 64 KiB a file, 1,000 files, 1,000 rules.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use toolgate_base::files::{create_private_dir, write_private};
use toolgate_base::lock::FileLock;
use toolgate_signing::{Digest, PublicKey};

use crate::discover::{read_text, refuse_writable};
use crate::error::{ConfigError, Level, Notice};
use crate::expand::Variables;
use crate::model::{Load, Pinned, PinnedBy, Plugins, TrustRule};
use crate::places::Places;
use crate::read::without_values;

#[cfg(test)]
mod tests;

/// Where the layer is, below the data directory.
pub const DIRECTORY: &str = "plugins.d";
/// Where the bytes of installed plugins are, below the data directory.
pub const STORE: &str = "plugins";
const RULES: &str = "trust.toml";
const MAX_BYTES: u64 = 64 * 1024;
const MAX_FILES: usize = 1_000;
const LOCK_WAIT: Duration = Duration::from_mins(1);
const FORMAT: u32 = 1;
/// Names that belong to Toolgate, which no rule can give away.
const RESERVED: &str = "toolgate/";

/// A rule that `plugin trust add` made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddedRule {
    /// The plugins it is about: `acme/name`, or `acme/*`.
    pub plugins: String,
    /// The keys that may sign them.
    pub keys: Vec<PublicKey>,
    /// How many of them must have signed.
    pub minimum: u32,
    /// Keys that must all have signed, besides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub all_of: Vec<PublicKey>,
    /// When it was added, as `2026-11-29T12:00:00Z`.
    pub added: String,
}

/// What happens when a newer release of an installed plugin is found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UpdateMode {
    /// A person is asked.
    #[default]
    Ask,
    /// It is taken, if it may do no more than the one before: the operator's choice.
    Auto,
}

/// An installed plugin: what was accepted, and by which bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Installed {
    /// Its name.
    pub name: String,
    /// The version that is installed.
    pub version: semver::Version,
    /// Its sequence, which never goes back.
    pub sequence: u64,
    /// `policy`, `adapter` or `installer`.
    pub kind: String,
    /// Digest of the component.
    pub component: Digest,
    /// Digest of the release, which also names the directory of its files.
    pub release: Digest,
    /// Where it came from, as it was given: a directory, a URL, `NAME@RANGE` or `oci://…`.
    pub source: String,
    /// The index of `plugins.indexes` that it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
    /// Its place in the log of that index, which says whether a revoked key still counts for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<u64>,
    /// Which of its decisions count.
    pub decisions: Vec<String>,
    /// What happens when a newer release is found.
    #[serde(default)]
    pub update: UpdateMode,
    /// When it was accepted, as `2026-11-29T12:00:00Z`.
    pub installed: String,
    /// Its settings, a JSON object as text.
    #[serde(default = "empty_object")]
    pub settings: String,
    /// What it may reach, a JSON object as text.
    #[serde(default = "empty_object")]
    pub grants: String,
}

impl Installed {
    /// The release that was accepted.
    pub fn pinned(&self) -> Pinned {
        Pinned {
            by: PinnedBy::Install,
            kind: self.kind.clone(),
            component: self.component,
            release: self.release,
            from: self.index.clone().zip(self.log),
        }
    }
}

fn empty_object() -> String {
    "{}".to_owned()
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    format: u32,
    #[serde(default)]
    rule: Vec<AddedRule>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    format: u32,
    plugin: Installed,
}

/// The layer of one data directory.
#[derive(Debug, Clone)]
pub struct PluginsLayer {
    data_dir: PathBuf,
}

impl PluginsLayer {
    /// The layer below this data directory; nothing is made or read yet.
    pub fn of(data_dir: &Path) -> Self {
        Self { data_dir: data_dir.to_owned() }
    }

    /// The directory of the layer's files.
    pub fn directory(&self) -> PathBuf {
        self.data_dir.join(DIRECTORY)
    }

    /// The directory of the files of a release.
    pub fn files_of(&self, release: &Digest) -> PathBuf {
        self.data_dir.join(STORE).join(release.hex())
    }

    /// Excludes every other install, update and removal until the lock goes.
    pub fn lock(&self) -> Result<FileLock, ConfigError> {
        for dir in [self.data_dir.clone(), self.directory(), self.data_dir.join(STORE)] {
            create_private_dir(&dir).map_err(|source| ConfigError::io("create", &dir, source))?;
        }
        Ok(FileLock::exclusive(&self.directory().join(".lock"), LOCK_WAIT)?)
    }

    /// The rules that were added, in the order in which they were.
    pub fn rules(&self) -> Result<Vec<AddedRule>, ConfigError> {
        let path = self.directory().join(RULES);
        let Some(rules) = Self::read::<Rules>(&path)? else { return Ok(Vec::new()) };
        check_format(&path, rules.format)?;
        Ok(rules.rule)
    }

    /// Changes the rules under the lock of [`PluginsLayer::lock`], which the caller holds.
    pub fn write_rules(&self, _lock: &FileLock, rules: &[AddedRule]) -> Result<(), ConfigError> {
        for rule in rules {
            if rule.plugins.starts_with(RESERVED) {
                return Err(ConfigError::Refused(format!(
                    "{RESERVED}* is signed by Toolgate's own keys, and no rule can change that"
                )));
            }
        }
        Self::write(&self.directory().join(RULES), &Rules { format: FORMAT, rule: rules.to_vec() })
    }

    /// The installed plugins, by name.
    pub fn installed(&self) -> Result<Vec<Installed>, ConfigError> {
        let directory = self.directory();
        let entries = match std::fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(ConfigError::io("read", &directory, source)),
        };
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry.map_err(|source| ConfigError::io("read", &directory, source))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_entry = path.extension().is_some_and(|ending| ending == "toml");
            if is_entry && name != RULES && !name.starts_with('.') {
                paths.push(path);
            }
        }
        if paths.len() > MAX_FILES {
            let what = format!("has {} plugins and at most {MAX_FILES} are read", paths.len());
            return Err(ConfigError::State { path: directory, what });
        }
        paths.sort();
        let mut all = Vec::new();
        for path in paths {
            // Between listing and reading it may have been removed, which is a removal.
            if let Some(entry) = Self::read::<Entry>(&path)? {
                check_format(&path, entry.format)?;
                if self.file_of(&entry.plugin.name) != path {
                    let what = format!("is about {}, which is another file's", entry.plugin.name);
                    return Err(ConfigError::State { path, what });
                }
                all.push(entry.plugin);
            }
        }
        Ok(all)
    }

    /// One installed plugin.
    pub fn installed_one(&self, name: &str) -> Result<Option<Installed>, ConfigError> {
        Ok(self.installed()?.into_iter().find(|plugin| plugin.name == name))
    }

    /// Writes an installed plugin, new or in place of the one with its name: the moment in which an
    /// install or an update has happened.
    pub fn write_installed(&self, _lock: &FileLock, plugin: &Installed) -> Result<(), ConfigError> {
        Self::write(&self.file_of(&plugin.name), &Entry { format: FORMAT, plugin: plugin.clone() })
    }

    /// Removes an installed plugin; whether it was there.
    pub fn remove_installed(&self, _lock: &FileLock, name: &str) -> Result<bool, ConfigError> {
        let path = self.file_of(name);
        match std::fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(ConfigError::io("remove", &path, source)),
        }
    }

    /// Adds the layer to what `toolgate.yaml` says. Grants may name `variables`.
    pub(crate) fn add_to(
        &self,
        plugins: &mut Plugins,
        notices: &mut Vec<Notice>,
        variables: &Variables<'_>,
    ) -> Result<(), ConfigError> {
        refuse_writable(&self.directory())?;
        // A rule of the operator's comes first and therefore decides for every name it covers.
        plugins.trust.extend(self.rules()?.into_iter().map(TrustRule::from));
        for installed in self.installed()? {
            if plugins.load.iter().any(|entry| entry.name() == Some(installed.name.as_str())) {
                let text = format!(
                    "{} is installed and also in plugins.load of toolgate.yaml, which decides",
                    installed.name
                );
                notices.push(Notice::new(Level::Info, None, text));
                continue;
            }
            plugins.load.push(self.load_of(&installed, variables)?);
        }
        Ok(())
    }

    fn load_of(&self, installed: &Installed, variables: &Variables<'_>) -> Result<Load, ConfigError> {
        let object = |text: &str, what: &str| match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(map)) => Ok(map),
            _ => Err(ConfigError::State {
                path: self.file_of(&installed.name),
                what: format!("has {what} that are no JSON object"),
            }),
        };
        let settings = object(&installed.settings, "settings")?;
        let grants = Value::Object(object(&installed.grants, "grants")?);
        let file = self.file_of(&installed.name);
        let granted = crate::grants::parse(&installed.grants, &file, &self.data_dir, variables)?;
        Ok(Load {
            plugin: installed.name.clone(),
            dir: Some(self.files_of(&installed.release)),
            version: None,
            decisions: installed.decisions.clone(),
            // Only the operator's own file can take a policy's say away.
            monitor: false,
            settings_json: installed.settings.clone(),
            settings_places: self.settings_places(installed),
            shown_settings: Value::Object(settings),
            shown_grants: without_values(grants),
            granted,
            pinned: Some(installed.pinned()),
        })
    }

    /// Where each of the settings of an installed plugin stands: they are one JSON text in its file, and lines
    /// count in that text.
    pub fn settings_places(&self, installed: &Installed) -> Places {
        let file = format!("{} (its settings)", self.file_of(&installed.name).display());
        Places::of_text(file.into(), "settings", &installed.settings)
    }

    fn file_of(&self, name: &str) -> PathBuf {
        // Neither part of a name has a dot or a slash, so no two names share a file.
        self.directory().join(format!("{}.toml", name.replace('/', ".")))
    }

    fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, ConfigError> {
        let Some(text) = read_text(path, MAX_BYTES)? else { return Ok(None) };
        refuse_writable(path)?;
        toml::from_str(text.expose()).map(Some).map_err(|error| ConfigError::State {
            path: path.to_owned(),
            what: format!("cannot be used: {}", error.message()),
        })
    }

    fn write<T: Serialize>(path: &Path, value: &T) -> Result<(), ConfigError> {
        let text = toml::to_string(value).map_err(|error| ConfigError::Refused(error.to_string()))?;
        let text = format!("# Written by toolgate; it is changed with `toolgate plugin`.\n{text}");
        write_private(path, text.as_bytes()).map_err(|source| ConfigError::io("write", path, source))
    }
}

fn check_format(path: &Path, found: u32) -> Result<(), ConfigError> {
    if found == FORMAT {
        return Ok(());
    }
    let what = format!("has format {found}; this version reads {FORMAT}, so a newer toolgate wrote it");
    Err(ConfigError::State { path: path.to_owned(), what })
}

impl From<AddedRule> for TrustRule {
    fn from(rule: AddedRule) -> Self {
        let mut keys = rule.keys;
        let minimum = rule.minimum;
        let mut needed = minimum;
        for key in &rule.all_of {
            if !keys.contains(key) {
                keys.push(*key);
                needed = needed.saturating_add(1);
            }
        }
        Self { plugins: rule.plugins, keys, minimum: needed, all_of: rule.all_of, index: None, added: true }
    }
}

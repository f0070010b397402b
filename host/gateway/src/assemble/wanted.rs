//! What the configuration wants: the bundle, then `plugins.load`, then what is installed.

use serde_json::json;
use toolgate_config::{Bundle, Config, Load, Pinned, PinnedBy, Places, grants_digest};
use toolgate_plugins::{Admission, DecisionSet};
use toolgate_signing::{Digest, Kind, VerifiedRelease};

use super::{PluginFiles, Refusal};
use crate::{bundle, lock};

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
    /// Digest of what the configuration grants it, as a lock has it.
    pub grants: Digest,
    /// The release that was accepted or locked, where one was.
    pub pinned: Option<Pinned>,
    /// Where its settings stand.
    pub places: Places,
}

impl Wanted {
    /// The index that it came from, with its place in the log there.
    pub fn from_index(&self) -> Option<(&str, u64)> {
        let (index, log) = self.pinned.as_ref()?.from.as_ref()?;
        Some((index, *log))
    }

    /// Whether it was accepted as something that judges nothing.
    pub(super) fn is_no_policy(&self) -> bool {
        self.pinned.as_ref().is_some_and(|pinned| pinned.kind != Kind::Policy.as_str())
    }

    /// Everything but loading: signature, name, version, denials, and that it is the release which was
    /// accepted or locked. Nothing of the component is parsed.
    pub fn verify(&self, config: &Config) -> Result<VerifiedRelease, Refusal> {
        let release = self.files.verify(&config.plugins.trust)?;
        let stated = release.release();
        let named = self.name.as_ref().is_none_or(|name| *name == stated.name);
        let fits = self.version.as_ref().is_none_or(|range| range.matches(&stated.version));
        if !(named && fits) {
            let found = format!("{} {}", stated.name, stated.version);
            return Err(Refusal::Mismatch { plugin: self.files.plugin.clone(), found });
        }
        self.files.check_denied(config, &release, self.from_index())?;
        if let Some(pinned) = &self.pinned {
            let pairs = [
                ("release", pinned.release, release.digest()),
                ("component", pinned.component, release.component()),
            ];
            if let Some((what, accepted, found)) = pairs.into_iter().find(|(_, one, other)| one != other) {
                return Err(Refusal::NotAsAccepted { plugin: stated.name.clone(), what, accepted, found });
            }
        }
        Ok(release)
    }
}

/// Every plugin that the configuration wants, the bundle first. An entry of `plugins.load` with the
/// name of a plugin of the bundle takes its place and keeps its position.
pub fn wanted(config: &Config) -> Result<Vec<Wanted>, Refusal> {
    each_wanted(config).into_iter().map(|wanted| wanted.map_err(|not_had| not_had.1)).collect()
}

/// A plugin as it is wanted, or its name with the reason why it cannot be had.
pub(crate) type WantedOrNot = Result<Wanted, NotHad>;

/// The name of a plugin that cannot be had, and why.
pub(crate) type NotHad = Box<(String, Refusal)>;

pub(crate) fn each_wanted(config: &Config) -> Vec<WantedOrNot> {
    let mut all: Vec<WantedOrNot> = Vec::new();
    if config.plugins.bundle == Bundle::Default {
        all.extend(bundle::policies().into_iter().map(|files| {
            Ok(Wanted {
                name: Some(files.plugin.clone()),
                // The bundle comes with Toolgate; its releases declare no more than each needs.
                admission: Admission { decisions: DecisionSet::ALL, ..Admission::default() },
                version: None,
                grants: grants_digest(
                    &DecisionSet::ALL.words().iter().map(ToString::to_string).collect::<Vec<_>>(),
                    &json!({}),
                    &json!({}),
                ),
                pinned: None,
                places: Places::default(),
                files,
            })
        }));
    }
    for entry in &config.plugins.load {
        let name = entry.name();
        let wanted = entry_wants(config, entry).map_err(|refusal| Box::new((entry.plugin.clone(), refusal)));
        let place = all.iter_mut().find(|other| match other {
            Ok(other) => name.is_some() && other.name.as_deref() == name,
            Err(not_had) => name == Some(not_had.0.as_str()),
        });
        match place {
            Some(place) => *place = wanted,
            None => all.push(wanted),
        }
    }
    all
}

fn entry_wants(config: &Config, entry: &Load) -> Result<Wanted, Refusal> {
    let decisions = DecisionSet::parse(&entry.decisions)
        .map_err(|error| Refusal::Entry { plugin: entry.plugin.clone(), reason: error.to_string() })?;
    let settings = entry.settings_json.clone();
    let files = files_of(config, entry)?;
    let schema = files.schema.clone();
    let grants = entry.granted.clone();
    let admission = Admission { decisions, settings, schema, grants, monitored: entry.monitor };
    Ok(Wanted {
        files,
        admission,
        name: entry.name().map(str::to_owned),
        version: entry.version.clone(),
        grants: entry.grants_digest(),
        pinned: entry.pinned.clone(),
        places: entry.settings_places.clone(),
    })
}

fn files_of(config: &Config, entry: &Load) -> Result<PluginFiles, Refusal> {
    let Some(dir) = &entry.dir else {
        return bundle::find(&entry.plugin).ok_or_else(|| lock::unresolved(config, &entry.plugin));
    };
    if let Some(pinned) = entry.pinned.as_ref().filter(|pinned| pinned.by == PinnedBy::Lock)
        && !dir.exists()
    {
        return Err(Refusal::NotHere { plugin: entry.plugin.clone(), release: pinned.release });
    }
    let files = PluginFiles::read(dir)?;
    // Messages name the plugin and not where its bytes lie.
    Ok(match entry.name() {
        Some(name) => PluginFiles { plugin: name.to_owned(), ..files },
        None => files,
    })
}

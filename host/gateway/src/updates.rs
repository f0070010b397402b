//! Newer releases of installed plugins: which may be taken, and taking them where the operator chose `auto`.
//!
//! Contract: a release is taken in place of an installed one only if it has been in its index for
//! `plugins.min_age`, and by its own word too, and goes forward in `sequence`. While a gateway serves, each
//! visit to an index looks for such releases of the plugins that came from it and whose entry says `auto`:
//! one that may do no more than the installed one is compiled and installed off the call path, and the watch
//! of the layer puts it in force, so that running calls go on. One that may do more is never taken by itself:
//! the difference is in the log and in an audit row, once, and `plugin update` asks.
//!
//! Threat: an author whose key was stolen. The age gives others time to see it, and what a release may do
//! never grows without a person. Until that person has looked, `plugin list` and `doctor` show what waits.

mod waiting;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use semver::{Version, VersionReq};
use toolgate_config::plugins_layer::{Installed, PluginsLayer, UpdateMode};
use toolgate_config::{Config, Updates};
use toolgate_plugins::PluginHost;
use toolgate_registry::Reference;
use toolgate_store::{AuditRow, Event, Store};

use crate::Gateway;
use crate::indexes::{Found, IndexError, newest};
use crate::install::{self, InstallError, Offer, Terms};

pub use waiting::{WaitingUpdate, waiting};

/// What there is in place of an installed release.
#[derive(Debug)]
pub enum Newer {
    /// Another release.
    Found(Box<Found>),
    /// The installed one is the newest.
    Unchanged,
    /// This newer one is not old enough, and nothing between is.
    Waits(Version),
}

/// The newest release of an index that may be taken in place of an installed one.
pub async fn newer(
    config: &Config,
    name: &str,
    range: &VersionReq,
    old: &Installed,
    min_age: Duration,
) -> Result<Newer, IndexError> {
    let mut chosen = newest(config, name, range, None).await?;
    let line = chosen.release.line.clone();
    if line.release == old.release {
        return Ok(Newer::Unchanged);
    }
    if chosen.age() < min_age {
        chosen = match newest(config, name, range, Some(min_age)).await {
            Ok(older) if older.release.line.sequence > old.sequence => older,
            Ok(_) => return Ok(Newer::Waits(line.version)),
            Err(error) if matches!(error.code(), "young" | "no-version") => {
                return Ok(Newer::Waits(line.version));
            }
            Err(error) => return Err(error),
        };
    }
    chosen.fetch().await.map(|found| Newer::Found(Box::new(found)))
}

impl Terms {
    /// What was accepted for an installed plugin, for the release after it.
    pub fn of(old: &Installed, allow_older: bool) -> Self {
        Self {
            decisions: old.decisions.clone(),
            settings: old.settings.clone(),
            grants: old.grants.clone(),
            update: old.update,
            allow_older,
        }
    }
}

/// What was said already about releases that are not taken, so that each is said once.
#[derive(Debug, Default)]
pub(crate) struct Told(BTreeSet<String>);

impl Gateway {
    /// Takes what may be taken of the plugins that came from this index.
    pub(crate) async fn adopt(self: &Arc<Self>, host: &Arc<PluginHost>, index: &str, told: &mut Told) {
        // Whoever reloads says what is wrong with it.
        let Ok(config) = self.config.with_plugins_again() else { return };
        if !config.plugins.managed || config.plugins.update == Updates::Never {
            return;
        }
        let Ok(all) = PluginsLayer::of(&config.data_dir).installed() else { return };
        let auto = |one: &Installed| one.update == UpdateMode::Auto && one.index.as_deref() == Some(index);
        for old in all.into_iter().filter(auto) {
            let outcome = match offered(&config, &old).await {
                Ok(None) => Ok(()),
                Ok(Some(offer)) if offer.wider.is_empty() => self.take(host, &config, &old, offer).await,
                Ok(Some(offer)) => Err(Left::Wider(offer)),
                Err(left) => Err(left),
            };
            match outcome {
                Ok(()) => waiting::forget(&config.data_dir, &old.name),
                // The visit to the index says what is wrong with it; what was known before stays known.
                Err(Left::Unasked) => {}
                Err(left) => {
                    waiting::note(&config.data_dir, &old, index, &left);
                    if told.0.insert(format!("{} {}", old.name, left.key())) {
                        left.tell(&self.store, &old, index);
                    }
                }
            }
        }
    }

    async fn take(
        &self,
        host: &Arc<PluginHost>,
        config: &Config,
        old: &Installed,
        offer: Box<Offer>,
    ) -> Result<(), Left> {
        let (host, config, old, store) =
            (Arc::clone(host), config.clone(), old.clone(), Arc::clone(&self.store));
        // It compiles: seconds in which no call waits.
        let taken = tokio::task::spawn_blocking(move || {
            // Another gateway of this data directory may have been first, or a person.
            let layer = PluginsLayer::of(&config.data_dir);
            if layer.installed_one(&old.name)?.is_none_or(|now| now.release != old.release) {
                return Ok(());
            }
            let installed = install::commit(&config, &host, &offer, &Terms::of(&old, false))?;
            tracing::warn!("{} {} is updated to {} by itself", old.name, old.version, installed.version);
            store.append_detached(
                install::row(&installed).with("approver", "nobody: its updates are automatic"),
            );
            Ok(())
        });
        match taken.await {
            Ok(outcome) => outcome.map_err(Left::Refused),
            Err(error) => Err(Left::Failed(error.to_string())),
        }
    }
}

/// The release to take in place of an installed one, looked at and not installed.
async fn offered(config: &Config, old: &Installed) -> Result<Option<Box<Offer>>, Left> {
    let Ok(Reference::Registry { name, range }) = Reference::parse(&old.source) else { return Ok(None) };
    let min_age = config.plugins.min_age;
    let found = match newer(config, &name, &range, old, min_age).await {
        Ok(Newer::Found(found)) => *found,
        Ok(Newer::Unchanged | Newer::Waits(_)) => return Ok(None),
        Err(error) if matches!(error.code(), "unreachable" | "absent") => return Err(Left::Unasked),
        Err(error) => return Err(Left::Index(error)),
    };
    let offer = install::offer(config, found).map_err(Left::Refused)?;
    let young = Duration::from_millis(offer.age_ms()) < min_age;
    Ok((!young && !offer.is_installed() && offer.release().release().name == old.name)
        .then(|| Box::new(offer)))
}

/// Why a newer release was left.
enum Left {
    Wider(Box<Offer>),
    Refused(InstallError),
    Index(IndexError),
    Failed(String),
    /// The index could not be asked.
    Unasked,
}

impl Left {
    /// What has to change before it is said again.
    fn key(&self) -> String {
        match self {
            Self::Wider(offer) => offer.release().digest().to_string(),
            Self::Refused(error) => error.to_string(),
            Self::Index(error) => error.to_string(),
            Self::Failed(reason) => reason.clone(),
            Self::Unasked => String::new(),
        }
    }

    fn tell(&self, store: &Store, old: &Installed, index: &str) {
        let row = AuditRow::new(Event::PluginUpdateLeft)
            .with("plugin", old.name.as_str())
            .with("version", old.version.to_string())
            .with("index", index);
        let row = match self {
            Self::Wider(offer) => {
                let stated = offer.release().release();
                let wider: Vec<&str> = offer.wider.iter().map(|power| power.words.as_str()).collect();
                tracing::warn!(
                    "{} {} is there and may do what {} may not, so it is not taken by itself: {}; `toolgate plugin update {}` asks",
                    old.name,
                    stated.version,
                    old.version,
                    wider.join("; "),
                    old.name,
                );
                row.with("offered", stated.version.to_string())
                    .with("release", offer.release().digest().to_string())
                    .with("wider", wider.join("\n"))
            }
            other => {
                let reason = other.key();
                tracing::error!("no update of {} is taken: {reason}", old.name);
                row.with("reason", reason)
            }
        };
        store.append_detached(row);
    }
}

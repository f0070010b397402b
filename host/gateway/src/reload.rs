//! Plugins change under running calls: what `plugin install|update|remove|deny|retry` wrote is noticed
//! here, loaded off the call path, and put in force in one step.
//!
//! Contract: a call in flight keeps the set it began a step with; the next step sees the new one, and an
//! open ask is void, because it is bound to the digest of the set. A change that cannot be read leaves
//! the old set in force; a policy that cannot be loaded is blocked, and nothing passes while it is.
//!
//! The files are looked at twice a second: a few `stat` calls, and no service of the operating system
//! that could be missing or overflow.

use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use toolgate_base::files::{create_private_dir, write_private};
use toolgate_config::plugins_layer::{PluginsLayer, STORE};
use toolgate_config::{Config, ConfigError, denials};
use toolgate_plugins::PluginHost;
use toolgate_store::AuditRow;

use crate::Gateway;
use crate::assemble::{Assembled, reassemble};

/// How often the files are looked at.
const PERIOD: Duration = Duration::from_millis(500);
/// Most names that wait for another try.
const MAX_RETRIES: usize = 50;
/// Where they wait, in the store of plugins.
const RETRIES: &str = "retry";

/// Asks the running gateway to load a plugin that was put aside again.
pub fn retry(data_dir: &Path, plugin: &str) -> Result<(), ConfigError> {
    let _lock = PluginsLayer::of(data_dir).lock()?;
    let path = data_dir.join(STORE).join(RETRIES);
    let mut lines = retries(data_dir);
    lines.push(format!("{} {plugin}", toolgate_base::random_hex(8)));
    let from = lines.len().saturating_sub(MAX_RETRIES);
    let text = lines.get(from..).unwrap_or_default().join("\n") + "\n";
    let directory = data_dir.join(STORE);
    create_private_dir(&directory)
        .and_then(|()| write_private(&path, text.as_bytes()))
        .map_err(|error| ConfigError::Refused(format!("{} cannot be written: {error}", path.display())))
}

fn retries(data_dir: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(data_dir.join(STORE).join(RETRIES)).unwrap_or_default();
    text.lines().take(MAX_RETRIES).map(str::to_owned).collect()
}

impl Gateway {
    /// Watches the plugins layer until the gateway is gone. `--locked` does not call this for installs,
    /// but denials count there too: the layer is off in its configuration, and what is left is denials.
    pub fn watch_plugins(self: &Arc<Self>, host: Arc<PluginHost>) {
        let gateway = Arc::downgrade(self);
        let data_dir = self.config.data_dir.clone();
        let (mut seen, mut tried) = (Stamp::of(&data_dir), retries(&data_dir));
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(PERIOD);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                if gateway.strong_count() == 0 {
                    return;
                }
                let now = Stamp::of(&data_dir);
                if now == seen {
                    continue;
                }
                let lines = retries(&data_dir);
                let again = lines.iter().filter(|line| !tried.contains(line));
                let names =
                    again.filter_map(|line| line.split_once(' ')).map(|(_, name)| name.to_owned()).collect();
                seen = now;
                tried = lines;
                Self::reload(&gateway, &host, names).await;
            }
        });
    }

    pub(crate) async fn reload(gateway: &Weak<Self>, host: &Arc<PluginHost>, retried: Vec<String>) {
        let Some(gateway) = gateway.upgrade() else { return };
        let host = Arc::clone(host);
        // Loading may compile: seconds that no call should wait for.
        let outcome = tokio::task::spawn_blocking(move || match gateway.config.with_plugins_again() {
            Ok(config) => gateway.put_in_force(&host, &config, &retried),
            Err(error) => {
                tracing::error!(%error, "the plugins changed and cannot be read; the old ones stay in force");
            }
        });
        if let Err(error) = outcome.await {
            tracing::error!(%error, "loading the changed plugins failed; the old ones stay in force");
        }
    }

    fn put_in_force(&self, host: &Arc<PluginHost>, config: &Config, retried: &[String]) {
        let old = self.plugins();
        let new = reassemble(host, config, &self.store);
        let before = old.plugins.set_digest();
        let plugins = new.plugins.clone().keeping(&old.plugins, retried);
        let after = plugins.set_digest();
        for blocked in plugins.blocked() {
            tracing::error!(
                plugin = blocked.plugin,
                reason = blocked.reason,
                "not in force; nothing passes without it"
            );
        }
        self.plugins.store(Arc::new(Assembled { plugins, ..new }));
        if before != after || !retried.is_empty() {
            self.store.append_detached(AuditRow::plugins_changed(&before, &after, retried));
            tracing::warn!("the plugins in force changed");
            self.surface_changed();
        }
    }
}

/// When the files were changed last; two that are equal saw the same files.
#[derive(PartialEq, Eq)]
struct Stamp(Vec<(String, Option<SystemTime>, u64)>);

impl Stamp {
    fn of(data_dir: &Path) -> Self {
        let mut files = Vec::new();
        let mut note = |path: &Path| {
            if let Ok(found) = std::fs::metadata(path) {
                files.push((path.display().to_string(), found.modified().ok(), found.len()));
            }
        };
        note(&denials::file_of(data_dir));
        note(&data_dir.join(STORE).join(RETRIES));
        let entries = std::fs::read_dir(PluginsLayer::of(data_dir).directory());
        for entry in entries.into_iter().flatten().flatten() {
            if entry.path().extension().is_some_and(|ending| ending == "toml") {
                note(&entry.path());
            }
        }
        files.sort();
        Self(files)
    }
}

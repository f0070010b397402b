//! While a gateway serves, its indexes are asked what is new; what was revoked is retired, and updates
//! that may be taken are.
//!
//! Contract: every index is asked when the gateway starts and then once in its `refresh`; a release that
//! was revoked, or whose signers were, is out of force before the next visit. A revoked policy blocks
//! everything that it judged, a revoked adapter fails the calls of its server: nothing runs on without it.
//! An index that cannot be read, or shows something older than before, changes nothing of what runs.
//!
//! Rows: `plugin_revoked` for each plugin that goes, `index_refused` when an index begins to be refused for
//! another reason than before, `index_refreshed` when something new was read.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use toolgate_config::{Config, Index};
use toolgate_plugins::PluginHost;
use toolgate_registry::Client;
use toolgate_store::{AuditRow, Event};

use super::{IndexError, open};
use crate::Gateway;
use crate::assemble::{Refusal, adapter_wanted, wanted_each};
use crate::updates::Told;

impl Gateway {
    /// Asks the indexes until the gateway is gone. Not under `--locked`, where no index is asked.
    pub fn watch_indexes(self: &Arc<Self>, host: &Arc<PluginHost>) {
        for index in self.config.plugins.indexes.clone() {
            tokio::spawn(follow(Arc::downgrade(self), Arc::clone(host), index));
        }
    }
}

async fn follow(gateway: Weak<Gateway>, host: Arc<PluginHost>, index: Index) {
    // What this process has already seen to be revoked; the start refused or blocked it.
    let mut known: Option<BTreeSet<String>> = None;
    let mut trouble = String::new();
    let mut client: Option<Client> = None;
    let mut told = Told::default();
    loop {
        let Some(running) = gateway.upgrade() else { return };
        trouble = visit(&running, &index, &mut client, &trouble).await;
        let now = revoked_now(&running, &index.name).await;
        let changed = match &known {
            Some(before) => *before != now.iter().map(|(key, _)| key.clone()).collect(),
            None => !now.is_empty(),
        };
        if changed {
            for (key, row) in &now {
                if known.as_ref().is_none_or(|before| !before.contains(key)) {
                    running.store.append_detached(row.clone());
                    tracing::error!("{key}: it is revoked and taken out of force");
                }
            }
        }
        known = Some(now.into_iter().map(|(key, _)| key).collect());
        if trouble.is_empty() {
            running.adopt(&host, &index.name, &mut told).await;
        }
        drop(running);
        if changed {
            Gateway::reload(&gateway, &host, Vec::new()).await;
        }
        tokio::time::sleep(index.refresh).await;
    }
}

/// One visit; the code of what is wrong, empty where all is well.
async fn visit(gateway: &Gateway, index: &Index, client: &mut Option<Client>, before: &str) -> String {
    let asked = async {
        let opened = match client.take() {
            Some(opened) => opened,
            None => open(&gateway.config, index)?,
        };
        let refreshed = opened.refresh().await;
        *client = Some(opened);
        refreshed.map_err(|error| IndexError::of(&index.name, error))
    };
    match asked.await {
        Ok(refreshed) => {
            if refreshed.changed {
                let row = AuditRow::new(Event::IndexRefreshed)
                    .with("index", index.name.as_str())
                    .with("root", refreshed.root)
                    .with("snapshot", refreshed.snapshot)
                    .with("log", refreshed.log);
                gateway.store.append_detached(row);
            }
            if !before.is_empty() {
                tracing::info!(index = index.name, "the index is read again");
            }
            String::new()
        }
        Err(error) => {
            if before != error.code() {
                tracing::error!("{error}; what runs goes on, and nothing new is taken from it");
                gateway.store.append_detached(refused_row(&index.name, &error));
            }
            error.code().to_owned()
        }
    }
}

/// The row of an index that was refused or could not be read.
pub fn refused_row(index: &str, error: &IndexError) -> AuditRow {
    AuditRow::new(Event::IndexRefused)
        .with("index", index)
        .with("code", error.code())
        .with("reason", error.to_string())
}

async fn revoked_now(gateway: &Arc<Gateway>, index: &str) -> Vec<(String, AuditRow)> {
    let (gateway, index) = (Arc::clone(gateway), index.to_owned());
    // It reads and hashes every component.
    tokio::task::spawn_blocking(move || revoked(&gateway, &index)).await.unwrap_or_default()
}

/// The plugins that the configuration wants and this index revoked, each with its row.
fn revoked(gateway: &Gateway, index: &str) -> Vec<(String, AuditRow)> {
    // Whoever reloads says what is wrong with it.
    let Ok(config) = gateway.config.with_plugins_again() else { return Vec::new() };
    let mut all: Vec<(String, AuditRow)> =
        refusals(&config).into_iter().filter_map(|refusal| row_of(&refusal, index)).collect();
    all.sort_by(|left, right| left.0.cmp(&right.0));
    all.dedup_by(|left, right| left.0 == right.0);
    all
}

fn refusals(config: &Config) -> Vec<Refusal> {
    let mut all: Vec<Refusal> =
        wanted_each(config).into_iter().flatten().filter_map(|wanted| wanted.verify(config).err()).collect();
    let adapters = config.servers.values().filter_map(|server| server.adapter.as_ref());
    all.extend(adapters.filter_map(|used| adapter_wanted(config, used).ok()?.verify(config).err()));
    all
}

fn row_of(refusal: &Refusal, here: &str) -> Option<(String, AuditRow)> {
    let Refusal::Revoked(revoked) = refusal else { return None };
    if revoked.index != here {
        return None;
    }
    let row = AuditRow::new(Event::PluginRevoked)
        .with("plugin", revoked.plugin.as_str())
        .with("version", revoked.version.as_str())
        .with("release", revoked.release.to_string())
        .with("index", revoked.index.as_str())
        .with("reason", revoked.reason.as_str())
        .with("at", revoked.at.as_str())
        .with("by_key", revoked.by_key);
    Some((format!("{} {} ({})", revoked.plugin, revoked.version, revoked.release), row))
}

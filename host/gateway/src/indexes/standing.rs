//! How the indexes stand, from what this machine has seen: for `status`, `doctor` and `plugin list`.

use serde::Serialize;
use toolgate_config::Config;
use toolgate_registry::Remembered;

use super::{directory, fingerprint};

/// One index as it was last seen.
#[derive(Debug, Clone, Serialize)]
pub struct Standing {
    /// Its name in `plugins.indexes`.
    pub index: String,
    /// `fresh`, `stale`, `unseen` or `unreadable`.
    pub state: &'static str,
    /// When it was last seen good, as `2026-11-29T12:00:00Z`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// Until when it can be believed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// What that means, and what to do about it.
    pub detail: String,
}

impl Standing {
    /// Whether nothing has to be done about it.
    pub fn is_good(&self) -> bool {
        matches!(self.state, "fresh" | "unseen")
    }
}

/// Every index of the configuration. Nothing is fetched.
pub fn standings(config: &Config) -> Vec<Standing> {
    let one = |index: &toolgate_config::Index| {
        let name = index.name.clone();
        match Remembered::load(&directory(config, index), fingerprint(index)) {
            Err(error) => Standing {
                index: name,
                state: "unreadable",
                seen: None,
                until: None,
                detail: format!("{error}; its plugins are refused until then"),
            },
            Ok(None) => Standing {
                index: name,
                state: "unseen",
                seen: None,
                until: None,
                detail: "never asked on this machine, so nothing of it is revoked yet".to_owned(),
            },
            Ok(Some(known)) => {
                let freshness = known.freshness();
                let (seen, until) = (freshness.seen.to_string(), freshness.until.to_string());
                let (state, detail) = if freshness.fresh {
                    ("fresh", format!("seen {seen}, good until {until}"))
                } else {
                    let detail = format!(
                        "its {} expired at {until}, last seen good {seen}: nothing is installed or updated from it, and revocations since then are not known; what is installed goes on. Its maintainers renew it, or something holds it back on the way",
                        freshness.document
                    );
                    ("stale", detail)
                };
                Standing { index: name, state, seen: Some(seen), until: Some(until), detail }
            }
        }
    };
    config.plugins.indexes.iter().map(one).collect()
}

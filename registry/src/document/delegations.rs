//! Delegations: whose keys may sign which plugins, for which part of the log.
//!
//! A key that is rotated out ends at a line of the log: what it signed before stays valid.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toolgate_signing::{PublicKey, Threshold};

use super::{Broken, Document};
use crate::layout;
use crate::time::Time;

/// `delegations/<n>.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delegations {
    /// Counts from 1.
    pub version: u64,
    /// After this nothing new is taken.
    pub expires: Time,
    /// `namespace/*` or `namespace/name`, and who signs it when. A name goes before its namespace.
    pub namespaces: BTreeMap<String, Vec<Period>>,
}

/// The keys of one part of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Period {
    /// Different keys.
    pub keys: Vec<PublicKey>,
    /// How many of them must sign.
    pub threshold: u32,
    /// The first line of the log that this is about.
    pub since: u64,
    /// The first line that it is not about any more; none for the current period.
    pub until: Option<u64>,
}

impl Delegations {
    /// Who must have signed the release of a plugin at a line of the log.
    pub fn rule(&self, name: &str, log: u64) -> Option<Threshold> {
        let namespace = name.split('/').next().unwrap_or_default();
        let periods = self.namespaces.get(name).or_else(|| self.namespaces.get(&format!("{namespace}/*")))?;
        let period = periods
            .iter()
            .find(|period| period.since <= log && period.until.is_none_or(|until| log < until))?;
        Some(Threshold { keys: period.keys.clone(), minimum: period.threshold })
    }
}

impl Document for Delegations {
    const WHAT: &'static str = "delegations";
    const PAYLOAD_TYPE: &'static str = "application/vnd.toolgate.registry.delegations.v1+json";

    fn version(&self) -> u64 {
        self.version
    }

    fn expires(&self) -> Time {
        self.expires
    }

    fn check(&self) -> Result<(), Broken> {
        for (pattern, periods) in &self.namespaces {
            if !layout::is_pattern(pattern) {
                return Err(("namespaces", "`namespace/*` or `namespace/name`"));
            }
            let ordered = periods.windows(2).all(|pair| match pair {
                [before, after] => before.until.is_some_and(|until| until <= after.since),
                _ => true,
            });
            let forward = periods.iter().all(|period| period.until.is_none_or(|until| period.since <= until));
            if periods.is_empty() || !ordered || !forward {
                return Err(("namespaces", "periods one after the other"));
            }
            for period in periods {
                let distinct = period
                    .keys
                    .iter()
                    .enumerate()
                    .all(|(index, key)| !period.keys.iter().take(index).any(|other| other == key));
                let possible = period.threshold >= 1 && period.threshold as usize <= period.keys.len();
                if !distinct || !possible {
                    return Err(("namespaces", "different keys, and a threshold from 1 to their number"));
                }
            }
        }
        Ok(())
    }
}

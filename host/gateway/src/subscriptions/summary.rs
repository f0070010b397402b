//! The one summary of what stands, for the command line and whatever else shows it (RES-015, RES-020).

use serde::{Deserialize, Serialize};
use toolgate_wire::envelope::Era;

use super::{Place, Subscriptions};
use crate::Gateway;
use crate::links::Key;

/// The subscriptions over one connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscriptionSummary {
    /// The server.
    pub server: String,
    /// `legacy` (`resources/subscribe`) or `listen` (`subscriptions/listen`); none while there is no
    /// connection.
    pub mode: Option<String>,
    /// What was asked for, whether or not the server honours it (RES-017).
    pub uris: Vec<String>,
    /// What the server left out; none where it cannot say, as every legacy server (RES-018).
    pub unhonored: Option<Vec<String>>,
}

impl SubscriptionSummary {
    /// How one of its resources stands: `subscribed`, `unconfirmed` or `not honored` (RES-020).
    pub fn standing(&self, uri: &str) -> &'static str {
        match &self.unhonored {
            None => "unconfirmed",
            Some(declined) if declined.iter().any(|other| other == uri) => "not honored",
            Some(_) => "subscribed",
        }
    }
}

impl Gateway {
    /// One entry for each connection with subscriptions, never added up over several (RES-016, RES-019).
    /// Asks no server.
    pub fn subscriptions(&self) -> Vec<SubscriptionSummary> {
        self.subscriptions.summary(|_| true, |key| self.era_over(key))
    }

    /// The same for one server and those who use it as this persona.
    pub(crate) fn subscriptions_of(&self, server: &str, persona: &str) -> Vec<SubscriptionSummary> {
        self.subscriptions.summary(|key| key.is_of(server, persona), |key| self.era_over(key))
    }

    fn era_over(&self, key: &Key) -> Option<Era> {
        let live = self.links.find(key).and_then(|link| link.live_untouched());
        live.map(|live| live.connection.era())
    }
}

impl Subscriptions {
    fn summary(
        &self,
        is_wanted: impl Fn(&Key) -> bool,
        era: impl Fn(&Key) -> Option<Era>,
    ) -> Vec<SubscriptionSummary> {
        let places = self.lock();
        let wanted = places.iter().filter(|(key, _)| is_wanted(key));
        let entries = wanted.filter_map(|(key, place)| summed(key, place, era(key)));
        let mut all: Vec<SubscriptionSummary> = entries.collect();
        all.sort_by(|one, other| (&one.server, &one.uris).cmp(&(&other.server, &other.uris)));
        all
    }
}

fn summed(key: &Key, place: &Place, era: Option<Era>) -> Option<SubscriptionSummary> {
    let held = place.entries.iter().filter(|(_, entry)| !entry.watchers.is_empty());
    let mut uris: Vec<String> = held.map(|(uri, _)| uri.clone()).collect();
    uris.extend(place.declined.iter().cloned());
    uris.sort();
    uris.dedup();
    (!uris.is_empty()).then(|| SubscriptionSummary {
        server: key.server.clone(),
        mode: era.map(|era| if era == Era::Modern { "listen" } else { "legacy" }.to_owned()),
        uris,
        unhonored: (era == Some(Era::Modern)).then(|| place.declined.iter().cloned().collect()),
    })
}

#[cfg(test)]
mod tests;

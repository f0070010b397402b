//! Who is subscribed to which resource, and over which connection: subscriptions of both eras, in both
//! directions.
//!
//! Contract: a server is asked once for a resource, whoever of the callers of one connection wants to
//! hear of it, and told to stop when the last of them has gone. Each caller's wish goes through the path
//! of every request ([`crate::forward`]) and is judged again with every update and every new connection:
//! a denial ends it. A subscription holds its connection (RES-008): one that is lost is opened again and
//! asked again (RES-011), and where that is not possible every subscriber is told why.
//!
//! What stands lives in memory alone (RES-009, RES-022). Of an update only its URI passes: no policy
//! would see what else a server writes into a notification.
//!
//! Bounds: [`MOST`] resources for one client, [`MOST_OF_CONNECTION`] for one connection.

mod restore;
mod subscriber;
mod summary;
mod updates;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

pub use self::subscriber::{MOST, Subscriber, Told};
pub use self::summary::SubscriptionSummary;

pub(crate) use self::subscriber::Inbox;
use crate::caller::Caller;
use crate::links::{Key, Live};

/// Resources that all callers of one connection may be subscribed to.
const MOST_OF_CONNECTION: usize = 1_024;

/// All subscriptions of a gateway.
#[derive(Default)]
pub(crate) struct Subscriptions {
    places: Mutex<HashMap<Key, Place>>,
}

/// Those of one connection, whichever one it is now.
#[derive(Default)]
struct Place {
    entries: BTreeMap<String, Entry>,
    /// What a modern server left out of its acknowledgement (RES-018).
    declined: BTreeSet<String>,
    /// Whether a task sees to it that they stand.
    minded: bool,
}

/// One resource.
#[derive(Default)]
struct Entry {
    watchers: Vec<Watcher>,
    /// Asking and giving up of one resource come in turn, so that the last word to the server is the
    /// right one.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// The connection on which the server was asked.
    on: Weak<Live>,
}

/// One caller's wish.
#[derive(Clone)]
pub(crate) struct Watcher {
    pub(crate) inbox: Arc<Inbox>,
    /// The URI by which the caller knows the resource.
    pub(crate) shown: String,
    pub(crate) caller: Caller,
}

impl Place {
    /// Forgets resources that nobody is subscribed to, about to be, or about to give up.
    fn prune(&mut self) {
        self.entries.retain(|_, entry| !entry.watchers.is_empty() || Arc::strong_count(&entry.turn) > 1);
    }

    fn is_idle(&self) -> bool {
        self.entries.is_empty() && !self.minded && self.declined.is_empty()
    }
}

impl Subscriptions {
    /// The turn of one resource; the error names the limit that is reached.
    pub(crate) fn turn(
        &self,
        key: &Key,
        uri: &str,
        inbox: &Arc<Inbox>,
    ) -> Result<Arc<tokio::sync::Mutex<()>>, String> {
        let mut places = self.lock();
        let its = |entry: &Entry| entry.watchers.iter().any(|watcher| Arc::ptr_eq(&watcher.inbox, inbox));
        let known = places.get(key).and_then(|place| place.entries.get(uri));
        if !known.is_some_and(its) {
            let own =
                places.values().flat_map(|place| place.entries.values()).filter(|entry| its(entry)).count();
            if own >= MOST {
                return Err(format!(
                    "a client may be subscribed to {MOST} resources; give one up with resources/unsubscribe"
                ));
            }
        }
        let place = places.entry(key.clone()).or_default();
        if place.entries.len() >= MOST_OF_CONNECTION {
            place.prune();
        }
        if !place.entries.contains_key(uri) && place.entries.len() >= MOST_OF_CONNECTION {
            return Err(format!(
                "{MOST_OF_CONNECTION} resources of this server are subscribed to, which is the limit"
            ));
        }
        Ok(Arc::clone(&place.entries.entry(uri.to_owned()).or_default().turn))
    }

    /// Whether the server was asked for this resource on this connection.
    pub(crate) fn stands(&self, key: &Key, uri: &str, live: &Arc<Live>) -> bool {
        let places = self.lock();
        let entry = places.get(key).and_then(|place| place.entries.get(uri));
        entry.is_some_and(|entry| {
            !entry.watchers.is_empty() && std::ptr::eq(entry.on.as_ptr(), &raw const **live)
        })
    }

    /// The server was asked on this connection, for this caller.
    pub(crate) fn add(&self, key: &Key, uri: &str, watcher: Watcher, live: &Arc<Live>) {
        let mut places = self.lock();
        let place = places.entry(key.clone()).or_default();
        place.declined.remove(uri);
        let entry = place.entries.entry(uri.to_owned()).or_default();
        entry.on = Arc::downgrade(live);
        entry.watchers.retain(|other| !Arc::ptr_eq(&other.inbox, &watcher.inbox));
        entry.watchers.push(watcher);
    }

    /// The server was asked again on this connection.
    fn renewed(&self, key: &Key, uri: &str, live: &Arc<Live>) {
        if let Some(entry) = self.lock().get_mut(key).and_then(|place| place.entries.get_mut(uri)) {
            entry.on = Arc::downgrade(live);
        }
    }

    /// A modern server does not tell of this resource.
    pub(crate) fn decline(&self, key: &Key, uri: &str) {
        let mut places = self.lock();
        let place = places.entry(key.clone()).or_default();
        if place.declined.len() < MOST {
            place.declined.insert(uri.to_owned());
        }
    }

    /// Nothing that was asked before counts any more: the server may have forgotten it.
    fn forget_asked(&self, key: &Key) {
        for entry in self.lock().get_mut(key).into_iter().flat_map(|place| place.entries.values_mut()) {
            entry.on = Weak::new();
        }
    }

    /// Whether anybody is subscribed over this connection.
    pub(crate) fn holds(&self, key: &Key) -> bool {
        let places = self.lock();
        places.get(key).is_some_and(|place| place.entries.values().any(|entry| !entry.watchers.is_empty()))
    }

    /// Takes a subscriber away from one resource. Whether it was there.
    fn leave(&self, key: &Key, uri: &str, inbox: &Arc<Inbox>) -> bool {
        let mut places = self.lock();
        let Some(entry) = places.get_mut(key).and_then(|place| place.entries.get_mut(uri)) else {
            return false;
        };
        let before = entry.watchers.len();
        entry.watchers.retain(|watcher| !Arc::ptr_eq(&watcher.inbox, inbox));
        entry.watchers.len() < before
    }

    /// Where a subscriber is subscribed, and by which URI it knows each.
    fn of(&self, inbox: &Arc<Inbox>) -> Vec<(Key, String, String)> {
        let places = self.lock();
        let entries = places.iter().flat_map(|(key, place)| {
            place.entries.iter().map(move |(uri, entry)| (key.clone(), uri.clone(), entry))
        });
        entries
            .filter_map(|(key, uri, entry)| {
                let own = entry.watchers.iter().find(|watcher| Arc::ptr_eq(&watcher.inbox, inbox))?;
                Some((key, uri, own.shown.clone()))
            })
            .collect()
    }

    /// The turn of a resource that nobody is subscribed to any more; `None` where somebody is.
    fn turn_of_left(&self, key: &Key, uri: &str) -> Option<Arc<tokio::sync::Mutex<()>>> {
        let places = self.lock();
        let entry = places.get(key)?.entries.get(uri)?;
        entry.watchers.is_empty().then(|| Arc::clone(&entry.turn))
    }

    /// Under its turn: whether nobody is subscribed to a resource. What the server was asked counts no
    /// more then, so that whoever comes next asks anew.
    fn unask_left(&self, key: &Key, uri: &str) -> bool {
        let mut places = self.lock();
        let entry = places.get_mut(key).and_then(|place| place.entries.get_mut(uri));
        let Some(entry) = entry.filter(|entry| entry.watchers.is_empty()) else { return false };
        entry.on = Weak::new();
        true
    }

    /// Forgets a resource that nobody is subscribed to, once its turn is given up. Whoever waits for that
    /// turn keeps it, so that there is never a second one beside it.
    fn drop_left(&self, key: &Key) {
        let mut places = self.lock();
        let Some(place) = places.get_mut(key) else { return };
        place.prune();
        if place.is_idle() {
            places.remove(key);
        }
    }

    /// Who is subscribed to a resource.
    fn watchers(&self, key: &Key, uri: &str) -> Vec<Watcher> {
        let places = self.lock();
        let entry = places.get(key).and_then(|place| place.entries.get(uri));
        entry.map(|entry| entry.watchers.clone()).unwrap_or_default()
    }

    /// The resources with subscribers.
    fn uris(&self, key: &Key) -> Vec<String> {
        let places = self.lock();
        let entries = places.get(key).into_iter().flat_map(|place| &place.entries);
        entries.filter(|(_, entry)| !entry.watchers.is_empty()).map(|(uri, _)| uri.clone()).collect()
    }

    /// Those that the server was not asked for on this connection.
    fn unasked(&self, key: &Key, live: &Arc<Live>) -> Vec<String> {
        self.uris(key).into_iter().filter(|uri| !self.stands(key, uri, live)).collect()
    }

    /// One of the callers that hold this connection.
    fn caller_of(&self, key: &Key) -> Option<Caller> {
        let places = self.lock();
        let mut watchers = places.get(key)?.entries.values().flat_map(|entry| &entry.watchers);
        watchers.next().map(|watcher| watcher.caller.clone())
    }

    /// Claims the care of one connection's subscriptions. False: somebody has it.
    fn begin_minding(&self, key: &Key) -> bool {
        let mut places = self.lock();
        let place = places.entry(key.clone()).or_default();
        !std::mem::replace(&mut place.minded, true)
    }

    /// Gives the care up.
    fn end_minding(&self, key: &Key) {
        let mut places = self.lock();
        if let Some(place) = places.get_mut(key) {
            place.minded = false;
            place.prune();
            if place.is_idle() {
                places.remove(key);
            }
        }
    }

    /// The connection is over, and with it what its server declined.
    pub(crate) fn closed(&self, key: &Key) {
        let mut places = self.lock();
        if let Some(place) = places.get_mut(key) {
            place.declined.clear();
            place.prune();
            if place.is_idle() {
                places.remove(key);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

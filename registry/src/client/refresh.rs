//! One visit: roots, snapshot, and all that the snapshot names, in the order of TUF 5.3 to 5.6.

use std::fmt::Display;

use toolgate_signing::{Digest, MAX_ENVELOPE};

use super::{MAX_STEP, history};
use crate::document::{
    self, Config, Document, FreshnessDocument, MAX_NAMES, Pin, Revocations, Role, Root, Signed, Snapshot,
};
use crate::error::RegistryError;
use crate::layout::{self, Fingerprint};
use crate::names::{self, Names};
use crate::source::Source;
use crate::state::{Current, Floors, Trusted, ends};
use crate::time::Time;

/// Roots that are walked in one visit (TUF 5.3.3 asks for a bound).
const MAX_ROOTS: u32 = 1024;
/// Largest `config.json`.
const MAX_CONFIG: u64 = 4096;
const MAX_DOCUMENT: u64 = MAX_ENVELOPE as u64;

/// The first root that is ever trusted here: exactly the one that the operator named.
pub(crate) async fn first(source: &Source, named: Fingerprint) -> Result<Trusted, RegistryError> {
    let envelope = required(source, &layout::root(named.version), MAX_DOCUMENT).await?;
    let claimed = document::claimed_payload(&envelope)
        .ok_or_else(|| RegistryError::malformed(Root::WHAT, "it is no envelope"))?;
    let found = Digest::of(&claimed);
    if found != named.digest {
        return Err(RegistryError::Fingerprint { expected: named, found });
    }
    let root: Root = document::read(&claimed)?;
    let root = document::verify::<Root>(&envelope, &root.threshold(Role::Root))?.document;
    if root.version != named.version {
        return Err(member(
            named.version,
            format!("version {}", named.version),
            format!("version {}", root.version),
        ));
    }
    Ok(Trusted {
        anchors: [(root.version, found)].into(),
        root,
        floors: Floors::default(),
        current: None,
        seen: std::collections::BTreeMap::new(),
        seen_good: Time::from_seconds(0),
    })
}

/// Walks from the trusted root to the newest one.
pub(crate) async fn roots(source: &Source, trusted: &mut Trusted) -> Result<(), RegistryError> {
    for _ in 0..MAX_ROOTS {
        let next = trusted.root.version + 1;
        let Some(envelope) = source.read(&layout::root(next), MAX_DOCUMENT).await? else { return Ok(()) };
        let new = next_root(&trusted.root, &envelope)?;
        trusted.rotate(new);
    }
    Err(RegistryError::malformed(Root::WHAT, format!("there are more than {MAX_ROOTS} new ones")))
}

/// A root after another: signed by the keys of both (TUF 5.3.4), exactly one version later (5.3.5).
pub(crate) fn next_root(old: &Root, envelope: &[u8]) -> Result<Signed<Root>, RegistryError> {
    let version = old.version + 1;
    let by_old = |error| match error {
        RegistryError::Unsigned { source, .. } => RegistryError::RootByOld { version, source },
        other => other,
    };
    let by_new = |error| match error {
        RegistryError::Unsigned { source, .. } => RegistryError::RootByNew { version, source },
        other => other,
    };
    let new = document::verify::<Root>(envelope, &old.threshold(Role::Root)).map_err(by_old)?;
    document::verify::<Root>(envelope, &new.document.threshold(Role::Root)).map_err(by_new)?;
    if new.document.version != version {
        return Err(member(
            version,
            format!("version {version}"),
            format!("version {}", new.document.version),
        ));
    }
    if new.document.origin != old.origin {
        return Err(member(
            version,
            format!("origin {}", old.origin),
            format!("origin {}", new.document.origin),
        ));
    }
    if new.document.epoch < old.epoch {
        return Err(member(
            version,
            format!("epoch {} or a later one", old.epoch),
            format!("epoch {}", new.document.epoch),
        ));
    }
    Ok(new)
}

fn member(version: u64, expected: impl Into<String>, found: impl Into<String>) -> RegistryError {
    RegistryError::RootMember { version, expected: expected.into(), found: found.into() }
}

impl Trusted {
    /// A new root. Versions that were signed by keys that are gone bind nobody any more: this is how a
    /// registry recovers from a fast-forward (TUF 5.3.11). Only a new epoch forgets the log.
    fn rotate(&mut self, new: Signed<Root>) {
        let changed = |role| self.root.rule(role) != new.document.rule(role);
        if changed(Role::Snapshot) {
            self.floors.snapshot = 0;
        }
        if changed(Role::Delegate) {
            self.floors.delegations = 0;
        }
        if changed(Role::Revoke) {
            self.floors.revocations = 0;
        }
        if new.document.epoch > self.root.epoch {
            tracing::warn!(
                origin = self.root.origin,
                epoch = new.document.epoch,
                "the registry began its log anew; what was seen of the old one is forgotten"
            );
            self.floors.snapshot = 0;
            self.seen.clear();
        }
        self.anchors.insert(new.document.version, new.digest);
        self.root = new.document;
    }

    /// A state of the registry that was wholly verified.
    pub(super) fn take(&mut self, current: Current, now: Time) {
        self.floors = Floors {
            snapshot: current.snapshot.document.version,
            delegations: current.delegations.document.version,
            revocations: current.revocations.document.version,
        };
        self.seen_good = self.seen_good.max(now);
        self.current = Some(current);
    }

    /// Until when what is known can be believed, and which document ends then.
    pub(super) fn until(&self) -> (Time, &'static str) {
        let root = (self.root.expires, Root::WHAT);
        let Some(current) = &self.current else { return root };
        ends(&self.root, current.fresh_until, &current.delegations.document, &current.revocations.document)
    }
}

/// The newest state of the registry, wholly verified against what was seen before.
pub(crate) async fn current(source: &Source, trusted: &Trusted, now: Time) -> Result<Current, RegistryError> {
    let root = &trusted.root;
    // TUF 5.3.10: the newest root must not have expired.
    not_expired::<Root>(root.expires, now)?;
    let envelope = required(source, &layout::snapshot(root.version), MAX_DOCUMENT).await?;
    let snapshot = document::verify::<Snapshot>(&envelope, &root.threshold(Role::Snapshot))?;
    let known = trusted.current.as_ref();
    let before = known.map(|current| current.snapshot.digest);
    check_version::<Snapshot>(trusted.floors.snapshot, before, &snapshot)?;
    let fresh_until = fresh_until(source, root, &snapshot, now).await?;
    check_config(source, root, &snapshot.document).await?;
    let visit = Visit { source, root, now };
    let delegations = Pinned {
        place: layout::delegations,
        pin: snapshot.document.delegations,
        role: Role::Delegate,
        floor: trusted.floors.delegations,
        known: known.map(|current| &current.delegations),
    };
    let delegations = delegations.read(&visit).await?;
    let revocations = Pinned {
        place: layout::revocations,
        pin: snapshot.document.revocations,
        role: Role::Revoke,
        floor: trusted.floors.revocations,
        known: known.map(|current| &current.revocations),
    };
    let revocations = revocations.read(&visit).await?;
    if let Some(known) = known.filter(|_| trusted.floors.revocations > 0) {
        check_kept(&known.revocations.document, &revocations.document)?;
    }
    history::check_checkpoint(root, &snapshot.document)?;
    let seen = known.filter(|current| current.epoch == root.epoch);
    let hashes =
        history::log(source, seen.map_or(&[], |current| current.hashes.as_slice()), &snapshot.document)
            .await?;
    let names = read_names(source, known, &snapshot.document).await?;
    check_names(trusted, &names)?;
    Ok(Current { snapshot, delegations, revocations, fresh_until, names, epoch: root.epoch, hashes })
}

/// Rollback (TUF 5.5.5, 5.6.5), two contents of one version, and a jump that would end all versions.
fn check_version<D: Document>(
    floor: u64,
    known: Option<Digest>,
    new: &Signed<D>,
) -> Result<(), RegistryError> {
    let version = new.document.version();
    let what = || D::WHAT.to_owned();
    if version < floor {
        return Err(RegistryError::Rollback {
            what: format!("{} version", D::WHAT),
            known: floor,
            found: version,
        });
    }
    if version == floor && known.is_some_and(|known| known != new.digest) {
        return Err(RegistryError::Equivocation { what: what(), version });
    }
    if version - floor > MAX_STEP {
        return Err(RegistryError::FastForward { what: what(), known: floor, found: version });
    }
    Ok(())
}

/// Freeze (TUF 5.3.10, 5.5.6, 5.6.6).
fn not_expired<D: Document>(expires: Time, now: Time) -> Result<(), RegistryError> {
    if now < expires {
        return Ok(());
    }
    Err(RegistryError::Expired { what: D::WHAT.to_owned(), expired: expires, now })
}

/// Until when the snapshot can be believed: its own expiry, or the later one of its renewal.
///
/// A renewal that is no good counts as none while the snapshot stands by itself: whoever can plant one
/// can leave it out as well.
async fn fresh_until(
    source: &Source,
    root: &Root,
    snapshot: &Signed<Snapshot>,
    now: Time,
) -> Result<Time, RegistryError> {
    let own = snapshot.document.expires;
    let renewed = match source.read(layout::FRESHNESS, MAX_DOCUMENT).await? {
        Some(envelope) => renewal(root, snapshot, &envelope, now),
        None => Ok(None),
    };
    match renewed {
        Ok(Some(later)) if now < later.max(own) => Ok(later.max(own)),
        Err(error) if now >= own => Err(error),
        _ => not_expired::<Snapshot>(own, now).map(|()| own),
    }
}

/// What a renewal says, if it is about this snapshot. A stolen key of the role cannot reach further than
/// the root allows.
fn renewal(
    root: &Root,
    snapshot: &Signed<Snapshot>,
    envelope: &[u8],
    now: Time,
) -> Result<Option<Time>, RegistryError> {
    let fresh = document::verify::<FreshnessDocument>(envelope, &root.threshold(Role::Refresh))?.document;
    if fresh.snapshot != snapshot.digest || fresh.version != snapshot.document.version {
        return Ok(None);
    }
    if fresh.expires > now.plus_days(u64::from(root.refresh_days) + 1) {
        return Err(RegistryError::TooFresh { until: fresh.expires, days: root.refresh_days });
    }
    Ok(Some(fresh.expires))
}

async fn check_config(source: &Source, root: &Root, snapshot: &Snapshot) -> Result<(), RegistryError> {
    let bytes = required(source, layout::CONFIG, MAX_CONFIG).await?;
    same("config.json", &snapshot.config, &Digest::of(&bytes))?;
    let config: Config = document::read_canonical("config.json", &bytes)?;
    config.check().map_err(|(member, rule)| {
        RegistryError::malformed("config.json", format!("the member `{member}` must be: {rule}"))
    })?;
    same("config.json", &root.origin, &config.origin)
}

/// Where, by which root and when something is read.
struct Visit<'a> {
    source: &'a Source,
    root: &'a Root,
    now: Time,
}

/// A document that the snapshot names, with what was seen of it before.
struct Pinned<'a, D> {
    place: fn(u64) -> String,
    pin: Pin,
    role: Role,
    floor: u64,
    known: Option<&'a Signed<D>>,
}

impl<D: Document + Clone> Pinned<'_, D> {
    /// Mix-and-match (TUF 5.5.2, 5.6.4): exactly the document that the snapshot names. Even one that was seen before is verified again: its
    /// role may have new keys.
    async fn read(&self, visit: &Visit<'_>) -> Result<Signed<D>, RegistryError> {
        let envelope = required(visit.source, &(self.place)(self.pin.version), MAX_DOCUMENT).await?;
        let found = document::verify::<D>(&envelope, &visit.root.threshold(self.role))?;
        same(D::WHAT, &self.pin.digest, &found.digest)?;
        same(D::WHAT, &self.pin.version, &found.document.version())?;
        check_version::<D>(self.floor, self.known.map(|known| known.digest), &found)?;
        not_expired::<D>(found.document.expires(), visit.now)?;
        Ok(found)
    }
}

/// Revocations are only ever added, unless the keys of the role were rotated.
fn check_kept(old: &Revocations, new: &Revocations) -> Result<(), RegistryError> {
    if let Some(gone) = old.releases.iter().find(|revoked| new.release(revoked.digest).is_none()) {
        return Err(RegistryError::Withdrawn { what: gone.digest.to_string() });
    }
    let kept = |old: &document::RevokedKey| {
        new.keys.iter().any(|key| key.key == old.key && key.from_log <= old.from_log)
    };
    match old.keys.iter().find(|old| !kept(old)) {
        Some(gone) => Err(RegistryError::Withdrawn { what: format!("the key {}", gone.key) }),
        None => Ok(()),
    }
}

async fn read_names(
    source: &Source,
    known: Option<&Current>,
    snapshot: &Snapshot,
) -> Result<Names, RegistryError> {
    if let Some(known) = known.filter(|known| known.snapshot.document.names == snapshot.names) {
        return Ok(known.names.clone());
    }
    let bytes =
        required(source, &layout::blob(snapshot.names.digest), snapshot.names.size.min(MAX_NAMES)).await?;
    same("list of names", &snapshot.names.digest, &Digest::of(&bytes))?;
    names::read(&bytes)
}

/// No plugin loses lines that were seen.
fn check_names(trusted: &Trusted, names: &Names) -> Result<(), RegistryError> {
    let lost = trusted.seen.iter().find(|(name, seen)| {
        names.get(*name).is_none_or(|entry| entry.lines < seen.lines || entry.size < seen.size)
    });
    match lost {
        Some((name, _)) => Err(RegistryError::Rewritten { name: name.clone() }),
        None => Ok(()),
    }
}

pub(super) async fn required(source: &Source, path: &str, limit: u64) -> Result<Vec<u8>, RegistryError> {
    source.read(path, limit).await?.ok_or_else(|| RegistryError::Absent(path.to_owned()))
}

pub(super) fn same<T: Display + PartialEq>(what: &str, expected: &T, found: &T) -> Result<(), RegistryError> {
    if expected == found {
        return Ok(());
    }
    Err(RegistryError::MixAndMatch {
        what: what.to_owned(),
        expected: expected.to_string(),
        found: found.to_string(),
    })
}

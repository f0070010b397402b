//! What changes a registry: releases, yanks, revocations, delegations, renewals.

use semver::Version;
use toolgate_signing::{Digest, PublicKey, signatures};

use super::judge::{check_follows, check_reason, judged};
use super::{PublishError, Publisher, Signers, choose, sign, store::Files};
use crate::checkpoint::{self, Checkpoint};
use crate::client::load::Loaded;
use crate::document::{
    Delegations, Document, File, FreshnessDocument, Log, Period, Pin, Revocations, RevokedKey,
    RevokedRelease, Role, Root, Snapshot,
};
use crate::error::RegistryError;
use crate::layout;
use crate::line::{self, Line, ReleaseLine, YankLine};
use crate::merkle::{self, Hash};
use crate::names::{self, NameEntry, Names};
use crate::tile;

/// A plugin to publish, as bytes that nobody has judged yet.
#[derive(Debug, Clone)]
pub struct Plugin {
    /// The component.
    pub component: Vec<u8>,
    /// The envelope of its release.
    pub release: Vec<u8>,
    /// Other files; those that the release names by digest (readme, settings schema, bill of materials)
    /// are published too.
    pub others: Vec<Vec<u8>>,
}

/// What a change left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The version of the snapshot.
    pub snapshot: u64,
    /// Lines of the log.
    pub log: u64,
    /// What was changed, in one line.
    pub what: String,
}

/// What to revoke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revoke {
    /// A release's envelope, or a component, by digest.
    Digest(Digest),
    /// A release by name and version.
    Release(String, Version),
    /// A key by its id, from a line of the log on; without it from the end of the log as it is now, so that what
    /// was published before stays.
    Key(String, Option<u64>),
}

/// A change, signed and not yet written.
pub(super) struct Sealed {
    /// What must be there first.
    pub(super) files: Files,
    /// The snapshot.
    pub(super) snapshot: (String, Vec<u8>),
    /// The note over the log.
    pub(super) checkpoint: Vec<u8>,
}

/// A registry with the documents that a change makes new.
pub(super) struct Change {
    pub(super) root: Root,
    pub(super) config: Digest,
    pub(super) version: u64,
    pub(super) delegations: (Pin, Option<Delegations>),
    pub(super) revocations: (Pin, Option<Revocations>),
    pub(super) names: Names,
    pub(super) hashes: Vec<Hash>,
    /// Hashes that were there before.
    pub(super) before: usize,
    pub(super) files: Files,
}

impl Change {
    pub(super) fn of(loaded: &Loaded) -> Self {
        let current = &loaded.current;
        let snapshot = &current.snapshot.document;
        Self {
            root: loaded.root.clone(),
            config: snapshot.config,
            version: snapshot.version + 1,
            delegations: (snapshot.delegations, None),
            revocations: (snapshot.revocations, None),
            names: current.names.clone(),
            before: current.hashes.len(),
            hashes: current.hashes.clone(),
            files: Files::default(),
        }
    }

    /// Appends a line to its plugin and to the log.
    fn append(&mut self, loaded: &Loaded, line: &Line) {
        let name = line.name().to_owned();
        let before = loaded.texts.get(&name).cloned().unwrap_or_default();
        let text = format!("{before}{}\n", line.to_text());
        let entry = NameEntry {
            name: name.clone(),
            lines: self.names.get(&name).map_or(0, |entry| entry.lines) + 1,
            size: text.len() as u64,
            sha256: Digest::of(text.as_bytes()),
        };
        self.files.put(layout::index(&name), text);
        self.names.insert(name, entry);
        self.hashes.push(line.leaf());
    }

    /// Everything that this change signs, ending with the snapshot, which publishes it.
    pub(super) fn sealed(mut self, now: crate::Time, signers: Signers<'_>) -> Result<Sealed, PublishError> {
        let names = names::write(self.names.values()).into_bytes();
        let names_file = File { size: names.len() as u64, digest: Digest::of(&names) };
        self.files.put(layout::blob(names_file.digest), names);
        if self.hashes.len() as u64 > merkle::MAX_LEAVES {
            return Err(PublishError::Unfit(
                "the log is full; begin a new one with `registry root propose --new-log`".to_owned(),
            ));
        }
        self.files.extend(tile::changed(&self.hashes, self.before));
        // All three are asked for before any of them is missed: what is signed elsewhere goes there at once.
        // Only the snapshot, which holds the note, has to follow.
        let delegations = self.delegations.1.as_ref().map(|document| {
            sign(document, Role::Delegate, &self.root.threshold(Role::Delegate), signers)
                .map(|signed| (pinned(document), signed))
        });
        let revocations = self.revocations.1.as_ref().map(|document| {
            sign(document, Role::Revoke, &self.root.threshold(Role::Revoke), signers)
                .map(|signed| (pinned(document), signed))
        });
        let root = merkle::root(&self.hashes);
        let size = self.hashes.len() as u64;
        let checkpoint = Checkpoint { origin: self.root.log_origin(), size, root };
        let note = signed_note(&self.root, &checkpoint, signers);
        if let Some((pin, signed)) = delegations.transpose()? {
            self.delegations.0 = pin;
            self.files.put(layout::delegations(pin.version), signed);
        }
        if let Some((pin, signed)) = revocations.transpose()? {
            self.revocations.0 = pin;
            self.files.put(layout::revocations(pin.version), signed);
        }
        let note = note?;
        let snapshot = Snapshot {
            version: self.version,
            expires: now.plus_days(u64::from(self.root.refresh_days)),
            config: self.config,
            delegations: self.delegations.0,
            revocations: self.revocations.0,
            names: names_file,
            log: Log { size, root: Digest::from_bytes(root) },
            checkpoint: note.clone(),
        };
        let signed = sign(&snapshot, Role::Snapshot, &self.root.threshold(Role::Snapshot), signers)?;
        let snapshot = (layout::snapshot(self.root.version), signed);
        Ok(Sealed { files: self.files, snapshot, checkpoint: note.into_bytes() })
    }
}

fn pinned<D: Document>(document: &D) -> Pin {
    Pin { version: document.version(), digest: Digest::of(document.to_payload().as_bytes()) }
}

fn signed_note(root: &Root, checkpoint: &Checkpoint, signers: Signers<'_>) -> Result<String, PublishError> {
    let chosen = choose(Role::Snapshot, &root.threshold(Role::Snapshot), signers)?;
    Ok(checkpoint::note(checkpoint, &signatures(checkpoint.text().as_bytes(), &chosen)?))
}

impl Publisher {
    /// Publishes a release. Its envelope must be signed by those to whom its name is delegated.
    pub async fn publish(&self, plugin: &Plugin, signers: Signers<'_>) -> Result<Published, PublishError> {
        let loaded = self.load().await?;
        let release = judged(&loaded, plugin)?;
        let stated = release.release();
        let listed = line::listed(loaded.lines.get(&stated.name).map_or(&[], Vec::as_slice));
        check_follows(stated, &listed)?;
        let line = Line::Release(ReleaseLine {
            v: 1,
            name: stated.name.clone(),
            version: stated.version.clone(),
            sequence: stated.sequence,
            kind: stated.kind,
            component: release.component(),
            component_size: plugin.component.len() as u64,
            release: release.digest(),
            release_size: plugin.release.len() as u64,
            imports: stated.imports.clone(),
            min_host: stated.min_host.clone(),
            published: self.now(),
            log: loaded.current.hashes.len() as u64,
        });
        let mut change = Change::of(&loaded);
        change.files.put(layout::blob(release.component()), plugin.component.clone());
        change.files.put(layout::blob(release.digest()), plugin.release.clone());
        for other in &plugin.others {
            let digest = Digest::of(other);
            let named = [stated.readme, stated.settings_schema, stated.sbom, stated.sources];
            if named.contains(&Some(digest)) {
                change.files.put(layout::blob(digest), other.clone());
            }
        }
        change.append(&loaded, &line);
        self.finish(change, signers, format!("published {} {}", stated.name, stated.version))
    }

    /// Hides a release from resolution, or shows it again. What is locked still loads.
    pub async fn yank(
        &self,
        name: &str,
        version: &Version,
        reason: &str,
        undo: bool,
        signers: Signers<'_>,
    ) -> Result<Published, PublishError> {
        check_reason(reason)?;
        let loaded = self.load().await?;
        let listed = line::listed(loaded.lines.get(name).map_or(&[], Vec::as_slice));
        let release = listed
            .iter()
            .find(|listed| listed.line.version == *version)
            .ok_or_else(|| RegistryError::Absent(format!("{name} {version}")))?;
        if release.yanked.is_some() != undo {
            let is = if undo { "is not yanked" } else { "is yanked already" };
            return Err(PublishError::Unfit(format!("{name} {version} {is}")));
        }
        let yank = YankLine {
            v: 1,
            name: name.to_owned(),
            version: version.clone(),
            sequence: release.line.sequence,
            reason: reason.to_owned(),
            at: self.now(),
            log: loaded.current.hashes.len() as u64,
        };
        let (line, what) =
            if undo { (Line::Unyank(yank), "shown again") } else { (Line::Yank(yank), "yanked") };
        let mut change = Change::of(&loaded);
        change.append(&loaded, &line);
        self.finish(change, signers, format!("{what}: {name} {version}"))
    }

    /// Revokes a release, a component or a key. There is no way back but a new key for the role.
    pub async fn revoke(
        &self,
        revoke: &Revoke,
        reason: &str,
        signers: Signers<'_>,
    ) -> Result<Published, PublishError> {
        check_reason(reason)?;
        let loaded = self.load().await?;
        let (reason, at) = (reason.to_owned(), self.now());
        let mut document = loaded.current.revocations.document.clone();
        let what = match revoke {
            Revoke::Digest(digest) => {
                document.releases.push(RevokedRelease { digest: *digest, reason, at });
                digest.to_string()
            }
            Revoke::Release(name, version) => {
                let listed = line::listed(loaded.lines.get(name).map_or(&[], Vec::as_slice));
                let found = listed.iter().find(|listed| listed.line.version == *version);
                let line = found.ok_or_else(|| RegistryError::Absent(format!("{name} {version}")))?;
                document.releases.push(RevokedRelease { digest: line.line.release, reason, at });
                format!("{name} {version}")
            }
            Revoke::Key(key, from) => {
                if Digest::from_hex(key).is_err() {
                    return Err(PublishError::Unfit(format!(
                        "{key} is no id of a key: 64 lowercase hex digits"
                    )));
                }
                let from_log = from.unwrap_or(loaded.current.hashes.len() as u64);
                // An earlier line replaces a later one; the other way round would give back what was taken.
                document.keys.retain(|known| known.key != *key || known.from_log <= from_log);
                document.keys.push(RevokedKey { key: key.clone(), from_log, reason, at });
                format!("the key {key} from line {from_log} of the log on")
            }
        };
        document.releases.sort_by_key(|revoked| revoked.digest);
        document.keys.sort_by(|left, right| left.key.cmp(&right.key));
        let twice = document.releases.windows(2).any(|pair| matches!(pair, [a, b] if a.digest == b.digest))
            || document.keys.windows(2).any(|pair| matches!(pair, [a, b] if a.key == b.key));
        if twice {
            return Err(PublishError::Unfit(format!("{what} is revoked already")));
        }
        document.version += 1;
        document.expires = at.plus_days(super::init::DOCUMENT_DAYS);
        let mut change = Change::of(&loaded);
        change.revocations.1 = Some(document);
        self.finish(change, signers, format!("revoked {what}"))
    }

    /// Gives a namespace (`acme/*`) or one plugin its signing keys: the first ones, or new ones in place
    /// of the old, which end at this line of the log and stay good for what is before it.
    pub async fn rotate(
        &self,
        pattern: &str,
        keys: Vec<PublicKey>,
        threshold: u32,
        signers: Signers<'_>,
    ) -> Result<Published, PublishError> {
        let loaded = self.load().await?;
        let end = loaded.current.hashes.len() as u64;
        let mut document = loaded.current.delegations.document.clone();
        let periods: &mut Vec<Period> = document.namespaces.entry(pattern.to_owned()).or_default();
        for period in periods.iter_mut().filter(|period| period.until.is_none()) {
            period.until = Some(end);
        }
        // A period in which nothing was published says nothing.
        periods.retain(|period| period.until != Some(period.since));
        periods.push(Period { keys, threshold, since: end, until: None });
        document.version += 1;
        document.expires = self.now().plus_days(super::init::DOCUMENT_DAYS);
        document
            .check()
            .map_err(|(member, rule)| PublishError::Unfit(format!("`{member}` must be: {rule}")))?;
        let mut change = Change::of(&loaded);
        change.delegations.1 = Some(document);
        self.finish(
            change,
            signers,
            format!("{pattern} is signed by {threshold} of its new keys from line {end} of the log on"),
        )
    }

    /// Renews the expiry of the snapshot as it is, with the online key, which can do nothing else.
    pub async fn refresh(&self, signers: Signers<'_>) -> Result<crate::Time, PublishError> {
        let loaded = self.load().await?;
        let snapshot = &loaded.current.snapshot;
        let fresh = FreshnessDocument {
            version: snapshot.document.version,
            snapshot: snapshot.digest,
            expires: self.now().plus_days(u64::from(loaded.root.refresh_days)),
        };
        let signed = sign(&fresh, Role::Refresh, &loaded.root.threshold(Role::Refresh), signers)?;
        self.store.write(layout::FRESHNESS, &signed)?;
        Ok(fresh.expires)
    }

    /// The registry as it is published, verified as a client does.
    pub(super) async fn load(&self) -> Result<Loaded, PublishError> {
        Ok(Loaded::of(&self.directory).await?)
    }

    pub(super) fn finish(
        &self,
        change: Change,
        signers: Signers<'_>,
        what: String,
    ) -> Result<Published, PublishError> {
        let (version, log) = (change.version, change.hashes.len() as u64);
        let sealed = change.sealed(self.now(), signers)?;
        self.store.publish(&sealed.files, &sealed.snapshot)?;
        // A copy for tools of transparency logs; clients read the one in the snapshot.
        self.store.write(layout::CHECKPOINT, &sealed.checkpoint)?;
        Ok(Published { snapshot: version, log, what })
    }
}

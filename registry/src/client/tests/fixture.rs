//! A registry in memory, made of the documents themselves, so that a test can make any of them lie.

use std::collections::BTreeMap;

use ed25519_dalek::Signer as _;
use semver::Version;
use toolgate_signing::{
    Capabilities, Digest, Kind, Limits, PublicKey, Release, SigningKey, sign_payload, sign_release,
};

use crate::checkpoint::{self, Checkpoint};
use crate::document::{
    Config, Delegations, Document, File, FreshnessDocument, Log, Period, Pin, Revocations, RoleRule, Roles,
    Root, Snapshot, canonical,
};
use crate::layout::{self, Fingerprint};
use crate::line::{Line, ReleaseLine, YankLine};
use crate::merkle::{self, Hash};
use crate::names::{self, NameEntry};
use crate::tile;
use crate::time::Time;

/// When the first visit happens: 2026-11-29T12:00:00Z.
pub(crate) const NOW: u64 = 1_795_953_600;

/// The seeds of the keys: 32 bytes of this number each.
pub(crate) const ROOT: u8 = 1;
pub(crate) const SECOND_ROOT: u8 = 2;
pub(crate) const DELEGATE: u8 = 3;
pub(crate) const REVOKE: u8 = 4;
pub(crate) const SNAPSHOT: u8 = 5;
pub(crate) const REFRESH: u8 = 6;
pub(crate) const ACME: u8 = 7;
pub(crate) const ACME_NEW: u8 = 8;
pub(crate) const STRANGER: u8 = 9;

pub(crate) fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32])
}

pub(crate) fn public(seed: u8) -> PublicKey {
    key(seed).public()
}

pub(crate) fn id(seed: u8) -> String {
    public(seed).id().to_string()
}

pub(crate) fn time(days: u64) -> Time {
    Time::from_seconds(NOW).plus_days(days)
}

/// An envelope of a document, signed by these seeds.
pub(crate) fn envelope<D: Document>(document: &D, seeds: &[u8]) -> Vec<u8> {
    let keys: Vec<SigningKey> = seeds.iter().map(|seed| key(*seed)).collect();
    sign_payload(D::PAYLOAD_TYPE, document.to_payload().as_bytes(), &keys.iter().collect::<Vec<_>>())
}

/// What the maintainers of a registry have, and the files they publish.
#[derive(Clone)]
pub(crate) struct Fixture {
    pub(crate) root: Root,
    pub(crate) delegations: Delegations,
    pub(crate) revocations: Revocations,
    /// The version of the next snapshot.
    pub(crate) version: u64,
    pub(crate) expires: Time,
    /// Lines in the order of the log.
    pub(crate) lines: Vec<Line>,
    /// Who signs the snapshot.
    pub(crate) snapshot_key: u8,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

impl Fixture {
    /// A registry with root 1, `acme/*` delegated to one key, and nothing published.
    pub(crate) fn new() -> Self {
        let role = |seed: u8| RoleRule { keys: vec![id(seed)], threshold: 1 };
        let root = Root {
            version: 1,
            expires: time(365),
            origin: "plugins.example/main".to_owned(),
            epoch: 1,
            refresh_days: 30,
            keys: [ROOT, DELEGATE, REVOKE, SNAPSHOT, REFRESH].map(|seed| (id(seed), public(seed))).into(),
            roles: Roles {
                root: role(ROOT),
                delegate: role(DELEGATE),
                revoke: role(REVOKE),
                snapshot: role(SNAPSHOT),
                refresh: role(REFRESH),
            },
        };
        let period = Period { keys: vec![public(ACME)], threshold: 1, since: 0, until: None };
        let mut fixture = Self {
            delegations: Delegations {
                version: 1,
                expires: time(365),
                namespaces: [("acme/*".to_owned(), vec![period])].into(),
            },
            revocations: Revocations { version: 1, expires: time(365), releases: vec![], keys: vec![] },
            version: 1,
            expires: time(30),
            lines: vec![],
            snapshot_key: SNAPSHOT,
            files: BTreeMap::new(),
            root,
        };
        let config = Config { index: 1, name: "main".to_owned(), origin: fixture.root.origin.clone() };
        fixture.files.insert(layout::CONFIG.to_owned(), canonical(&config).into_bytes());
        fixture.put_root(&[ROOT]);
        fixture.publish();
        fixture
    }

    /// With two releases of `acme/guard`, published one after the other.
    pub(crate) fn with_releases() -> Self {
        let mut fixture = Self::new();
        fixture.release("1.0.0", 1, ACME);
        fixture.publish();
        fixture.release("1.1.0", 2, ACME);
        fixture.publish();
        fixture
    }

    /// The fingerprint of root 1.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let envelope = &self.files["root/1.json"];
        let payload = crate::document::claimed_payload(envelope).unwrap();
        Fingerprint { version: 1, digest: Digest::of(&payload) }
    }

    /// Writes the root as it is, signed by these.
    pub(crate) fn put_root(&mut self, seeds: &[u8]) {
        self.files.insert(layout::root(self.root.version), envelope(&self.root, seeds));
    }

    /// The next root, changed, signed by these.
    pub(crate) fn rotate(&mut self, seeds: &[u8], change: impl FnOnce(&mut Root)) {
        self.root.version += 1;
        change(&mut self.root);
        self.put_root(seeds);
    }

    /// Adds a release of `acme/guard`, signed by this seed.
    pub(crate) fn release(&mut self, version: &str, sequence: u64, seed: u8) -> ReleaseLine {
        let component = format!("component {version}").into_bytes();
        let release = release(version, sequence);
        let signed = sign_release(&release, &component, &key(seed));
        let line = ReleaseLine {
            v: 1,
            name: release.name.clone(),
            version: release.version.clone(),
            sequence,
            kind: release.kind,
            component: Digest::of(&component),
            component_size: component.len() as u64,
            release: Digest::of(&signed),
            release_size: signed.len() as u64,
            imports: release.imports.clone(),
            min_host: release.min_host.clone(),
            published: Time::from_seconds(NOW),
            log: self.lines.len() as u64,
        };
        self.files.insert(layout::blob(line.component), component);
        self.files.insert(layout::blob(line.release), signed);
        self.lines.push(Line::Release(line.clone()));
        line
    }

    /// Yanks a release of `acme/guard`.
    pub(crate) fn yank(&mut self, version: &str, sequence: u64) {
        self.lines.push(Line::Yank(YankLine {
            v: 1,
            name: "acme/guard".to_owned(),
            version: version.parse().unwrap(),
            sequence,
            reason: "breaks on Tuesdays".to_owned(),
            at: Time::from_seconds(NOW),
            log: self.lines.len() as u64,
        }));
    }

    /// The hashes of all lines.
    pub(crate) fn hashes(&self) -> Vec<Hash> {
        self.lines.iter().map(Line::leaf).collect()
    }

    /// Writes everything below the root with the next version of the snapshot.
    pub(crate) fn publish(&mut self) {
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        for line in &self.lines {
            texts.entry(line.name().to_owned()).or_default().push_str(&(line.to_text() + "\n"));
        }
        let entries: Vec<NameEntry> = texts
            .iter()
            .map(|(name, text)| NameEntry {
                name: name.clone(),
                lines: text.lines().count() as u64,
                size: text.len() as u64,
                sha256: Digest::of(text.as_bytes()),
            })
            .collect();
        for (name, text) in texts {
            self.files.insert(layout::index(&name), text.into_bytes());
        }
        self.files.extend(tile::changed(&self.hashes(), 0));
        self.files
            .insert(layout::delegations(self.delegations.version), envelope(&self.delegations, &[DELEGATE]));
        self.files
            .insert(layout::revocations(self.revocations.version), envelope(&self.revocations, &[REVOKE]));
        let names = names::write(entries.iter()).into_bytes();
        let names_file = File { size: names.len() as u64, digest: Digest::of(&names) };
        self.files.insert(layout::blob(names_file.digest), names);
        let snapshot = self.snapshot(names_file);
        self.put_snapshot(&snapshot);
        self.version += 1;
    }

    /// What the snapshot of this state says.
    fn snapshot(&self, names: File) -> Snapshot {
        let root = merkle::root(&self.hashes());
        let size = self.lines.len() as u64;
        let checkpoint = Checkpoint { origin: self.root.log_origin(), size, root };
        let pin = |version: u64, payload: String| Pin { version, digest: Digest::of(payload.as_bytes()) };
        Snapshot {
            version: self.version,
            expires: self.expires,
            config: Digest::of(&self.files[layout::CONFIG]),
            delegations: pin(self.delegations.version, self.delegations.to_payload()),
            revocations: pin(self.revocations.version, self.revocations.to_payload()),
            names,
            log: Log { size, root: Digest::from_bytes(root) },
            checkpoint: note(&checkpoint, self.snapshot_key),
        }
    }

    /// Signs a snapshot, whatever it says.
    pub(crate) fn put_snapshot(&mut self, snapshot: &Snapshot) {
        let signed = envelope(snapshot, &[self.snapshot_key]);
        self.files.insert(layout::snapshot(self.root.version), signed);
    }

    /// The snapshot that is published now.
    pub(crate) fn published(&self) -> Snapshot {
        let envelope = &self.files[&layout::snapshot(self.root.version)];
        crate::document::read(&crate::document::claimed_payload(envelope).unwrap()).unwrap()
    }

    /// Renews the snapshot that is published now.
    pub(crate) fn renew(&mut self, expires: Time, seed: u8) {
        let snapshot = self.published();
        let fresh = FreshnessDocument {
            version: snapshot.version,
            snapshot: Digest::of(snapshot.to_payload().as_bytes()),
            expires,
        };
        self.files.insert(layout::FRESHNESS.to_owned(), envelope(&fresh, &[seed]));
    }
}

/// A note signed by a seed.
pub(crate) fn note(checkpoint: &Checkpoint, seed: u8) -> String {
    let signer = ed25519_dalek::SigningKey::from_bytes(&[seed; 32]);
    let signature = signer.sign(checkpoint.text().as_bytes()).to_bytes();
    checkpoint::note(checkpoint, &[(public(seed), signature)])
}

/// A release of `acme/guard`.
pub(crate) fn release(version: &str, sequence: u64) -> Release {
    Release {
        name: "acme/guard".to_owned(),
        version: version.parse().unwrap(),
        sequence,
        kind: Kind::Policy,
        world: "toolgate:plugin/policy@0.1.0".to_owned(),
        imports: vec!["toolgate:plugin/log@0.1.0".to_owned()],
        exports: vec!["toolgate:plugin/call@0.1.0".to_owned()],
        capabilities: Capabilities::default(),
        decisions: vec!["deny".to_owned()],
        limits: Limits::default(),
        min_host: Version::new(0, 1, 0),
        servers: vec![],
        settings_hosts: vec![],
        settings_schema: None,
        readme: None,
        sbom: None,
        sources: None,
        toolchain: "none".to_owned(),
        previous: None,
        published: "2026-11-29T12:00:00Z".to_owned(),
    }
}

//! A new registry: its first root, nobody who may sign a plugin, an empty log.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use toolgate_base::Clock;
use toolgate_signing::{Digest, PublicKey};

use super::change::Change;
use super::root::{self, Proposal};
use super::store::Files;
use super::{PublishError, Publisher, Signers};
use crate::document::{
    Config, Delegations, Document, Pin, Revocations, Role, RoleRule, Roles, Root, canonical, read,
};
use crate::layout::{self, Fingerprint};

/// Days that a root lives.
pub(super) const ROOT_DAYS: u64 = 365;
/// Days that delegations and revocations live from their last change.
pub(super) const DOCUMENT_DAYS: u64 = 365;

/// What a new registry is made of.
#[derive(Debug, Clone)]
pub struct Init {
    /// What people call it.
    pub name: String,
    /// Which registry it is, as `plugins.example/main`. It never changes.
    pub origin: String,
    /// The keys of each role and how many of them must sign.
    pub roles: BTreeMap<Role, (Vec<PublicKey>, u32)>,
    /// How many days a snapshot, and each renewal of it, is good for.
    pub refresh_days: u32,
}

/// What a new registry has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Initialised {
    /// What clients are told; none while the first root waits for signatures.
    pub fingerprint: Option<Fingerprint>,
    /// The first root, if it waits.
    pub proposal: Option<Proposal>,
}

impl Publisher {
    /// Makes a registry in a new or empty directory. Signers of the roles `delegate`, `revoke` and
    /// `snapshot` must be here; those of the root may be elsewhere, and then the root waits as a proposal.
    pub fn init(
        directory: &Path,
        init: &Init,
        signers: Signers<'_>,
        clock: Arc<dyn Clock>,
    ) -> Result<Initialised, PublishError> {
        let failed = |source| crate::RegistryError::Io { path: directory.to_owned(), doing: "made", source };
        std::fs::create_dir_all(directory).map_err(failed)?;
        let mut entries = std::fs::read_dir(directory).map_err(failed)?;
        if entries.any(|entry| entry.is_ok_and(|entry| entry.file_name() != super::LOCK)) {
            return Err(PublishError::Unfit(format!(
                "{} is not empty; a registry is made in a new directory",
                directory.display()
            )));
        }
        let publisher = Self::open_with(directory, clock)?;
        let now = publisher.now();
        let root = init.root(now.plus_days(ROOT_DAYS))?;
        let config = Config { index: 1, name: init.name.clone(), origin: init.origin.clone() };
        config.check().map_err(|(member, rule)| unfit(member, rule))?;
        let config = canonical(&config);
        let expires = now.plus_days(DOCUMENT_DAYS);
        let empty = Pin { version: 1, digest: Digest::of(b"") };
        let change = Change {
            config: Digest::of(config.as_bytes()),
            version: 1,
            delegations: (empty, Some(Delegations { version: 1, expires, namespaces: BTreeMap::new() })),
            revocations: (empty, Some(Revocations { version: 1, expires, releases: vec![], keys: vec![] })),
            names: BTreeMap::new(),
            hashes: Vec::new(),
            before: 0,
            files: Files::default(),
            root: root.clone(),
        };
        let mut sealed = change.sealed(now, signers)?;
        sealed.files.put(layout::CONFIG.to_owned(), config);
        sealed.files.put(layout::CHECKPOINT.to_owned(), sealed.checkpoint);
        sealed.files.extend([sealed.snapshot]);
        publisher.begin(&root, &sealed.files, signers)
    }

    /// Publishes the first root, or leaves it to be signed.
    fn begin(&self, root: &Root, files: &Files, signers: Signers<'_>) -> Result<Initialised, PublishError> {
        let rule = root.threshold(Role::Root);
        let digest = Digest::of(root.to_payload().as_bytes());
        if (super::of_rule(&rule, signers).len() as u64) >= u64::from(rule.minimum) {
            let signed = super::sign(root, Role::Root, &rule, signers)?;
            self.store.publish(files, &(layout::root(1), signed))?;
            return Ok(Initialised { fingerprint: Some(Fingerprint { version: 1, digest }), proposal: None });
        }
        self.store.publish(files, &(root::PROPOSAL.to_owned(), root.to_payload().into_bytes()))?;
        self.sign_root(signers)?;
        Ok(Initialised { fingerprint: None, proposal: Some(self.proposal()?) })
    }
}

impl Init {
    fn root(&self, expires: crate::Time) -> Result<Root, PublishError> {
        let mut keys = BTreeMap::new();
        let mut rule = |role: Role| {
            let (public, threshold) = self.roles.get(&role).cloned().unwrap_or_default();
            keys.extend(public.iter().map(|key| (key.id().to_string(), *key)));
            rule_of(&public, threshold)
        };
        let roles = Roles {
            root: rule(Role::Root),
            delegate: rule(Role::Delegate),
            revoke: rule(Role::Revoke),
            snapshot: rule(Role::Snapshot),
            refresh: rule(Role::Refresh),
        };
        let root = Root {
            version: 1,
            expires,
            origin: self.origin.clone(),
            epoch: 1,
            refresh_days: self.refresh_days,
            keys,
            roles,
        };
        checked(&root)?;
        Ok(root)
    }
}

/// A rule over keys.
pub(super) fn rule_of(public: &[PublicKey], threshold: u32) -> RoleRule {
    let mut keys: Vec<String> = public.iter().map(|key| key.id().to_string()).collect();
    keys.sort();
    keys.dedup();
    RoleRule { keys, threshold }
}

/// A root as a client would read it.
pub(super) fn checked(root: &Root) -> Result<(), PublishError> {
    root.check().map_err(|(member, rule)| unfit(member, rule))?;
    read::<Root>(root.to_payload().as_bytes()).map(|_| ()).map_err(Into::into)
}

fn unfit(member: &str, rule: &str) -> PublishError {
    PublishError::Unfit(format!("`{member}` must be: {rule}"))
}

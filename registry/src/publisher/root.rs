//! A new root, in three steps that need not happen on one machine: propose, sign, finish.
//!
//! The proposal is a file that is carried to whoever holds a key, and each signature a file that is
//! carried back. Nothing is published before enough keys of the old root and of the new one have signed
//! the same bytes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toolgate_signing::{Digest, PublicKey, add_signature, pre_authentication_encoding, seal_with};

use super::change::Change;
use super::init::{ROOT_DAYS, checked, rule_of};
use super::{PublishError, Publisher, Signers};
use crate::client::refresh::next_root;
use crate::document::{self, Document, Role, Root};
use crate::error::RegistryError;
use crate::layout::{self, Fingerprint};
use crate::names::Names;

/// Where a registry has the root that waits for signatures, below its directory.
pub const PROPOSAL: &str = "proposal/root.json";
/// Longest file of a signature: 64 bytes as hex, and a line feed.
const MAX_SIGNATURE: u64 = 200;

/// How the next root differs from this one.
#[derive(Debug, Clone, Default)]
pub struct RootChange {
    /// New keys and thresholds of these roles, in place of the old ones.
    pub roles: BTreeMap<Role, (Vec<PublicKey>, u32)>,
    /// How many days a snapshot, and each renewal, is good for from now on.
    pub refresh_days: Option<u32>,
    /// Begin the log anew, because keys that could append to it were stolen. Every release has to be
    /// published again.
    pub new_log: bool,
}

/// A root that waits for signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The root as it would be.
    pub root: Root,
    /// What those who sign compare, and what clients may be told afterwards.
    pub fingerprint: Fingerprint,
    /// Where it is.
    pub file: PathBuf,
    /// Ids of the keys that signed.
    pub signed: Vec<String>,
    /// Signatures that are still missing: of the old root's keys, and of its own.
    pub missing: (usize, usize),
}

/// A root that was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Version and digest.
    pub fingerprint: Fingerprint,
    /// Documents that were signed anew, because their role has new keys.
    pub signed_anew: Vec<&'static str>,
}

impl Publisher {
    /// Writes the next root as a proposal, without signatures.
    pub async fn propose_root(&self, wanted: &RootChange) -> Result<Proposal, PublishError> {
        let loaded = self.load().await?;
        let old = &loaded.root;
        let mut root = old.clone();
        root.version += 1;
        root.expires = self.now().plus_days(ROOT_DAYS);
        root.refresh_days = wanted.refresh_days.unwrap_or(old.refresh_days);
        root.epoch += u64::from(wanted.new_log);
        for (role, (public, threshold)) in &wanted.roles {
            root.keys.extend(public.iter().map(|key| (key.id().to_string(), *key)));
            let rule = match role {
                Role::Root => &mut root.roles.root,
                Role::Delegate => &mut root.roles.delegate,
                Role::Revoke => &mut root.roles.revoke,
                Role::Snapshot => &mut root.roles.snapshot,
                Role::Refresh => &mut root.roles.refresh,
            };
            *rule = rule_of(public, *threshold);
        }
        let used: Vec<String> = Role::ALL.iter().flat_map(|role| root.rule(*role).keys.clone()).collect();
        root.keys.retain(|id, _| used.contains(id));
        checked(&root)?;
        self.forget_proposal()?;
        self.store.write(PROPOSAL, root.to_payload().as_bytes())?;
        self.proposal()
    }

    /// Adds the signatures of these signers to the proposal; those of no key that counts are an error.
    pub fn sign_root(&self, signers: Signers<'_>) -> Result<Vec<String>, PublishError> {
        let payload = self.proposed_payload()?;
        let root: Root = document::read(&payload)?;
        let old = self.old_root_keys();
        let mut made = Vec::new();
        for signer in signers {
            let key = signer.public();
            if root.threshold(Role::Root).keys.contains(&key) || old.contains(&key) {
                let signature = sign_payload(&payload, signer.as_ref())?;
                self.store.write(&signature_path(&key), hex::encode(signature).as_bytes())?;
                made.push(key.id().to_string());
            }
        }
        Ok(made)
    }

    /// The proposal and how far it is.
    pub fn proposal(&self) -> Result<Proposal, PublishError> {
        let payload = self.proposed_payload()?;
        let root: Root = document::read(&payload)?;
        let envelope = self.signed_proposal(&payload, &root)?;
        let old = self.old_root_keys();
        let signed: Vec<PublicKey> = envelope.1;
        let have = |keys: &[PublicKey]| keys.iter().filter(|key| signed.contains(key)).count();
        let new_rule = root.threshold(Role::Root);
        let of_new = (new_rule.minimum as usize).saturating_sub(have(&new_rule.keys));
        let of_old = self.old_minimum().saturating_sub(have(&old));
        Ok(Proposal {
            fingerprint: Fingerprint { version: root.version, digest: Digest::of(&payload) },
            root,
            file: self.directory.join(PROPOSAL),
            signed: signed.iter().map(|key| key.id().to_string()).collect(),
            missing: (of_old, of_new),
        })
    }

    /// Publishes the proposal once enough have signed it. Documents whose roles have new keys are signed
    /// anew by the signers given here.
    pub async fn finish_root(&self, signers: Signers<'_>) -> Result<Finished, PublishError> {
        let payload = self.proposed_payload()?;
        let root: Root = document::read(&payload)?;
        let (envelope, _) = self.signed_proposal(&payload, &root)?;
        let envelope =
            envelope.ok_or_else(|| PublishError::Unfit("nobody has signed the proposal yet".to_owned()))?;
        let fingerprint = Fingerprint { version: root.version, digest: Digest::of(&payload) };
        let signed_anew = if root.version == 1 {
            document::verify::<Root>(&envelope, &root.threshold(Role::Root))?;
            self.store.write(&layout::root(1), &envelope)?;
            Vec::new()
        } else {
            self.replace_root(&root, envelope, signers).await?
        };
        self.forget_proposal()?;
        Ok(Finished { fingerprint, signed_anew })
    }

    async fn replace_root(
        &self,
        root: &Root,
        envelope: Vec<u8>,
        signers: Signers<'_>,
    ) -> Result<Vec<&'static str>, PublishError> {
        let loaded = self.load().await?;
        if root.version != loaded.root.version + 1 {
            return Err(PublishError::Unfit(format!(
                "the proposal is root {}, and this registry has root {}; propose it again",
                root.version, loaded.root.version
            )));
        }
        next_root(&loaded.root, &envelope)?;
        let mut change = Change::of(&loaded);
        let mut anew = vec!["snapshot"];
        let rules = |role| loaded.root.rule(role) != root.rule(role);
        let new_log = root.epoch != loaded.root.epoch;
        if rules(Role::Delegate) || new_log {
            let mut document = loaded.current.delegations.document.clone();
            document.version += 1;
            if new_log {
                document.namespaces.values_mut().for_each(current_only);
            }
            change.delegations.1 = Some(document);
            anew.push("delegations");
        }
        if rules(Role::Revoke) || new_log {
            let mut document = loaded.current.revocations.document.clone();
            document.version += 1;
            if new_log {
                document.keys.iter_mut().for_each(|key| key.from_log = 0);
            }
            change.revocations.1 = Some(document);
            anew.push("revocations");
        }
        if new_log {
            (change.names, change.hashes, change.before) = (Names::new(), Vec::new(), 0);
        }
        change.root = root.clone();
        let mut sealed = change.sealed(self.now(), signers)?;
        sealed.files.extend([sealed.snapshot]);
        // The snapshot under the new root is looked at only once that root is there.
        self.store.publish(&sealed.files, &(layout::root(root.version), envelope))?;
        self.store.write(layout::CHECKPOINT, &sealed.checkpoint)?;
        Ok(anew)
    }

    fn proposed_payload(&self) -> Result<Vec<u8>, PublishError> {
        let limit = toolgate_signing::MAX_PAYLOAD as u64;
        let payload = crate::files::read(&self.directory.join(PROPOSAL), limit)?;
        payload.ok_or_else(|| {
            PublishError::Unfit("no root is proposed here; see `toolgate registry root propose`".to_owned())
        })
    }

    /// The envelope of the proposal with every signature that was brought back, and whose they are.
    fn signed_proposal(
        &self,
        payload: &[u8],
        root: &Root,
    ) -> Result<(Option<Vec<u8>>, Vec<PublicKey>), PublishError> {
        let mut candidates = root.threshold(Role::Root).keys;
        candidates.extend(self.old_root_keys());
        let mut envelope: Option<Vec<u8>> = None;
        let mut signed: Vec<PublicKey> = Vec::new();
        for key in candidates {
            let path = self.directory.join(signature_path(&key));
            let Some(bytes) = crate::files::read(&path, MAX_SIGNATURE)? else { continue };
            if signed.contains(&key) {
                continue;
            }
            let signature = toolgate_signing::read_signature(&bytes)?;
            envelope = Some(match envelope {
                None => seal_with(Root::PAYLOAD_TYPE, payload, &key, &signature)?,
                Some(envelope) => add_signature(&envelope, &key, &signature)?,
            });
            signed.push(key);
        }
        Ok((envelope, signed))
    }

    /// The keys of the newest published root; none before the first.
    fn old_root_keys(&self) -> Vec<PublicKey> {
        self.old_root().map(|root| root.threshold(Role::Root).keys).unwrap_or_default()
    }

    fn old_minimum(&self) -> usize {
        self.old_root().map_or(0, |root| root.threshold(Role::Root).minimum as usize)
    }

    /// The root before the proposed one, as it stands there; what is published is verified when it is
    /// loaded.
    fn old_root(&self) -> Option<Root> {
        let proposed: Root = document::read(&self.proposed_payload().ok()?).ok()?;
        let path = self.directory.join(layout::root(proposed.version.checked_sub(1)?));
        let envelope = crate::files::read(&path, toolgate_signing::MAX_ENVELOPE as u64).ok()??;
        document::read(&document::claimed_payload(&envelope)?).ok()
    }

    fn forget_proposal(&self) -> Result<(), PublishError> {
        let directory = self.directory.join("proposal");
        match std::fs::remove_dir_all(&directory) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(RegistryError::Io { path: directory, doing: "removed", source }.into())
            }
            _ => Ok(()),
        }
    }
}

/// The proposed root in a file of somebody who has a key and no registry: to be shown and signed.
pub fn read_proposal(file: &Path) -> Result<(Root, Fingerprint, Vec<u8>), PublishError> {
    let payload = crate::files::read(file, toolgate_signing::MAX_PAYLOAD as u64)?
        .ok_or_else(|| PublishError::Unfit(format!("{} is not there", file.display())))?;
    let root: Root = document::read(&payload)?;
    let fingerprint = Fingerprint { version: root.version, digest: Digest::of(&payload) };
    Ok((root, fingerprint, payload))
}

/// The bytes that a key signs to sign a proposal.
pub fn proposal_to_sign(payload: &[u8]) -> Vec<u8> {
    pre_authentication_encoding(Root::PAYLOAD_TYPE, payload)
}

/// The signature of a proposal by one signer: the name of its file and its text.
pub fn sign_proposal(
    payload: &[u8],
    signer: &dyn toolgate_signing::Signer,
) -> Result<(String, String), PublishError> {
    let signature = sign_payload(payload, signer)?;
    Ok((format!("{}.sig", signer.public().id()), hex::encode(signature)))
}

fn sign_payload(payload: &[u8], signer: &dyn toolgate_signing::Signer) -> Result<[u8; 64], PublishError> {
    let signature = signer.sign(&proposal_to_sign(payload))?;
    // Sealing checks that the signature is this key's and of these bytes.
    seal_with(Root::PAYLOAD_TYPE, payload, &signer.public(), &signature)?;
    Ok(signature)
}

fn signature_path(key: &PublicKey) -> String {
    format!("proposal/{}.sig", key.id())
}

/// In a log that begins anew only the keys of today sign, from its first line on.
fn current_only(periods: &mut Vec<document::Period>) {
    if let Some(last) = periods.pop() {
        periods.clear();
        periods.push(document::Period { since: 0, until: None, ..last });
    }
}

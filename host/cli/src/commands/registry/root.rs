//! `toolgate registry root propose|sign|finish`.

use std::path::Path;

use serde_json::{Value, json};
use toolgate_base::files::write_private;
use toolgate_registry::{
    PROPOSAL, Proposal, Role, Root, RootChange, proposal_to_sign, read_proposal, sign_proposal,
};
use toolgate_signing::{PublicKey, SignError, Signer, read_signature};

use super::{change::open, failure, roles};
use crate::args::registry::{RootFinish, RootPropose, RootSign};
use crate::exit::Failure;
use crate::keys::read_public;
use crate::output;

/// Longest file of a signature, bytes.
const MAX_SIGNATURE: u64 = 4 * 1024;

/// Writes the next root as a proposal.
pub(super) async fn propose(args: &RootPropose) -> Result<(), Failure> {
    let change = RootChange {
        roles: roles(&args.role, &args.threshold)?,
        refresh_days: args.refresh_days,
        new_log: args.new_log,
    };
    let proposal = open(&args.at.dir)?.propose_root(&change).await.map_err(|error| failure(&error))?;
    if args.at.json { output::json(&described(&proposal)) } else { print(&proposal) }
}

/// Signs a proposal, in a registry or in a file that was carried here.
pub(super) fn sign(args: &RootSign) -> Result<(), Failure> {
    if let Some(out) = &args.payload_out {
        return payload(args, out);
    }
    if args.proposal.is_dir() {
        let publisher = open(&args.proposal)?;
        let signed = publisher.sign_root(&[signer(args)?]).map_err(|error| failure(&error))?;
        if signed.is_empty() {
            return Err(Failure::usage(
                "this key is no root key, neither of the root that is there nor of the proposed one",
            ));
        }
        let proposal = publisher.proposal().map_err(|error| failure(&error))?;
        return if args.json { output::json(&described(&proposal)) } else { print(&proposal) };
    }
    carried(&args.proposal, args)
}

/// Where the key is there may be no registry: the proposal is shown, signed, and the signature carried back.
fn carried(file: &Path, args: &RootSign) -> Result<(), Failure> {
    let (root, fingerprint, payload) = read_proposal(file).map_err(|error| failure(&error))?;
    let signer = signer(args)?;
    let (name, text) = sign_proposal(&payload, signer.as_ref()).map_err(|error| failure(&error))?;
    let signature = file.with_file_name(name);
    write_private(&signature, text.as_bytes())
        .map_err(|error| Failure::failed(format!("{} cannot be written: {error}", signature.display())))?;
    if args.json {
        return output::json(
            &json!({ "fingerprint": fingerprint, "signature": signature.display().to_string() }),
        );
    }
    output::line(&format!("root {} of {}: {fingerprint}", root.version, root.origin))?;
    print_roles(&root)?;
    output::line(&format!(
        "signed: carry {} back into the registry's directory `proposal`",
        signature.display()
    ))
}

/// Writes down what a key elsewhere has to sign.
fn payload(args: &RootSign, out: &Path) -> Result<(), Failure> {
    let file = if args.proposal.is_dir() { args.proposal.join(PROPOSAL) } else { args.proposal.clone() };
    let (root, fingerprint, payload) = read_proposal(&file).map_err(|error| failure(&error))?;
    write_private(out, &proposal_to_sign(&payload))
        .map_err(|error| Failure::failed(format!("{} cannot be written: {error}", out.display())))?;
    if args.json {
        return output::json(&json!({ "fingerprint": fingerprint, "payload": out }));
    }
    output::line(&format!("root {} of {}: {fingerprint}", root.version, root.origin))?;
    output::line(&format!("{} holds what is to be signed", out.display()))?;
    output::line("  where the key is:  toolgate key sign --key KEY PAYLOAD > SIGNATURE")?;
    output::line(&format!(
        "  then here:         toolgate registry root sign {} --attach SIGNATURE --public-key KEY.pub",
        args.proposal.display()
    ))
}

/// A key that is here, a device, or a signature that was made elsewhere.
fn signer(args: &RootSign) -> Result<Box<dyn Signer>, Failure> {
    let Some(file) = &args.attach else { return args.with.open() };
    let bytes = toolgate_base::files::read_bounded(file, MAX_SIGNATURE)
        .map_err(|error| error.to_string())
        .and_then(|bytes| bytes.ok_or_else(|| "there is no such file".to_owned()))
        .map_err(|what| Failure::usage(format!("{} cannot be read: {what}", file.display())))?;
    let signature = read_signature(&bytes).map_err(Failure::usage)?;
    let key = read_public(args.with.public_key.as_deref().unwrap_or_default())?;
    Ok(Box::new(Brought { key, signature }))
}

/// A signature that somebody brought. Whoever asks for it checks that it is of the bytes that count.
struct Brought {
    key: PublicKey,
    signature: [u8; 64],
}

impl Signer for Brought {
    fn public(&self) -> PublicKey {
        self.key
    }

    fn sign(&self, _encoded: &[u8]) -> Result<[u8; 64], SignError> {
        Ok(self.signature)
    }
}

/// Publishes the proposal.
pub(super) async fn finish(args: &RootFinish) -> Result<(), Failure> {
    let signing = args.with.open(args.at.json)?;
    let publisher = signing.publisher(&args.at.dir)?;
    let Some(finished) = signing.settled(publisher.finish_root(signing.signers()).await)? else {
        return Ok(());
    };
    if args.at.json {
        return output::json(&json!({
            "fingerprint": finished.fingerprint, "signed_anew": finished.signed_anew,
        }));
    }
    output::line(&format!("root {} is published: {}", finished.fingerprint.version, finished.fingerprint))?;
    if finished.signed_anew.is_empty() {
        return Ok(());
    }
    output::line(&format!("signed anew: {}", finished.signed_anew.join(", ")))
}

pub(super) fn described(proposal: &Proposal) -> Value {
    json!({
        "file": proposal.file.display().to_string(),
        "fingerprint": proposal.fingerprint,
        "root": proposal.root,
        "signed": proposal.signed,
        "missing": { "old": proposal.missing.0, "new": proposal.missing.1 },
    })
}

pub(super) fn print(proposal: &Proposal) -> Result<(), Failure> {
    let root = &proposal.root;
    output::line(&format!("root {} of {} waits for signatures", root.version, root.origin))?;
    output::line(&format!("  {}", proposal.file.display()))?;
    output::line(&format!("  {}", proposal.fingerprint))?;
    print_roles(root)?;
    let (old, new) = proposal.missing;
    output::line(&match (old, new) {
        (0, 0) => "  enough have signed: `toolgate registry root finish`".to_owned(),
        _ => format!("  missing signatures: {old} of the root before, {new} of its own"),
    })
}

fn print_roles(root: &Root) -> Result<(), Failure> {
    Role::ALL.into_iter().try_for_each(|role| {
        let rule = root.rule(role);
        let keys: Vec<String> = root.threshold(role).keys.iter().map(ToString::to_string).collect();
        output::line(&format!("  {role}: {} of {}", rule.threshold, keys.join(" ")))
    })
}

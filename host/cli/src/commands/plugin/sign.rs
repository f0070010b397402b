//! `toolgate plugin sign`: a release statement from a manifest and a binary, and signatures on it.
//!
//! Contract: what is written verifies, or nothing is written. Every signature is checked under its key
//! before it counts, and the whole release is read back by the rules of verification, with exactly the
//! keys that signed.

use std::path::Path;

use serde_json::json;
use toolgate_base::files::write_private;
use toolgate_base::{Clock as _, SystemClock};
use toolgate_gateway::assemble::{MAX_FILE, RELEASE_FILE};
use toolgate_plugins::{Manifest, inspect};
use toolgate_signing::{
    Digest, PAYLOAD_TYPE, PublicKey, SignError, Threshold, VerifiedRelease, add_signature,
    decode_pre_authentication, pre_authentication_encoding, read_signature, release_statement, seal_with,
    unverified_payload, verify_release,
};

use super::refusal::of_manifest;
use crate::args::PluginSign;
use crate::exit::Failure;
use crate::keys::read_public;
use crate::output;

/// Runs the verb.
pub(super) fn run(args: &PluginSign) -> Result<(), Failure> {
    let manifest = Manifest::read(&args.dir).map_err(|error| of_manifest(&error, &args.dir))?;
    let component = manifest.component().map_err(|error| of_manifest(&error, &args.dir))?;
    let file = args.dir.join(RELEASE_FILE);
    let payload = match (&args.payload, args.add) {
        (Some(waited), _) => waited_for(waited)?,
        (None, true) => existing(&file)?.1,
        (None, false) => {
            let release =
                manifest.release(&component, &now()).map_err(|error| of_manifest(&error, &args.dir))?;
            release_statement(&release, Digest::of(&component)).into_bytes()
        }
    };
    let encoded = pre_authentication_encoding(PAYLOAD_TYPE, &payload);
    if let Some(out) = &args.payload_out {
        // Signed with nobody's key yet, so the statement itself is checked here.
        check_unsigned(&payload, &component)?;
        write_private(out, &encoded).map_err(|error| cannot_write(out, &error))?;
        return told_what_is_next(args, out);
    }
    let (key, signature) = signature(args, &payload, &component, &encoded)?;
    // A signature over the very payload that is there already joins those it has.
    let envelope = match existing(&file) {
        Ok((envelope, there)) if there == payload && (args.add || args.attach.is_some()) => {
            add_signature(&envelope, &key, &signature)
        }
        _ => seal_with(PAYLOAD_TYPE, &payload, &key, &signature),
    }
    .map_err(|error| of_signing(&error))?;
    let release = read_back(&envelope, &component, key)?;
    write_private(&file, &envelope).map_err(|error| cannot_write(&file, &error))?;
    report(args, &file, &release, &key, &envelope)
}

/// A signature that was made elsewhere, or one that is made now.
fn signature(
    args: &PluginSign,
    payload: &[u8],
    component: &[u8],
    encoded: &[u8],
) -> Result<(PublicKey, [u8; 64]), Failure> {
    if let Some(signed) = &args.attach {
        let bytes = std::fs::read(signed)
            .map_err(|error| Failure::usage(format!("{} cannot be read: {error}", signed.display())))?;
        let key = read_public(args.with.public_key.as_deref().unwrap_or_default())?;
        return Ok((key, read_signature(&bytes).map_err(|error| of_signing(&error))?));
    }
    check_unsigned(payload, component)?;
    let signer = args.with.open()?;
    let signature = signer.sign(encoded).map_err(|error| of_signing(&error))?;
    Ok((signer.public(), signature))
}

/// The payload in a file that waited for its signature.
fn waited_for(file: &Path) -> Result<Vec<u8>, Failure> {
    let bytes = std::fs::read(file)
        .map_err(|error| Failure::usage(format!("{} cannot be read: {error}", file.display())))?;
    match decode_pre_authentication(&bytes) {
        Some((kind, payload)) if kind == PAYLOAD_TYPE => Ok(payload),
        _ => Err(Failure::usage(format!("{} is not what --payload-out writes", file.display()))),
    }
}

/// The envelope that is there and its payload.
fn existing(file: &Path) -> Result<(Vec<u8>, Vec<u8>), Failure> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("{} cannot be signed further: {error}", file.display()))
    };
    let metadata = std::fs::metadata(file).map_err(|error| unreadable(&error))?;
    if metadata.len() > MAX_FILE {
        return Err(unreadable(&"it is too large"));
    }
    let envelope = std::fs::read(file).map_err(|error| unreadable(&error))?;
    let (kind, payload) = unverified_payload(&envelope).map_err(|error| unreadable(&error))?;
    if kind != PAYLOAD_TYPE {
        return Err(unreadable(&format!("its payload is a {kind}")));
    }
    Ok((envelope, payload))
}

/// The statement and the component as a host will read them, before anybody signs: with a key made for
/// this one check.
fn check_unsigned(payload: &[u8], component: &[u8]) -> Result<(), Failure> {
    let key = toolgate_signing::SigningKey::from_seed(&toolgate_base::random_bytes());
    let envelope = toolgate_signing::sign_payload(PAYLOAD_TYPE, payload, &[&key]);
    read_back(&envelope, component, key.public()).map(drop)
}

/// Verifies the envelope under one key, and that the statement is about this component.
fn read_back(envelope: &[u8], component: &[u8], key: PublicKey) -> Result<VerifiedRelease, Failure> {
    let rule = |_: &str| Some(Threshold { keys: vec![key], minimum: 1 });
    let release = verify_release(envelope, &rule)
        .map_err(|error| Failure::usage(format!("this release would be refused: {error}")))?;
    release.check_component(component).map_err(|error| {
        Failure::integrity(format!("the statement is about another component: {error}"))
            .hint("sign again without --add; a new component is a new release")
    })?;
    let found = inspect(component).map_err(|error| Failure::usage(error.to_string()))?;
    let stated = release.release();
    if found.imports != stated.imports || found.exports != stated.exports {
        return Err(Failure::integrity("the statement does not list what the component imports and exports"));
    }
    Ok(release)
}

fn told_what_is_next(args: &PluginSign, out: &Path) -> Result<(), Failure> {
    if args.json {
        return output::json(&json!({ "payload": out, "dir": args.dir }));
    }
    output::line(&format!("{} holds what is to be signed", out.display()))?;
    output::line("  where the key is:  toolgate key sign --key KEY PAYLOAD > SIGNATURE")?;
    output::line(&format!(
        "  then here:         toolgate plugin sign {} --attach SIGNATURE --payload {} --public-key KEY.pub",
        args.dir.display(),
        out.display()
    ))
}

fn report(
    args: &PluginSign,
    file: &Path,
    release: &VerifiedRelease,
    key: &PublicKey,
    envelope: &[u8],
) -> Result<(), Failure> {
    let stated = release.release();
    if args.json {
        return output::json(&json!({
            "release": file,
            "digest": Digest::of(envelope),
            "component": release.component(),
            "name": stated.name,
            "version": stated.version,
            "sequence": stated.sequence,
            "signer": super::super::key::described(key),
        }));
    }
    output::line(&format!(
        "{} {} (sequence {}) is signed: {}",
        stated.name,
        stated.version,
        stated.sequence,
        file.display()
    ))?;
    output::line(&format!("  component    {}", release.component()))?;
    super::super::key::print(key)
}

fn of_signing(error: &SignError) -> Failure {
    match error {
        SignError::DoesNotVerify { .. } => Failure::integrity(error),
        SignError::Refused(_) => Failure::failed(error),
        _ => Failure::usage(error),
    }
}

fn cannot_write(file: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("{} cannot be written: {error}", file.display()))
}

/// This second as a release has it.
fn now() -> String {
    toolgate_base::clock::utc_text(SystemClock.now_ms())
}

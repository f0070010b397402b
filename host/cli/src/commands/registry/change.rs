//! `toolgate registry publish|yank|revoke|rotate|refresh`.

use std::io::Read as _;
use std::path::Path;

use serde_json::json;
use toolgate_gateway::assemble::{COMPONENT_FILE, RELEASE_FILE};
use toolgate_registry::{MAX_COMPONENT, Plugin, Published, Publisher, Revoke};
use toolgate_signing::{Digest, PublicKey};

use super::failure;
use crate::args::registry::{RegistryPublish, RegistryRefresh, RegistryRevoke, RegistryRotate, RegistryYank};
use crate::exit::Failure;
use crate::keys::read_public;
use crate::output;

/// Publishes the plugin in a directory: in a registry that is a directory, or in a repository of an OCI one.
pub(super) async fn publish(args: &RegistryPublish) -> Result<(), Failure> {
    if args.registry.contains("://") {
        if !args.with.is_empty() {
            return Err(Failure::usage("a repository of an OCI registry is signed by nobody but the author")
                .hint("leave out --key, --signer, --payload-out and --attach"));
        }
        return crate::commands::plugin::push(&args.plugin, &args.registry, &args.oci, args.json).await;
    }
    if !args.oci.is_empty() {
        return Err(Failure::usage("--username, --password-file, --ca and --private are for oci://…"));
    }
    let plugin = read_plugin(&args.plugin)?;
    let signing = args.with.open(args.json)?;
    let publisher = signing.publisher(Path::new(&args.registry))?;
    let done = publisher.publish(&plugin, signing.signers()).await;
    signing.settled(done)?.map_or(Ok(()), |done| report(&done, args.json))
}

/// Hides a release, or shows it again.
pub(super) async fn yank(args: &RegistryYank) -> Result<(), Failure> {
    let (name, version) = release(&args.release)?;
    let signing = args.with.open(args.at.json)?;
    let publisher = signing.publisher(&args.at.dir)?;
    let done = publisher.yank(&name, &version, &args.reason, args.undo, signing.signers()).await;
    signing.settled(done)?.map_or(Ok(()), |done| report(&done, args.at.json))
}

/// Revokes a release, a component or a key.
pub(super) async fn revoke(args: &RegistryRevoke) -> Result<(), Failure> {
    let what = revoked(&args.what, args.from_log)?;
    let signing = args.with.open(args.at.json)?;
    let publisher = signing.publisher(&args.at.dir)?;
    let done = publisher.revoke(&what, &args.reason, signing.signers()).await;
    signing.settled(done)?.map_or(Ok(()), |done| report(&done, args.at.json))
}

/// Gives a namespace its keys.
pub(super) async fn rotate(args: &RegistryRotate) -> Result<(), Failure> {
    let keys: Vec<PublicKey> = args.to.iter().map(|key| read_public(key)).collect::<Result<_, _>>()?;
    let signing = args.with.open(args.at.json)?;
    let publisher = signing.publisher(&args.at.dir)?;
    let done = publisher.rotate(&args.plugins, keys, args.threshold, signing.signers()).await;
    signing.settled(done)?.map_or(Ok(()), |done| report(&done, args.at.json))
}

/// Renews the expiry of the snapshot.
pub(super) async fn refresh(args: &RegistryRefresh) -> Result<(), Failure> {
    let signing = args.with.open(args.at.json)?;
    let publisher = signing.publisher(&args.at.dir)?;
    let Some(until) = signing.settled(publisher.refresh(signing.signers()).await)? else { return Ok(()) };
    if args.at.json {
        return output::json(&json!({ "fresh_until": until }));
    }
    output::line(&format!("the snapshot is good until {until}"))
}

pub(super) fn open(dir: &Path) -> Result<Publisher, Failure> {
    Publisher::open(dir).map_err(|error| failure(&error))
}

fn report(published: &Published, as_json: bool) -> Result<(), Failure> {
    if as_json {
        return output::json(&json!({
            "snapshot": published.snapshot, "log": published.log, "what": published.what,
        }));
    }
    output::line(&format!(
        "{} (snapshot {}, {} lines in the log)",
        published.what, published.snapshot, published.log
    ))
}

/// The two files of a plugin, and whatever else its directory holds: a release may name some of it by digest.
pub(crate) fn read_plugin(dir: &Path) -> Result<Plugin, Failure> {
    let component = required(dir, COMPONENT_FILE)?;
    let release = required(dir, RELEASE_FILE)?;
    let entries = std::fs::read_dir(dir).map_err(|error| unreadable(dir, &error))?;
    let mut others = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let plain = entry.file_type().is_ok_and(|kind| kind.is_file());
        if plain && name != COMPONENT_FILE && name != RELEASE_FILE {
            others.push(bounded(&entry.path())?);
        }
    }
    Ok(Plugin { component, release, others })
}

fn required(dir: &Path, name: &str) -> Result<Vec<u8>, Failure> {
    bounded(&dir.join(name)).map_err(|failure| {
        failure.hint("a plugin to publish is a directory that `toolgate plugin sign` wrote a release into")
    })
}

fn bounded(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| unreadable(path, &error))?;
    file.take(MAX_COMPONENT + 1).read_to_end(&mut bytes).map_err(|error| unreadable(path, &error))?;
    if bytes.len() as u64 > MAX_COMPONENT {
        return Err(Failure::usage(format!("{} has more than {MAX_COMPONENT} bytes", path.display())));
    }
    Ok(bytes)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("{} cannot be read: {error}", path.display()))
}

/// `NAME@VERSION`.
fn release(text: &str) -> Result<(String, semver::Version), Failure> {
    let parts = text.split_once('@').and_then(|(name, version)| {
        let known = toolgate_registry::is_plugin_name(name);
        Some((name.to_owned(), version.parse().ok()?)).filter(|_| known)
    });
    parts.ok_or_else(|| {
        Failure::usage(format!("{text} is no release"))
            .hint("write NAMESPACE/NAME@VERSION, as acme/guard@1.2.0")
    })
}

fn revoked(text: &str, from_log: Option<u64>) -> Result<Revoke, Failure> {
    if text.starts_with("ed25519:") {
        return Ok(Revoke::Key(read_public(text)?.id().to_string(), from_log));
    }
    if Digest::from_hex(text).is_ok() {
        return Ok(Revoke::Key(text.to_owned(), from_log));
    }
    if from_log.is_some() {
        return Err(Failure::usage("--from-log is for a key; a release is revoked as it is"));
    }
    if text.starts_with("sha256:") {
        return text.parse().map(Revoke::Digest).map_err(Failure::usage);
    }
    let (name, version) = release(text)?;
    Ok(Revoke::Release(name, version))
}

//! The release statement of a first-party plugin: made from its manifest and its component, and
//! verified as the host verifies it.

use std::fs;

use semver::Version;
use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;
use serde::de::value::StrDeserializer;
use toolgate_kit::component::{self, Interfaces};
use toolgate_signing::{
    Digest, Kind, Limits, PublicKey, Release, Threshold, VerifiedRelease, verify_release,
};

use crate::Outcome;
use crate::plugin::Plugin;
use crate::project::Project;

/// The interface of types alone, which cannot be called and which no release lists.
const TYPES: &str = "toolgate:plugin/types@0.1.0";

/// What is to be signed for a plugin whose component has these interfaces.
pub(crate) fn of(
    plugin: &Plugin,
    interfaces: Interfaces,
    sources: &str,
    toolchain: &str,
    previous: Option<Digest>,
) -> Outcome<Release> {
    let manifest = &plugin.manifest;
    let kind = kind(&manifest.kind)?;
    Ok(Release {
        name: manifest.name.clone(),
        version: Version::parse(&plugin.version)?,
        sequence: manifest.sequence,
        kind,
        world: world(kind).to_owned(),
        imports: declared(interfaces.imports),
        exports: interfaces.exports,
        capabilities: manifest.capabilities.clone(),
        decisions: manifest.decisions.clone(),
        limits: Limits {
            memory_bytes: manifest.limits.memory_bytes,
            call_ms: manifest.limits.call_ms,
            init_ms: manifest.limits.init_ms,
            host_bytes: manifest.limits.host_bytes,
        },
        min_host: Version::parse(&manifest.min_host)?,
        servers: manifest.servers.clone(),
        settings_hosts: manifest.settings_hosts.clone(),
        settings_schema: None,
        readme: None,
        sbom: None,
        sources: Some(sources.parse()?),
        toolchain: toolchain.to_owned(),
        previous,
        published: manifest.published.clone(),
    })
}

/// The digest of the release before this one: that of the same plugin with the sequence before.
pub(crate) fn previous(project: &Project, plugin: &Plugin, trusted: &[PublicKey]) -> Outcome<Option<Digest>> {
    let Some(before) = plugin.manifest.sequence.checked_sub(1).filter(|sequence| *sequence > 0) else {
        return Ok(None);
    };
    let versions = project.path(&format!("registry/first-party/{}", plugin.short_name()));
    for version in fs::read_dir(&versions).map_err(|fault| format!("{}: {fault}", versions.display()))? {
        let envelope = fs::read(version?.path().join("release.dsse.json"))?;
        let verified = verified(plugin, &envelope, trusted)?;
        if verified.release().sequence == before {
            return Ok(Some(verified.digest()));
        }
    }
    Err(format!("no release with sequence {before} is in {}", versions.display()).into())
}

/// Verifies an envelope and its component for this very plugin and version: signature, identity,
/// digest, and that the binary imports and exports what the release says.
pub(crate) fn verify(
    plugin: &Plugin,
    envelope: &[u8],
    bytes: &[u8],
    trusted: &[PublicKey],
) -> Outcome<VerifiedRelease> {
    let verified = verified(plugin, envelope, trusted)?;
    verified.check_identity(&plugin.manifest.name, Some(&Version::parse(&plugin.version)?))?;
    verified.check_component(bytes)?;
    let release = verified.release();
    let found = component::interfaces(bytes)?;
    if declared(found.imports) != release.imports || found.exports != release.exports {
        return Err("the release does not list exactly what the component imports and exports".into());
    }
    Ok(verified)
}

fn verified(plugin: &Plugin, envelope: &[u8], trusted: &[PublicKey]) -> Outcome<VerifiedRelease> {
    let rule =
        |name: &str| (name == plugin.manifest.name).then(|| Threshold { keys: trusted.to_vec(), minimum: 1 });
    Ok(verify_release(envelope, &rule)?)
}

/// The imports that a release lists.
fn declared(imports: Vec<String>) -> Vec<String> {
    imports.into_iter().filter(|name| name != TYPES).collect()
}

fn kind(word: &str) -> Outcome<Kind> {
    let word: StrDeserializer<'_, serde::de::value::Error> = word.into_deserializer();
    Ok(Kind::deserialize(word)?)
}

/// The world of `wit/worlds.wit` that a plugin of a kind targets.
fn world(kind: Kind) -> &'static str {
    match kind {
        Kind::Policy => "toolgate:plugin/policy@0.1.0",
        Kind::Installer => "toolgate:plugin/installer-plugin@0.1.0",
        Kind::Adapter => "toolgate:plugin/adapter-plugin@0.1.0",
    }
}

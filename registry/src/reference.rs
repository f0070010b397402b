//! What an operator may write for a plugin, and the bytes it stands for.
//!
//! | written | means |
//! |---|---|
//! | `NAME` or `NAME@RANGE` | the newest release in a registry, in the order of the registries |
//! | `oci://HOST/REPOSITORY@sha256:…` | a component in an OCI registry, by the digest of its manifest |
//! | `https://…/release.dsse.json` | a release on a web server, its component beside it |
//! | `./DIR`, `../DIR`, `/DIR` | a directory with both |
//!
//! Threat: bytes from anywhere. Whatever the way, both files come out within their limits and the
//! component has the digest that the release names, before anything else looks at them. Who signed is
//! then judged by the operator's rules; an index only adds its own.

use std::path::{Path, PathBuf};

use semver::VersionReq;
use toolgate_net::Url;
use toolgate_net::guard::Dialer;
use toolgate_signing::{Digest, MAX_ENVELOPE};

use crate::client::Fetched;
use crate::error::RegistryError;
use crate::layout::is_plugin_name;
use crate::oci::Repository;
use crate::reach::Reach;
use crate::source::{check_url, get};
use crate::{MAX_COMPONENT, files};

/// The file of a release.
const RELEASE_FILE: &str = "release.dsse.json";
/// The file of a component beside it.
const COMPONENT_FILE: &str = "component.wasm";
/// The file of the schema of its settings beside it, where there is one.
const SCHEMA_FILE: &str = "settings.schema.json";
/// Longest schema, bytes; the plugin host reads no longer one.
pub(crate) const MAX_SCHEMA: u64 = 256 * 1024;

/// Where a plugin is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// In a registry.
    Registry {
        /// `namespace/name`.
        name: String,
        /// The versions that will do; `*` if none was written.
        range: VersionReq,
    },
    /// In an OCI registry.
    Oci {
        /// Host, with its port.
        host: String,
        /// The repository.
        repository: String,
        /// The digest of the component's manifest.
        digest: Digest,
    },
    /// On a web server: the URL of the release.
    Release(Url),
    /// In a directory.
    Directory(PathBuf),
}

impl Reference {
    /// Reads a reference. A relative directory counts from wherever it is opened.
    pub fn parse(text: &str) -> Result<Self, RegistryError> {
        let refused = |why: &str| RegistryError::Reference { what: text.to_owned(), why: why.to_owned() };
        if ["./", "../", "/"].iter().any(|start| text.starts_with(start)) || text == "." || text == ".." {
            return Ok(Self::Directory(PathBuf::from(text)));
        }
        if let Some(rest) = text.strip_prefix("oci://") {
            return oci(rest).ok_or_else(|| {
                refused("an OCI reference is oci://HOST/REPOSITORY@sha256:<64 hex digits>; a tag can be moved and pins nothing")
            });
        }
        if text.contains("://") {
            let url = Url::parse(text).map_err(|error| refused(&error.to_string()))?;
            check_url(&url).map_err(refused)?;
            if url.path().rsplit('/').next() != Some(RELEASE_FILE) {
                return Err(refused("the URL of a release ends with /release.dsse.json"));
            }
            return Ok(Self::Release(url));
        }
        let (name, range) = match text.split_once('@') {
            Some((name, range)) => {
                (name, VersionReq::parse(range).map_err(|error| refused(&error.to_string()))?)
            }
            None => (text, VersionReq::STAR),
        };
        if !is_plugin_name(name) {
            return Err(refused("write NAMESPACE/NAME@RANGE, oci://…, https://…/release.dsse.json or ./DIR"));
        }
        Ok(Self::Registry { name: name.to_owned(), range })
    }

    /// The bytes that it stands for; `base` is where a relative directory begins. A name stands for none
    /// by itself: a [`crate::Client`] resolves it. Hosts are reached as `reach` says.
    pub async fn fetch(&self, base: &Path, reach: &Reach) -> Result<Fetched, RegistryError> {
        match self {
            Self::Registry { .. } => Err(RegistryError::Reference {
                what: self.to_string(),
                why: "a name is looked up in a registry".to_owned(),
            }),
            Self::Directory(path) => directory(&base.join(path)),
            Self::Release(url) => web(url, reach).await,
            Self::Oci { host, repository, digest } => {
                Repository::new(host, repository, reach)?.fetch(*digest).await
            }
        }
    }
}

impl std::fmt::Display for Reference {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Registry { name, range } if *range == VersionReq::STAR => formatter.write_str(name),
            Self::Registry { name, range } => write!(formatter, "{name}@{range}"),
            Self::Oci { host, repository, digest } => write!(formatter, "oci://{host}/{repository}@{digest}"),
            Self::Release(url) => write!(formatter, "{url}"),
            Self::Directory(path) => write!(formatter, "{}", path.display()),
        }
    }
}

fn directory(path: &Path) -> Result<Fetched, RegistryError> {
    let read = |name: &str, limit: u64| {
        let file = path.join(name);
        files::read(&file, limit)?.ok_or_else(|| RegistryError::Reference {
            what: path.display().to_string(),
            why: format!("it has no {name}"),
        })
    };
    let release = read(RELEASE_FILE, MAX_ENVELOPE as u64)?;
    let component = read(COMPONENT_FILE, MAX_COMPONENT)?;
    paired(&path.display().to_string(), component, release)
}

async fn web(url: &Url, reach: &Reach) -> Result<Fetched, RegistryError> {
    let dialer = reach.dialer(url).map_err(|why| RegistryError::Source { what: url.to_string(), why })?;
    let component_url = url
        .join(COMPONENT_FILE)
        .map_err(|error| RegistryError::Reference { what: url.to_string(), why: error.to_string() })?;
    let release = whole(&dialer, url, MAX_ENVELOPE as u64).await?;
    let component = whole(&dialer, &component_url, MAX_COMPONENT).await?;
    let mut fetched = paired(url.as_str(), component, release)?;
    if let Some(expected) = claimed_schema(&fetched.release)
        && let Ok(schema_url) = url.join(SCHEMA_FILE)
    {
        let found = get(&dialer, &schema_url, MAX_SCHEMA.saturating_add(1)).await?;
        fetched.schema = named_schema(url.as_str(), expected, found)?;
    }
    Ok(fetched)
}

/// The digest of the schema that a release names; whether the release is signed is not asked here.
pub(crate) fn claimed_schema(release: &[u8]) -> Option<Digest> {
    #[derive(serde::Deserialize)]
    struct Claim {
        predicate: Predicate,
    }
    #[derive(serde::Deserialize)]
    struct Predicate {
        #[serde(default)]
        settings_schema: Option<Digest>,
    }
    let payload = crate::document::claimed_payload(release)?;
    serde_json::from_slice::<Claim>(&payload).ok()?.predicate.settings_schema
}

/// A schema that has the digest which the release names, or none where none came along.
pub(crate) fn named_schema(
    what: &str,
    expected: Digest,
    found: Option<Vec<u8>>,
) -> Result<Option<Vec<u8>>, RegistryError> {
    let Some(bytes) = found else { return Ok(None) };
    let what = format!("the schema of the settings of {what}");
    if bytes.len() as u64 > MAX_SCHEMA {
        return Err(RegistryError::TooLarge { what, limit: MAX_SCHEMA });
    }
    let found = Digest::of(&bytes);
    if found == expected { Ok(Some(bytes)) } else { Err(RegistryError::Digest { what, expected, found }) }
}

async fn whole(dialer: &Dialer, url: &Url, limit: u64) -> Result<Vec<u8>, RegistryError> {
    let what = url.to_string();
    match get(dialer, url, limit.saturating_add(1)).await? {
        None => Err(RegistryError::Unreachable { url: what, detail: "there is no such file".to_owned() }),
        Some(bytes) if bytes.len() as u64 > limit => Err(RegistryError::TooLarge { what, limit }),
        Some(bytes) => Ok(bytes),
    }
}

/// A component and a release that names its digest; whether the release is signed is not asked here.
pub(crate) fn paired(what: &str, component: Vec<u8>, release: Vec<u8>) -> Result<Fetched, RegistryError> {
    #[derive(serde::Deserialize)]
    struct Claim {
        subject: Vec<Subject>,
    }
    #[derive(serde::Deserialize)]
    struct Subject {
        digest: Sha256,
    }
    #[derive(serde::Deserialize)]
    struct Sha256 {
        sha256: String,
    }
    let malformed = || RegistryError::malformed(format!("release at {what}"), "it names no component");
    let payload = crate::document::claimed_payload(&release).ok_or_else(malformed)?;
    let claim: Claim = serde_json::from_slice(&payload).map_err(|_| malformed())?;
    let named = claim.subject.first().and_then(|subject| Digest::from_hex(&subject.digest.sha256).ok());
    let expected = named.ok_or_else(malformed)?;
    let found = Digest::of(&component);
    if found != expected {
        return Err(RegistryError::Digest { what: format!("the component at {what}"), expected, found });
    }
    Ok(Fetched { component, release, schema: None })
}

/// Host, repository and tag of `oci://HOST/REPOSITORY[:TAG]`, where a plugin is pushed to.
pub fn push_target(text: &str) -> Option<(String, String, Option<String>)> {
    let rest = text.strip_prefix("oci://")?;
    let (name, tag) = match rest.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (rest, None),
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let fits = |tag: &str| (1..=128).contains(&tag.len()) && tag.bytes().all(plain);
    if !tag.is_none_or(fits) {
        return None;
    }
    match oci(&format!("{name}@{}", Digest::of(b"")))? {
        Reference::Oci { host, repository, .. } => Some((host, repository, tag.map(str::to_owned))),
        _ => None,
    }
}

/// `HOST/REPOSITORY@sha256:…`, by the grammar of the distribution specification.
fn oci(rest: &str) -> Option<Reference> {
    let (name, digest) = rest.split_once('@')?;
    let (host, repository) = name.split_once('/')?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'[' | b']');
    let part = |part: &str| {
        let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        !part.is_empty()
            && part.bytes().all(|byte| letter(byte) || matches!(byte, b'.' | b'_' | b'-'))
            && part.bytes().next().is_some_and(letter)
            && part.bytes().next_back().is_some_and(letter)
    };
    let sound = !host.is_empty()
        && host.bytes().all(plain)
        && repository.split('/').all(part)
        && repository.len() <= 255;
    let digest = digest.parse().ok()?;
    sound.then(|| Reference::Oci { host: host.to_owned(), repository: repository.to_owned(), digest })
}

#[cfg(test)]
mod tests;

//! Plugins in OCI registries: a component as `application/wasm`, its release as a referrer.
//!
//! Contract. [`Repository::fetch`] takes the digest of the component's manifest and gives bytes that have
//! every digest that was named on the way; who signed is judged by the operator's rules. A registry without
//! the referrers API (distribution-spec 1.1, section "Listing Referrers") is asked for the fallback tag
//! `sha256-<hex>`, and [`Repository::push`] writes that tag where the registry does not say that it took the
//! subject. The same component always has the same manifest, so pushing again changes nothing.
//!
//! Bounds: 4 MiB a manifest, 100 referrers, one retry to sign in, five redirects, the limits of a plugin.
//!
//! Threat: a registry that answers anything, sends elsewhere or asks for credentials. Plain HTTP is for this
//! machine alone, and each address, also of a redirect and of a token service, is judged by `reach`; redirects are followed for reading only, over https, and carry no token to another
//! origin; credentials go to the registry, or to a token service of its own domain.

mod manifest;
mod session;

use bytes::Bytes;
use reqwest::{Method, StatusCode};
use toolgate_net::Url;
use toolgate_signing::{Digest, MAX_ENVELOPE};

use crate::MAX_COMPONENT;
use crate::client::Fetched;
use crate::error::RegistryError;
use crate::publisher::Plugin;
use crate::reach::Reach;
use crate::reference::{MAX_SCHEMA, claimed_schema, named_schema, paired};
use manifest::{Descriptor, Manifest, RELEASE, WASM};
use session::Session;

/// Largest manifest (distribution-spec, "Pushing Manifests").
const MAX_MANIFEST: u64 = 4 * 1024 * 1024;
/// Most referrers that are looked at.
const MAX_REFERRERS: usize = 100;

/// One repository of an OCI registry.
pub struct Repository {
    session: Session,
    host: String,
    name: String,
}

/// What was pushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    /// The reference to install it by.
    pub reference: String,
    /// Digest of the component's manifest.
    pub digest: Digest,
    /// Whether the registry has no referrers API, so that the fallback tag was written.
    pub by_fallback_tag: bool,
}

impl Repository {
    /// A repository by host (with its port) and name, as [`crate::Reference::Oci`] has them, reached as
    /// `reach` says. Nothing is asked.
    pub fn new(host: &str, name: &str, reach: &Reach) -> Result<Self, RegistryError> {
        let session = Session::new(host, name, reach)?;
        Ok(Self { session, host: host.to_owned(), name: name.to_owned() })
    }

    /// The component whose manifest has this digest, and the release that refers to it.
    pub async fn fetch(&self, digest: Digest) -> Result<Fetched, RegistryError> {
        let what = self.reference(digest);
        let component = self.manifest(digest).await?;
        let layer = component.only_layer(WASM).ok_or_else(|| {
            RegistryError::malformed(&what, format!("it has not exactly one layer of type {WASM}"))
        })?;
        let bytes = self.blob(layer, MAX_COMPONENT).await?;
        let mut refused = None;
        for referrer in self.referrers(digest).await? {
            match self.with_release(digest, &referrer, &bytes).await {
                Ok(fetched) => return Ok(fetched),
                Err(error) => refused = Some(error),
            }
        }
        Err(refused.unwrap_or_else(|| RegistryError::Absent(format!("release that refers to {what}"))))
    }

    /// A component with the release that one referrer holds, and the schema of its settings where that is
    /// beside it.
    async fn with_release(
        &self,
        digest: Digest,
        referrer: &Descriptor,
        component: &[u8],
    ) -> Result<Fetched, RegistryError> {
        let what = self.reference(digest);
        let (release, schema) = self.release(digest, referrer).await?;
        let mut fetched = paired(&what, component.to_vec(), release)?;
        if let (Some(expected), Some(layer)) = (claimed_schema(&fetched.release), schema) {
            fetched.schema = named_schema(&what, expected, Some(self.blob(&layer, MAX_SCHEMA).await?))?;
        }
        Ok(fetched)
    }

    /// Pushes a plugin, and names it by `tag` too where one is given. Of its other files the schema of its
    /// settings goes along, beside the release that names it.
    ///
    /// # Errors
    /// Files that do not belong together, before anything is sent.
    pub async fn push(&self, plugin: Plugin, tag: Option<&str>) -> Result<Pushed, RegistryError> {
        let Plugin { component, release, others } = plugin;
        let plugin = paired("the plugin to push", component, release)?;
        let named = claimed_schema(&plugin.release);
        let schema = others.into_iter().find(|other| named == Some(Digest::of(other))).map(Bytes::from);
        let component = Bytes::from(plugin.component);
        let layer = Descriptor::of(WASM, &component);
        let config = Bytes::from(manifest::wasm_config(&layer));
        let whole = manifest::component(&config, &layer);
        let digest = whole.digest;
        self.upload(component).await?;
        self.upload(config).await?;
        self.put_manifest(&whole.bytes, manifest::MANIFEST, &digest.to_string()).await?;
        let release = Bytes::from(plugin.release);
        let mut layers = vec![Descriptor::of(manifest::DSSE, &release)];
        layers.extend(schema.as_ref().map(|schema| Descriptor::of(manifest::SCHEMA, schema)));
        let referrer = manifest::release(&whole, &layers);
        self.upload(release).await?;
        if let Some(schema) = schema {
            self.upload(schema).await?;
        }
        self.upload(Bytes::from_static(manifest::EMPTY)).await?;
        let answer =
            self.put_manifest(&referrer.bytes, manifest::MANIFEST, &referrer.digest.to_string()).await?;
        let by_fallback_tag = !answer.headers().contains_key("oci-subject");
        if by_fallback_tag {
            self.tag_referrer(digest, &referrer).await?;
        }
        // Last: whoever follows the tag finds a whole plugin.
        if let Some(tag) = tag {
            self.put_manifest(&whole.bytes, manifest::MANIFEST, tag).await?;
        }
        Ok(Pushed { reference: self.reference(digest), digest, by_fallback_tag })
    }

    fn reference(&self, digest: Digest) -> String {
        format!("oci://{}/{}@{digest}", self.host, self.name)
    }

    async fn manifest(&self, digest: Digest) -> Result<Manifest, RegistryError> {
        let path = format!("manifests/{digest}");
        let bytes = self.session.get(&path, manifest::MANIFEST, MAX_MANIFEST).await?;
        let bytes = bytes.ok_or_else(|| RegistryError::Absent(self.reference(digest)))?;
        named(&self.reference(digest), digest, &bytes)?;
        manifest::read(&self.reference(digest), &bytes)
    }

    async fn blob(&self, layer: &Descriptor, limit: u64) -> Result<Vec<u8>, RegistryError> {
        let what = format!("blob {} of {}/{}", layer.digest, self.host, self.name);
        if layer.size > limit {
            return Err(RegistryError::TooLarge { what, limit });
        }
        let bytes = self.session.get(&format!("blobs/{}", layer.digest), "*/*", layer.size).await?;
        let bytes = bytes.ok_or_else(|| RegistryError::Absent(what.clone()))?;
        named(&what, layer.digest, &bytes)?;
        Ok(bytes)
    }

    /// What refers to a manifest and says that it is a release, by the API and by the fallback tag.
    async fn referrers(&self, digest: Digest) -> Result<Vec<Descriptor>, RegistryError> {
        let asked =
            [format!("referrers/{digest}?artifactType={}", RELEASE.replace('+', "%2B")), fallback(digest)];
        for path in asked {
            let Some(bytes) = self.session.get(&path, manifest::INDEX, MAX_MANIFEST).await? else { continue };
            let listed = manifest::read(&self.reference(digest), &bytes)?.manifests;
            let releases: Vec<Descriptor> = listed
                .into_iter()
                .filter(|one| one.artifact_type.as_deref() == Some(RELEASE))
                .take(MAX_REFERRERS)
                .collect();
            if !releases.is_empty() {
                return Ok(releases);
            }
        }
        Ok(Vec::new())
    }

    /// The release in a referrer, and where the schema of its settings is.
    async fn release(
        &self,
        subject: Digest,
        referrer: &Descriptor,
    ) -> Result<(Vec<u8>, Option<Descriptor>), RegistryError> {
        let what = self.reference(referrer.digest);
        let found = self.manifest(referrer.digest).await?;
        let refers = found.subject.as_ref().is_some_and(|named| named.digest == subject);
        match found.one_layer(manifest::DSSE).filter(|_| refers) {
            Some(layer) => {
                let release = self.blob(layer, MAX_ENVELOPE as u64).await?;
                Ok((release, found.one_layer(manifest::SCHEMA).cloned()))
            }
            None => {
                Err(RegistryError::malformed(what, "it is listed as a release of a component and is none"))
            }
        }
    }

    async fn upload(&self, bytes: Bytes) -> Result<(), RegistryError> {
        let digest = Digest::of(&bytes);
        let path = format!("blobs/{digest}");
        if self.session.send(Method::HEAD, self.session.at(&path)?, None, None).await?.status()
            == StatusCode::OK
        {
            return Ok(());
        }
        let begun = self.session.at("blobs/uploads/")?;
        let answer =
            self.session.expect(Method::POST, begun, None, Some(Bytes::new()), StatusCode::ACCEPTED).await?;
        let place = self.session.location(&answer)?;
        let place = with_digest(place, digest);
        let stream = Some("application/octet-stream");
        self.session.expect(Method::PUT, place, stream, Some(bytes), StatusCode::CREATED).await.map(drop)
    }

    async fn put_manifest(
        &self,
        bytes: &[u8],
        media_type: &'static str,
        reference: &str,
    ) -> Result<reqwest::Response, RegistryError> {
        let url = self.session.at(&format!("manifests/{reference}"))?;
        let body = Some(Bytes::copy_from_slice(bytes));
        self.session.expect(Method::PUT, url, Some(media_type), body, StatusCode::CREATED).await
    }

    /// Adds a referrer to the index under the fallback tag (distribution-spec, "Referrers Tag Schema").
    async fn tag_referrer(&self, subject: Digest, referrer: &manifest::Whole) -> Result<(), RegistryError> {
        let path = fallback(subject);
        let known = match self.session.get(&path, manifest::INDEX, MAX_MANIFEST).await? {
            Some(bytes) => manifest::read(&self.reference(subject), &bytes)?.manifests,
            None => Vec::new(),
        };
        let index = manifest::index(known, referrer);
        let tag = path.trim_start_matches("manifests/");
        self.put_manifest(&index, manifest::INDEX, tag).await.map(drop)
    }
}

fn fallback(digest: Digest) -> String {
    format!("manifests/sha256-{}", digest.hex())
}

fn with_digest(mut place: Url, digest: Digest) -> Url {
    place.query_pairs_mut().append_pair("digest", &digest.to_string());
    place
}

fn named(what: &str, expected: Digest, bytes: &[u8]) -> Result<(), RegistryError> {
    let found = Digest::of(bytes);
    if found == expected {
        return Ok(());
    }
    Err(RegistryError::Digest { what: what.to_owned(), expected, found })
}

#[cfg(test)]
mod tests;

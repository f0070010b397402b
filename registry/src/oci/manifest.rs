//! The documents of an OCI registry that a plugin needs (image-spec 1.1; the layout of components is that of
//! the CNCF's guidance for Wasm artifacts).

use serde::{Deserialize, Serialize};
use serde_json::json;
use toolgate_signing::Digest;

use crate::error::RegistryError;

/// A component.
pub(super) const WASM: &str = "application/wasm";
/// The envelope of a release.
pub(super) const DSSE: &str = "application/vnd.dsse.envelope.v1+json";
/// The schema of a plugin's settings, beside the release that names it.
pub(super) const SCHEMA: &str = "application/schema+json";
/// What a referrer that holds a release says it is.
pub(super) const RELEASE: &str = "application/vnd.toolgate.release.v1+json";
/// A manifest.
pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// A list of manifests.
pub(super) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// The empty config that image-spec prescribes where there is nothing to say.
pub(super) const EMPTY: &[u8] = b"{}";
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";
const WASM_CONFIG: &str = "application/vnd.wasm.config.v0+json";

/// A reference to bytes by digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    pub(super) media_type: String,
    pub(super) digest: Digest,
    pub(super) size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) artifact_type: Option<String>,
}

impl Descriptor {
    pub(super) fn of(media_type: &str, bytes: &[u8]) -> Self {
        Self {
            media_type: media_type.to_owned(),
            digest: Digest::of(bytes),
            size: bytes.len() as u64,
            artifact_type: None,
        }
    }
}

/// A manifest or an index, as far as it matters here. What else stands in it says nothing to us.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Manifest {
    #[serde(default)]
    pub(super) layers: Vec<Descriptor>,
    #[serde(default)]
    pub(super) manifests: Vec<Descriptor>,
    pub(super) subject: Option<Descriptor>,
}

impl Manifest {
    /// The one layer, if it is of this type.
    pub(super) fn only_layer(&self, media_type: &str) -> Option<&Descriptor> {
        match &self.layers[..] {
            [layer] if layer.media_type == media_type => Some(layer),
            _ => None,
        }
    }

    /// The layer of this type, if there is one of it and no second.
    pub(super) fn one_layer(&self, media_type: &str) -> Option<&Descriptor> {
        let mut layers = self.layers.iter().filter(|layer| layer.media_type == media_type);
        layers.next().filter(|_| layers.next().is_none())
    }
}

pub(super) fn read(what: &str, bytes: &[u8]) -> Result<Manifest, RegistryError> {
    serde_json::from_slice(bytes)
        .map_err(|error| RegistryError::malformed(format!("manifest of {what}"), error.to_string()))
}

/// A manifest to push.
pub(super) struct Whole {
    pub(super) bytes: Vec<u8>,
    pub(super) digest: Digest,
}

impl Whole {
    fn of(document: &serde_json::Value) -> Self {
        let bytes = document.to_string().into_bytes();
        Self { digest: Digest::of(&bytes), bytes }
    }

    fn descriptor(&self, artifact_type: Option<&str>) -> Descriptor {
        let artifact_type = artifact_type.map(str::to_owned);
        Descriptor { artifact_type, ..Descriptor::of(MANIFEST, &self.bytes) }
    }
}

/// The config of a component: without a date, so that the same component has the same manifest.
pub(super) fn wasm_config(layer: &Descriptor) -> Vec<u8> {
    json!({ "architecture": "wasm", "os": "wasip2", "layerDigests": [layer.digest] }).to_string().into_bytes()
}

pub(super) fn component(config: &[u8], layer: &Descriptor) -> Whole {
    Whole::of(&json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": Descriptor::of(WASM_CONFIG, config),
        "layers": [layer],
    }))
}

pub(super) fn release(component: &Whole, layers: &[Descriptor]) -> Whole {
    Whole::of(&json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": RELEASE,
        "config": Descriptor::of(EMPTY_TYPE, EMPTY),
        "layers": layers,
        "subject": component.descriptor(None),
    }))
}

/// The known referrers with one more.
pub(super) fn index(mut known: Vec<Descriptor>, referrer: &Whole) -> Vec<u8> {
    let new = referrer.descriptor(Some(RELEASE));
    if !known.iter().any(|one| one.digest == new.digest) {
        known.push(new);
    }
    json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": known }).to_string().into_bytes()
}

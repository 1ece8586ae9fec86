//! The artifact of a plugin: an image manifest with one layer, the component.

use super::digest::Digest;
use sandbox::source::NotAComponent;
use serde::{Deserialize, Serialize, de::IgnoredAny};
use std::collections::BTreeMap;

/// The media type of a manifest.
pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// The media type of a list of manifests.
pub(super) const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// The media type of a component.
pub(super) const WASM: &str = "application/wasm";

/// The media type of a component's config.
pub(super) const WASM_CONFIG: &str = "application/vnd.wasm.config.v0+json";

/// The `Accept` header for manifests. It includes unsupported types, so that they are distinguished from a missing
/// manifest.
pub(super) const ANY_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
                                       application/vnd.docker.distribution.manifest.v2+json, \
                                       application/vnd.docker.distribution.manifest.list.v2+json";

/// Supported media types of a config: the description of a component, or the empty configs that ORAS writes.
const CONFIGS: [&str; 3] = [WASM_CONFIG, "application/vnd.oci.empty.v1+json", "application/vnd.unknown.config.v1+json"];

/// An image manifest.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Manifest {
    pub(super) schema_version: u32,
    #[serde(default)]
    pub(super) media_type: String,
    pub(super) config: Descriptor,
    pub(super) layers: Vec<Descriptor>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) annotations: BTreeMap<String, String>,
}

/// A content descriptor: media type, digest and size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    pub(super) media_type: String,
    pub(super) digest: String,
    pub(super) size: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) annotations: BTreeMap<String, String>,
}

/// The component that a manifest names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layer {
    pub(super) digest: Digest,
    pub(super) size: u64,
}

/// The reason why an artifact is not a plugin.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The manifest cannot be parsed.
    #[error("its manifest cannot be read")]
    Json(#[source] serde_json::Error),
    /// The artifact is a list of manifests.
    #[error("it is an index of several artifacts: name the plugin's own by its digest")]
    Index,
    /// The manifest has another media type.
    #[error("its media type is {found:?}, not {MANIFEST}: {PUSH}")]
    MediaType {
        /// The actual media type.
        found: String,
    },
    /// The config has another media type, such as that of a container image.
    #[error("its config has media type {found:?}, not {WASM_CONFIG}: {PUSH}")]
    Config {
        /// The actual media type.
        found: String,
    },
    /// The manifest does not have exactly one layer.
    #[error("it has {found} layers, and a plugin is one of {WASM}: {PUSH}")]
    Layers {
        /// The number of layers.
        found: usize,
    },
    /// The layer has another media type.
    #[error("its layer has media type {found:?}, not {WASM}: {PUSH}")]
    Layer {
        /// The actual media type.
        found: String,
    },
    /// The layer's digest is not a SHA-256.
    #[error("its layer has digest {found:?}, which is no SHA-256: {PUSH}")]
    Digest {
        /// The actual digest.
        found: String,
    },
    /// The layer is declared to be too large.
    #[error(
        "its component has {declared} bytes, more than {limit}: build it with opt-level \"s\", LTO and strip, or let the \
         host take it with --max-plugin-bytes"
    )]
    TooLarge {
        /// The declared size in bytes.
        declared: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The layer is not a WebAssembly component.
    #[error("its layer is {0}")]
    NotAComponent(NotAComponent),
}

/// Advice on how to push a plugin.
const PUSH: &str = "push it with `troupe plugin push`, or with `oras push REFERENCE plugin.wasm:application/wasm`";

impl Manifest {
    /// Parses a manifest, whose media type the registry declares as `media_type`.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a manifest, or a list of manifests.
    pub(super) fn read(bytes: &[u8], media_type: &str) -> Result<Self, ManifestError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Kind {
            media_type: Option<String>,
            manifests: Option<IgnoredAny>,
        }
        let kind: Kind = serde_json::from_slice(bytes).map_err(ManifestError::Json)?;
        let declared = kind.media_type.as_deref().unwrap_or(media_type);
        if kind.manifests.is_some() || [declared, media_type].contains(&INDEX) {
            return Err(ManifestError::Index);
        }
        // Both declared types must agree, so that every reader reads the bytes as the same type.
        if let Some(found) = [declared, media_type].into_iter().find(|one| *one != MANIFEST) {
            return Err(ManifestError::MediaType { found: found.to_owned() });
        }
        serde_json::from_slice(bytes).map_err(ManifestError::Json)
    }

    /// Returns the layer of the component, which may be declared with at most `limit` bytes.
    ///
    /// # Errors
    /// Returns an error if the artifact is not a plugin.
    pub(super) fn component(&self, limit: u64) -> Result<Layer, ManifestError> {
        if !CONFIGS.contains(&self.config.media_type.as_str()) {
            return Err(ManifestError::Config { found: self.config.media_type.clone() });
        }
        let [layer] = self.layers.as_slice() else {
            return Err(ManifestError::Layers { found: self.layers.len() });
        };
        if layer.media_type != WASM {
            return Err(ManifestError::Layer { found: layer.media_type.clone() });
        }
        if layer.size > limit {
            return Err(ManifestError::TooLarge { declared: layer.size, limit });
        }
        let digest =
            Digest::parse(&layer.digest).ok_or_else(|| ManifestError::Digest { found: layer.digest.clone() })?;
        Ok(Layer { digest, size: layer.size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn artifact() -> Value {
        json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": { "mediaType": WASM_CONFIG, "digest": Digest::of(b"{}").to_string(), "size": 2 },
            "layers": [{ "mediaType": WASM, "digest": Digest::of(b"wasm").to_string(), "size": 4 }],
        })
    }

    fn vet(manifest: &Value, media_type: &str) -> Result<Layer, ManifestError> {
        Manifest::read(manifest.to_string().as_bytes(), media_type)?.component(4)
    }

    /// Returns the artifact with another value at this pointer.
    fn changed(pointer: &str, value: Value) -> Value {
        let mut manifest = artifact();
        *manifest.pointer_mut(pointer).unwrap() = value;
        manifest
    }

    #[test]
    fn one_layer_of_wasm_is_a_plugin() {
        let layer = vet(&artifact(), MANIFEST).unwrap();
        assert_eq!(layer, Layer { digest: Digest::of(b"wasm"), size: 4 });
    }

    #[test]
    fn an_artifact_pushed_by_oras_is_a_plugin() {
        // As `oras push REFERENCE plugin.wasm:application/wasm` writes it.
        let mut of_oras = changed("/config/mediaType", json!("application/vnd.oci.empty.v1+json"));
        of_oras["artifactType"] = json!("application/vnd.unknown.artifact.v1");
        of_oras["config"]["data"] = json!("e30=");
        of_oras["layers"][0]["annotations"] = json!({ "org.opencontainers.image.title": "plugin.wasm" });
        of_oras["annotations"] = json!({ "org.opencontainers.image.created": "2026-01-02T03:04:05Z" });
        assert!(vet(&of_oras, MANIFEST).is_ok());
        let older = changed("/config/mediaType", json!("application/vnd.unknown.config.v1+json"));
        assert!(vet(&older, MANIFEST).is_ok());
    }

    #[test]
    fn another_artifact_is_refused_with_advice() {
        let refused = |manifest: &Value, media_type: &str| vet(manifest, media_type).unwrap_err().to_string();
        let image = changed("/config/mediaType", json!("application/vnd.oci.image.config.v1+json"));
        assert!(refused(&image, MANIFEST).contains("its config has media type"));
        let layer = changed("/layers/0/mediaType", json!("application/vnd.oci.image.layer.v1.tar+gzip"));
        assert!(refused(&layer, MANIFEST).contains("oras push REFERENCE plugin.wasm:application/wasm"));
        let twice = changed("/layers", json!([artifact()["layers"][0], artifact()["layers"][0]]));
        assert!(refused(&twice, MANIFEST).starts_with("it has 2 layers"));
        assert!(refused(&changed("/layers", json!([])), MANIFEST).starts_with("it has 0 layers"));
        let digest = changed("/layers/0/digest", json!("sha512:00"));
        assert!(refused(&digest, MANIFEST).contains("is no SHA-256"));
        let large = changed("/layers/0/size", json!(5));
        assert!(refused(&large, MANIFEST).starts_with("its component has 5 bytes, more than 4"));
        let docker = "application/vnd.docker.distribution.manifest.v2+json";
        assert!(refused(&changed("/mediaType", json!(docker)), docker).contains(docker));
        assert!(refused(&artifact(), "text/html").starts_with("its media type is \"text/html\""));
        assert!(refused(&changed("/layers/0/size", json!(-1)), MANIFEST).starts_with("its manifest cannot be read"));
        assert!(refused(&json!([]), MANIFEST).starts_with("its manifest cannot be read"));
    }

    #[test]
    fn an_index_is_recognised_under_any_media_type() {
        let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [] });
        assert!(matches!(vet(&index, INDEX), Err(ManifestError::Index)));
        let mut both = artifact();
        both["manifests"] = json!([]);
        assert!(matches!(vet(&both, MANIFEST), Err(ManifestError::Index)));
        assert!(matches!(vet(&artifact(), INDEX), Err(ManifestError::Index)));
    }
}

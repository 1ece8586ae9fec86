//! What an artifact of a plugin looks like: an image manifest with one layer, the component.

use super::digest::Digest;
use serde::{Deserialize, Serialize, de::IgnoredAny};
use std::collections::BTreeMap;

/// The media type of a manifest.
pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// The media type of a list of manifests.
pub(super) const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// The media type of a component.
pub(super) const WASM: &str = "application/wasm";

/// The media type of what describes a component.
pub(super) const WASM_CONFIG: &str = "application/vnd.wasm.config.v0+json";

/// Accepted of a registry, so that another manifest is told apart from none.
pub(super) const ANY_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
                                       application/vnd.docker.distribution.manifest.v2+json, \
                                       application/vnd.docker.distribution.manifest.list.v2+json";

/// Configs of a component: its description, or the empty ones that ORAS writes.
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

/// What names content: its type, digest and size.
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

/// Why an artifact is no plugin's.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It is no manifest.
    #[error("its manifest cannot be read")]
    Json(#[source] serde_json::Error),
    /// It is a list of manifests.
    #[error("it is an index of several artifacts: name the plugin's own by its digest")]
    Index,
    /// It is of another media type.
    #[error("its media type is {found:?}, not {MANIFEST}: {PUSH}")]
    MediaType {
        /// Which.
        found: String,
    },
    /// It is described as something else, such as a container's image.
    #[error("its config has media type {found:?}, not {WASM_CONFIG}: {PUSH}")]
    Config {
        /// Which.
        found: String,
    },
    /// It has not one layer.
    #[error("it has {found} layers, and a plugin is one of {WASM}: {PUSH}")]
    Layers {
        /// How many.
        found: usize,
    },
    /// Its layer is something else.
    #[error("its layer has media type {found:?}, not {WASM}: {PUSH}")]
    Layer {
        /// Which.
        found: String,
    },
    /// Its layer is named by another algorithm than SHA-256.
    #[error("its layer has digest {found:?}, which is no SHA-256: {PUSH}")]
    Digest {
        /// What stands there.
        found: String,
    },
    /// Its layer is declared to be too large.
    #[error("its component has {declared} bytes, more than {limit}: build it with opt-level \"s\", LTO and strip")]
    TooLarge {
        /// How large.
        declared: u64,
        /// What is allowed.
        limit: u64,
    },
    /// What it contains is no component.
    #[error("its layer is no WebAssembly component: build it for the target wasm32-wasip2")]
    NotAComponent,
}

/// What makes an artifact that is a plugin's.
const PUSH: &str = "push it with `troupe plugin push`, or with `oras push REFERENCE plugin.wasm:application/wasm`";

impl Manifest {
    /// The manifest in these bytes, which the registry says are of the media type.
    ///
    /// # Errors
    /// It is none, or a list of them.
    pub(super) fn read(bytes: &[u8], media_type: &str) -> Result<Self, ManifestError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Kind {
            media_type: Option<String>,
            manifests: Option<IgnoredAny>,
        }
        let kind: Kind = serde_json::from_slice(bytes).map_err(ManifestError::Json)?;
        let says = kind.media_type.as_deref().unwrap_or(media_type);
        if kind.manifests.is_some() || [says, media_type].contains(&INDEX) {
            return Err(ManifestError::Index);
        }
        // What it is read as must not depend on who reads it.
        if let Some(found) = [says, media_type].into_iter().find(|one| *one != MANIFEST) {
            return Err(ManifestError::MediaType { found: found.to_owned() });
        }
        serde_json::from_slice(bytes).map_err(ManifestError::Json)
    }

    /// The component that it is of, which is declared to have no more bytes than `limit`.
    ///
    /// # Errors
    /// It is no plugin's.
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

    /// The artifact with a change at one place.
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
    fn what_oras_pushes_is_a_plugin_too() {
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
    fn what_is_no_plugin_is_refused_with_what_would_be_right() {
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
    fn an_index_is_told_apart_whatever_it_calls_itself() {
        let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [] });
        assert!(matches!(vet(&index, INDEX), Err(ManifestError::Index)));
        let mut both = artifact();
        both["manifests"] = json!([]);
        assert!(matches!(vet(&both, MANIFEST), Err(ManifestError::Index)));
        assert!(matches!(vet(&artifact(), INDEX), Err(ManifestError::Index)));
    }
}

//! From a Plugin's source to bytes.

use crate::{
    api::answer,
    plugin_resource::{ConfigMapSource, OciSource, PluginSpec, Source},
};
use decide::Digest;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client};
use registry::{
    CredentialsError, DockerConfig, KeyError, PublicKey, PullError, PullOptions, Pulled, Reference, ReferenceError,
};
use sandbox::{
    Plugins,
    source::{self, COMPRESSED_KEY, DecompressError, KEY},
};
use std::{collections::BTreeSet, time::Duration};

/// Bytes of a source.
#[derive(Debug, Clone)]
pub(super) struct Fetched {
    pub(super) wasm: Vec<u8>,
    pub(super) digest: Digest,
    /// Where they lie in a registry: what its reference resolved to, by the digest of the artifact's manifest.
    pub(super) artifact: Option<OciSource>,
}

/// Why there are no bytes. The message says what to do.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("spec.source has none of configMap, oci and builtIn")]
    NoSource,
    #[error(
        "spec.publicKey can only be checked of spec.source.oci; use a registry, or pin the component by spec.digest"
    )]
    NotSigned,
    #[error("spec.source.oci.reference")]
    Reference(#[source] ReferenceError),
    #[error("spec.publicKey")]
    Key(#[source] KeyError),
    #[error("spec.source.oci.pullSecret: secret/{name}")]
    Credentials { name: String, source: CredentialsError },
    #[error(transparent)]
    Pull(#[from] PullError),
    #[error("no plugin called {0} comes with this host; give spec.source.configMap or spec.source.oci")]
    NotBuiltIn(String),
    #[error("this host has no namespace of its own; start it with --plugin-namespace")]
    NoNamespace,
    #[error(
        "namespace {0} is no source of plugins: use the host's namespace {1}, or start the host with \
         --plugin-source-namespace {0}"
    )]
    NotAllowed(String, String),
    #[error(
        "there is no configmap/{0} in namespace {1}; make it with `troupe plugin configmap FILE --name {0} -n {1} | \
         kubectl apply --server-side -f -`"
    )]
    NoConfigMap(String, String),
    #[error("configmap/{name} has no binaryData {wanted}, it has {has}")]
    NoKey { name: String, wanted: String, has: String },
    #[error("configmap/{0}: the component is not acceptable")]
    Inflate(String, #[source] DecompressError),
    #[error("failed to read {name}: {}", crate::error::chain(.source))]
    Api { name: String, source: kube::Error },
}

impl FetchError {
    /// The reason of a condition.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::NoSource | Self::Reference(_) => "NoSource",
            Self::NotSigned | Self::Key(_) => "PublicKey",
            Self::Credentials { .. } => "PullSecret",
            Self::Pull(PullError::Signature { .. }) => "SignatureInvalid",
            Self::Pull(PullError::Manifest { .. }) => "NotAnArtifact",
            Self::Pull(PullError::Registry { .. }) => "PullFailed",
            Self::NotBuiltIn(_) | Self::NoConfigMap(..) | Self::NoKey { .. } => "NotFound",
            Self::NoNamespace | Self::NotAllowed(..) => "NamespaceNotAllowed",
            Self::Inflate(..) => "TooLarge",
            Self::Api { .. } => "FetchFailed",
        }
    }

    /// How long the API server asks to wait.
    pub(super) fn retry_after(&self) -> Duration {
        let asked = if let Self::Api { source, .. } = self { answer::retry_after(source) } else { None };
        asked.unwrap_or_default()
    }
}

/// Where bytes may come from.
#[derive(Clone)]
pub(super) struct Sources {
    pub(super) client: Client,
    /// The host's own namespace.
    pub(super) namespace: Option<String>,
    /// Others that ConfigMaps may be in.
    pub(super) allowed: BTreeSet<String>,
    /// A component has no more bytes than this.
    pub(super) limit: usize,
}

impl Sources {
    /// The bytes that the source of the Plugin with this name has now.
    pub(super) async fn fetch(&self, plugin: &str, spec: &PluginSpec) -> Result<Fetched, FetchError> {
        if spec.public_key.is_some() && spec.source.oci.is_none() {
            return Err(FetchError::NotSigned);
        }
        match &spec.source {
            Source { config_map: Some(map), .. } => self.config_map(map).await,
            Source { oci: Some(oci), .. } => self.registry(oci, spec.public_key.as_deref()).await,
            Source { built_in: Some(_), .. } => {
                let wasm = Plugins::built_in(plugin).ok_or_else(|| FetchError::NotBuiltIn(plugin.to_owned()))?;
                Ok(fetched(wasm.to_vec()))
            }
            Source { config_map: None, oci: None, built_in: None } => Err(FetchError::NoSource),
        }
    }

    /// The namespace of a ConfigMap, if it may be a source.
    pub(super) fn namespace_of(&self, map: &ConfigMapSource) -> Result<String, FetchError> {
        let own = self.namespace.as_ref().ok_or(FetchError::NoNamespace)?;
        let namespace = map.namespace.as_ref().unwrap_or(own);
        if namespace == own || self.allowed.contains(namespace) {
            return Ok(namespace.clone());
        }
        Err(FetchError::NotAllowed(namespace.clone(), own.clone()))
    }

    /// The bytes of an artifact, signed by the key if one is given.
    pub(super) async fn registry(&self, from: &OciSource, key: Option<&str>) -> Result<Fetched, FetchError> {
        let reference = Reference::parse(&from.reference).map_err(FetchError::Reference)?;
        let options = PullOptions {
            credentials: self.credentials(from).await?,
            insecure: from.insecure,
            public_key: key.map(PublicKey::parse).transpose().map_err(FetchError::Key)?,
            limit: self.limit,
            ..PullOptions::default()
        };
        let Pulled { wasm, digest, resolved } = registry::pull(&reference, &options).await?;
        Ok(Fetched { wasm, digest, artifact: Some(OciSource { reference: resolved, ..from.clone() }) })
    }

    async fn credentials(&self, from: &OciSource) -> Result<DockerConfig, FetchError> {
        let Some(name) = &from.pull_secret else { return Ok(DockerConfig::default()) };
        let namespace = self.namespace.as_ref().ok_or(FetchError::NoNamespace)?;
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let secret = secrets.get(name).await.map_err(|source| FetchError::Api { name: name.clone(), source })?;
        DockerConfig::of_secret(&secret).map_err(|source| FetchError::Credentials { name: name.clone(), source })
    }

    async fn config_map(&self, from: &ConfigMapSource) -> Result<Fetched, FetchError> {
        let namespace = self.namespace_of(from)?;
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), &namespace);
        let found =
            maps.get_opt(&from.name).await.map_err(|source| FetchError::Api { name: from.name.clone(), source })?;
        let map = found.ok_or_else(|| FetchError::NoConfigMap(from.name.clone(), namespace.clone()))?;
        component_in(map, from, self.limit).map(fetched)
    }
}

/// The component in a ConfigMap, decompressed to at most `limit` bytes: at the key that the source names, else at ours.
pub(super) fn component_in(map: ConfigMap, from: &ConfigMapSource, limit: usize) -> Result<Vec<u8>, FetchError> {
    let mut data = map.binary_data.unwrap_or_default();
    let wanted = from.key.clone().map_or_else(|| vec![KEY.to_owned(), COMPRESSED_KEY.to_owned()], |key| vec![key]);
    let Some((key, bytes)) = wanted.iter().find_map(|key| Some((key, data.remove(key)?.0))) else {
        let has = data.into_keys().collect::<Vec<_>>().join(", ");
        let has = if has.is_empty() { "none".to_owned() } else { has };
        return Err(FetchError::NoKey { name: from.name.clone(), wanted: wanted.join(" or "), has });
    };
    match key.ends_with(".zst") {
        true => source::decompress(&bytes, limit).map_err(|error| FetchError::Inflate(from.name.clone(), error)),
        false => Ok(bytes),
    }
}

fn fetched(wasm: Vec<u8>) -> Fetched {
    Fetched { digest: source::digest(&wasm), wasm, artifact: None }
}

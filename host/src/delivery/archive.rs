//! What is kept of the plugins that jobs are planned by, in the host's namespace as immutable ConfigMaps: whatever becomes
//! of a plugin's source, and of this host, a running job's plugin is there.
//!
//! It is the bytes; of a large component from a registry it is where that registry has it. When they are released is in
//! `sweep`.

mod sweep;

use super::{
    fetch::{FetchError, Sources},
    mark::Mark,
    watched::watching,
};
use crate::{
    api::{answer, back_off::Waits, patient::patient},
    error::chain,
    plugin_resource::OciSource,
};
use decide::Digest;
use futures::{Stream, StreamExt};
use k8s_openapi::{ByteString, api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api, Resource,
    api::{DeleteParams, GetParams, Patch, PatchParams, PostParams, Preconditions},
    core::{PartialObjectMeta, Request},
    runtime::{
        WatchStreamExt, reflector,
        utils::ResetTimerBackoff,
        watcher::{self, Event},
    },
};
use sandbox::{
    Plugins,
    source::{self, COMPRESSED_KEY, DIGEST_ANNOTATION, Ratio},
};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// A component with more bytes than this stays with the registry that it came from.
pub(super) const LARGEST: usize = 8 << 20;

/// Bytes of a plugin in one ConfigMap.
const CHUNK: usize = 900 << 10;

/// Where a ConfigMap says which artifact of a registry the plugin is, as a Plugin's `spec.source.oci` does.
const ARTIFACT_KEY: &str = "oci.json";

/// How many ConfigMaps hold the plugin.
const CHUNKS_ANNOTATION: &str = "troupe.dev/chunks";

/// Since when nothing needs the plugin.
const UNUSED_ANNOTATION: &str = "troupe.dev/unused-since";

/// Marks the ConfigMaps.
const LABEL: (&str, &str) = ("troupe.dev/kept", "plugin");

/// Why bytes cannot be kept or loaded.
#[derive(Debug, thiserror::Error)]
pub(super) enum ArchiveError {
    /// The host has no namespace for them.
    #[error("this host keeps no bytes of plugins")]
    NoNamespace,
    /// There are none.
    #[error("the host has not kept {0}")]
    NotKept(String),
    /// They are not what they were.
    #[error("what the host has kept of {0} is damaged")]
    Damaged(String),
    /// They stayed with their registry, which does not give them.
    #[error("{digest} is too large to be kept anywhere but in its registry")]
    Pull {
        /// Whose bytes.
        digest: String,
        /// Why they do not come.
        source: Box<FetchError>,
    },
    /// They stayed with their registry, and it is not they what the reference names.
    #[error("the host has kept {digest} as {reference}, which is another component")]
    Another {
        /// Whose bytes.
        digest: String,
        /// Where they were said to be.
        reference: String,
    },
    /// Something else has the name of what is to be kept.
    #[error("configmap/{0} is there and holds something else: delete it, and the host keeps the plugin there")]
    Occupied(String),
    /// They cannot be compressed.
    #[error("failed to compress the plugin")]
    Compress(#[source] std::io::Error),
    /// The host panicked.
    #[error("the host panicked meanwhile; report the panic in its log")]
    Panicked,
    /// The API server or the way to it.
    #[error("failed to {attempt} configmap/{name}: {}", crate::error::chain(.source))]
    Api {
        /// What was tried.
        attempt: &'static str,
        /// Which.
        name: String,
        /// What it said.
        source: kube::Error,
    },
}

impl ArchiveError {
    /// The API server may answer otherwise the next time.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, Self::Api { .. })
    }

    /// How long the API server asks to wait.
    pub(super) fn retry_after(&self) -> Duration {
        match self {
            Self::Pull { source, .. } => source.retry_after(),
            other => other.answer().and_then(answer::retry_after).unwrap_or_default(),
        }
    }

    /// What the API server said.
    pub(super) fn answer(&self) -> Option<&kube::Error> {
        match self {
            Self::Api { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// What one ConfigMap holds.
pub(super) enum Part {
    /// Some of the component's compressed bytes, in so many ConfigMaps.
    Chunk(Vec<u8>, usize),
    /// The whole component, in a registry.
    Artifact(OciSource),
}

/// The metadata of the ConfigMaps, as a watch has shown it.
pub(super) type ArchiveStore = reflector::Store<PartialObjectMeta<ConfigMap>>;

/// The ConfigMaps of one namespace.
#[derive(Clone)]
pub(super) struct Archive {
    namespace: String,
    maps: Api<ConfigMap>,
    /// What compresses, where it holds up no job.
    plugins: Arc<Plugins>,
    /// Whence a large component is pulled again.
    sources: Sources,
    /// A component with more bytes stays with its registry.
    largest: usize,
}

impl Archive {
    pub(super) fn new(sources: &Sources, plugins: &Arc<Plugins>, namespace: &str, largest: usize) -> Self {
        let maps = Api::namespaced(sources.client.clone(), namespace);
        Self { namespace: namespace.to_owned(), maps, plugins: Arc::clone(plugins), sources: sources.clone(), largest }
    }

    /// Keeps the bytes, unless they are kept already. Many of them that are an artifact of a registry stay there, and
    /// where that is is kept: its reference by digest, and the name of the Secret that opens it. Without a mark it plans
    /// nothing.
    ///
    /// # Errors
    /// The API server refuses, or does not answer.
    pub(super) async fn keep(
        &self,
        digest: &Digest,
        wasm: &[u8],
        artifact: Option<&OciSource>,
        mark: Option<&Mark>,
    ) -> Result<(), ArchiveError> {
        if self.mark(digest, mark).await? {
            return Ok(());
        }
        if let Some(artifact) = artifact.filter(|_| wasm.len() > self.largest) {
            let text = json!(artifact).to_string();
            let data = Some(BTreeMap::from([(ARTIFACT_KEY.to_owned(), text)]));
            return self.create((digest, mark), 0, 1, ConfigMap { data, ..ConfigMap::default() }).await;
        }
        let whole = wasm.to_vec();
        let compressed = self.plugins.run_beside(move || source::compress(&whole, Ratio::Quick)).await;
        let bytes = compressed.map_err(ArchiveError::Compress)?;
        let chunks = bytes.chunks(CHUNK);
        let count = chunks.len();
        for (number, chunk) in chunks.enumerate().rev() {
            let binary_data = Some(BTreeMap::from([(COMPRESSED_KEY.to_owned(), ByteString(chunk.to_vec()))]));
            self.create((digest, mark), number, count, ConfigMap { binary_data, ..ConfigMap::default() }).await?;
        }
        Ok(())
    }

    /// Makes one of `count` ConfigMaps, unless it is there. The first one has the mark.
    async fn create(
        &self,
        (digest, mark): (&Digest, Option<&Mark>),
        number: usize,
        count: usize,
        content: ConfigMap,
    ) -> Result<(), ArchiveError> {
        let name = name(digest, number);
        let own =
            [(DIGEST_ANNOTATION.to_owned(), digest.to_string()), (CHUNKS_ANNOTATION.to_owned(), count.to_string())];
        let annotation = mark.filter(|_| number == 0).map(Mark::annotation);
        let map = ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                labels: Some(BTreeMap::from([(LABEL.0.to_owned(), LABEL.1.to_owned())])),
                annotations: Some(own.into_iter().chain(annotation).collect()),
                ..ObjectMeta::default()
            },
            immutable: Some(true),
            ..content
        };
        let failed = |attempt: &'static str| {
            let name = name.clone();
            move |source| ArchiveError::Api { attempt, name, source }
        };
        for _ in 0..2 {
            match self.maps.create(&PostParams::default(), &map).await {
                Ok(_) => return Ok(()),
                Err(kube::Error::Api(status)) if status.is_already_exists() => {}
                Err(source) => return Err(failed("create")(source)),
            }
            // Else it was released in between.
            let Some(found) = self.maps.get_opt(&name).await.map_err(failed("get"))? else { continue };
            if is_same(&found, &map) {
                if self.holds(digest, number, found.metadata, mark).await? {
                    return Ok(());
                }
            } else if number > 0 && is_of(&found, digest) {
                // The first one is made last: a host that compresses otherwise did not come to that.
                self.maps.delete(&name, &this_one(&found.metadata)).await.map_err(failed("delete"))?;
            } else {
                break;
            }
        }
        Err(ArchiveError::Occupied(name))
    }

    /// Puts this mark, if any, on what is kept. False where it is not kept as a whole: the first ConfigMap is made last, and
    /// released first. Where it is, no host releases it that found it unused before.
    ///
    /// # Errors
    /// The API server refuses, or does not answer.
    pub(super) async fn mark(&self, digest: &Digest, mark: Option<&Mark>) -> Result<bool, ArchiveError> {
        let name = name(digest, 0);
        let found = self.maps.get_metadata_opt(&name).await;
        match found.map_err(|source| ArchiveError::Api { attempt: "get", name, source })? {
            Some(map) => self.holds(digest, 0, map.metadata, mark).await,
            None => Ok(false),
        }
    }

    /// Has a ConfigMap that was found count as used, and puts this mark, if any, on the first one. False where it is not of
    /// this plugin, or was released meanwhile.
    async fn holds(
        &self,
        digest: &Digest,
        number: usize,
        found: ObjectMeta,
        mark: Option<&Mark>,
    ) -> Result<bool, ArchiveError> {
        let annotations = found.annotations.unwrap_or_default();
        if annotations.get(DIGEST_ANNOTATION).is_none_or(|kept| kept != digest.as_str()) {
            return Ok(false);
        }
        let kept = Mark::read(&annotations);
        let mark = mark.filter(|mark| number == 0 && kept.is_none_or(|kept| mark.replaces(&kept)));
        let changes = changes(&annotations, mark);
        if changes.is_empty() {
            return Ok(true);
        }
        let (name, patch) = (name(digest, number), json!({ "metadata": { "annotations": changes } }));
        match self.maps.patch_metadata(&name, &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(false),
            Err(source) => Err(ArchiveError::Api { attempt: "patch", name, source }),
        }
    }

    /// The mark on what is kept of this digest, if there is one.
    ///
    /// # Errors
    /// The API server refuses, or does not answer.
    pub(super) async fn read_mark(&self, digest: &Digest) -> Result<Option<Mark>, ArchiveError> {
        let name = name(digest, 0);
        let maps = Request::new(ConfigMap::url_path(&(), Some(&self.namespace)));
        let request = maps.get_metadata(&name, &GetParams::default());
        match answer::decoded::<PartialObjectMeta<ConfigMap>>(&self.sources.client, request).await {
            Ok(map) => Ok(map.metadata.annotations.as_ref().and_then(Mark::read)),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
            Err(source) => Err(ArchiveError::Api { attempt: "get", name, source }),
        }
    }

    /// Every plugin that is kept and marked, by digest, as the store of [`Self::watched`] has it.
    pub(super) fn marked(store: &ArchiveStore) -> BTreeMap<Digest, Mark> {
        let marked = |map: Arc<PartialObjectMeta<ConfigMap>>| {
            let annotations = map.metadata.annotations.as_ref().filter(|_| is_first(&map))?;
            let digest: Digest = annotations.get(DIGEST_ANNOTATION)?.parse().ok()?;
            Some((digest, Mark::read(annotations)?))
        };
        store.state().into_iter().filter_map(marked).collect()
    }

    /// A store of what is kept, which is filled as the stream is read; an item of that for each time that it is another.
    pub(super) fn watched(
        &self,
        waits: ResetTimerBackoff<Waits>,
    ) -> (ArchiveStore, impl Stream<Item = ()> + Send + use<>) {
        let (store, writer) = reflector::store();
        let client = patient(self.sources.client.clone());
        let maps = Api::<PartialObjectMeta<ConfigMap>>::namespaced(client, &self.namespace);
        let config = watching().labels(&format!("{}={}", LABEL.0, LABEL.1));
        let changes = watcher::watcher(maps, config).backoff(waits).reflect(writer);
        let changes = changes.filter_map(async |event| match event {
            Ok(Event::InitDone | Event::Apply(_) | Event::Delete(_)) => Some(()),
            Ok(Event::Init | Event::InitApply(_)) => None,
            Err(error) => {
                tracing::warn!(error = chain(&error), "watch of kept plugins broke and is started again");
                None
            }
        });
        (store, changes)
    }

    /// The bytes with this digest.
    ///
    /// # Errors
    /// They are not there, not whole, or others.
    pub(super) async fn load(&self, digest: &Digest) -> Result<Vec<u8>, ArchiveError> {
        let damaged = || ArchiveError::Damaged(digest.short().to_owned());
        let (mut bytes, count) = match self.part(digest, 0).await? {
            Some(Part::Chunk(bytes, count)) => (bytes, count),
            Some(Part::Artifact(artifact)) => return self.pull(digest, artifact).await,
            None => return Err(ArchiveError::NotKept(digest.short().to_owned())),
        };
        for number in 1..count.min(self.sources.limit / CHUNK + 1) {
            let Some(Part::Chunk(more, _)) = self.part(digest, number).await? else { return Err(damaged()) };
            bytes.extend(more);
        }
        let wasm = source::decompress(&bytes, self.sources.limit).map_err(|_| damaged())?;
        if source::digest(&wasm) == *digest { Ok(wasm) } else { Err(damaged()) }
    }

    async fn part(&self, digest: &Digest, number: usize) -> Result<Option<Part>, ArchiveError> {
        let name = name(digest, number);
        let found = self.maps.get_opt(&name).await;
        let found = found.map_err(|source| ArchiveError::Api { attempt: "get", name, source })?;
        found.map_or(Ok(None), |map| part_in(map, digest))
    }

    /// The bytes with this digest from the registry that they stayed with. No signature is asked for: it held when they were
    /// accepted, and what has the same SHA-256 is the same. So neither a key that was changed since, nor one that is gone
    /// with its Plugin, stands in the way of a job that runs.
    async fn pull(&self, digest: &Digest, artifact: OciSource) -> Result<Vec<u8>, ArchiveError> {
        let short = digest.short().to_owned();
        match self.sources.registry(&artifact, None).await {
            // The bytes have the digest that the pull says they have.
            Ok(fetched) if fetched.digest == *digest => Ok(fetched.wasm),
            Ok(_) => Err(ArchiveError::Another { digest: short, reference: artifact.reference }),
            Err(source) => Err(ArchiveError::Pull { digest: short, source: Box::new(source) }),
        }
    }
}

/// What a ConfigMap holds of the plugin with this digest; `None` if it has neither of the keys.
///
/// # Errors
/// What it says of an artifact cannot be read.
pub(super) fn part_in(map: ConfigMap, digest: &Digest) -> Result<Option<Part>, ArchiveError> {
    if let Some(text) = map.data.as_ref().and_then(|data| data.get(ARTIFACT_KEY)) {
        let artifact = serde_json::from_str(text).map_err(|_| ArchiveError::Damaged(digest.short().to_owned()))?;
        return Ok(Some(Part::Artifact(artifact)));
    }
    let count = annotation(&map.metadata, CHUNKS_ANNOTATION).and_then(|count| count.parse().ok()).unwrap_or(1);
    let bytes = map.binary_data.and_then(|mut data| data.remove(COMPRESSED_KEY));
    Ok(bytes.map(|bytes| Part::Chunk(bytes.0, count)))
}

fn annotation<'a>(of: &'a ObjectMeta, key: &str) -> Option<&'a String> {
    of.annotations.as_ref()?.get(key)
}

/// Other annotations of a ConfigMap that is used, and has this mark, if any. One that was unused changes by this: whoever
/// found it so does not delete it any more.
fn changes(annotations: &BTreeMap<String, String>, mark: Option<&Mark>) -> Map<String, Value> {
    let unused = annotations.contains_key(UNUSED_ANNOTATION).then(|| (UNUSED_ANNOTATION.to_owned(), Value::Null));
    let marked = mark.map(Mark::annotation).filter(|(key, text)| annotations.get(key) != Some(text));
    unused.into_iter().chain(marked.map(|(key, text)| (key, Value::String(text)))).collect()
}

/// It is the first one of its plugin.
fn is_first(map: &PartialObjectMeta<ConfigMap>) -> bool {
    let digest = annotation(&map.metadata, DIGEST_ANNOTATION).and_then(|digest| digest.parse::<Digest>().ok());
    digest.is_some_and(|digest| map.metadata.name.as_ref() == Some(&name(&digest, 0)))
}

/// Deletes no other object of the name.
fn this_one(metadata: &ObjectMeta) -> DeleteParams {
    DeleteParams::default().preconditions(Preconditions { uid: metadata.uid.clone(), resource_version: None })
}

/// A host has made it to keep a part of this plugin.
fn is_of(map: &ConfigMap, digest: &Digest) -> bool {
    let label = map.metadata.labels.as_ref().and_then(|labels| labels.get(LABEL.0));
    let kept = annotation(&map.metadata, DIGEST_ANNOTATION);
    label.is_some_and(|label| label == LABEL.1) && kept.is_some_and(|kept| kept == digest.as_str())
}

/// They hold the same part of the same plugin.
fn is_same(one: &ConfigMap, other: &ConfigMap) -> bool {
    let is_alike = |key: &str| annotation(&one.metadata, key) == annotation(&other.metadata, key);
    is_alike(DIGEST_ANNOTATION)
        && is_alike(CHUNKS_ANNOTATION)
        && (&one.data, &one.binary_data) == (&other.data, &other.binary_data)
}

fn name(digest: &Digest, number: usize) -> String {
    format!("troupe-plugin-{}-{number}", digest.short())
}

#[cfg(test)]
mod tests;

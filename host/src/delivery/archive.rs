//! What is kept of the plugins that jobs are planned by, in the host's namespace as immutable ConfigMaps: whatever becomes
//! of a plugin's source, and of this host, a running job's plugin is there.
//!
//! It is the bytes; of a large component from a registry it is where that registry has it.

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
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{ByteString, api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api, Resource,
    api::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, Preconditions},
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
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

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

/// Bytes that nothing has needed for this long are released.
const RELEASED_AFTER: SignedDuration = SignedDuration::from_hours(24);

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
        self.answer().and_then(answer::retry_after).unwrap_or_default()
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
enum Part {
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
            let found = self.maps.get(&name).await.map_err(failed("get"))?;
            match is_same(&found, &map) {
                true if number == 0 => return self.mark(digest, mark).await.map(drop),
                true => return Ok(()),
                // The first one is made last: a host that compresses otherwise did not come to that.
                false if number > 0 && is_of(&found, digest) => {
                    self.maps.delete(&name, &this_one(&found.metadata)).await.map_err(failed("delete"))?;
                }
                false => break,
            }
        }
        Err(ArchiveError::Occupied(name))
    }

    /// Puts this mark, if any, on what is kept. False where it is not kept as a whole: the first ConfigMap is made last.
    ///
    /// # Errors
    /// The API server refuses, or does not answer.
    pub(super) async fn mark(&self, digest: &Digest, mark: Option<&Mark>) -> Result<bool, ArchiveError> {
        let name = name(digest, 0);
        let failed = |attempt: &'static str| {
            let name = name.clone();
            move |source| ArchiveError::Api { attempt, name, source }
        };
        let found = self.maps.get_metadata_opt(&name).await.map_err(failed("get"))?;
        let annotations = found.and_then(|map| map.metadata.annotations).unwrap_or_default();
        if annotations.get(DIGEST_ANNOTATION).is_none_or(|kept| kept != digest.as_str()) {
            return Ok(false);
        }
        let kept = Mark::read(&annotations);
        let mark = mark.filter(|mark| kept.is_none_or(|kept| mark.replaces(&kept)));
        if let Some((key, text)) = mark.map(Mark::annotation)
            && annotations.get(&key) != Some(&text)
        {
            let patch = Patch::Merge(json!({ "metadata": { "annotations": { key: text } } }));
            self.maps.patch_metadata(&name, &PatchParams::default(), &patch).await.map_err(failed("patch"))?;
        }
        Ok(true)
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
            let annotations = map.metadata.annotations.as_ref()?;
            let digest = annotations.get(DIGEST_ANNOTATION)?.parse().ok()?;
            let is_first = map.metadata.name.as_ref() == Some(&name(&digest, 0));
            is_first.then_some((digest, Mark::read(annotations)?))
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
        let Some(map) = found.map_err(|source| ArchiveError::Api { attempt: "get", name, source })? else {
            return Ok(None);
        };
        if let Some(text) = map.data.as_ref().and_then(|data| data.get(ARTIFACT_KEY)) {
            let artifact = serde_json::from_str(text).map_err(|_| ArchiveError::Damaged(digest.short().to_owned()))?;
            return Ok(Some(Part::Artifact(artifact)));
        }
        let count = annotation(&map.metadata, CHUNKS_ANNOTATION).and_then(|count| count.parse().ok()).unwrap_or(1);
        let bytes = map.binary_data.and_then(|mut data| data.remove(COMPRESSED_KEY));
        Ok(bytes.map(|bytes| Part::Chunk(bytes.0, count)))
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

    /// Releases what nothing has needed for a day: marks what is not `needed` now, and deletes what was marked a day ago.
    ///
    /// # Errors
    /// The API server refuses, or does not answer.
    pub(super) async fn sweep(&self, needed: &BTreeSet<Digest>, now: Timestamp) -> Result<(), ArchiveError> {
        let list = ListParams::default().labels(&format!("{}={}", LABEL.0, LABEL.1));
        let all = self.maps.list_metadata(&list).await;
        let failed = |attempt: &'static str, name: &str| {
            let name = name.to_owned();
            move |source| ArchiveError::Api { attempt, name, source }
        };
        for map in all.map_err(failed("list", ""))?.items {
            let name = map.metadata.name.clone().unwrap_or_default();
            match fate(&map, needed, now) {
                Fate::Stays => {}
                Fate::Mark(since) => {
                    let patch = json!({ "metadata": { "annotations": { UNUSED_ANNOTATION: since } } });
                    let params = PatchParams::default();
                    let marked = self.maps.patch_metadata(&name, &params, &Patch::Merge(patch)).await;
                    marked.map_err(failed("patch", &name))?;
                }
                Fate::Goes => {
                    match self.maps.delete(&name, &this_one(&map.metadata)).await {
                        Err(kube::Error::Api(status)) if status.is_not_found() => {}
                        other => drop(other.map_err(failed("delete", &name))?),
                    }
                    tracing::info!(configmap = name, "released the bytes of a plugin that nothing needs");
                }
            }
        }
        Ok(())
    }
}

/// What becomes of a ConfigMap.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Stays,
    /// It is unused since then; None: it is used again.
    Mark(Option<String>),
    Goes,
}

fn fate(map: &PartialObjectMeta<ConfigMap>, needed: &BTreeSet<Digest>, now: Timestamp) -> Fate {
    let Some(digest) = annotation(&map.metadata, DIGEST_ANNOTATION) else { return Fate::Stays };
    let since = annotation(&map.metadata, UNUSED_ANNOTATION);
    let is_needed = digest.parse().is_ok_and(|digest| needed.contains(&digest));
    match (is_needed, since.and_then(|since| since.parse::<Timestamp>().ok())) {
        (true, _) if since.is_some() => Fate::Mark(None),
        (true, _) => Fate::Stays,
        (false, None) => Fate::Mark(Some(now.to_string())),
        (false, Some(since)) if now.duration_since(since) >= RELEASED_AFTER => Fate::Goes,
        (false, Some(_)) => Fate::Stays,
    }
}

fn annotation<'a>(of: &'a ObjectMeta, key: &str) -> Option<&'a String> {
    of.annotations.as_ref()?.get(key)
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

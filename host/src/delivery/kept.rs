//! The bytes of plugins that jobs are planned by, kept in the host's namespace as immutable ConfigMaps: whatever becomes
//! of a plugin's source, and of this host, a running job's plugin is there.

use crate::plugin::source::{self, COMPRESSED_KEY, DIGEST_ANNOTATION};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{ByteString, api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    core::PartialObjectMeta,
};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a plugin in one ConfigMap.
const CHUNK: usize = 900 << 10;

/// How many ConfigMaps hold the plugin.
const CHUNKS_ANNOTATION: &str = "troupe.dev/chunks";

/// Since when nothing needs the plugin.
const UNUSED_ANNOTATION: &str = "troupe.dev/unused-since";

/// Marks the ConfigMaps.
const LABEL: (&str, &str) = ("troupe.dev/kept", "plugin");

/// Bytes that nothing has needed for this long are released.
const RELEASED_AFTER: SignedDuration = SignedDuration::from_hours(24);

/// Why bytes cannot be kept or brought back.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeptError {
    /// There are none.
    #[error("the host has not kept {0}")]
    NotKept(String),
    /// They are not what they were.
    #[error("what the host has kept of {0} is damaged")]
    Damaged(String),
    /// They cannot be compressed.
    #[error("failed to compress the plugin")]
    Compress(#[source] std::io::Error),
    /// The API server or the way to it.
    #[error("failed to {attempt} configmap/{name}: {}", crate::watch::said(.source))]
    Api {
        /// What was tried.
        attempt: &'static str,
        /// Which.
        name: String,
        /// What it said.
        source: kube::Error,
    },
}

/// The ConfigMaps of one namespace.
#[derive(Clone)]
pub(crate) struct Kept {
    maps: Api<ConfigMap>,
    /// A plugin has no more bytes than this.
    limit: usize,
}

impl Kept {
    pub(crate) fn new(client: Client, namespace: &str, limit: usize) -> Self {
        Self { maps: Api::namespaced(client, namespace), limit }
    }

    /// Keeps the bytes, unless they are kept already.
    ///
    /// # Errors
    /// The API server refuses, or does not answer.
    pub(crate) async fn keep(&self, digest: &str, wasm: &[u8]) -> Result<(), KeptError> {
        if self.has(digest).await? {
            return Ok(());
        }
        let whole = wasm.to_vec();
        let compressed = tokio::task::spawn_blocking(move || source::compress(&whole)).await;
        let bytes = compressed.map_err(std::io::Error::other).and_then(|bytes| bytes).map_err(KeptError::Compress)?;
        let chunks = bytes.chunks(CHUNK);
        let count = chunks.len();
        for (number, chunk) in chunks.enumerate().rev() {
            let name = name(digest, number);
            let map = ConfigMap {
                metadata: ObjectMeta {
                    name: Some(name.clone()),
                    labels: Some(BTreeMap::from([(LABEL.0.to_owned(), LABEL.1.to_owned())])),
                    annotations: Some(BTreeMap::from([
                        (DIGEST_ANNOTATION.to_owned(), digest.to_owned()),
                        (CHUNKS_ANNOTATION.to_owned(), count.to_string()),
                    ])),
                    ..ObjectMeta::default()
                },
                binary_data: Some(BTreeMap::from([(COMPRESSED_KEY.to_owned(), ByteString(chunk.to_vec()))])),
                immutable: Some(true),
                ..ConfigMap::default()
            };
            match self.maps.create(&PostParams::default(), &map).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.is_already_exists() => {}
                Err(source) => return Err(KeptError::Api { attempt: "create", name, source }),
            }
        }
        Ok(())
    }

    /// All of its bytes are kept: the first ConfigMap is made last.
    async fn has(&self, digest: &str) -> Result<bool, KeptError> {
        let name = name(digest, 0);
        let found = self.maps.get_metadata_opt(&name).await;
        let found = found.map_err(|source| KeptError::Api { attempt: "get", name, source })?;
        let annotations = found.and_then(|map| map.metadata.annotations).unwrap_or_default();
        Ok(annotations.get(DIGEST_ANNOTATION).is_some_and(|kept| kept == digest))
    }

    /// The bytes with this digest.
    ///
    /// # Errors
    /// They are not there, not whole, or others.
    pub(crate) async fn bring(&self, digest: &str) -> Result<Vec<u8>, KeptError> {
        let (first, count) = match self.chunk(digest, 0).await? {
            Some(chunk) => chunk,
            None => return Err(KeptError::NotKept(short(digest).to_owned())),
        };
        let damaged = || KeptError::Damaged(short(digest).to_owned());
        let mut bytes = first;
        for number in 1..count.min(self.limit / CHUNK + 1) {
            bytes.extend(self.chunk(digest, number).await?.ok_or_else(damaged)?.0);
        }
        let wasm = source::decompress(&bytes, self.limit).map_err(|_| damaged())?;
        if source::digest(&wasm) == digest { Ok(wasm) } else { Err(damaged()) }
    }

    async fn chunk(&self, digest: &str, number: usize) -> Result<Option<(Vec<u8>, usize)>, KeptError> {
        let name = name(digest, number);
        let found = self.maps.get_opt(&name).await;
        let Some(map) = found.map_err(|source| KeptError::Api { attempt: "get", name, source })? else {
            return Ok(None);
        };
        let annotation = |key: &str| map.metadata.annotations.as_ref()?.get(key).cloned();
        let count = annotation(CHUNKS_ANNOTATION).and_then(|count| count.parse().ok()).unwrap_or(1);
        let bytes = map.binary_data.and_then(|mut data| data.remove(COMPRESSED_KEY));
        Ok(bytes.map(|bytes| (bytes.0, count)))
    }

    /// Releases what nothing has needed for a day: marks what is not `needed` now, and deletes what was marked a day ago.
    ///
    /// # Errors
    /// The API server refuses, or does not answer.
    pub(crate) async fn sweep(&self, needed: &BTreeSet<String>, now: Timestamp) -> Result<(), KeptError> {
        let list = ListParams::default().labels(&format!("{}={}", LABEL.0, LABEL.1));
        let all = self.maps.list_metadata(&list).await;
        let failed = |attempt: &'static str, name: &str| {
            let name = name.to_owned();
            move |source| KeptError::Api { attempt, name, source }
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
                    let params = DeleteParams::default().preconditions(kube::api::Preconditions {
                        uid: map.metadata.uid.clone(),
                        resource_version: None,
                    });
                    match self.maps.delete(&name, &params).await {
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

fn fate(map: &PartialObjectMeta<ConfigMap>, needed: &BTreeSet<String>, now: Timestamp) -> Fate {
    let annotation = |key: &str| map.metadata.annotations.as_ref()?.get(key);
    let Some(digest) = annotation(DIGEST_ANNOTATION) else { return Fate::Stays };
    let since = annotation(UNUSED_ANNOTATION);
    match (needed.contains(digest), since.and_then(|since| since.parse::<Timestamp>().ok())) {
        (true, _) if since.is_some() => Fate::Mark(None),
        (true, _) => Fate::Stays,
        (false, None) => Fate::Mark(Some(now.to_string())),
        (false, Some(since)) if now.duration_since(since) >= RELEASED_AFTER => Fate::Goes,
        (false, Some(_)) => Fate::Stays,
    }
}

fn name(digest: &str, number: usize) -> String {
    format!("troupe-plugin-{}-{number}", short(digest))
}

/// The first twelve digits.
pub(crate) fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(annotations: &[(&str, &str)]) -> PartialObjectMeta<ConfigMap> {
        let annotations = annotations.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        PartialObjectMeta {
            metadata: ObjectMeta { annotations: Some(annotations), ..ObjectMeta::default() },
            ..PartialObjectMeta::default()
        }
    }

    #[test]
    fn bytes_are_released_when_nothing_has_needed_them_for_a_day() {
        let now: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
        let (used, unused) = (BTreeSet::from(["d".to_owned()]), BTreeSet::new());
        let fresh = map(&[(DIGEST_ANNOTATION, "d")]);
        assert_eq!(fate(&fresh, &used, now), Fate::Stays);
        assert_eq!(fate(&fresh, &unused, now), Fate::Mark(Some(now.to_string())));
        let marked = map(&[(DIGEST_ANNOTATION, "d"), (UNUSED_ANNOTATION, "2026-01-01T00:00:01Z")]);
        assert_eq!(fate(&marked, &unused, now), Fate::Stays);
        assert_eq!(fate(&marked, &used, now), Fate::Mark(None));
        let old = map(&[(DIGEST_ANNOTATION, "d"), (UNUSED_ANNOTATION, "2026-01-01T00:00:00Z")]);
        assert_eq!(fate(&old, &unused, now), Fate::Goes);
        assert_eq!(fate(&map(&[]), &unused, now), Fate::Stays);
    }
}

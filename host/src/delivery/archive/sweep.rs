//! When what is kept is released: a day after nothing needed it any more, and only as nobody has kept it again meanwhile.

use super::{Archive, ArchiveError, LABEL, UNUSED_ANNOTATION, annotation, is_first};
use decide::Digest;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions},
    core::PartialObjectMeta,
};
use sandbox::source::DIGEST_ANNOTATION;
use serde_json::json;
use std::collections::BTreeSet;

/// Bytes that nothing has needed for this long are released.
pub(super) const RELEASED_AFTER: SignedDuration = SignedDuration::from_hours(24);

impl Archive {
    /// Releases what nothing has needed for a day: marks what is not `needed` now, and deletes what was marked a day ago, the
    /// first ConfigMap of a plugin before its others. These stay while that does: whoever finds it takes the plugin for kept
    /// as a whole.
    ///
    /// # Errors
    /// The API server refuses, or does not answer.
    pub(in crate::delivery) async fn sweep(
        &self,
        needed: &BTreeSet<Digest>,
        now: Timestamp,
    ) -> Result<(), ArchiveError> {
        let list = ListParams::default().labels(&format!("{}={}", LABEL.0, LABEL.1));
        let listed = self.maps.list_metadata(&list).await;
        let failed = |attempt: &'static str, name: &str| {
            let name = name.to_owned();
            move |source| ArchiveError::Api { attempt, name, source }
        };
        let mut all = listed.map_err(failed("list", ""))?.items;
        all.sort_by_key(|map| !is_first(map));
        // Digests whose first one stays.
        let mut whole = BTreeSet::new();
        for map in all {
            let stays = match fate(&map, needed, now) {
                Fate::Goes if !whole.contains(&annotation(&map.metadata, DIGEST_ANNOTATION).cloned()) => {
                    !self.release(&map.metadata).await?
                }
                Fate::Goes | Fate::Stays => true,
                Fate::Mark(since) => {
                    let name = map.metadata.name.clone().unwrap_or_default();
                    let patch = json!({ "metadata": { "annotations": { UNUSED_ANNOTATION: since } } });
                    let params = PatchParams::default();
                    let marked = self.maps.patch_metadata(&name, &params, &Patch::Merge(patch)).await;
                    marked.map_err(failed("patch", &name))?;
                    true
                }
            };
            if stays && is_first(&map) {
                whole.insert(annotation(&map.metadata, DIGEST_ANNOTATION).cloned());
            }
        }
        Ok(())
    }

    /// Deletes a ConfigMap that is still as it was listed. False where it is not: it may be used again.
    pub(super) async fn release(&self, listed: &ObjectMeta) -> Result<bool, ArchiveError> {
        let name = listed.name.clone().unwrap_or_default();
        match self.maps.delete(&name, &as_listed(listed)).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(kube::Error::Api(status)) if status.is_conflict() => return Ok(false),
            Err(source) => return Err(ArchiveError::Api { attempt: "delete", name, source }),
        }
        tracing::info!(configmap = name, "released the bytes of a plugin that nothing needs");
        Ok(true)
    }
}

/// What becomes of a ConfigMap.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Stays,
    /// It is unused since then; None: it is used again.
    Mark(Option<String>),
    Goes,
}

pub(super) fn fate(map: &PartialObjectMeta<ConfigMap>, needed: &BTreeSet<Digest>, now: Timestamp) -> Fate {
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

/// Deletes the object only as it was listed.
fn as_listed(metadata: &ObjectMeta) -> DeleteParams {
    let ObjectMeta { uid, resource_version, .. } = metadata.clone();
    DeleteParams::default().preconditions(Preconditions { uid, resource_version })
}

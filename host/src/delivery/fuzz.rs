//! Any ConfigMap, read as one that the delivery asks for.

use super::{
    archive::{Part, part_in},
    fetch::component_in,
    mark::Mark,
};
use crate::plugin_resource::ConfigMapSource;
use k8s_openapi::api::core::v1::ConfigMap;
use sandbox::source;
use std::collections::BTreeMap;

/// Reads a ConfigMap as the source of a component of at most `limit` bytes, at each of its keys and at those of a source that
/// names none, and as what is kept of a plugin. Returns whether it is that: it has a mark, and a part of the component that
/// can be used.
pub(crate) fn read(map: &ConfigMap, limit: usize) -> bool {
    let keys = map.binary_data.iter().flat_map(BTreeMap::keys).cloned().map(Some);
    for key in keys.chain([None]) {
        let from = ConfigMapSource { name: String::new(), namespace: None, key };
        drop(component_in(map.clone(), &from, limit));
    }
    let mark = map.metadata.annotations.as_ref().and_then(Mark::read);
    let has_part = match part_in(map.clone(), &source::digest(b"")) {
        Ok(Some(Part::Chunk(bytes, _))) => source::decompress(&bytes, limit).is_ok(),
        Ok(Some(Part::Artifact(_))) => true,
        Ok(None) | Err(_) => false,
    };
    mark.is_some() && has_part
}

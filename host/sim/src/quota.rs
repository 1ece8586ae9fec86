//! ResourceQuotas: how many pods a namespace may have that have not ended.

use crate::{
    error::ApiError,
    kind::Kind,
    life::is_terminal,
    store::{Store, name, table},
};

/// Checks that each ResourceQuota of the namespace has room for one more object of this kind and name.
///
/// # Errors
/// The refusal of the first one that has none.
pub(crate) fn has_room(store: &Store, kind: &Kind, (namespace, object): (&str, &str)) -> Result<(), ApiError> {
    if kind.table() != table("", "pods") {
        return Ok(());
    }
    for quota in store.list(&table("", "resourcequotas"), namespace) {
        let hard = &quota["spec"]["hard"]["pods"];
        let Some(limit) = hard.as_u64().or_else(|| hard.as_str()?.parse().ok()) else { continue };
        let pods = store.list(&kind.table(), namespace);
        let used = pods.filter(|pod| !is_terminal(pod)).count() as u64;
        if used >= limit {
            return Err(ApiError::used_up(("pods", object), name(quota), (used, limit)));
        }
    }
    Ok(())
}

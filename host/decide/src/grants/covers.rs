//! What a granted word covers.

use super::table::Need;
use crate::pod_group::is_pod_group;
use std::collections::BTreeSet;

/// Returns whether the granted words cover this one.
pub(super) fn covers(need: Need, granted: &BTreeSet<String>, word: &str) -> bool {
    let any = granted.contains("*") && !matches!(need, Need::Kind | Need::Deletion);
    any || granted.contains(word)
        || match need {
            Need::HostPath => granted.iter().any(|path| is_below(path, word)),
            Need::Image => granted.iter().any(|repository| is_of(repository, word)),
            // The host makes all of them alike, whichever scheduler the settings name.
            Need::Kind | Need::Deletion => is_pod_group(word) && granted.iter().any(|kind| is_pod_group(kind)),
            _ => false,
        }
}

/// Returns whether the path is the folder or below it. A path with `..` is below no folder.
fn is_below(folder: &str, path: &str) -> bool {
    let parts = |path: &str| -> Vec<String> {
        path.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_owned).collect()
    };
    let path = parts(path);
    folder.starts_with('/') && !path.iter().any(|part| part == "..") && path.starts_with(&parts(folder))
}

/// Returns whether the image is of this repository, with any tag or digest.
fn is_of(repository: &str, image: &str) -> bool {
    let rest = image.strip_prefix(repository).unwrap_or_default();
    rest.starts_with('@') || (rest.starts_with(':') && !rest.contains('/'))
}

//! Times as Kubernetes writes them.

use jiff::Timestamp;

/// A time as `metav1.Time` writes it.
#[must_use]
pub fn rfc3339(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

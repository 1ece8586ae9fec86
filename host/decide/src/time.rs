//! Times in the format of Kubernetes.

use jiff::Timestamp;

/// Formats a time as `metav1.Time` does.
#[must_use]
pub fn rfc3339(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

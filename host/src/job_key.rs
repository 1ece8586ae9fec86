//! Which job is meant, in one process: kinds are known by their place in the layout.

/// Which job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobKey {
    /// Place of its kind in [`crate::observe::layout::Layout::kinds`].
    pub kind: usize,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

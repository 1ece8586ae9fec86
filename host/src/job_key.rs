//! The key of a job in one process: the kind is known by its place in the layout.

/// The key of a job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobKey {
    /// Place of its kind in [`crate::observe::layout::Layout::kinds`].
    pub kind: usize,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

//! How the operator that a framework had before is told from others in a cluster: native only, for `troupe preflight`.

/// Facts of the published installations of an original operator. One that was renamed, built under another name and run
/// without a flag of its own cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Original {
    /// What people call it.
    pub name: &'static str,
    /// Names of the Leases by which its replicas elect a leader, in whatever namespace.
    pub leases: &'static [&'static str],
    /// Names of its Deployments, in whatever namespace.
    pub deployments: &'static [&'static str],
    /// Its images, without tag; a registry or a mirror may stand before them.
    pub images: &'static [&'static str],
    /// Flags of its process, without dashes, that no other operator has.
    pub flags: &'static [&'static str],
}

//! How `troupe preflight` recognises a framework's original operator in a cluster. Native builds only.

/// The marks of an original operator's published installations. An operator that has none of them is not recognised: it
/// was renamed, its image has another name, and it runs without a flag of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Original {
    /// The common name of the operator.
    pub name: &'static str,
    /// Names of its leader-election Leases, in any namespace.
    pub leases: &'static [&'static str],
    /// Names of its Deployments, in any namespace.
    pub deployments: &'static [&'static str],
    /// Its images, without a tag. A registry or a mirror may precede them.
    pub images: &'static [&'static str],
    /// Names of its ValidatingWebhookConfigurations. They refuse jobs while the operator does not answer.
    pub webhooks: &'static [&'static str],
    /// Flags of its process that no other operator has, without dashes.
    pub flags: &'static [&'static str],
}

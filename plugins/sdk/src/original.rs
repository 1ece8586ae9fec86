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
    /// What it reports of jobs to Prometheus under names of its own, if it does.
    pub metrics: Option<Metrics>,
}

/// The metrics of jobs that an original operator has, by which `--compat-metrics` reports the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metrics {
    /// The kinds of job that it counts, `Kind.group`, each with what the label for the framework says.
    pub kinds: &'static [(&'static str, &'static str)],
    /// The labels of its counters: for the job's namespace and for the framework, or none.
    pub labels: &'static [&'static str],
    /// Its counters: what is counted, the name with `_total`, and the meaning.
    pub counters: &'static [(Counted, &'static str, &'static str)],
    /// Its gauge that is 1 for each launcher, and the meaning: the labels are `launcher` and `namespace`.
    pub launchers: Option<(&'static str, &'static str)>,
    /// Its gauge that is 1 while it leads, and the meaning.
    pub leader: Option<(&'static str, &'static str)>,
}

/// What original operators count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counted {
    /// A job that is seen for the first time.
    Created,
    /// A job that has succeeded.
    Succeeded,
    /// A job that has failed.
    Failed,
    /// A failed pod that is replaced.
    Restarted,
    /// A job that is deleted since its time to live is over.
    Deleted,
}

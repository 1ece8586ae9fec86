//! The replicas of a job with their defaults, whatever its kind. Nothing is checked here: what a job that is judged has
//! was checked when it was planned.

use crate::TrainingJob;
use crate::fate::RestartPolicy;
use crate::kind::{Kind, ReplicaType};
use crate::spec::{ReplicaSpec, given};
use troupe_plugin::UserTemplate;
use troupe_plugin::types::Refusal;

/// A job, its kind and its replicas.
#[derive(Debug)]
pub(crate) struct Family<'a> {
    pub(crate) job: &'a TrainingJob,
    pub(crate) kind: &'static Kind,
    /// In the order of the kind's types.
    pub(crate) replicas: Vec<Replicas<'a>>,
}

/// The replicas of one type.
#[derive(Debug)]
pub(crate) struct Replicas<'a> {
    pub(crate) of: &'static ReplicaType,
    /// The user's spelling of the type.
    pub(crate) key: &'a str,
    pub(crate) count: u32,
    /// The policy of the pods' failures; None if the text is no policy.
    pub(crate) restart_policy: Option<RestartPolicy>,
    pub(crate) template: Option<&'a UserTemplate>,
    /// As the user wrote it.
    pub(crate) spec: &'a ReplicaSpec,
}

/// Replicas of one type that have one template: a role of the plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group<'f> {
    /// The name of the role.
    pub(crate) role: &'static str,
    pub(crate) of: &'static ReplicaType,
    /// The index of its first replica.
    pub(crate) from: u32,
    pub(crate) count: u32,
    /// None if the job does not have the type.
    pub(crate) replicas: Option<&'f Replicas<'f>>,
}

impl<'a> Family<'a> {
    /// Returns the job with its replicas.
    ///
    /// # Errors
    /// The job is of a kind that the plugin does not serve: the host's fault.
    pub(crate) fn of(job: &'a TrainingJob) -> Result<Self, Refusal> {
        let name = &job.view.kind;
        let kind = Kind::of(name).ok_or_else(|| Refusal::Internal(format!("{name} is no kind of this plugin")))?;
        let specs = (kind.replicas)(&job.spec).into_iter().flatten();
        let specs: Vec<_> = specs.filter_map(|(key, spec)| Some((key.as_str(), spec.as_ref()?))).collect();
        let replicas = kind.types.iter().filter_map(|of| {
            let (key, spec) = specs.iter().find(|(key, _)| key.eq_ignore_ascii_case(of.name))?;
            Some(Replicas {
                of,
                key,
                count: u32::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0),
                restart_policy: given(spec.restart_policy.as_ref())
                    .map_or(Some(kind.restart_policy), RestartPolicy::read),
                template: spec.template.as_ref(),
                spec,
            })
        });
        let replicas = replicas.collect();
        Ok(Self { job, kind, replicas })
    }

    /// Returns the replicas of a type, if the job has it.
    pub(crate) fn replicas(&self, name: &str) -> Option<&Replicas<'a>> {
        self.replicas.iter().find(|replicas| replicas.of.name == name)
    }

    /// Returns the type that leads, if the job has one: its replicas decide how the job stands.
    pub(crate) fn leader(&self) -> Option<&Replicas<'a>> {
        self.replicas.iter().find(|replicas| replicas.of.leads)
    }

    /// Returns the number of all replicas.
    pub(crate) fn total(&self) -> u32 {
        self.replicas.iter().fold(0, |sum, replicas| sum.saturating_add(replicas.count))
    }

    /// Returns the roles of the plan, also those that the job does not have now.
    pub(crate) fn groups(&self) -> Vec<Group<'_>> {
        let mut groups = Vec::with_capacity(2 * self.kind.types.len());
        for of in self.kind.types {
            let replicas = self.replicas(of.name);
            let count = replicas.map_or(0, |replicas| replicas.count);
            if let Some(role) = of.first {
                groups.push(Group { role, of, from: 0, count: count.min(1), replicas });
            }
            let from = u32::from(of.first.is_some());
            groups.push(Group { role: of.lower, of, from, count: count.saturating_sub(from), replicas });
        }
        groups
    }

    /// Returns the name of the pod and the Service of a replica.
    pub(crate) fn host(&self, of: &str, index: u32) -> String {
        format!("{}-{of}-{index}", self.job.name())
    }
}

impl Replicas<'_> {
    /// Returns where the spec says how many there are.
    pub(crate) fn path_of_count(&self, family: &Family<'_>) -> String {
        [family.kind.field, "[", self.key, "].replicas"].concat()
    }
}

impl Group<'_> {
    /// Returns whether it is replica 0, apart from the others of its type.
    pub(crate) fn is_first(&self) -> bool {
        self.of.first == Some(self.role)
    }

    /// Returns whether its replicas have the role of the master.
    pub(crate) fn is_master(&self, family: &Family<'_>) -> bool {
        match family.leader() {
            Some(leader) => leader.of == self.of,
            None => family.kind.worker_leads && self.is_first(),
        }
    }
}

//! Gang scheduling: what a plan says so that a scheduler starts a job's pods together. The host knows the schedulers.

use crate::types::Gang;

impl Gang {
    /// Returns the gang of these roles under the scheduler of this name, which starts all their replicas together; None for
    /// an empty name, which is no gang scheduling.
    #[must_use]
    pub fn new<'a>(scheduler: &str, members: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        (!scheduler.is_empty()).then(|| Self {
            scheduler: scheduler.to_owned(),
            members: members.into_iter().map(str::to_owned).collect(),
            min_member: None,
            min_resources: None,
            queue: None,
            priority_class: None,
            schedule_timeout: None,
        })
    }
}

//! Gang scheduling: what a plan says so that a scheduler starts a job's pods together. The host knows the schedulers.

use crate::types::{Event, Gang};

/// Returns a warning if a gang scheduler would wait for more pods than there are of the job. `path` is the field that says how
/// many it waits for.
#[must_use]
pub fn warn_of_gang(path: &str, least: Option<i64>, pods: u32) -> Option<Event> {
    let least = least.filter(|least| pods > 0 && *least > i64::from(pods))?;
    let message = format!("{path}: a gang scheduler waits for {least} pods, of which the job has {pods}");
    Some(Event { warning: true, reason: "GangLargerThanJob".to_owned(), message })
}

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

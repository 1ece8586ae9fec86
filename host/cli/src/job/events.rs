//! `troupe job events`: what happened to a job and its pods, in order.

use super::{
    cluster::{Cluster, Found, at},
    list::{age, table},
};
use crate::args::job::JobName;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Pod};
use std::{collections::BTreeSet, process::ExitCode};
use troupe::{clock::Clock, out};

/// The head of a table of events.
pub(super) const HEAD: [&str; 4] = ["EVENT", "OBJECT", "REASON", "MESSAGE"];

pub(super) async fn events(cluster: &Cluster, name: &JobName) -> anyhow::Result<ExitCode> {
    let found = cluster.job(name).await?;
    let pods = cluster.pods(&found).await?;
    let events = cluster.events(&found, &uids(&found, &pods)).await?;
    if events.is_empty() {
        out::line(format_args!(
            "no events of {}: an API server keeps them for an hour, unless told otherwise",
            found.title()
        ));
        return Ok(ExitCode::SUCCESS);
    }
    let head = HEAD.map(str::to_owned).into();
    let now = Clock::system().now();
    out::text(table(&std::iter::once(head).chain(events.iter().map(|event| row(event, now))).collect::<Vec<_>>()));
    Ok(ExitCode::SUCCESS)
}

/// Returns the uids of the job and its pods.
pub(super) fn uids(found: &Found, pods: &[Pod]) -> BTreeSet<String> {
    let of_pods = pods.iter().filter_map(|pod| pod.metadata.uid.clone());
    of_pods.chain([found.uid().to_owned()]).collect()
}

/// Returns an event as a row below [`HEAD`].
pub(super) fn row(event: &Event, now: Timestamp) -> Vec<String> {
    let object = &event.involved_object;
    let kind = object.kind.clone().unwrap_or_default().to_lowercase();
    let about = format!("{kind}/{}", object.name.clone().unwrap_or_default());
    let times = event.count.filter(|count| *count > 1).map(|count| format!(" (x{count})")).unwrap_or_default();
    let message = format!("{}{times}", event.message.clone().unwrap_or_default());
    vec![age(now, at(event)), about, event.reason.clone().unwrap_or_default(), message]
}

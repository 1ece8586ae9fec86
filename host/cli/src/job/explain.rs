//! `troupe job explain`: why a job is where it is.

use super::{
    cluster::{Cluster, Found},
    events,
    list::{age, table},
};
use crate::args::job::JobName;
use anyhow::Context;
use decide::{
    own_conditions,
    summary::{phase_of, state, why, why_of},
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Pod};
use std::{fmt::Write, process::ExitCode};
use troupe::{
    clock::Clock,
    observe,
    out::{self, OneLine},
};

/// Maximum number of events that are printed.
const EVENTS: usize = 10;

pub(super) async fn explain(cluster: &Cluster, name: &JobName) -> anyhow::Result<ExitCode> {
    let found = cluster.job(name).await?;
    let pods = cluster.pods(&found).await?;
    // Whoever may see a job need not be allowed to list events.
    let happened = cluster.events(&found, &events::uids(&found, &pods)).await;
    out::text(explained(&found, &pods, happened.as_deref().unwrap_or_default(), Clock::system().now())?);
    if let Err(error) = happened {
        out::diagnostic(format_args!("{error:#}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn explained(found: &Found, pods: &[Pod], happened: &[Event], now: Timestamp) -> anyhow::Result<String> {
    let status = &found.job.status;
    let created = found.job.metadata.creation_timestamp.as_ref().map(|it| it.0);
    let mut text = format!("{}: {}, {} old\n", found.title(), OneLine(state(status)), age(now, created));
    if let Some(why) = why(status) {
        writeln!(text, "{}", OneLine(why))?;
    }
    let conditions = own_conditions::all(status).map(|condition| {
        let field = |name: &str| condition[name].as_str().unwrap_or_default().to_owned();
        let since = field("lastTransitionTime").parse().ok();
        vec![field("type"), field("status"), field("reason"), age(now, since), field("message")]
    });
    section(&mut text, &["CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE"], conditions.collect());
    let rows: anyhow::Result<Vec<_>> = pods.iter().map(pod).collect();
    section(&mut text, &["POD", "PHASE", "RESTARTS", "NODE", "WHY"], rows?);
    let last = happened.iter().skip(happened.len().saturating_sub(EVENTS)).map(|event| events::row(event, now));
    section(&mut text, &events::HEAD, last.collect());
    Ok(text)
}

fn pod(pod: &Pod) -> anyhow::Result<Vec<String>> {
    let seen = observe::read_pod(&serde_json::to_string(pod).context("a pod as JSON")?)?;
    let restarts = seen.containers.iter().map(|it| it.restarts).sum::<u32>();
    let (phase, waits) = (phase_of(&seen), why_of(&seen).unwrap_or_default());
    Ok(vec![seen.name, phase, restarts.to_string(), seen.node, waits])
}

/// Appends a table under an empty line, unless it has no rows.
fn section(text: &mut String, head: &[&str], rows: Vec<Vec<String>>) {
    if !rows.is_empty() {
        let head = head.iter().map(|it| (*it).to_owned()).collect();
        text.push('\n');
        text.push_str(&table(&std::iter::once(head).chain(rows).collect::<Vec<_>>()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::{echo_jobs, read};
    use serde_json::json;

    #[test]
    fn a_job_is_explained_by_its_conditions_its_pods_and_its_events() {
        let resource = echo_jobs();
        let at = "2026-01-01T00:00:00Z";
        let waiting = json!({
            "type": "Waiting", "status": "True", "reason": "ImagePull", "message": "an image", "lastTransitionTime": at,
        });
        let job = read(json!({
            "apiVersion": "echo.example.com/v1", "kind": "EchoJob",
            "metadata": { "name": "hamlet", "uid": "1", "creationTimestamp": at },
            "status": { "phase": "Starting", "troupe": { "conditions": [waiting] } },
        }));
        let state = json!({ "waiting": { "reason": "ErrImagePull", "message": "not found" } });
        let main = json!({
            "name": "main", "state": state, "ready": false, "restartCount": 0, "image": "", "imageID": "",
        });
        let pod: Pod = read(json!({
            "metadata": { "name": "hamlet-0" }, "spec": { "nodeName": "node-1", "containers": [] },
            "status": { "phase": "Pending", "containerStatuses": [main] },
        }));
        let event: Event = read(json!({
            "metadata": {}, "involvedObject": { "kind": "Pod", "name": "hamlet-0" }, "lastTimestamp": at,
            "reason": "Failed", "message": "Failed to pull",
        }));
        let now = "2026-01-01T00:01:05Z".parse().unwrap();
        let text = explained(&Found { resource, job }, &[pod], &[event], now).unwrap();
        let expected = "echojob/hamlet: Starting, 1m5s old
waits for an image

CONDITION  STATUS  REASON     SINCE  MESSAGE
Waiting    True    ImagePull  1m5s   an image

POD       PHASE    RESTARTS  NODE    WHY
hamlet-0  Pending  0         node-1  waits for container main of pod/hamlet-0 to start: ErrImagePull: not found

EVENT  OBJECT        REASON  MESSAGE
1m5s   pod/hamlet-0  Failed  Failed to pull
";
        assert_eq!(text, expected);
    }
}

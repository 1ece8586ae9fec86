//! `troupe job wait`: waits until a job has ended.

use super::cluster::{Cluster, Found};
use crate::args::job::{End, JobName};
use anyhow::{Context, bail};
use decide::summary::{state, why};
use futures::StreamExt;
use kube::{
    Api,
    api::DynamicObject,
    runtime::{WatchStreamExt, watcher, watcher::Event},
};
use serde_json::Value;
use std::{error::Error as _, future::ready, pin::pin, process::ExitCode, time::Duration};
use troupe::{
    error::chain,
    out::{self, OneLine},
};

/// A watch that is refused so many times in a row is given up, with its back-off after half a minute: an API server
/// that starts forbids everything until it has read its roles.
const REFUSALS: u32 = 6;

pub(super) async fn wait(
    cluster: &Cluster,
    name: &JobName,
    end: End,
    timeout: Option<Duration>,
) -> anyhow::Result<ExitCode> {
    let found = cluster.job(name).await?;
    let watched = watch(cluster, &found, end);
    let Some(timeout) = timeout else { return watched.await };
    match tokio::time::timeout(timeout, watched).await {
        Ok(ended) => ended,
        Err(_) => bail!("{} has not ended after {} s", found.title(), timeout.as_secs()),
    }
}

/// Prints each state of the job until its end. A watch that is interrupted is reported, and goes on.
async fn watch(cluster: &Cluster, found: &Found, end: End) -> anyhow::Result<ExitCode> {
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), &cluster.namespace, &found.resource);
    let config = watcher::Config::default().fields(&format!("metadata.name={}", found.name()));
    // The start of a list says nothing, and would end the back-off of lists that fail.
    let events = watcher(api, config).filter(|event| ready(!matches!(event, Ok(Event::Init))));
    let mut events = pin!(events.default_backoff());
    let (mut watched, mut printed, mut reported) = (Watched::default(), String::new(), String::new());
    while let Some(event) = events.next().await {
        let status = match watched.hear(event, found.uid()) {
            Heard::Nothing => continue,
            Heard::Status(status) => status,
            Heard::Interrupted(error) => {
                let cause = chain(error.source().unwrap_or(&error));
                if cause != reported {
                    out::diagnostic(format_args!("the watch of {} is interrupted and goes on: {cause}", found.title()));
                    reported = cause;
                }
                continue;
            }
            Heard::Refused(error) => return Err(error).context("the job cannot be watched"),
            Heard::Deleted => bail!("{} was deleted", found.title()),
        };
        let line = [Some(state(&status)), why(&status)].into_iter().flatten().collect::<Vec<_>>().join(": ");
        if line != printed {
            out::line(format_args!("{} {}", found.title(), OneLine(&line)));
            printed = line;
        }
        match (outcome(&status), end) {
            (None, _) => {}
            (Some(_), End::Ended) | (Some("succeeded"), End::Succeeded) => return Ok(ExitCode::SUCCESS),
            (Some(_), End::Succeeded) => return Ok(ExitCode::FAILURE),
        }
    }
    bail!("the watch of {} ended", found.title())
}

/// Returns `succeeded` or `failed` once the job has ended.
fn outcome(status: &Value) -> Option<&str> {
    status.pointer("/troupe/finished/outcome")?.as_str()
}

/// What an event of a watch means to somebody who waits for a job.
#[derive(Debug)]
enum Heard {
    /// Nothing new.
    Nothing,
    /// The job has this status.
    Status(Value),
    /// The watch goes on as soon as it can.
    Interrupted(watcher::Error),
    /// The user may not watch the job, or what the API server shows cannot be read.
    Refused(watcher::Error),
    /// The job is not there any more.
    Deleted,
}

/// What the watch of one job has shown.
#[derive(Debug, Default)]
struct Watched {
    /// Whether the list that is under way has a job of this name.
    is_listed: bool,
    /// The number of refusals since anything else was heard.
    refusals: u32,
}

impl Watched {
    /// Takes in the next event of a watch of the name of the job with this uid.
    fn hear(&mut self, event: watcher::Result<Event<DynamicObject>>, uid: &str) -> Heard {
        let heard = match event {
            Err(error) => return self.interrupted(error),
            Ok(Event::Init) => return Heard::Nothing,
            Ok(Event::InitApply(job)) => {
                self.is_listed = true;
                shown(job, uid)
            }
            Ok(Event::Apply(job)) => shown(job, uid),
            Ok(Event::InitDone) if self.is_listed => {
                self.is_listed = false;
                Heard::Nothing
            }
            // A job without finalizers is deleted without a time of deletion.
            Ok(Event::InitDone | Event::Delete(_)) => Heard::Deleted,
        };
        self.refusals = 0;
        heard
    }

    fn interrupted(&mut self, error: watcher::Error) -> Heard {
        // The next list is another.
        self.is_listed = false;
        self.refusals = if is_refusal(&error) { self.refusals + 1 } else { 0 };
        if self.refusals < REFUSALS { Heard::Interrupted(error) } else { Heard::Refused(error) }
    }
}

/// Returns what a job of that name means, which may be another one.
fn shown(mut job: DynamicObject, uid: &str) -> Heard {
    if job.metadata.uid.as_deref() != Some(uid) || job.metadata.deletion_timestamp.is_some() {
        return Heard::Deleted;
    }
    Heard::Status(job.data.get_mut("status").map(Value::take).unwrap_or_default())
}

/// Returns whether the next attempt is likely to fail as well: no right, no such kind, an answer that cannot be read.
fn is_refusal(error: &watcher::Error) -> bool {
    use watcher::Error::{InitialListFailed, WatchFailed, WatchStartFailed};
    let (InitialListFailed(error) | WatchStartFailed(error) | WatchFailed(error)) = error else { return false };
    match error {
        kube::Error::Api(status) => [401, 403, 404, 405].contains(&status.code),
        kube::Error::SerdeError(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::read;
    use kube::core::Status;
    use serde_json::json;

    fn job(uid: &str) -> DynamicObject {
        read(json!({ "metadata": { "name": "hamlet", "uid": uid }, "status": { "phase": "Running" } }))
    }

    fn answer(code: u16) -> watcher::Error {
        watcher::Error::InitialListFailed(kube::Error::Api(Status::failure("", "").with_code(code).boxed()))
    }

    /// What these events mean, in order, to somebody who waits for the job `one`.
    fn heard(events: impl IntoIterator<Item = watcher::Result<Event<DynamicObject>>>) -> Vec<&'static str> {
        let mut watched = Watched::default();
        let meanings = events.into_iter().map(|event| match watched.hear(event, "one") {
            Heard::Nothing => "nothing",
            Heard::Status(status) if status["phase"] == "Running" => "running",
            Heard::Status(_) => "another status",
            Heard::Interrupted(_) => "interrupted",
            Heard::Refused(_) => "refused",
            Heard::Deleted => "deleted",
        });
        meanings.collect()
    }

    #[test]
    fn a_job_without_finalizers_that_is_deleted_ends_the_wait() {
        let listed = [Ok(Event::Init), Ok(Event::InitApply(job("one"))), Ok(Event::InitDone)];
        let changed = [Ok(Event::Apply(job("one"))), Ok(Event::Delete(job("one")))];
        let meant = heard(listed.into_iter().chain(changed));
        assert_eq!(meant, ["nothing", "running", "nothing", "running", "deleted"]);
    }

    #[test]
    fn a_job_that_went_while_the_watch_was_interrupted_is_deleted() {
        let before = || [Ok(Event::InitApply(job("one"))), Ok(Event::InitDone)];
        let meant = heard(before().into_iter().chain([Err(answer(410)), Ok(Event::InitDone)]));
        assert_eq!(meant, ["running", "nothing", "interrupted", "deleted"]);
        let meant = heard(before().into_iter().chain([Err(answer(410))]).chain(before()));
        assert_eq!(meant, ["running", "nothing", "interrupted", "running", "nothing"]);
        // A list that breaks off is none.
        let meant = heard([Ok(Event::InitApply(job("one"))), Err(answer(500)), Ok(Event::InitDone)]);
        assert_eq!(meant, ["running", "interrupted", "deleted"]);
    }

    #[test]
    fn another_job_of_the_same_name_and_one_that_is_being_deleted_are_not_the_job() {
        let mut leaving = job("one");
        leaving.metadata.deletion_timestamp = Some(read(json!("2026-01-01T00:00:00Z")));
        assert_eq!(heard([Ok(Event::InitApply(job("two")))]), ["deleted"]);
        assert_eq!(heard([Ok(Event::Apply(leaving))]), ["deleted"]);
    }

    #[test]
    fn a_watch_that_is_interrupted_goes_on_however_often() {
        let expired = || watcher::Error::WatchError(Status::failure("too old", "Expired").with_code(410).boxed());
        let cut = || watcher::Error::WatchFailed(kube::Error::ReadEvents(std::io::Error::other("cut")));
        let errors = (0..100).flat_map(|_| [expired(), cut(), answer(429), answer(500)]);
        assert!(heard(errors.map(Err)).iter().all(|meant| *meant == "interrupted"));
    }

    #[test]
    fn a_watch_that_is_refused_again_and_again_is_given_up() {
        let refusals = |count: u32| (0..count).map(|_| Err(answer(403)));
        // Each list begins before it is refused.
        let begun = || std::iter::once(Ok(Event::Init));
        let meant = heard(begun().chain(refusals(REFUSALS - 1)).chain(begun()).chain(refusals(1)));
        assert_eq!(meant.last(), Some(&"refused"));
        let between = [Ok(Event::InitApply(job("one"))), Err(answer(500))];
        for other in between {
            let meant = heard(refusals(REFUSALS - 1).chain([other]).chain(refusals(REFUSALS - 1)));
            assert_eq!(meant.last(), Some(&"interrupted"));
        }
    }
}

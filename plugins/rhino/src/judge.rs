//! The status of a RhinoJob: `jobStatus`, the names of its pods, and when it is over.

use crate::jobs::{BatchJob, Jobs};
use crate::{Job, launcher, workers};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use troupe_plugin::ObservationExt;
use troupe_plugin::types::{ContainerState, Event, Observation, Outcome, PodPhase, PodRow, Verdict};

/// Reasons that a container waits for because of its image. Better: the original takes any but ContainerCreating.
const IMAGE_REASONS: [&str; 7] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
    "SignatureValidationFailed",
];

/// The whole status for this instant.
pub(crate) fn judge(job: &Job, seen: &Observation) -> Verdict {
    let stage = Stage::of(job, seen);
    let mut status = json!({ "jobStatus": stage.name() });
    let names = [("launcherPodNames", launchers(seen)), ("workerPodNames", workers_by_index(seen))];
    for (field, names) in names {
        if !names.is_empty() {
            status[field] = json!(names);
        }
    }
    let is_news = seen.previous::<Value>().get("jobStatus").and_then(Value::as_str) != Some(stage.name());
    let events = stage.event(job).filter(|_| is_news).into_iter().collect();
    Verdict { events, ..Verdict::new(status.to_string(), stage.name(), stage.outcome()) }
}

/// How far the job has come, and why where that is not plain.
#[derive(Debug, PartialEq)]
enum Stage {
    Pending,
    /// Pending until the Job of this name is deleted.
    Orphaned(String),
    ImageError(String),
    Running,
    Completed,
    Failed(String),
}

impl Stage {
    fn of(job: &Job, seen: &Observation) -> Self {
        let image_error = || image_error(seen).map(Self::ImageError);
        match Jobs::of(seen) {
            // Better: the original stays Pending.
            Jobs::Launching(Some(BatchJob { given_up: Some(why), .. })) => Self::Failed(why),
            Jobs::Launching(Some(launcher)) if launcher.succeeded > 0 => Self::Completed,
            Jobs::Launching(_) => image_error().unwrap_or(Self::Pending),
            Jobs::Orphaned(workers) => Self::Orphaned(workers.name),
            Jobs::Both { launcher, workers } => match failure(seen, &launcher, &workers) {
                Some(why) => Self::Failed(why),
                None if is_complete(job, &launcher, &workers) => Self::Completed,
                // Better: the original does not look at the workers' images.
                None => image_error().unwrap_or(Self::Running),
            },
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Pending | Self::Orphaned(_) => "Pending",
            Self::ImageError(_) => "ImageError",
            Self::Running => "Running",
            Self::Completed => "Completed",
            Self::Failed(_) => "Failed",
        }
    }

    fn outcome(&self) -> Outcome {
        match self {
            Self::Completed => Outcome::Succeeded,
            Self::Failed(_) => Outcome::Failed,
            Self::Pending | Self::Orphaned(_) | Self::ImageError(_) | Self::Running => Outcome::Open,
        }
    }

    /// Better: the original reports nothing.
    fn event(&self, job: &Job) -> Option<Event> {
        let who = format!("RhinoJob {}/{}", job.namespace(), job.name());
        let (warning, reason, message) = match self {
            Self::Pending => return None,
            Self::Orphaned(workers) => {
                let advice = format!("delete Job {workers} to run it again");
                (
                    true,
                    "LauncherGone",
                    format!("The launcher of {who} is gone and its workers know no other; {advice}."),
                )
            }
            Self::ImageError(why) => (true, "ImageError", why.clone()),
            Self::Running => (false, "RhinoJobRunning", format!("{who} is running.")),
            Self::Completed => (false, "RhinoJobCompleted", format!("{who} is completed.")),
            Self::Failed(why) => (true, "RhinoJobFailed", format!("{who} has failed: {why}")),
        };
        Some(Event { warning, reason: reason.into(), message })
    }
}

/// Better: the workers' Job says how many there are, whatever the spec says since.
fn is_complete(job: &Job, launcher: &BatchJob, workers: &BatchJob) -> bool {
    let all = workers.completions.or_else(|| u64::try_from(job.spec.parallelism.unwrap_or(1)).ok());
    launcher.succeeded == 1 && Some(workers.succeeded) == all
}

/// Why the run is over before its end.
fn failure(seen: &Observation, launcher: &BatchJob, workers: &BatchJob) -> Option<String> {
    let failed = |job: &BatchJob| (job.failed > 0).then(|| format!("failed pods of Job {}: {}", job.name, job.failed));
    let given_up = workers.given_up.clone().or_else(|| failed(workers)).or_else(|| launcher.given_up.clone());
    given_up.or_else(|| match launcher_of(seen, workers) {
        Some(pod) => ended(pod, workers),
        None => failed(launcher).or_else(|| replaced(seen, workers)),
    })
}

/// The launcher whose address the workers have: it was there before them, and has not failed.
fn launcher_of<'a>(seen: &'a Observation, workers: &BatchJob) -> Option<&'a PodRow> {
    let known = seen.live(launcher::ROLE).filter(|pod| pod.phase != PodPhase::Failed);
    known.filter(|pod| workers.created.is_some_and(|at| pod.created <= at)).max_by_key(|pod| pod.created)
}

fn replaced(seen: &Observation, workers: &BatchJob) -> Option<String> {
    let mut later = seen.live(launcher::ROLE).filter(|pod| workers.created.is_some_and(|at| pod.created > at));
    later.next().map(|pod| format!("pod {} is not the launcher whose address the workers have", pod.name))
}

/// How mpirun ended since there are workers, if not well. Better: one that is started again waits for workers that
/// have gone, and the original takes any end for a good one.
fn ended(pod: &PodRow, workers: &BatchJob) -> Option<String> {
    let container = pod.containers.iter().find(|container| container.name == launcher::CONTAINER)?;
    let how = match &container.state {
        ContainerState::Terminated(end) if end.exit_code != 0 => format!("with exit code {}", end.exit_code),
        ContainerState::Running(since) if workers.created.is_some_and(|at| *since > at) => {
            "and was started again".into()
        }
        ContainerState::Waiting((reason, _)) => format!("and is to be started again ({reason})"),
        _ => return None,
    };
    Some(format!("mpirun in pod {} ended {how}", pod.name))
}

/// What is wrong with the image of a pod.
fn image_error(seen: &Observation) -> Option<String> {
    seen.pods.iter().filter(|pod| !pod.terminating).find_map(|pod| {
        let mut ours = pod.containers.iter().filter(|c| [launcher::CONTAINER, workers::CONTAINER].contains(&&*c.name));
        ours.find_map(|container| match &container.state {
            ContainerState::Waiting((reason, message)) if IMAGE_REASONS.contains(&reason.as_str()) => {
                Some(format!("Pod {}: {reason}: {message}", pod.name))
            }
            _ => None,
        })
    })
}

/// The newest first: it is the one whose log is asked for.
fn launchers(seen: &Observation) -> Vec<&str> {
    let mut pods: Vec<_> = seen.pods_of(launcher::ROLE).collect();
    pods.sort_by_key(|pod| Reverse(pod.created));
    pods.into_iter().map(|pod| &*pod.name).collect()
}

/// The newest pod of each index, in order of index. Better: worker 3 is the fourth.
fn workers_by_index(seen: &Observation) -> Vec<&str> {
    let mut newest: BTreeMap<u32, &PodRow> = BTreeMap::new();
    // They come in order of creation.
    for pod in seen.pods_of(workers::ROLE) {
        if let Some(index) = completion_index(&pod.name) {
            newest.insert(index, pod);
        }
    }
    newest.into_values().map(|pod| &*pod.name).collect()
}

/// The index in the name that Kubernetes gives the pod of an Indexed Job: `<job>-<index>-<five characters>`.
fn completion_index(pod: &str) -> Option<u32> {
    pod.rsplit('-').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{
        job, launcher_job, launcher_pod, parsed, sample, waiting, with_state, worker_pod, workers_job,
    };
    use troupe_plugin::testkit::{self, PodFixture};
    use troupe_plugin::types::{ChildView, Ended};

    /// When the workers' Job of the fixtures was made.
    const WORKERS_MADE: u64 = 1_767_225_610_000;

    fn seen(children: &[ChildView], pods: &[PodRow]) -> Observation {
        let mut seen = testkit::seen(pods.to_vec());
        seen.children = children.to_vec();
        seen
    }

    fn judged(children: &[ChildView], pods: &[PodRow]) -> Verdict {
        judge(&job("sample", &sample()), &seen(children, pods))
    }

    fn status(children: &[ChildView], pods: &[PodRow]) -> String {
        parsed(&judged(children, pods).status)["jobStatus"].as_str().unwrap().to_owned()
    }

    /// Both Jobs with these statuses.
    fn both(launcher: &Value, workers: &Value) -> [ChildView; 2] {
        [launcher_job(launcher), workers_job(workers)]
    }

    fn going() -> [ChildView; 2] {
        both(&json!({ "active": 1 }), &json!({ "active": 2 }))
    }

    fn failed(reason: &str) -> Value {
        json!({ "conditions": [{ "type": "Failed", "status": "True", "reason": reason, "message": "m" }] })
    }

    fn exited(code: i32) -> PodRow {
        let end = Ended { exit_code: code, reason: String::new(), message: String::new(), at: WORKERS_MADE + 5000 };
        with_state(launcher_pod().running(), ContainerState::Terminated(end))
    }

    fn started(at: u64) -> PodRow {
        with_state(launcher_pod().running(), ContainerState::Running(at))
    }

    // R01
    #[test]
    fn a_job_begins_pending_and_without_words() {
        let verdict = judged(&[], &[]);
        assert_eq!(parsed(&verdict.status), json!({ "jobStatus": "Pending" }));
        assert_eq!((verdict.outcome, verdict.events.len()), (Outcome::Open, 0));
        assert_eq!(status(&[launcher_job(&json!({ "active": 1 }))], &[launcher_pod()]), "Pending");
    }

    // R04
    #[test]
    fn the_counts_of_the_jobs_are_the_jobs_status() {
        let cases = [
            (json!({}), json!({}), "Running"),
            (json!({ "succeeded": 1 }), json!({ "succeeded": 2 }), "Completed"),
            (json!({}), json!({ "succeeded": 2 }), "Running"),
            (json!({ "succeeded": 1 }), json!({ "succeeded": 1 }), "Running"),
            (json!({}), json!({ "failed": 1 }), "Failed"),
            (json!({ "failed": 1 }), json!({}), "Failed"),
            (json!({ "succeeded": 1 }), json!({ "succeeded": 1, "failed": 1 }), "Failed"),
            (failed("DeadlineExceeded"), json!({}), "Failed"),
            (json!({}), failed("BackoffLimitExceeded"), "Failed"),
        ];
        for (launcher, workers, expected) in cases {
            assert_eq!(status(&both(&launcher, &workers), &[]), expected, "{launcher} {workers}");
        }
    }

    // R04
    #[test]
    fn the_end_is_reported_once_and_is_the_end() {
        let completed = judged(&both(&json!({ "succeeded": 1 }), &json!({ "succeeded": 2 })), &[]);
        assert_eq!((completed.outcome, &*completed.headline), (Outcome::Succeeded, "Completed"));
        assert_eq!((completed.events[0].warning, &*completed.events[0].reason), (false, "RhinoJobCompleted"));
        let children = both(&json!({}), &json!({ "failed": 1 }));
        let verdict = judged(&children, &[]);
        assert_eq!(verdict.outcome, Outcome::Failed);
        let message = "RhinoJob default/sample has failed: failed pods of Job sample-abcde-workers: 1";
        assert_eq!((verdict.events[0].warning, &*verdict.events[0].message), (true, message));
        let mut again = seen(&children, &[]);
        again.previous_status = verdict.status;
        assert!(judge(&job("sample", &sample()), &again).events.is_empty());
    }

    // R04, Better: an edit after the workers were made has no effect, as in the original, and does no harm
    #[test]
    fn the_workers_job_says_how_many_there_are() {
        let mut spec = sample();
        spec["parallelism"] = json!(5);
        let seen = seen(&both(&json!({ "succeeded": 1 }), &json!({ "succeeded": 2 })), &[]);
        assert_eq!(judge(&job("sample", &spec), &seen).outcome, Outcome::Succeeded);
    }

    // R04 and its Better: in order
    #[test]
    fn pods_are_listed_workers_by_index_and_of_launchers_the_newest_first() {
        let mut earlier = launcher_pod().failed(1);
        (earlier.name, earlier.created) = ("sample-abcde-launcher-aaaaa".into(), earlier.created - 1000);
        let mut retried = worker_pod(2);
        (retried.name, retried.created) = ("sample-abcde-workers-2-zzzzz".into(), retried.created + 1000);
        let pods = [earlier, launcher_pod(), worker_pod(10), worker_pod(2), worker_pod(0), retried];
        let status = parsed(&judged(&[], &pods).status);
        assert_eq!(status["launcherPodNames"], json!(["sample-abcde-launcher-x7k2p", "sample-abcde-launcher-aaaaa"]));
        let workers = ["sample-abcde-workers-0-q9z4t", "sample-abcde-workers-2-zzzzz", "sample-abcde-workers-10-q9z4t"];
        assert_eq!(status["workerPodNames"], json!(workers));
    }

    // R04, Better: the original stays Pending
    #[test]
    fn a_launcher_that_gives_up_before_there_are_workers_is_a_failure() {
        assert_eq!(status(&[launcher_job(&json!({ "failed": 3 }))], &[]), "Pending");
        let verdict = judged(&[launcher_job(&failed("BackoffLimitExceeded"))], &[]);
        assert_eq!(verdict.outcome, Outcome::Failed);
        assert!(verdict.events[0].message.ends_with("BackoffLimitExceeded: m"), "{}", verdict.events[0].message);
    }

    // R04, Better: the original stays Pending, since a pod that has succeeded does not become ready
    #[test]
    fn a_launcher_that_succeeds_before_there_are_workers_completes_the_job() {
        let verdict = judged(&[launcher_job(&json!({ "succeeded": 1 }))], &[launcher_pod().succeeded()]);
        assert_eq!((verdict.outcome, &*verdict.headline), (Outcome::Succeeded, "Completed"));
    }

    // Better: mpirun's exit code counts
    #[test]
    fn a_run_is_over_when_mpirun_ends_but_well() {
        for (pod, expected) in [
            (started(WORKERS_MADE - 5000), "Running"),
            (exited(0), "Running"),
            (exited(3), "Failed"),
            (waiting(launcher_pod().running(), "CrashLoopBackOff"), "Failed"),
            (started(WORKERS_MADE + 5000), "Failed"),
        ] {
            assert_eq!(status(&going(), std::slice::from_ref(&pod)), expected, "{:?}", pod.containers[0].state);
        }
        let message = &judged(&going(), &[exited(3)]).events[0].message;
        assert!(message.ends_with("mpirun in pod sample-abcde-launcher-x7k2p ended with exit code 3"), "{message}");
    }

    // Better: the original keeps workers that call an address which is nobody's
    #[test]
    fn a_launcher_pod_that_was_replaced_is_a_failure_only_if_the_workers_knew_it() {
        let mut later = started(WORKERS_MADE + 5000);
        later.created = WORKERS_MADE + 1000;
        assert_eq!(status(&going(), &[later]), "Failed");
        let failed_before = both(&json!({ "failed": 1 }), &json!({}));
        assert_eq!(status(&failed_before, &[launcher_pod().failed(1), started(WORKERS_MADE - 5000)]), "Running");
    }

    // R05
    #[test]
    fn only_what_is_wrong_with_an_image_is_an_image_error() {
        let launching = [launcher_job(&json!({}))];
        for (reason, expected) in [
            ("ErrImagePull", "ImageError"),
            ("ImagePullBackOff", "ImageError"),
            ("InvalidImageName", "ImageError"),
            ("ContainerCreating", "Pending"),
            // Better
            ("CrashLoopBackOff", "Pending"),
            ("CreateContainerConfigError", "Pending"),
        ] {
            assert_eq!(status(&launching, &[waiting(launcher_pod(), reason)]), expected, "{reason}");
        }
        let verdict = judged(&launching, &[waiting(launcher_pod(), "ErrImagePull")]);
        let message = "Pod sample-abcde-launcher-x7k2p: ErrImagePull: back-off";
        assert_eq!((verdict.outcome, &*verdict.events[0].message), (Outcome::Open, message));
    }

    // R05
    #[test]
    fn an_image_that_works_after_all_lets_the_job_run() {
        assert_eq!(status(&going(), &[started(WORKERS_MADE - 5000), worker_pod(0)]), "Running");
    }

    // R05, Better: the original looks at the launcher alone
    #[test]
    fn the_image_of_a_worker_counts_too() {
        let pods = [started(WORKERS_MADE - 5000), waiting(worker_pod(1), "ImagePullBackOff")];
        assert_eq!(status(&going(), &pods), "ImageError");
        assert_eq!(status(&going(), &[waiting(worker_pod(1), "ImagePullBackOff").going()]), "Running");
    }

    // R05: the launcher's Job deleted while there are workers
    #[test]
    fn workers_without_their_launcher_leave_the_job_pending_with_advice() {
        let workers = workers_job(&json!({ "failed": 1 }));
        let verdict = judged(&[workers], &[]);
        assert_eq!((verdict.outcome, &*verdict.headline), (Outcome::Open, "Pending"));
        let (reason, message) = (&*verdict.events[0].reason, &*verdict.events[0].message);
        assert_eq!(reason, "LauncherGone");
        assert!(message.ends_with("delete Job sample-abcde-workers to run it again."), "{message}");
    }

    // R05: both deleted, and the launcher's made again
    #[test]
    fn a_job_without_jobs_is_pending_again() {
        let mut seen = seen(&[launcher_job(&json!({}))], &[]);
        seen.previous_status = json!({ "jobStatus": "Running" }).to_string();
        let verdict = judge(&job("sample", &sample()), &seen);
        assert_eq!((verdict.outcome, &*verdict.headline, verdict.events.len()), (Outcome::Open, "Pending", 0));
    }
}

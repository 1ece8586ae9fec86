//! What becomes of a failed pod: a pure function of its restart policy and its exit code.

use crate::family::{Family, Replicas};
use crate::{TrainingJob, rules};
use troupe_plugin::types::{Failure, FailureRule, PodRow, Remedy};
use troupe_plugin::{DISRUPTION_TARGET, PodExt, ends_for_good};

/// The restart policy of a type of replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RestartPolicy {
    Always,
    OnFailure,
    Never,
    /// The exit code of the framework's container decides.
    ExitCode,
}

/// What becomes of a failed pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Another takes its place.
    Restart,
    /// It stays, and the job goes on without it.
    Keep,
    /// Its failure is the job's.
    Fail,
    /// Its exit code says that another would fail too.
    FailForGood,
}

/// The least exit code after which a pod is tried again: a signal ended it, or something outside of it did.
const RETRYABLE: i32 = 128;

impl RestartPolicy {
    /// Returns the policy of this name.
    pub(crate) fn read(name: &str) -> Option<Self> {
        match name {
            "Always" => Some(Self::Always),
            "OnFailure" => Some(Self::OnFailure),
            "Never" => Some(Self::Never),
            "ExitCode" => Some(Self::ExitCode),
            _ => None,
        }
    }

    /// Returns the restart policy of the pod: a kubelet does not look at exit codes.
    pub(crate) fn of_pod(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::OnFailure => "OnFailure",
            Self::Never | Self::ExitCode => "Never",
        }
    }

    /// Returns what becomes of a failed pod whose container of the framework ended with this exit code. None: it has no
    /// code, since it was evicted, its node was lost or its image never ran.
    pub(crate) fn fate(self, exit_code: Option<i32>) -> Fate {
        match (self, exit_code) {
            (Self::Never, _) => Fate::Fail,
            (Self::ExitCode, Some(code)) if code < RETRYABLE => Fate::FailForGood,
            (Self::Always | Self::OnFailure | Self::ExitCode, _) => Fate::Restart,
        }
    }
}

/// The annotation of a job that says what starts again when one of its pods is replaced. The original has none.
pub(crate) const RESTART_SCOPE: &str = "kubeflow.troupe.dev/restart-scope";

/// What starts again when a pod is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RestartScope {
    /// That pod.
    Pod,
    /// All pods of the job: for frameworks of which no process goes on without the others.
    Job,
}

impl RestartScope {
    /// Returns the scope that a job names; the pod where it names none.
    ///
    /// # Errors
    /// What the annotation has instead.
    pub(crate) fn of(job: &TrainingJob) -> Result<Self, &str> {
        let named = job.view.annotations.iter().find(|(name, _)| name == RESTART_SCOPE);
        match named.map(|(_, scope)| scope.as_str()) {
            None | Some("Pod") => Ok(Self::Pod),
            Some("Job") => Ok(Self::Job),
            Some(other) => Err(other),
        }
    }
}

/// Returns the restart policy of a job's pods. Where the whole job starts again, no kubelet starts a container again by itself.
pub(crate) fn of_pods(job: &TrainingJob, policy: RestartPolicy) -> &'static str {
    match RestartScope::of(job) {
        Ok(RestartScope::Job) => RestartPolicy::Never.of_pod(),
        Ok(RestartScope::Pod) | Err(_) => policy.of_pod(),
    }
}

/// Returns the exit code of the framework's container, if it is the program's own: not the 0 of a pod that failed from outside.
pub(crate) fn exit_code(pod: &PodRow, container: &str) -> Option<i32> {
    pod.exit_code(container).filter(|code| *code != 0 || !pod.is_disrupted())
}

/// How the framework's container ended for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Well,
    Badly,
}

/// Returns how the framework's container ended with this exit code, if no kubelet starts it again.
pub(crate) fn ends(job: &TrainingJob, policy: RestartPolicy, exit_code: Option<i32>) -> Option<End> {
    let code = exit_code.filter(|code| ends_for_good(*code, of_pods(job, policy)))?;
    Some(if code == 0 { End::Well } else { End::Badly })
}

/// Returns the rules that name the pods of these replicas whose fate is another pod.
pub(crate) fn replaced(family: &Family<'_>, replicas: &Replicas<'_>) -> Vec<FailureRule> {
    let then = match RestartScope::of(family.job) {
        Ok(RestartScope::Job) => Remedy::RestartJob,
        Ok(RestartScope::Pod) | Err(_) => Remedy::Replace,
    };
    let policy = replicas.restart_policy.unwrap_or(family.kind.restart_policy);
    let is_replaced = |code| rules::fate(family, replicas.of, policy, code) == Fate::Restart;
    let container = || family.kind.container.to_owned();
    let failures = if is_replaced(Some(1)) {
        vec![Failure::Any]
    } else if is_replaced(Some(RETRYABLE)) {
        vec![Failure::ExitCodes((container(), vec![(RETRYABLE, i32::MAX)])), Failure::NoExitCode(container())]
    } else {
        vec![]
    };
    let replaced = failures.into_iter().map(|about| FailureRule { about, then });
    // What was evicted, or stopped with its node, may end with 0 and has done nothing by that.
    let disrupted = Failure::Condition((DISRUPTION_TARGET.to_owned(), "True".to_owned()));
    let disrupted = is_replaced(None).then_some(FailureRule { about: disrupted, then });
    // What failed beside a container that has done its work.
    let done = Failure::ExitCodes((container(), vec![(0, 0)]));
    let done = ends_for_good(0, of_pods(family.job, policy)).then_some(FailureRule { about: done, then: Remedy::Keep });
    disrupted.into_iter().chain(done).chain(replaced).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use troupe_plugin::testkit::{self, PodFixture};

    // AC-10, AC-11: 128 and above may be tried again, and so may a pod without an exit code.
    #[test]
    fn an_exit_code_is_retryable_from_128() {
        for code in [128, 130, 137, 143, 255] {
            assert_eq!(RestartPolicy::ExitCode.fate(Some(code)), Fate::Restart, "{code}");
        }
        for code in [0, 1, 2, 127] {
            assert_eq!(RestartPolicy::ExitCode.fate(Some(code)), Fate::FailForGood, "{code}");
        }
        assert_eq!(RestartPolicy::ExitCode.fate(None), Fate::Restart);
    }

    #[test]
    fn other_policies_do_not_look_at_the_exit_code() {
        for code in [None, Some(1), Some(137)] {
            assert_eq!(RestartPolicy::Never.fate(code), Fate::Fail);
            assert_eq!(RestartPolicy::OnFailure.fate(code), Fate::Restart);
            assert_eq!(RestartPolicy::Always.fate(code), Fate::Restart);
        }
    }

    // AC-11: a sidecar's exit code is not the job's.
    #[test]
    fn only_the_frameworks_container_has_an_exit_code() {
        let mut pod = testkit::pod("worker", 0, "p-worker-0").failed(1);
        pod.containers[0].name = "pytorch".into();
        let mut side = testkit::pod("worker", 0, "p-worker-0").failed(137);
        pod.containers.append(&mut side.containers);
        assert_eq!(pod.exit_code("pytorch"), Some(1));
        assert_eq!(pod.exit_code("tensorflow"), None);
        assert_eq!(pod.running().exit_code("main"), None);
    }
}

//! What keeps pods from running, as the scheduler and the kubelet report it.

use crate::{
    Snapshot,
    first_failure::shortened,
    snapshot::{ContainerState, ContainerStatus, Pod, PodPhase},
    waiting::{Blocker, Waiting},
};

/// Reasons of a waiting container that starts as it should (kubelet: `pkg/kubelet/kubelet_pods.go`).
const STARTING: [&str; 3] = ["", "ContainerCreating", "PodInitializing"];

/// Returns the first blocked pod of the job and how many others are blocked, too.
pub(crate) fn blocked(snapshot: &Snapshot) -> Option<Waiting> {
    let mut blocked = snapshot.pods.iter().filter_map(|pod| Some((pod, of(pod)?)));
    let (pod, by) = blocked.next()?;
    Some(Waiting::Blocked { pod: pod.name.clone(), by, others: u32::try_from(blocked.count()).unwrap_or(u32::MAX) })
}

/// Returns what keeps the pod from running, as far as its status says; `None` also for a pod that has ended.
#[must_use]
pub fn of(pod: &Pod) -> Option<Blocker> {
    if pod.terminating || pod.phase.is_terminal() {
        return None;
    }
    if let Some(unscheduled) = pod.unscheduled.as_ref().filter(|_| pod.phase == PodPhase::Pending) {
        let is_gated = unscheduled.reason == "SchedulingGated";
        let unschedulable = || Blocker::Unschedulable { message: shortened(&unscheduled.message) };
        return Some(if is_gated { Blocker::SchedulingGated } else { unschedulable() });
    }
    let in_a_loop = |container: &ContainerStatus| {
        Some(Blocker::CrashLoop { container: container.name.clone(), restarts: container.restarts })
    };
    pod.containers.iter().find_map(|container| match &container.state {
        ContainerState::Waiting { reason, .. } if STARTING.contains(&reason.as_str()) => None,
        ContainerState::Waiting { reason, .. } if reason == "CrashLoopBackOff" => in_a_loop(container),
        // The kubelet restarts the first failure at once, and waits after each later one.
        ContainerState::Terminated { exit_code, .. } if *exit_code != 0 && container.restarts > 0 => {
            in_a_loop(container)
        }
        ContainerState::Waiting { reason, message } => {
            let (container, why) = (container.name.clone(), said(reason, message));
            let is_image = reason.contains("Image") || reason == "RegistryUnavailable";
            Some(if is_image { Blocker::Image { container, why } } else { Blocker::Container { container, why } })
        }
        ContainerState::Unknown | ContainerState::Running { .. } | ContainerState::Terminated { .. } => None,
    })
}

fn said(reason: &str, message: &str) -> String {
    if message.is_empty() { reason.to_owned() } else { format!("{reason}: {}", shortened(message)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{snapshot::Unscheduled, testkit};

    fn pending(name: &str) -> Pod {
        testkit::pod(name, "uid", PodPhase::Pending)
    }

    fn unscheduled(name: &str, reason: &str, message: &str) -> Pod {
        let unscheduled = Some(Unscheduled { reason: reason.into(), message: message.into() });
        Pod { unscheduled, ..pending(name) }
    }

    fn waits(name: &str, reason: &str, message: &str) -> Pod {
        let state = ContainerState::Waiting { reason: reason.into(), message: message.into() };
        let main = ContainerStatus { name: "main".into(), init: false, ready: false, restarts: 3, state };
        Pod { containers: vec![main], ..pending(name) }
    }

    fn waiting(pods: Vec<Pod>) -> Option<String> {
        let mut snapshot = testkit::snapshot(testkit::job("hamlet", "uid"));
        snapshot.pods = pods.into_iter().map(Into::into).collect();
        blocked(&snapshot).map(|it| format!("{}: {it}", it.reason()))
    }

    #[test]
    fn a_pod_that_cannot_run_is_named_with_what_is_in_its_way() {
        let cases = [
            (
                unscheduled("w-1", "Unschedulable", "0/1 nodes are available: 1 Insufficient cpu."),
                "Unschedulable: pod/w-1 to be scheduled: 0/1 nodes are available: 1 Insufficient cpu.",
            ),
            (
                unscheduled("w-1", "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates"),
                "SchedulingGated: pod/w-1 to be scheduled: its scheduling gates have to be removed",
            ),
            (
                waits("w-1", "ErrImagePull", "not found"),
                "ImagePull: container main of pod/w-1 to start: ErrImagePull: not found",
            ),
            (
                waits("w-1", "CreateContainerConfigError", "secret \"keys\" not found"),
                "ContainerNotStarted: container main of pod/w-1 to start: CreateContainerConfigError: secret \"keys\" \
                 not found",
            ),
            (
                waits("w-1", "CrashLoopBackOff", "back-off 40s restarting failed container"),
                "CrashLoop: container main of pod/w-1 to stay up: it was started again 3 times so far, and is again after a delay",
            ),
        ];
        for (pod, says) in cases {
            assert_eq!(waiting(vec![pending("w-0"), pod]).as_deref(), Some(says));
        }
    }

    // A job in a crash loop says so without a break, also in the second before the kubelet waits.
    #[test]
    fn a_container_that_was_started_again_and_failed_again_is_in_a_crash_loop() {
        let ended = |restarts, exit_code| {
            let (reason, message, at) = (String::new(), String::new(), jiff::Timestamp::UNIX_EPOCH);
            let mut pod = waits("w", "", "");
            pod.containers[0].restarts = restarts;
            pod.containers[0].state = ContainerState::Terminated { exit_code, reason, message, at };
            waiting(vec![Pod { phase: PodPhase::Running, ..pod }])
        };
        assert!(ended(1, 1).is_some_and(|says| says.starts_with("CrashLoop: container main of pod/w to stay up")));
        assert_eq!([ended(0, 1), ended(1, 0)], [None, None]);
    }

    #[test]
    fn other_blocked_pods_are_counted_and_those_that_start_or_end_are_not_blocked() {
        let gone = Pod { terminating: true, ..unscheduled("a", "Unschedulable", "full") };
        let ended = Pod { phase: PodPhase::Failed, ..unscheduled("b", "Unschedulable", "full") };
        let starts = waits("c", "ContainerCreating", "");
        assert_eq!(waiting(vec![gone, ended, starts]), None);
        let two = vec![unscheduled("a", "Unschedulable", "full"), waits("b", "ErrImagePull", "x")];
        assert_eq!(waiting(two).as_deref(), Some("Unschedulable: pod/a to be scheduled: full (and 1 more pod)"));
    }

    #[test]
    fn what_the_cluster_says_at_length_is_shortened() {
        let long = waiting(vec![unscheduled("a", "Unschedulable", &"\u{e4}".repeat(5_000))]).unwrap();
        assert!(long.chars().count() < 500 && long.ends_with(" ..."), "{long}");
    }
}

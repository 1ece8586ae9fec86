//! What keeps pods from running, as the scheduler and the kubelet report it.

use crate::{
    Snapshot,
    decision::Wake,
    first_failure::shortened,
    snapshot::{ContainerState, ContainerStatus, Pod, PodPhase},
    waiting::{Blocker, Waiting},
};
use jiff::{SignedDuration, Timestamp};

/// The job does not report an init container that has run for less: most end soon.
const PREPARATION: SignedDuration = SignedDuration::from_secs(30);

/// The job does not report a pod that has been on its node for less without a container that started: images are pulled.
const START: SignedDuration = SignedDuration::from_mins(2);

/// Reasons of a waiting container that starts as it should (kubelet: `pkg/kubelet/kubelet_pods.go`).
const STARTING: [&str; 3] = ["", "ContainerCreating", "PodInitializing"];

/// Returns the first blocked pod of the job and how many others are blocked, too. A pod whose init container runs comes
/// after all others: such a container most often waits for another pod.
pub(crate) fn blocked(snapshot: &Snapshot) -> Option<Waiting> {
    let has_long = |by: &Blocker| reported_from(by).is_none_or(|at| at <= snapshot.now);
    // One that is being deleted is reported where its name is waited for.
    let live = snapshot.pods.iter().filter(|pod| !pod.terminating);
    let blocked = live.filter_map(|pod| Some((pod, sooner_or_later(pod).filter(has_long)?)));
    let (prepare, blocked): (Vec<_>, Vec<_>) = blocked.partition(|(_, by)| by.is_preparation());
    let (pod, by) = blocked.first().or(prepare.first())?;
    let others = u32::try_from(blocked.len() + prepare.len() - 1).unwrap_or(u32::MAX);
    Some(Waiting::Blocked { pod: pod.name.clone(), by: by.clone(), others })
}

/// Returns when the next init container has run for so long, or the next pod has been on its node for so long, that the job
/// reports it.
pub(crate) fn wake(snapshot: &Snapshot) -> Wake {
    let times = snapshot.pods.iter().filter_map(|pod| reported_from(&sooner_or_later(pod)?));
    times.filter(|at| *at > snapshot.now).min().map_or(Wake::OnChange, Wake::At)
}

/// Returns what keeps the pod from running, or what will if it lasts.
fn sooner_or_later(pod: &Pod) -> Option<Blocker> {
    of(pod).or_else(|| starts(pod))
}

/// Returns from when on the job reports this, if not at once.
fn reported_from(by: &Blocker) -> Option<Timestamp> {
    match by {
        Blocker::Init { since, .. } => since.checked_add(PREPARATION).ok(),
        Blocker::Starting { since, .. } => since.checked_add(START).ok(),
        _ => None,
    }
}

/// Returns whether the pod's node is lost, for a pod that has not ended.
pub(crate) fn lost(pod: &Pod) -> Option<Blocker> {
    let since = pod.node_lost.filter(|_| !pod.phase.is_terminal())?;
    Some(Blocker::NodeLost { node: pod.node.clone(), since, terminating: pod.terminating })
}

/// Returns what keeps the pod from running, as far as its status says; `None` also for a pod that has ended.
#[must_use]
pub fn of(pod: &Pod) -> Option<Blocker> {
    if let Some(lost) = lost(pod) {
        return Some(lost);
    }
    if pod.terminating || pod.phase.is_terminal() {
        return None;
    }
    if let Some(unscheduled) = pod.unscheduled.as_ref().filter(|_| pod.phase == PodPhase::Pending) {
        let is_gated = unscheduled.reason == "SchedulingGated";
        let message = shortened(&unscheduled.message);
        return Some(match is_gated {
            true => Blocker::SchedulingGated { gates: message },
            false => Blocker::Unschedulable { message },
        });
    }
    let in_a_loop = |container: &ContainerStatus| {
        Some(Blocker::CrashLoop { container: container.name.clone(), restarts: container.restarts })
    };
    let stopped = pod.containers.iter().find_map(|container| match &container.state {
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
    });
    stopped.or_else(|| prepares(pod))
}

/// Returns the init container that runs, of a pod whose containers have not started. One that is ready is a sidecar.
fn prepares(pod: &Pod) -> Option<Blocker> {
    let mut init = pod.containers.iter().filter(|it| it.init && !it.ready && pod.phase == PodPhase::Pending);
    init.find_map(|container| match container.state {
        ContainerState::Running { since } => Some(Blocker::Init { container: container.name.clone(), since }),
        _ => None,
    })
}

/// Returns the node of a pod that is on it, and of whose containers none has started. The kubelet says of such a pod only that
/// its containers are being created, whatever it waits for: an image, a volume, a network.
fn starts(pod: &Pod) -> Option<Blocker> {
    let since = pod.taken.filter(|_| pod.phase == PodPhase::Pending && !pod.terminating)?;
    let has_started = |container: &ContainerStatus| {
        matches!(container.state, ContainerState::Running { .. } | ContainerState::Terminated { .. })
    };
    (!pod.containers.iter().any(has_started)).then(|| Blocker::Starting { node: pod.node.clone(), since })
}

fn said(reason: &str, message: &str) -> String {
    if message.is_empty() { reason.to_owned() } else { format!("{reason}: {}", shortened(message)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{replicas::replicas, snapshot::Unscheduled, standing::Standing, testkit};

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
                unscheduled("w-1", "SchedulingGated", "example.org/quota, example.org/data"),
                "SchedulingGated: pod/w-1 to be scheduled: its scheduling gates have to be removed: example.org/quota, \
                 example.org/data",
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

    fn prepares(name: &str, since: i64) -> Pod {
        let state = ContainerState::Running { since: Timestamp::from_second(since).unwrap() };
        let init = ContainerStatus { name: "fetch".into(), init: true, ready: false, restarts: 0, state };
        let mut pod = waits(name, "PodInitializing", "");
        pod.containers.insert(0, init);
        pod
    }

    // Most init containers end within seconds, and one of them most often waits for another pod.
    #[test]
    fn an_init_container_is_reported_when_it_has_run_for_long_and_after_all_other_blockers() {
        let mut snapshot = testkit::snapshot(testkit::job("hamlet", "uid"));
        let mut sidecar = prepares("c", 0);
        sidecar.containers[0].ready = true;
        snapshot.pods = [prepares("a", 0), prepares("b", 20), sidecar].map(Into::into).to_vec();
        let reported = |snapshot: &Snapshot| blocked(snapshot).map(|it| format!("{}: {it}", it.reason()));
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!((reported(&snapshot), wake(&snapshot)), (None, Wake::At(at(30))));
        snapshot.now = at(30);
        let says = "InitContainer: init container fetch of pod/a to end, which has run since 1970-01-01T00:00:00Z";
        assert_eq!((reported(&snapshot).as_deref(), wake(&snapshot)), (Some(says), Wake::At(at(50))));
        snapshot.now = at(50);
        assert_eq!((reported(&snapshot), wake(&snapshot)), (Some(format!("{says} (and 1 more pod)")), Wake::OnChange));
        snapshot.pods.push(unscheduled("d", "Unschedulable", "full").into());
        let says = "Unschedulable: pod/d to be scheduled: full (and 2 more pods)";
        assert_eq!(reported(&snapshot).as_deref(), Some(says));
    }

    // A volume that is never mounted is in the pod's events alone.
    #[test]
    fn a_pod_of_which_nothing_has_started_for_minutes_is_reported_with_its_node() {
        let mut snapshot = testkit::snapshot(testkit::job("hamlet", "uid"));
        let at = |second| Timestamp::from_second(second).unwrap();
        let taken = |pod: Pod, second| Pod { node: "n-7".into(), taken: Some(at(second)), ..pod };
        let mut begun = waits("c", "", "");
        begun.containers[0].state = ContainerState::Running { since: at(1) };
        let pods = [taken(pending("a"), 0), taken(waits("b", "ContainerCreating", ""), 30), taken(begun, 0)];
        snapshot.pods = pods.map(Into::into).to_vec();
        let reported = |snapshot: &Snapshot| blocked(snapshot).map(|it| format!("{}: {it}", it.reason()));
        assert_eq!((reported(&snapshot), wake(&snapshot)), (None, Wake::At(at(120))));
        snapshot.now = at(120);
        let says = "ContainerNotStarted: pod/a to start on node n-7, which has had it since 1970-01-01T00:00:00Z: the pod's \
                    events say what is missing, such as a volume that cannot be mounted";
        assert_eq!((reported(&snapshot).as_deref(), wake(&snapshot)), (Some(says), Wake::At(at(150))));
        snapshot.now = at(150);
        assert_eq!((reported(&snapshot), wake(&snapshot)), (Some(format!("{says} (and 1 more pod)")), Wake::OnChange));
        snapshot.pods.push(waits("d", "ErrImagePull", "x").into());
        let says = "ContainerNotStarted: pod/a to start";
        assert!(reported(&snapshot).is_some_and(|it| it.starts_with(says)), "they are causes alike");
    }

    #[test]
    fn a_pod_whose_node_is_not_ready_is_reported_with_its_node_and_so_is_one_that_is_being_deleted_there() {
        let running = testkit::pod("w-0", "uid", PodPhase::Running);
        let lost = Pod { node: "n-7".into(), node_lost: Some(Timestamp::UNIX_EPOCH), ..running };
        let says = "node n-7 of pod/w-0 to be ready again, which it has not been since 1970-01-01T00:00:00Z";
        assert_eq!(waiting(vec![lost.clone()]), Some(format!("NodeLost: {says}")));
        let ended = Pod { phase: PodPhase::Failed, ..lost.clone() };
        assert_eq!(of(&ended), None);

        // Only a replica that is wanted again is waited for.
        let deleted = Pod { terminating: true, ..lost };
        assert_eq!(waiting(vec![deleted.clone()]), None);
        let role = testkit::role("worker", 1, testkit::text(&["w-", "INDEX"]), serde_json::json!({}));
        let plan = testkit::plan(vec![role]).into();
        let mut snapshot = testkit::snapshot(testkit::job("hamlet", "uid"));
        snapshot.pods = vec![deleted.into()];
        let (actions, waiting) = replicas(&Standing::of(&snapshot, &plan));
        assert!(actions.is_empty());
        let says =
            format!("{says}; the pod is being deleted and is replaced when the node is back, or its Node is deleted");
        assert_eq!(waiting.iter().map(ToString::to_string).collect::<Vec<_>>(), [says]);
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

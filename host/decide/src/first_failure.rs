//! Which pod of a failed job failed first, and how.

use crate::{
    Snapshot,
    ledger::FirstFailure,
    shown::blank,
    snapshot::{ContainerState, ContainerStatus, Pod, PodPhase},
};
use jiff::Timestamp;

/// Maximum length of a message that is kept of a component of the cluster, in characters.
const LONGEST: usize = 400;

/// Returns the first failure among the pods that are there.
pub(crate) fn of(snapshot: &Snapshot) -> Option<FirstFailure> {
    let ended = |pod| first_end(pod).map(|(at, container)| (at, pod, container));
    let (_, pod, container) = snapshot.pods.iter().filter_map(|pod| ended(pod)).min_by_key(|(at, ..)| *at)?;
    let (name, exit_code, reason, message) = match container.map(|it| (&it.name, &it.state)) {
        Some((name, ContainerState::Terminated { exit_code, reason, message, .. })) => {
            (name.clone(), Some(*exit_code), reason, message)
        }
        _ => (String::new(), None, &pod.reason, &pod.message),
    };
    Some(FirstFailure {
        pod: pod.name.clone(),
        container: name,
        exit_code,
        reason: reason.clone(),
        message: shortened(message),
        node: pod.node.clone(),
    })
}

/// Returns when the first container of the pod failed, and which one; for a pod that failed without one, the end of
/// time, since the pod does not say when it failed.
fn first_end(pod: &Pod) -> Option<(Timestamp, Option<&ContainerStatus>)> {
    let failed = pod.containers.iter().filter_map(|container| match container.state {
        ContainerState::Terminated { exit_code, at, .. } if exit_code != 0 => Some((at, Some(container))),
        _ => None,
    });
    failed.min_by_key(|(at, _)| *at).or_else(|| (pod.phase == PodPhase::Failed).then_some((Timestamp::MAX, None)))
}

/// Returns a message of a component of the cluster, with its first 400 characters at most, and a space in place of each that a
/// terminal obeys. A container's last words may have several lines, which stay.
#[must_use]
pub fn shortened(message: &str) -> String {
    let shown = |c: char| if matches!(c, '\n' | '\t') { c } else { blank(c) };
    let mut characters = message.chars();
    let mut first: String = characters.by_ref().take(LONGEST).map(shown).collect();
    if characters.next().is_some() {
        first.push_str(" ...");
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit;

    fn pod(name: &str, ends: &[(&str, i32, i64)]) -> Pod {
        let containers = ends.iter().map(|(container, exit_code, at)| ContainerStatus {
            name: (*container).into(),
            init: false,
            ready: false,
            restarts: 0,
            state: ContainerState::Terminated {
                exit_code: *exit_code,
                reason: "Error".into(),
                message: format!("{container} of {name}"),
                at: Timestamp::from_second(*at).unwrap(),
            },
        });
        Pod { containers: containers.collect(), ..testkit::pod(name, "uid", PodPhase::Failed) }
    }

    fn first(pods: Vec<Pod>) -> Option<FirstFailure> {
        let mut snapshot = testkit::snapshot(testkit::job("hamlet", "uid"));
        snapshot.pods = pods.into_iter().map(Into::into).collect();
        of(&snapshot)
    }

    #[test]
    fn a_message_keeps_its_lines_and_nothing_that_a_terminal_obeys() {
        assert_eq!(
            shortened("Traceback:\n\tin \u{1b}]0;title\u{7}\u{202e}main\u{2028}"),
            "Traceback:\n\tin  ]0;title  main "
        );
        assert_eq!(shortened(&"ä".repeat(LONGEST)), "ä".repeat(LONGEST));
        assert_eq!(shortened(&"ä".repeat(LONGEST + 1)), format!("{} ...", "ä".repeat(LONGEST)));
    }

    #[test]
    fn the_container_that_failed_first_is_named() {
        let evicted = Pod { reason: "Evicted".into(), message: "memory".into(), ..pod("w-0", &[]) };
        let found = first(vec![
            evicted.clone(),
            pod("w-1", &[("side", 0, 1), ("main", 137, 5)]),
            pod("w-2", &[("main", 1, 3)]),
        ]);
        let found = found.unwrap();
        assert_eq!((found.pod.as_str(), found.container.as_str(), found.exit_code), ("w-2", "main", Some(1)));
        assert_eq!((found.reason.as_str(), found.message.as_str()), ("Error", "main of w-2"));
        let found = first(vec![evicted]).unwrap();
        assert_eq!((found.pod.as_str(), found.exit_code, found.reason.as_str()), ("w-0", None, "Evicted"));
        assert_eq!(first(vec![testkit::pod("w-0", "uid", PodPhase::Running)]), None);
    }
}

//! The script by which pods run.

use std::time::Duration;

use serde_json::Value;
use wildmatch::WildMatch;

use crate::store::{annotation, text};

/// The script by which pods run. Delays are the same for every pod unless its annotations or a rule set others:
///
/// | annotation of the pod, or key of a rule | meaning |
/// |---|---|
/// | `troupe.dev/run-for` | how long its containers run: `300ms`, `2s`, `5m`, or `forever`: until deleted |
/// | `troupe.dev/exit-code` | how they exit; a list such as `1,1,0` gives one per attempt, the last for all later ones |
/// | `troupe.dev/schedule-after` | how long it waits for a node; `forever`: it fits on no node |
/// | `troupe.dev/start-after` | how long pulling its image takes |
/// | `troupe.dev/finish-after` | what its containers wait for before they exit: `2 a-worker-* Running` are two pods of such names that run or have succeeded, `Succeeded` that have succeeded |
/// | `troupe.dev/terminate-after` | how long it takes to stop; `forever`: its node is lost |
///
/// An attempt is a container start: the first of a pod, a restart in place, or the first of a pod re-created under the
/// same name. A pod whose first container's `command[0]` ends in `sshd` runs until it is deleted.
#[derive(Debug, Clone, PartialEq)]
pub struct Life {
    /// The delay from creation to binding.
    pub schedule: Duration,
    /// The delay from binding to the pod IP.
    pub sandbox: Duration,
    /// The delay from the pod IP to the start of the first container.
    pub pull: Duration,
    /// How long each init container runs.
    pub init: Duration,
    /// How long the containers run; `None`: until the pod is deleted.
    pub run: Option<Duration>,
    /// How long the containers take to stop after deletion, at most the grace period; `None`: they never stop.
    pub terminate: Option<Duration>,
    /// The delay until the kubelet looks again for a missing ConfigMap or Secret.
    pub retry: Duration,
    /// The delay until the Job controller syncs after a change.
    pub control: Duration,
    /// The delay until the garbage collector reacts.
    pub collect: Duration,
    /// The maximum fraction by which every delay is lengthened, drawn from the seed.
    pub jitter: f64,
    /// Whether scheduler and kubelets leave pods alone; terminating pods still end.
    pub manual: bool,
    /// Whether the Job controller runs.
    pub jobs: bool,
    /// The number of nodes, named `node-1` and on.
    pub nodes: usize,
    /// (pattern of pod names, in which `*` is any text; key without `troupe.dev/`; value). Annotations take precedence.
    pub rules: Vec<(String, String, String)>,
}

impl Default for Life {
    fn default() -> Self {
        Self {
            schedule: Duration::from_millis(50),
            sandbox: Duration::from_millis(200),
            pull: Duration::from_millis(300),
            init: Duration::from_millis(500),
            run: Some(Duration::from_secs(10)),
            terminate: Some(Duration::from_millis(500)),
            retry: Duration::from_secs(1),
            control: Duration::from_millis(10),
            collect: Duration::from_millis(50),
            jitter: 0.0,
            manual: false,
            jobs: true,
            nodes: 4,
            rules: Vec::new(),
        }
    }
}

impl Life {
    /// Returns a script in which tests drive pods, with [`crate::Sim::set_pod_ip`], [`crate::Sim::set_running`] and so
    /// on.
    pub fn manual() -> Self {
        Self { manual: true, ..Self::default() }
    }

    /// Returns a script in which nothing happens by itself but garbage collection, without delay: no scheduler, no
    /// kubelet that ends a pod, no Job controller. Tests write all other changes.
    pub fn still() -> Self {
        Self { terminate: None, collect: Duration::ZERO, jobs: false, ..Self::manual() }
    }

    /// Returns the fastest script: every delay is a few milliseconds, pods run for 100 ms.
    pub fn quick() -> Self {
        let short = Duration::from_millis(2);
        Self {
            schedule: short,
            sandbox: short,
            pull: short,
            init: short,
            run: Some(Duration::from_millis(100)),
            terminate: Some(short),
            retry: Duration::from_millis(100),
            control: short,
            collect: short,
            ..Self::default()
        }
    }

    /// Lengthens every delay by up to this fraction.
    #[must_use]
    pub fn jitter(self, fraction: f64) -> Self {
        Self { jitter: fraction, ..self }
    }

    /// Adds a rule for pods whose names match the pattern: `rule("a-worker-*", "exit-code", "1,0")`.
    #[must_use]
    pub fn rule(mut self, pods: &str, key: &str, value: &str) -> Self {
        self.rules.push((pods.into(), key.into(), value.into()));
        self
    }

    /// Returns the value of a key for one pod, from its annotations or a rule.
    pub(crate) fn says<'a>(&'a self, pod: &'a Value, key: &str) -> Option<&'a str> {
        let name = crate::store::name(pod);
        annotation(pod, &format!("troupe.dev/{key}")).or_else(|| {
            let mut of_key = self.rules.iter().filter(|(_, rule, _)| rule == key);
            of_key.find(|(pods, ..)| WildMatch::new(pods).matches(name)).map(|(_, _, value)| value.as_str())
        })
    }

    /// Returns a delay of one pod; `None` is forever.
    pub(crate) fn delay(&self, pod: &Value, key: &str, default: Option<Duration>) -> Option<Duration> {
        match self.says(pod, key) {
            Some("forever") => None,
            Some(said) => duration(said).or(default),
            None => default,
        }
    }
}

/// Parses `300ms`, `2s`, `1.5s`, `5m`, `1h`.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|char: char| !char.is_ascii_digit() && char != '.')?;
    let amount: f64 = text[..digits].parse().ok()?;
    let unit = match &text[digits..] {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(amount * unit).ok()
}

/// Whether a pod has ended.
pub(crate) fn is_terminal(pod: &Value) -> bool {
    matches!(text(&pod["status"]["phase"]), "Succeeded" | "Failed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_written_in_annotations() {
        for (text, millis) in [("300ms", 300), ("2s", 2000), ("1.5s", 1500), ("5m", 300_000), ("1h", 3_600_000)] {
            assert_eq!(duration(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "2", "s", "two", "2d"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }
}

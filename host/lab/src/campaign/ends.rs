//! How jobs ended, without what may differ from run to run: so that a run with trouble can be held against one without.

use super::{history::History, jobs::Job};
use jiff::Timestamp;
use serde_json::{Value, json};
use sim::Sim;
use std::collections::{BTreeMap, BTreeSet};

/// What one job came to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct End {
    /// How it ended, as its ledger says.
    pub(super) outcome: Value,
    /// The status.
    pub(super) full: Value,
    /// The framework's status, without times and random names.
    pub(super) status: Value,
    /// What is left of its children, by kind and name.
    pub(super) children: BTreeMap<String, String>,
    /// How often the host created, changed and deleted each child.
    pub(super) writes: BTreeMap<String, usize>,
    /// Each step that its status has said.
    pub(super) steps: BTreeSet<String>,
    /// It was removed.
    pub(super) is_gone: bool,
    /// When it ended.
    pub(super) at: Option<Timestamp>,
    /// Which of its pods there are depends on when they could be made: it makes none after its first success, and something
    /// hindered the host.
    pub(super) may_lack_pods: bool,
    /// How often it started again as a whole depends on which pods there were when the first one failed.
    pub(super) starts_again: bool,
}

/// Fields of a status and of an object that say when, where or which instance.
const OF_THE_RUN: [&str; 17] = [
    "clusterIP",
    "clusterIPs",
    "completionTime",
    "creationTimestamp",
    // Hosts that answer while the job ends.
    "discover_hosts.sh",
    "generation",
    "lastTransitionTime",
    "lastUpdateTime",
    "launcherPodNames",
    "nodeName",
    "refs",
    "resourceVersion",
    "startTime",
    // How often a whole job starts again depends on which pods there were when the first one failed.
    "troupe.dev/attempt",
    // What is made before the ledger names the digest names it.
    "troupe.dev/plugin-digest",
    "uid",
    "workerPodNames",
];

/// Troubles by which a create does not succeed, or not at once.
const HINDERS: [&str; 5] = ["crash", "connection refused", "host frozen", "refused with", "slow answer"];

/// Counters of pods that are not at their end.
const UNDER_WAY: [&str; 3] = ["pending", "starting", "running"];

/// Whether pods run all at once, and a host sees it, depends on when each starts and ends.
const MAY_BE_PASSED_OVER: [&str; 1] = ["Running"];

impl End {
    /// What a job has come to by now.
    pub(super) fn of(sim: &Sim, history: &History, job: &Job) -> Self {
        let known = history.known(job);
        let same = |text: &str| without_run(text, &known.uid);
        let is_hindered = || sim.troubles().keys().any(|what| HINDERS.iter().any(|of| what.starts_with(of)));
        let children = sim.view(|view| {
            let of_job = view.owned_by(&known.uid).into_iter();
            let children = of_job.filter(|child| child["kind"] != "Event");
            children.map(|child| (same(&named(child)), same(&body(child)))).collect()
        });
        Self {
            outcome: known.status["troupe"]["finished"]["outcome"].clone(),
            status: essence(&known.status),
            full: known.status.clone(),
            children,
            writes: known.writes.iter().map(|(what, count)| (same(what), *count)).collect(),
            steps: known.steps,
            is_gone: known.is_gone,
            at: known.ended,
            may_lack_pods: job.is_work_queue() && is_hindered(),
            starts_again: job.starts_again_as_a_whole(),
        }
    }

    /// In what it differs from the end of the same job without trouble. When a job fails decides how far the others of its
    /// pods had come, so of failures only the outcome is compared.
    pub(super) fn differs_from(&self, calm: &Self) -> Vec<String> {
        if self.outcome != calm.outcome {
            return vec![format!("ended as {}, not {}: {}", self.outcome, calm.outcome, self.full)];
        }
        let calm = &if self.may_lack_pods { calm.without_pods_that_lack_in(self) } else { calm.clone() };
        let mut found = Vec::new();
        if self.is_gone != calm.is_gone {
            found.push(format!("is gone: {}, not {}", self.is_gone, calm.is_gone));
        }
        if self.outcome == "failed" {
            return found;
        }
        if self.status != calm.status {
            found.push(format!("has the status {}, not {}", self.status, calm.status));
        }
        found.extend(different("is left with", &self.children, &calm.children));
        if self.starts_again {
            return found;
        }
        if self.steps.difference(&calm.steps).any(|step| !MAY_BE_PASSED_OVER.contains(&step.as_str())) {
            found.push(format!("went through {:?}, not {:?}", self.steps, calm.steps));
        }
        let (mut writes, mut calm_writes) = (self.writes.clone(), calm.writes.clone());
        // S3 says which launchers may be made again: those that went before a host could write down that they were made.
        writes.retain(|what, _| !what.starts_with("create Job"));
        calm_writes.retain(|what, _| !what.starts_with("create Job"));
        // How often what depends on several pods is written depends on when each is seen; but what a run without trouble
        // leaves alone, no run changes.
        writes.retain(|what, _| !what.starts_with("change") || !calm_writes.contains_key(what));
        calm_writes.retain(|what, _| !what.starts_with("change"));
        // Pods of the simulator start without their PodGroup, and may end before it is made.
        calm_writes.retain(|what, _| !what.contains(" PodGroup ") || self.writes.contains_key(what));
        if self.is_gone {
            // What the host had not cleaned up yet went with the job.
            writes.retain(|what, _| !what.starts_with("delete"));
            calm_writes.retain(|what, _| !what.starts_with("delete"));
        }
        found.extend(different("cost", &writes, &calm_writes));
        found
    }

    /// The end of a work queue as if it had not made those pods either that another run has not made. That run has made one
    /// at least, and each that it made has to succeed and to be counted.
    fn without_pods_that_lack_in(&self, other: &Self) -> Self {
        let mut end = self.clone();
        let pods = |of: &Self| -> BTreeSet<String> {
            let made = of.writes.keys().filter_map(|what| what.strip_prefix("create "));
            made.filter(|what| what.starts_with("Pod ")).map(str::to_owned).collect()
        };
        let (all, made) = (pods(self), pods(other));
        if made.is_empty() {
            return end;
        }
        let lacking: Vec<&String> = all.difference(&made).collect();
        for pod in &lacking {
            end.children.remove(*pod);
            end.writes.retain(|what, _| !what.ends_with(&format!(" {pod}")));
        }
        if let Some(succeeded) = end.status["succeeded"].as_u64() {
            end.status["succeeded"] = json!(succeeded.saturating_sub(lacking.len() as u64));
        }
        end
    }
}

fn different<T: PartialEq + std::fmt::Debug>(
    what: &str,
    is: &BTreeMap<String, T>,
    calm: &BTreeMap<String, T>,
) -> Vec<String> {
    let names = is.keys().chain(calm.keys().filter(|name| !is.contains_key(*name)));
    // Where nothing waits for a Service, the job may be over before it could be made.
    let is_late = |name: &&String| name.contains("Service") && !is.contains_key(*name);
    let other = names.filter(|name| is.get(*name) != calm.get(*name)).filter(|name| !is_late(name));
    let differ = |name: &String| format!("{what} {name}: {}", apart(&is.get(name), &calm.get(name)));
    other.map(differ).collect()
}

/// Two values from shortly before where they begin to differ.
fn apart<T: std::fmt::Debug>(is: &T, calm: &T) -> String {
    let (is, calm) = (format!("{is:?}"), format!("{calm:?}"));
    let same = is.chars().zip(calm.chars()).take_while(|(is, calm)| is == calm).count();
    let near = |text: &str| text.chars().skip(same.saturating_sub(60)).take(160).collect::<String>();
    format!("{}, not {}", near(&is), near(&calm))
}

fn named(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// An object without its status, and without what is of the run; of a Secret only that it is there.
fn body(object: &Value) -> String {
    let mut object = object.clone();
    let own = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    if object["kind"] == "Secret" {
        object["data"] = json!({});
    }
    object["status"] = Value::Null;
    strip(&mut object);
    object.to_string().replace(&own, "UID")
}

/// A framework's status: the conditions that say how it ended, and the rest without what is of the run. The counts that a
/// framework writes of pods that are not at their end depend on when it ended.
fn essence(status: &Value) -> Value {
    let mut status = decide::status::of_framework(status);
    strip(&mut status);
    if let Some(conditions) = status["conditions"].as_array() {
        let last = ["Succeeded", "Complete", "Failed"];
        let ends = conditions.iter().filter(|of| last.iter().any(|kind| of["type"] == *kind));
        status["conditions"] = ends.map(|of| json!([of["type"], of["status"]])).collect();
    }
    if let Some(counts) = status.get_mut("replicaStatuses").and_then(Value::as_object_mut) {
        counts.retain(|_, count| count.get("succeeded").is_some());
        counts.values_mut().for_each(|count| *count = count["succeeded"].take());
    }
    for count in status.as_object_mut().into_iter().flat_map(|fields| fields.values_mut()) {
        if let Some(count) =
            count.as_object_mut().filter(|count| UNDER_WAY.iter().any(|phase| count.contains_key(*phase)))
        {
            UNDER_WAY.iter().for_each(|phase| drop(count.remove(*phase)));
        }
    }
    status
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !OF_THE_RUN.contains(&name.as_str()));
            fields.values_mut().for_each(strip);
            fields.retain(|name, value| name != "annotations" || *value != json!({}));
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        // A time, whatever a framework calls the field: that there is one is compared, not which.
        Value::String(text) if text.parse::<Timestamp>().is_ok() => "TIME".clone_into(text),
        _ => {}
    }
}

/// A text without the uid of the job, of which names have the beginning, addresses of pods, and ports of nodes.
fn without_run(text: &str, uid: &str) -> String {
    let short: String = uid.chars().take(5).collect();
    // Behind a dash: five digits may also be a port.
    let in_names = format!("-{short}");
    let text = if short.is_empty() { text.to_owned() } else { text.replace(uid, "UID").replace(&in_names, "-UID") };
    without_numbers(&without_numbers(&text, "10.244."), "350")
}

/// A text in which a `#` stands for each number that begins like this.
fn without_numbers(text: &str, beginning: &str) -> String {
    let mut parts = text.split(beginning);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push('#');
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.'));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of a work queue with these pods, of which so many succeeded.
    fn queue(pods: &[&str], succeeded: u32) -> End {
        End {
            outcome: json!("succeeded"),
            full: Value::Null,
            status: json!({ "succeeded": succeeded }),
            children: pods.iter().map(|pod| (format!("Pod {pod}"), String::new())).collect(),
            writes: pods.iter().map(|pod| (format!("create Pod {pod}"), 1)).collect(),
            is_gone: false,
            at: None,
            may_lack_pods: true,
            starts_again: false,
            steps: BTreeSet::new(),
        }
    }

    // Seed 5348: the create of one of three pods was refused, and before the next attempt the others had succeeded.
    #[test]
    fn a_work_queue_may_lack_pods_that_could_not_be_made_before_its_first_success() {
        let (calm, hindered) = (queue(&["e-0", "e-1", "e-2"], 3), queue(&["e-0", "e-2"], 2));
        assert_eq!(hindered.differs_from(&calm), Vec::<String>::new());
        // Nothing kept the host from making it.
        assert_eq!(End { may_lack_pods: false, ..hindered }.differs_from(&calm).len(), 3);
    }

    #[test]
    fn each_pod_that_a_work_queue_has_made_has_to_be_counted_and_to_be_left() {
        let calm = queue(&["e-0", "e-1", "e-2"], 3);
        let miscounted = queue(&["e-0", "e-2"], 1);
        assert_eq!(miscounted.differs_from(&calm).len(), 1, "{:?}", miscounted.differs_from(&calm));
        let mut removed = queue(&["e-0", "e-2"], 2);
        removed.children.remove("Pod e-2");
        assert_eq!(removed.differs_from(&calm).len(), 1, "{:?}", removed.differs_from(&calm));
        assert!(!queue(&[], 0).differs_from(&calm).is_empty(), "it has made none");
    }
}

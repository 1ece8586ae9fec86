//! The scheduler and the kubelets: run each pod by the script.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use wildmatch::WildMatch;

use crate::delete::DeleteOptions;
use crate::dice::Dice;
use crate::life::{Life, is_terminal};
use crate::paint::{Progress, paint};
use crate::store::{Change, Event, Location, deleting, key, name, namespace, text, uid};
use crate::verbs::Target;
use crate::world::{Errand, World};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Scheduling,
    Mounting,
    Starting,
    Init(usize),
    Running,
    Restarting,
    Terminating,
    Ended,
}

/// The kubelet's state of a pod.
#[derive(Debug)]
struct Run {
    location: Location,
    stage: Stage,
    dice: Dice,
    restarts: u64,
    /// The number of the current errand; older errands are void.
    turn: u64,
}

/// The script and the state of running pods.
#[derive(Debug)]
pub(crate) struct LifeState {
    pub(crate) life: Life,
    runs: BTreeMap<String, Run>,
    /// The number of container starts per pod name.
    attempts: BTreeMap<Location, u64>,
    turns: BTreeMap<String, u64>,
}

impl LifeState {
    pub(crate) fn new(life: Life) -> Self {
        Self { life, runs: BTreeMap::new(), attempts: BTreeMap::new(), turns: BTreeMap::new() }
    }
}

impl World {
    /// Handles a change of a pod.
    pub(crate) fn pod_changed(&mut self, event: &Event) {
        let pod = &*event.object;
        let id = uid(pod).to_owned();
        if event.change == Change::Deleted {
            self.life.runs.remove(&id);
            self.life.turns.remove(&id);
            return;
        }
        let bound = !text(&pod["spec"]["nodeName"]).is_empty();
        let terminal = is_terminal(pod);
        let stage = self.life.runs.get(&id).map(|run| run.stage);
        if deleting(pod) && bound && !terminal {
            let was = event.before.as_ref().map(|before| before["metadata"]["deletionGracePeriodSeconds"].clone());
            if stage != Some(Stage::Terminating) || was.as_ref() != Some(&pod["metadata"]["deletionGracePeriodSeconds"])
            {
                self.terminate(&id, event);
            }
            return;
        }
        if stage.is_none() && !terminal && !self.life.life.manual && !deleting(pod) {
            let (stage, delay) = if bound {
                (Stage::Mounting, Some(self.life.life.sandbox))
            } else {
                (Stage::Scheduling, self.life.life.delay(pod, "schedule-after", Some(self.life.life.schedule)))
            };
            self.adopt(&id, &event.location, stage);
            self.next(&id, stage, delay);
        }
    }

    fn adopt(&mut self, id: &str, location: &Location, stage: Stage) {
        let seed = crate::record::Hash::default();
        let mut hash = seed;
        hash.field(id);
        let dice = Dice::new(self.seed, "pod", hash.0);
        let run = Run { location: location.clone(), stage, dice, restarts: 0, turn: 0 };
        self.life.runs.insert(id.to_owned(), run);
    }

    /// Ends the pod after its own time to stop or its grace period, whichever is shorter.
    fn terminate(&mut self, id: &str, event: &Event) {
        let pod = &*event.object;
        let grace = Duration::from_secs(pod["metadata"]["deletionGracePeriodSeconds"].as_u64().unwrap_or(0));
        let delay =
            self.life.life.delay(pod, "terminate-after", self.life.life.terminate).map(|delay| delay.min(grace));
        if !self.life.runs.contains_key(id) {
            self.adopt(id, &event.location, Stage::Terminating);
        }
        self.next(id, Stage::Terminating, delay);
    }

    /// Sets the stage and schedules the next step after the delay; None means never.
    fn next(&mut self, id: &str, stage: Stage, delay: Option<Duration>) {
        let jitter = self.life.life.jitter;
        let Some(run) = self.life.runs.get_mut(id) else {
            return;
        };
        run.stage = stage;
        run.turn += 1;
        self.life.turns.insert(id.to_owned(), run.turn);
        let more = run.dice.below(1000) as f64 / 1000.0 * jitter;
        let turn = run.turn;
        if let Some(delay) = delay {
            self.later(delay + delay.mul_f64(more), Errand::Pod(format!("{id} {turn}")));
        }
    }

    /// Takes a pod one step further.
    pub(crate) fn pod_due(&mut self, errand: &str) {
        let Some((id, turn)) = errand.split_once(' ') else {
            return;
        };
        let Some(run) = self.life.runs.get(id) else {
            return;
        };
        if run.turn.to_string() != turn {
            return;
        }
        let (stage, location, restarts) = (run.stage, run.location.clone(), run.restarts);
        let Some(pod) = self.store.get(&location).cloned() else {
            return;
        };
        if uid(&pod) != id {
            return;
        }
        let life = self.life.life.clone();
        match stage {
            Stage::Scheduling => {
                if pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
                    return self.next(id, Stage::Scheduling, Some(life.retry));
                }
                self.bind(&location);
                self.next(id, Stage::Mounting, Some(life.sandbox));
            }
            Stage::Mounting => {
                if !self.volumes_exist(&pod) {
                    self.show(&location, &Progress::Creating, restarts);
                    return self.next(id, Stage::Mounting, Some(life.retry));
                }
                self.show(&location, &Progress::Sandbox, restarts);
                self.next(id, Stage::Starting, life.delay(&pod, "start-after", Some(life.pull)));
            }
            Stage::Starting => self.start(id, &location, &pod, 0, restarts),
            Stage::Init(index) => self.start(id, &location, &pod, index + 1, restarts),
            Stage::Restarting => self.start(id, &location, &pod, usize::MAX, restarts),
            Stage::Running if self.may_finish(&pod) => self.exit(id, &location, &pod, restarts),
            Stage::Running => self.next(id, Stage::Running, Some(life.retry)),
            Stage::Terminating => self.stop(&location, &pod, restarts),
            Stage::Ended => {}
        }
    }

    /// Starts the init container of this index, or the containers after the last one.
    fn start(&mut self, id: &str, location: &Location, pod: &Value, index: usize, restarts: u64) {
        let life = self.life.life.clone();
        let again = match (index, restarts) {
            (usize::MAX, _) => Stage::Restarting,
            (0, _) => Stage::Starting,
            _ => Stage::Init(index - 1),
        };
        let inits = pod["spec"]["initContainers"].as_array().map_or(&[][..], Vec::as_slice);
        let containers = match inits.get(index) {
            Some(init) => std::slice::from_ref(init),
            None => pod["spec"]["containers"].as_array().map_or(&[][..], Vec::as_slice),
        };
        if let Some(missing) = self.missing_config(pod, containers) {
            self.show(location, &Progress::ConfigError { init: index, missing }, restarts);
            return self.next(id, again, Some(life.retry));
        }
        if index < inits.len() {
            self.show(location, &Progress::Init(index), restarts);
            return self.next(id, Stage::Init(index), Some(life.init));
        }
        *self.life.attempts.entry(location.clone()).or_default() += 1;
        self.show(location, &Progress::Running, restarts);
        let sshd = text(&pod["spec"]["containers"][0]["command"][0]).ends_with("sshd");
        let time = life.delay(pod, "run-for", if sshd { None } else { life.run });
        self.next(id, Stage::Running, time);
    }

    /// Whether the pods that `finish-after` names have reached the phase that it requires.
    fn may_finish(&self, pod: &Value) -> bool {
        let Some(wait) = self.life.life.says(pod, "finish-after") else { return true };
        let [count, pattern, phase] = wait.split(' ').collect::<Vec<_>>()[..] else { return true };
        let far_enough = |other: &Value| {
            let is = text(&other["status"]["phase"]);
            is == phase || (phase == "Running" && is == "Succeeded")
        };
        let pattern = WildMatch::new(pattern);
        let others = self.store.list("/pods", namespace(pod));
        let there = others.filter(|other| pattern.matches(name(other)) && far_enough(other)).count();
        count.parse().is_ok_and(|count: usize| there >= count)
    }

    /// Makes the containers exit by themselves, and restarts them if the policy says so.
    fn exit(&mut self, id: &str, location: &Location, pod: &Value, restarts: u64) {
        let attempt = self.life.attempts.get(location).copied().unwrap_or(1);
        let codes = self.life.life.says(pod, "exit-code").unwrap_or("0");
        let codes: Vec<i64> = codes.split(',').filter_map(|code| code.trim().parse().ok()).collect();
        let code = codes.get(attempt as usize - 1).or(codes.last()).copied().unwrap_or(0);
        let again = match text(&pod["spec"]["restartPolicy"]) {
            "Always" => true,
            "OnFailure" => code != 0,
            _ => false,
        };
        if !again {
            self.show(location, &Progress::Ended(code), restarts);
            return self.next(id, Stage::Ended, None);
        }
        // The first restart comes at once, later ones back off as the kubelet does.
        let back_off = match restarts {
            0 => Duration::ZERO,
            more => Duration::from_secs((10 << (more - 1).min(5)).min(300)),
        };
        self.show(location, &Progress::Crashed { code, backing_off: !back_off.is_zero() }, restarts);
        if let Some(run) = self.life.runs.get_mut(id) {
            run.restarts += 1;
        }
        self.next(id, Stage::Restarting, Some(back_off + self.life.life.pull));
    }

    /// Ends a deleted pod: writes its last status, then removes it.
    fn stop(&mut self, location: &Location, pod: &Value, restarts: u64) {
        let running = pod["status"]["containerStatuses"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|status| status["state"]["running"].is_object());
        self.show(location, &Progress::Ended(if running { 143 } else { 137 }), restarts);
        let Some(kind) = self.store.kind(&location.table) else {
            return;
        };
        let target = Target::own("kubelet", &kind, pod);
        let options = DeleteOptions { uid: Some(uid(pod).to_owned()), ..DeleteOptions::at_once() };
        // Another client may have removed the pod between the two writes.
        let _ = self.delete(&target, &options);
    }

    fn bind(&mut self, location: &Location) {
        let node = format!("node-{}", (self.number("node") - 1) % self.life.life.nodes.max(1) as u64 + 1);
        let now = self.stamp();
        self.alter("scheduler", location, |pod| {
            if text(&pod["spec"]["nodeName"]).is_empty() {
                pod["spec"]["nodeName"] = Value::String(node);
            }
            crate::paint::scheduled(pod, &now);
        });
    }

    /// Writes the status of a pod that made this progress; first binds it and gives it an address if needed.
    pub(crate) fn show(&mut self, location: &Location, progress: &Progress, restarts: u64) {
        let Some(pod) = self.store.get(location).cloned() else {
            return;
        };
        let scheduled = !text(&pod["spec"]["nodeName"]).is_empty();
        if !scheduled && !matches!(progress, Progress::Ended(_)) {
            self.bind(location);
        }
        let address = match text(&pod["status"]["podIP"]) {
            "" if progress.has_address() => {
                let number = self.number("pod ip");
                format!("10.244.{}.{}", number / 250 % 250, number % 250 + 2)
            }
            known => known.to_owned(),
        };
        let now = self.stamp();
        self.alter("kubelet", location, |pod| {
            paint(pod, progress, &address, &now, restarts);
        });
    }

    /// Writes the status of a pod on request of a test, and stops its script.
    pub(crate) fn show_by_hand(&mut self, location: &Location, progress: &Progress) {
        let id = self.store.get(location).map(|pod| uid(pod).to_owned()).unwrap_or_default();
        self.show(location, progress, 0);
        self.next(&id, Stage::Ended, None);
    }

    fn volumes_exist(&self, pod: &Value) -> bool {
        pod["spec"]["volumes"].as_array().into_iter().flatten().all(|volume| {
            let projected = volume["projected"]["sources"].as_array().into_iter().flatten();
            self.source_exists(pod, &volume["configMap"], "/configmaps", "name")
                && self.source_exists(pod, &volume["secret"], "/secrets", "secretName")
                && projected.clone().all(|source| self.source_exists(pod, &source["configMap"], "/configmaps", "name"))
                && projected.clone().all(|source| self.source_exists(pod, &source["secret"], "/secrets", "name"))
        })
    }

    fn source_exists(&self, pod: &Value, source: &Value, table: &str, field: &str) -> bool {
        let name = text(&source[field]);
        name.is_empty()
            || source["optional"] == true
            || self.store.get(&Location { table: table.into(), key: key(namespace(pod), name) }).is_some()
    }

    /// Returns a ConfigMap or Secret in the containers' environment that does not exist.
    fn missing_config(&self, pod: &Value, containers: &[Value]) -> Option<String> {
        for container in containers {
            let all = container["envFrom"].as_array().into_iter().flatten();
            let single = container["env"].as_array().into_iter().flatten().map(|entry| &entry["valueFrom"]);
            for source in all.chain(single) {
                let pairs = [
                    ("configMapRef", "/configmaps", "configmap"),
                    ("configMapKeyRef", "/configmaps", "configmap"),
                    ("secretRef", "/secrets", "secret"),
                    ("secretKeyRef", "/secrets", "secret"),
                ];
                for (field, table, what) in pairs {
                    if !self.source_exists(pod, &source[field], table, "name") {
                        return Some(format!("{what} \"{}\" not found", text(&source[field]["name"])));
                    }
                }
            }
        }
        None
    }
}

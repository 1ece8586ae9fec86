//! What a platform team does to a plugin while jobs run: upgrades of each kind, rollbacks, candidates that are refused,
//! deletions.

use super::{
    HOST,
    components::{another, plugin, source_of},
    deeds::Deed,
    draw::Draw,
    hosts::is_host,
    jobs::{Config, PLUGIN_OF_ONE_POD, PLUGINS},
    moves::{self, Move},
    neighbours::{self, ODD},
    reports::{refused_stages, says_something_new},
    scaled::TIGHT,
    tally::Tally,
    workload::{BUSY, DOOMED, QUIET},
};
use decide::grants::Grants;
use jiff::Timestamp;
use parking_lot::Mutex;
use sandbox::{Plugins, source, wanted};
use serde_json::{Value, json};
use sim::{Kind, RequestRecord, Sim, Write};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, sleep_until};
use troupe::delivery;

/// The namespace of the hosts.
pub(super) const NAMESPACE: &str = "troupe-system";

/// The API of the resource that delivers plugins.
pub(super) const API: &str = "troupe.dev/v1alpha1";

/// How many kept plugins are marked as those that nothing needs: the host looks for them every ten minutes, and marks each
/// with one write.
pub(super) fn unused(sim: &Sim) -> usize {
    let is_marked = |map: &&Value| !map["metadata"]["annotations"]["troupe.dev/unused-since"].is_null();
    sim.list("v1", "ConfigMap", NAMESPACE).iter().filter(is_marked).count()
}

/// At rest, two hosts together read a refused source at most this often in two minutes: it was refused first at least 100 s
/// before, and each wait is twice as long as the last.
const MOST_READS: usize = 4;

/// A crash within this time after a step falls into it, whatever hosts have said of the Plugin by then.
const JUST_AFTER: Duration = Duration::from_secs(3);

/// A host that crashes after each step does so within this time. No two steps are closer.
const CRASHES_WITHIN_MS: u32 = 1000;

/// The namespaces that a plugin may serve which may not serve all: all of the campaign but [`OUTSIDE`](neighbours::OUTSIDE).
const SERVED: [&str; 5] = [QUIET, BUSY, DOOMED, ODD, TIGHT];

/// A setting that no plugin has.
const NO_SETTING: &str = "noSuchSetting";

/// The kind of the resource that delivers plugins.
pub(super) fn kind() -> Kind {
    Kind::new(API, "Plugin", "plugins", false, true)
}

/// The deliveries of a plugin in a run.
#[derive(Debug, Clone)]
pub(super) struct Deliveries {
    framework: &'static str,
    spec: Value,
    steps: Vec<(Duration, Step)>,
    /// Running jobs may move to another digest.
    pub(super) migrates: bool,
    /// What no host accepts comes with settings by which no job could be planned.
    narrows: bool,
    /// What no host accepts is a component with wrong settings.
    misconfigures: bool,
    /// Jobs of [`OUTSIDE`](neighbours::OUTSIDE), each so long after the plugin serves first, which may not serve them.
    pub(super) outsiders: Vec<(Duration, Deed)>,
    /// A kind that moves to a Plugin of another name beside it.
    pub(super) moves: Option<Move>,
    /// How long after each step a host crashes, if it does.
    pub(super) crashes_after: Option<Duration>,
    /// When hosts said something new of the Plugin; clones share it.
    said: Arc<Mutex<Vec<Timestamp>>>,
}

/// One thing the platform team does.
#[derive(Debug, Clone)]
enum Step {
    /// The component with this mark shall serve, as a shadow or a canary at first.
    Offer(&'static str, Trial),
    /// Whatever is tried serves.
    Settle,
    /// Bytes that no host accepts.
    OfferBad(Bad),
    /// The Plugin goes.
    Delete,
}

#[derive(Debug, Clone, Copy)]
enum Trial {
    None,
    /// None: it has served before.
    RolledBack,
    Shadow,
    Canary,
}

#[derive(Debug, Clone, Copy)]
enum Bad {
    /// No component.
    Garbage,
    /// The plugin of another framework.
    AnotherPlugin,
    /// The component that was offered first, with a setting that its schema does not have. Hosts may see it with the
    /// settings before or after, and accept it.
    Misconfigured,
}

/// The marks of the components that are delivered.
const MARKS: [&str; 3] = ["one", "two", "three"];

impl Deliveries {
    /// The deliveries of a seed, which are over after this long.
    pub(super) fn drawn(draw: &mut Draw, config: &Config, longest: Duration) -> Self {
        let framework = *draw.of(&PLUGINS);
        let migrates = draw.one_in(4);
        let mut steps = vec![(draw.ms(0, 5000), Step::Offer(MARKS[0], Trial::None))];
        for mark in &MARKS[1..] {
            let at = steps.last().map(|(at, _)| *at).unwrap_or_default() + draw.ms(1000, 10_000);
            steps.push((at, Self::step(draw, mark)));
        }
        let settled = longest.max(steps.last().map(|(at, _)| *at).unwrap_or_default());
        if !matches!(steps.last(), Some((_, Step::Delete | Step::OfferBad(_)))) {
            steps.push((settled, Step::Settle));
        }
        let config = config.of_plugins().into_iter().find(|(name, _)| *name == framework).map(|(_, config)| config);
        let strategy = if migrates { "Migrate" } else { "NewJobs" };
        let mut spec = json!({
            "source": { "configMap": { "name": framework } },
            "upgrade": { "strategy": strategy },
        });
        if let Some(config) = config {
            spec["config"] = config;
        }
        let (narrows, misconfigures, outsiders) = (false, false, vec![]);
        let (moves, crashes_after, said) = (None, None, Arc::default());
        Self { framework, spec, steps, migrates, narrows, misconfigures, outsiders, moves, crashes_after, said }
    }

    /// The same; in some seeds what is tried serves while hosts still crash.
    pub(super) fn promoted(mut self, draw: &mut Draw) -> Self {
        if draw.one_in(8)
            && let [.., (last, _), (at, Step::Settle)] = &mut *self.steps
        {
            *at = *last + draw.ms(2000, 15_000);
        }
        self
    }

    /// The same; in some seeds what no host accepts comes with settings by which no job could be planned.
    pub(super) fn narrowed(self, draw: &mut Draw) -> Self {
        Self { narrows: draw.one_in(2), ..self }
    }

    /// The same; in some seeds what is no component is one, with wrong settings.
    pub(super) fn misconfigured(mut self, draw: &mut Draw) -> Self {
        self.misconfigures = draw.one_in(3);
        if self.misconfigures {
            for (_, step) in self.steps.iter_mut().filter(|(_, step)| matches!(step, Step::OfferBad(Bad::Garbage))) {
                *step = Step::OfferBad(Bad::Misconfigured);
            }
        }
        // The bytes may be those that serve: hosts take from these what the Plugin has ceased to grant.
        if self.steps.iter().any(|(_, step)| matches!(step, Step::OfferBad(Bad::Misconfigured))) {
            self.narrows = false;
        }
        self
    }

    /// The same; in some seeds the plugin may not serve jobs of every namespace. It is never deleted there: what came with
    /// the host would serve them.
    pub(super) fn confined(mut self, draw: &mut Draw) -> Self {
        let is_deleted = self.steps.iter().any(|(_, step)| matches!(step, Step::Delete));
        if self.framework == PLUGIN_OF_ONE_POD && !is_deleted && draw.one_in(3) {
            self.outsiders = neighbours::outsiders(draw);
        }
        self
    }

    /// The same; in some seeds a kind of its own moves from one Plugin to another.
    pub(super) fn moving(self, draw: &mut Draw) -> Self {
        Self { moves: draw.one_in(16).then(|| Move::drawn(draw)), ..self }
    }

    /// The same; in some seeds a host crashes soon after each step.
    pub(super) fn crashing(self, draw: &mut Draw) -> Self {
        Self { crashes_after: draw.one_in(8).then(|| draw.ms(0, CRASHES_WITHIN_MS)), ..self }
    }

    /// The digest of the plugin of another framework, if that is offered.
    pub(super) fn digest_of_another(&self) -> Option<String> {
        let is_of_another = |(_, step): &(Duration, Step)| matches!(step, Step::OfferBad(Bad::AnotherPlugin));
        self.steps.iter().any(is_of_another).then(|| source::digest(&self.of_another()).to_string())
    }

    fn of_another(&self) -> Vec<u8> {
        let other = PLUGINS.iter().find(|other| **other != self.framework).expect("there are several");
        another(other, "elsewhere")
    }

    fn step(draw: &mut Draw, mark: &'static str) -> Step {
        match draw.below(7) {
            0 => Step::OfferBad(Bad::Garbage),
            1 => Step::OfferBad(Bad::AnotherPlugin),
            2 => Step::Delete,
            3 => Step::Offer(mark, Trial::Shadow),
            4 => Step::Offer(mark, Trial::Canary),
            5 => Step::Offer(MARKS[0], Trial::RolledBack),
            _ => Step::Offer(mark, Trial::None),
        }
    }

    /// What a host is shown of it.
    pub(super) fn options() -> delivery::Options {
        delivery::Options { namespace: Some(NAMESPACE.into()), ..delivery::Options::default() }
    }

    /// Digests that jobs may be planned by.
    pub(super) fn digests(&self) -> BTreeSet<String> {
        let offered = MARKS.map(|mark| source::digest(&another(self.framework, mark)));
        let of_moves = self.moves.iter().flat_map(|_| moves::digests());
        Plugins::built_in_digests().chain(offered).map(|digest| digest.to_string()).chain(of_moves).collect()
    }

    /// Does all of it, each at its time.
    pub(super) async fn play(mut self, sim: Sim, plugins: &Plugins, tally: Tally) {
        let granted = grants(plugins, self.framework, &self.spec["config"]);
        let namespaces = (!self.outsiders.is_empty()).then(|| SERVED.map(str::to_owned).into());
        self.spec["grants"] = json!(Grants { namespaces, ..granted });
        let (refused, said, framework) = (tally.clone(), Arc::clone(&self.said), self.framework);
        sim.on_write(move |write, _| {
            refused_stages(write).iter().for_each(|what| refused.count(what));
            if says_something_new(write, framework) {
                said.lock().push(write.at);
            }
        });
        let outsiders = std::mem::take(&mut self.outsiders);
        let moves = async {
            if let Some(moves) = &self.moves {
                moves.play(&sim, &grants(plugins, PLUGIN_OF_ONE_POD, &Value::Null), &tally).await;
            }
        };
        tokio::join!(self.take_steps(&sim, &tally), self.submit_once_it_serves(outsiders, &sim, &tally), moves);
    }

    /// Submits them unless nothing that is delivered serves before the last step. What comes with the host serves all
    /// namespaces.
    async fn submit_once_it_serves(&self, outsiders: Vec<(Duration, Deed)>, sim: &Sim, tally: &Tally) {
        let last = Instant::now() + self.steps.last().map(|(at, _)| *at).unwrap_or_default();
        let offered = MARKS.map(|mark| source::digest(&another(self.framework, mark)).to_string());
        let serves = |plugin: Value| offered.iter().any(|digest| plugin["status"]["digest"] == digest.as_str());
        while !outsiders.is_empty() && !sim.get(API, "Plugin", "", self.framework).is_some_and(serves) {
            sleep(Duration::from_secs(1)).await;
            if Instant::now() > last {
                return;
            }
        }
        let start = Instant::now();
        for (at, deed) in outsiders {
            sleep_until(start + at).await;
            deed.done(sim.clone(), tally.clone()).await;
        }
    }

    async fn take_steps(&self, sim: &Sim, tally: &Tally) {
        let start = Instant::now();
        for (at, step) in self.steps.iter().map(|(at, step)| (*at, step)) {
            sleep_until(start + at).await;
            if self.done(sim, step) {
                tally.count(&step.what());
                if self.narrows && matches!(step, Step::OfferBad(_)) {
                    tally.count("delivery: what no host accepts has settings by which no job can be planned");
                }
                if let Some(after) = self.crashes_after {
                    sleep(after).await;
                    sim.note_trouble("crash between two requests");
                    sim.crash(HOST);
                }
            }
        }
    }

    /// Which step each crash of a host fell into.
    pub(super) fn crashes(&self, sim: &Sim) -> Vec<String> {
        let (start, troubles, said) = (sim.now() - sim.elapsed(), sim.troubles(), self.said.lock());
        let steps: Vec<_> = self.steps.iter().map(|(at, step)| (start + *at, step)).collect();
        let crashes = troubles.iter().filter(|(what, _)| what.starts_with("crash")).flat_map(|(_, when)| when);
        let fell_into = crashes.filter_map(|when| under_way(&steps, &said, *when));
        fell_into.map(|step| format!("crash after {}", step.what())).collect()
    }

    /// Takes the step; returns whether there was something to do.
    fn done(&self, sim: &Sim, step: &Step) -> bool {
        let upgrade = |upgrade: Value| json!({ "spec": { "upgrade": upgrade } });
        match step {
            Step::Offer(mark, trial) => {
                let trial = match trial {
                    Trial::None | Trial::RolledBack => json!({}),
                    Trial::Shadow => json!({ "shadow": true }),
                    Trial::Canary => json!({ "canary": { "percent": 50 } }),
                };
                self.has_plugin(sim, &self.spec);
                let mut spec = upgrade(trial);
                if self.narrows {
                    (spec["spec"]["limits"], spec["spec"]["grants"]) = (Value::Null, self.spec["grants"].clone());
                }
                if self.misconfigures {
                    // A merge patch leaves what it does not name.
                    let mut config = self.spec["config"].clone();
                    config[NO_SETTING] = Value::Null;
                    spec["spec"]["config"] = config;
                }
                let _ = sim.patch(API, "Plugin", "", self.framework, spec);
                self.put(sim, &another(self.framework, mark));
                true
            }
            Step::Settle => {
                let nothing_is_tried = upgrade(json!({ "shadow": null, "canary": null }));
                sim.patch(API, "Plugin", "", self.framework, nothing_is_tried).is_ok()
            }
            Step::OfferBad(bad) => {
                let mut spec = self.spec.clone();
                if let Bad::Misconfigured = bad {
                    spec["config"][NO_SETTING] = true.into();
                }
                self.has_plugin(sim, &spec);
                match bad {
                    Bad::Garbage => self.put(sim, b"no component"),
                    Bad::AnotherPlugin => self.put(sim, &self.of_another()),
                    Bad::Misconfigured => {
                        let config = json!({ "spec": { "config": spec["config"] } });
                        let _ = sim.patch(API, "Plugin", "", self.framework, config);
                        self.put(sim, &another(self.framework, MARKS[0]));
                    }
                }
                if self.narrows {
                    let spec = json!({ "limits": { "fuel": 1 }, "grants": null });
                    let _ = sim.patch(API, "Plugin", "", self.framework, json!({ "spec": spec }));
                }
                true
            }
            Step::Delete => sim.delete(API, "Plugin", "", self.framework).is_ok(),
        }
    }

    /// Creates the Plugin, if it is not there.
    fn has_plugin(&self, sim: &Sim, spec: &Value) {
        let _ = sim.try_create(plugin(self.framework, spec));
    }

    /// Has the source contain these bytes.
    fn put(&self, sim: &Sim, wasm: &[u8]) {
        let map = source_of(self.framework, wasm);
        let patch = json!({ "binaryData": map["binaryData"] });
        if sim.try_create(map).is_err() {
            let _ = sim.patch("v1", "ConfigMap", NAMESPACE, self.framework, patch);
        }
    }

    /// Asks for what hosts have ended by as they looked at it: no host looks at it again unless the spec is another.
    pub(super) fn ask_again(sim: &Sim, tally: &Tally) {
        for plugin in sim.list(API, "Plugin", "") {
            let mut conditions = plugin["status"]["conditions"].as_array().into_iter().flatten();
            let is_current = plugin["status"]["observedGeneration"] == plugin["metadata"]["generation"];
            if !is_current || !conditions.any(|condition| condition["reason"] == "CrashedHost") {
                continue;
            }
            let (digest, approve) = (&plugin["status"]["looking"]["digest"], &plugin["spec"]["upgrade"]["approve"]);
            let other = if approve == digest { json!("") } else { digest.clone() };
            let name = plugin["metadata"]["name"].as_str().unwrap_or_default();
            if sim.patch(API, "Plugin", "", name, json!({ "spec": { "upgrade": { "approve": other } } })).is_ok() {
                tally.count("delivery: what hosts ended by is asked for again");
            }
        }
    }

    /// S15: a source that is refused is read again after twice as long each time. `before` is how often it had been read
    /// when everything came to rest.
    pub(super) fn needless_reads(&self, sim: &Sim, before: usize) -> Option<String> {
        let reads = self.reads(sim) - before;
        (reads > MOST_READS).then(|| format!("S15: the source of {} was read {reads} times at rest", self.framework))
    }

    /// How often hosts have read the source.
    pub(super) fn reads(&self, sim: &Sim) -> usize {
        let is_read = |request: &RequestRecord| {
            let is_source = (&*request.resource, &*request.namespace) == ("configmaps", NAMESPACE);
            request.verb == "get" && is_source && request.name == self.framework && is_host(&request.actor)
        };
        sim.requests().iter().filter(|request| is_read(request)).count()
    }

    /// L2: once everything is quiet, what was offered last serves; after a candidate that is refused, one that was offered
    /// before it, as far as there was time to look at it.
    pub(super) fn unserved(&self, sim: &Sim) -> Option<String> {
        // A Plugin that has accepted nothing yet has nobody serve, or what comes with the host.
        let digest = |wasm: &[u8]| Some(source::digest(wasm).to_string());
        let built_in = digest(Plugins::built_in(self.framework).expect("it comes with the host"));
        let nothing = BTreeSet::from([None, built_in]);
        let mut may_serve = nothing.clone();
        for (_, step) in &self.steps {
            match step {
                Step::Offer(mark, _) => drop(may_serve.insert(digest(&another(self.framework, mark)))),
                // A new Plugin does not have what the one before it had accepted.
                Step::Delete => may_serve = nothing.clone(),
                Step::Settle | Step::OfferBad(_) => {}
            }
        }
        let last = self.steps.iter().rev().find(|(_, step)| !matches!(step, Step::Settle));
        if let Some((_, Step::Offer(mark, _))) = last {
            may_serve = BTreeSet::from([digest(&another(self.framework, mark))]);
        }
        let plugin = sim.get(API, "Plugin", "", self.framework)?;
        let serves = plugin["status"]["digest"].as_str().map(str::to_owned);
        let may = may_serve.contains(&serves);
        (!may).then(|| format!("L2: {serves:?} serves, not one of {may_serve:?}: {}", plugin["status"]))
    }
}

impl Step {
    fn what(&self) -> String {
        match self {
            Self::Offer(_, trial) => format!("delivery: a digest is offered ({trial:?})"),
            Self::Settle => "delivery: what is tried serves".into(),
            Self::OfferBad(bad) => format!("delivery: bytes are offered that no host accepts ({bad:?})"),
            Self::Delete => "delivery: the Plugin is deleted".into(),
        }
    }
}

/// The step that is under way at this time: the last one, [`JUST_AFTER`] it and until hosts first say something new.
fn under_way<'a>(steps: &[(Timestamp, &'a Step)], said: &[Timestamp], when: Timestamp) -> Option<&'a Step> {
    let place = steps.iter().rposition(|(at, _)| *at <= when)?;
    let (at, step) = steps[place];
    let next = steps.get(place + 1).map_or(Timestamp::MAX, |(next, _)| *next);
    let answer = said.iter().find(|said| (at..next).contains(*said));
    (when < at + JUST_AFTER || answer.is_some_and(|answer| when < *answer)).then_some(step)
}

fn grants(plugins: &Plugins, framework: &str, config: &Value) -> Grants {
    let frameworks = plugins.frameworks();
    let (descriptor, _) = frameworks.iter().find(|(of, _)| of.name == framework).expect("it comes with the host");
    wanted(descriptor, config)
}

/// P2: whatever is tried or refused, a Plugin that serves goes on to serve, by digests that a host has accepted.
pub(super) fn plugin_serves(write: &Write, digests: &BTreeSet<String>) -> Option<String> {
    let after = write.after.as_ref().filter(|_| write.kind == "Plugin" && is_host(&write.actor))?;
    let digest = |plugin: &Value| plugin["status"]["digest"].as_str().map(str::to_owned);
    let (before, after) = (write.before.as_deref().and_then(digest), digest(after));
    let stays = match &after {
        None => before.is_none(),
        Some(after) => digests.contains(after),
    };
    (!stays).then(|| format!("P2: {} served {before:?}, and now {after:?}", write.name))
}

/// P1: a job is planned by digests that a host has accepted, and by the one that it began with unless running jobs may move.
/// What a user has written into a status, a host leaves there and makes nothing by it.
pub(super) fn planner_is_sound(write: &Write, digests: &BTreeSet<String>, migrates: bool) -> Option<String> {
    let after = write.after.as_ref().filter(|_| is_host(&write.actor))?;
    let made_by = after["metadata"]["annotations"]["troupe.dev/plugin-digest"].as_str();
    if let Some(digest) = made_by.filter(|digest| write.before.is_none() && !digests.contains(*digest)) {
        return Some(format!("P1: {} is made by {digest}, which nobody has accepted", write.name));
    }
    let ledger = |object: &Value| object["status"]["troupe"].clone();
    let (before, after) = (write.before.as_deref().map(ledger).unwrap_or_default(), ledger(after));
    let digest = after["digest"].as_str().filter(|digest| !digest.is_empty())?;
    if !digests.contains(digest) && before["digest"] != digest {
        return Some(format!("P1: {} is planned by {digest}, which nobody has accepted", write.name));
    }
    let moves = before["uid"] == after["uid"]
        && before["digest"].as_str().is_some_and(|before| !["", digest].contains(&before));
    (moves && !migrates).then(|| format!("P1: {} goes from {} to {digest}", write.name, before["digest"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_falls_into_a_step_soon_after_it_and_until_a_host_has_said_something_new() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let (offer, deletion) = (Step::Offer(MARKS[0], Trial::None), Step::Delete);
        let steps = [(at(10), &offer), (at(40), &deletion)];
        let said = [at(5), at(20), at(30)];
        let into = |second| under_way(&steps, &said, at(second)).map(Step::what);
        assert!([9, 20, 25, 35].map(into).iter().all(Option::is_none), "before the first, and once it is answered");
        assert!([10, 12, 19].map(into).iter().all(|step| *step == Some(offer.what())));
        assert!([40, 42].map(into).iter().all(|step| *step == Some(deletion.what())));
        assert_eq!(into(43), None, "nothing is said of it");
    }
}

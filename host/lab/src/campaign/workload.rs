//! What users do in a campaign, and when: jobs in a namespace that nobody disturbs, and in one where somebody does.

use super::{
    deeds::{self, Deed},
    draw::Draw,
    gangs,
    guests::Guest,
    history::History,
    indexed::indexed,
    jobs::{self, Config, FRAMEWORKS, Job, JobParams},
    modes,
    neighbours::{self, FEW_PORTS},
    nonsense, scaled,
    tally::Tally,
};
use serde_json::{Value, json};
use sim::{Life, RequestRecord, Sim};
use std::{collections::BTreeSet, time::Duration};
use tokio::task::JoinSet;
use troupe::control::host_ports::Limits;

/// Nobody interferes with the jobs here.
pub(super) const QUIET: &str = "quiet";

/// Here somebody does.
pub(super) const BUSY: &str = "busy";

/// This namespace is deleted while its jobs run.
pub(super) const DOOMED: &str = "doomed";

/// A job, and what its user does.
pub(super) type Scripted = (Job, Vec<(Duration, Deed)>);

/// What users do, and when.
#[derive(Debug, Clone)]
pub(super) struct Workload {
    pub(super) jobs: Vec<Job>,
    pub(super) deeds: Vec<(Duration, Deed)>,
    pub(super) config: Config,
    /// The ports of the nodes that jobs may hold.
    pub(super) host_ports: Limits,
}

impl Workload {
    /// The workload of a seed. In a calm one nobody interferes and no pod fails.
    pub(super) fn drawn(seed: u64, calm: bool, guests: &[Guest]) -> Self {
        let mut draw = Draw::new(seed, "jobs");
        let config = Config::drawn(&mut draw, gangs::scheduler(seed));
        let mut workload = Self { jobs: vec![], deeds: vec![], config, host_ports: Limits::default() };
        for number in 0..2 {
            workload.submit(&mut draw, JobParams { namespace: QUIET, number, sound: calm, is_edited: false });
        }
        for number in 2..4 {
            workload.submit(&mut draw, JobParams { namespace: BUSY, number, sound: calm, is_edited: !calm });
        }
        workload.index(&mut Draw::new(seed, "indexed"), calm);
        workload.invite(&mut Draw::new(seed, "guests"), guests, calm);
        if !calm {
            workload.limit(&mut Draw::new(seed, "time limits"));
            let busy: Vec<_> = workload.jobs.iter().filter(|job| job.namespace() == BUSY).cloned().collect();
            workload.deeds.extend(deeds::drawn(&mut Draw::new(seed, "deeds"), &busy));
            workload.deeds.extend(deeds::by_hand(seed, &busy));
            workload.deeds.extend(gangs::deeds(seed, workload.config.gang_scheduler, &busy));
            workload.others(&mut Draw::new(seed, "others"));
            workload.oversized(&mut Draw::new(seed, "oversized"));
            workload.deeds.extend(nonsense::drawn(&mut Draw::new(seed, "nonsense"), &workload.jobs));
            workload.idle(&mut Draw::new(seed, "jobs without pods"));
            [scaled::swapped(seed), scaled::shrunk(seed, BUSY)].into_iter().flatten().for_each(|it| workload.add(it));
        }
        workload.deeds.sort_by_key(|(at, _)| *at);
        workload
    }

    /// The same and these jobs.
    pub(super) fn with(mut self, jobs: impl IntoIterator<Item = Scripted>) -> Self {
        jobs.into_iter().for_each(|it| self.add(it));
        self.deeds.sort_by_key(|(at, _)| *at);
        self
    }

    fn add(&mut self, (job, deeds): Scripted) {
        self.jobs.push(job);
        self.deeds.extend(deeds);
    }

    /// A namespace that ends, and one that does everything wrong.
    fn others(&mut self, draw: &mut Draw) {
        if draw.one_in(4) {
            self.submit(draw, JobParams { namespace: DOOMED, number: 4, sound: true, is_edited: true });
            let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": DOOMED } });
            self.deeds.push((draw.ms(3000, 10_000), Deed::Delete(namespace, "Background")));
        }
        if draw.one_in(4) {
            let odd =
                neighbours::drawn(draw).into_iter().map(|(what, job)| (draw.ms(0, 10_000), Deed::SubmitOdd(what, job)));
            self.deeds.extend(odd.collect::<Vec<_>>());
        }
    }

    fn oversized(&mut self, draw: &mut Draw) {
        if draw.one_in(8) {
            for (what, job) in neighbours::oversized(draw) {
                self.deeds.push((draw.ms(0, 5000), Deed::SubmitOdd(what, job)));
            }
        }
    }

    /// In some seeds there are few ports, and jobs without pods that ask for them all before another job does.
    fn idle(&mut self, draw: &mut Draw) {
        if draw.one_in(32) {
            self.host_ports = Limits::new(FEW_PORTS, None);
            self.deeds.extend(neighbours::idle(draw));
            let params = JobParams { namespace: BUSY, number: 9, sound: true, is_edited: true };
            let lives = vec![["modest-9-worker-*", "run-for", "2s"].map(str::to_owned)];
            let spec = json!({ "intranet": "Host", "worker": jobs::bare_role(1) });
            let job = jobs::of_roles("modest", params, &spec, lives);
            self.add((job.clone(), vec![(draw.ms(2000, 5000), Deed::Submit(job.manifest))]));
        }
    }

    fn submit(&mut self, draw: &mut Draw, params: JobParams<'_>) {
        let job = draw.of(&FRAMEWORKS)(draw, params, &self.config);
        self.deeds.push((draw.ms(0, 3000), Deed::Submit(job.manifest.clone())));
        self.jobs.push(job);
    }

    /// In some seeds, gives those that somebody interferes with a few seconds, where their kind has such a limit.
    fn limit(&mut self, draw: &mut Draw) {
        if !draw.one_in(10) {
            return;
        }
        for job in self.jobs.iter_mut().filter(|job| job.namespace() == BUSY) {
            let Some(limited) = job.ended_after(1 + draw.below(10)) else { continue };
            submit_instead(&mut self.deeds, &job.manifest, &limited);
            job.manifest = limited;
        }
    }

    /// How many jobs have ended because their time was over.
    pub(super) fn ended_by_their_limit(&self, history: &History) -> u64 {
        let is_late = |job: &&Job| history.known(job).status.to_string().contains("DeadlineExceeded");
        self.jobs.iter().filter(is_late).count() as u64
    }

    /// The modes of the jobs that have ended.
    pub(super) fn ended(&self, history: &History) -> Vec<String> {
        let ended = self.jobs.iter().filter(|job| history.known(job).has_ended());
        ended.flat_map(|job| modes::of(&job.manifest)).collect()
    }

    /// Adds two copies of each guest: one that nobody interferes with, and one that somebody does.
    fn invite(&mut self, draw: &mut Draw, guests: &[Guest], calm: bool) {
        for (number, guest) in (10..).step_by(2).zip(guests) {
            for params in [
                JobParams { namespace: QUIET, number, sound: true, is_edited: false },
                JobParams { namespace: BUSY, number: number + 1, sound: calm, is_edited: !calm },
            ] {
                let job = guest.job(draw, params);
                self.deeds.push((draw.ms(0, 3000), Deed::Submit(job.manifest.clone())));
                self.jobs.push(job);
            }
        }
    }

    /// Puts indexed jobs in the place of some, which leaves the rest of the seed as it was.
    fn index(&mut self, draw: &mut Draw, calm: bool) {
        for (number, job) in (0..).zip(&mut self.jobs) {
            if !draw.one_in(4) {
                continue;
            }
            let namespace = if job.namespace() == QUIET { QUIET } else { BUSY };
            let is_edited = namespace == BUSY && !calm;
            let indexed = indexed(draw, JobParams { namespace, number, sound: calm, is_edited });
            submit_instead(&mut self.deeds, &job.manifest, &indexed.manifest);
            *job = indexed;
        }
    }

    /// What is left of it where only the quiet namespace is.
    pub(super) fn alone(&self) -> Self {
        let mut alone = self.clone();
        alone.jobs.retain(|job| job.namespace() == QUIET);
        alone.deeds.retain(|(_, deed)| matches!(deed, Deed::Submit(job) if job["metadata"]["namespace"] == QUIET));
        alone
    }

    /// The jobs that nobody interferes with.
    pub(super) fn quiet(&self) -> impl Iterator<Item = &Job> {
        self.jobs.iter().filter(|job| job.namespace() == QUIET)
    }

    /// How its pods live; on lost nodes those that somebody interferes with do not end when they are deleted.
    pub(super) fn life(&self, lost_nodes: bool) -> Life {
        let rules = self.jobs.iter().flat_map(|job| &job.lives);
        let mut life = rules.fold(Life::default(), |life, [pods, key, value]| life.rule(pods, key, value));
        for job in self.jobs.iter().filter(|job| lost_nodes && job.namespace() == BUSY) {
            life = life.rule(&format!("{}-*", job.name()), "terminate-after", "forever");
        }
        life.jitter(0.5)
    }

    /// Does what users do, each at its time.
    pub(super) async fn play(self, sim: Sim, tally: Tally) {
        let start = tokio::time::Instant::now();
        let mut under_way = JoinSet::new();
        for (at, deed) in self.deeds {
            tokio::time::sleep_until(start + at).await;
            under_way.spawn(deed.done(sim.clone(), tally.clone()));
        }
        under_way.join_all().await;
    }

    /// The longest time that pods of one of its jobs may wait in back-offs.
    pub(super) fn longest_back_offs(&self) -> Duration {
        self.jobs.iter().map(Job::longest_back_offs).max().unwrap_or_default()
    }

    /// Jobs that have to end and whose ledger does not say that they have.
    pub(super) fn unfinished<'a>(&'a self, history: &'a History) -> impl Iterator<Item = &'a Job> {
        self.jobs.iter().filter(|job| !history.is_over(job, job.namespace() == DOOMED))
    }

    /// S7: without faults, a job costs its creates, a status write a headline and folded counts, and its clean-up.
    pub(super) fn over_budget(&self, sim: &Sim) -> Vec<String> {
        let requests = sim.requests();
        // Whether keys are still there is asked before more pods are made, since Secrets are not watched; what a kind is
        // called, that was not served, before it is listed.
        let may_be_read = |r: &RequestRecord| r.resource == "secrets" || r.resource.starts_with("/apis/");
        let reads = requests.iter().filter(|r| (r.verb == "get" && !may_be_read(r)) || r.verb == "update");
        let mut over: Vec<_> = reads.map(|r| format!("S7: {} {}", r.what(), r.name)).collect();
        for job in &self.jobs {
            let of_status = requests.iter().filter(|r| r.subresource == "status" && r.name == job.name());
            let statuses = of_status.count();
            let creates: Vec<_> =
                requests.iter().filter(|r| r.verb == "create" && r.name.starts_with(job.name())).collect();
            let distinct: BTreeSet<_> = creates.iter().map(|r| (&r.resource, &r.name)).collect();
            let twice = creates.len() - distinct.len();
            // Headlines, plus at most one folded write a second of its life; a pod that is replaced, or has to wait for its
            // turn, adds its own.
            let in_turns = if job.kind() == "IndexedJob" { distinct.len() } else { 0 };
            if statuses > 20 + 4 * (twice + in_turns) {
                over.push(format!("S7: {statuses} status writes for {}", job.name()));
            }
            if twice > 0 && !job.is_restarted {
                over.push(format!("S7: {twice} objects of {} were created twice", job.name()));
            }
        }
        over
    }
}

/// Has users submit another manifest where they would have submitted this one.
fn submit_instead(deeds: &mut [(Duration, Deed)], this: &Value, other: &Value) {
    for (_, deed) in deeds {
        if matches!(deed, Deed::Submit(manifest) if manifest == this) {
            *deed = Deed::Submit(other.clone());
        }
    }
}

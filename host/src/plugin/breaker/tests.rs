//! The breaker over time, with jobs that fail and jobs that do not.

use super::*;
use decide::{plan::Rejection, testkit};

struct World {
    breakers: Breakers,
    now: Timestamp,
}

fn job(uid: &str, generation: i64) -> Job {
    Job { generation, ..testkit::job(uid, uid) }
}

impl World {
    fn new() -> Self {
        Self { breakers: Breakers::default(), now: Timestamp::UNIX_EPOCH }
    }

    fn wait(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    fn case<'a>(&self, job: &'a Job) -> Case<'a> {
        Case { plugin: "p", digest: "d", job, now: self.now }
    }

    /// How long the plugin is not asked about this job: 0 if it may be asked now.
    fn pause(&self, job: &Job) -> i64 {
        match self.breakers.admit(&self.case(job)) {
            Ok(()) => 0,
            Err(Fault::BreakerOpen { until, .. }) => until.duration_since(self.now).as_secs(),
            Err(other) => panic!("{other}"),
        }
    }

    /// The plugin is asked and fails; the reason that its job gets.
    fn fails(&self, job: &Job) -> &'static str {
        let fault = Fault::Trapped { plugin: "p".into(), function: "plan".into(), message: "it fell".into() };
        match self.breakers.unanswered(&self.case(job), fault.into()) {
            NoPlan::Faulted(fault) => fault.reason(),
            NoPlan::Rejected(_) => "Rejected",
        }
    }

    fn answers(&self, job: &Job) {
        self.breakers.answered(&self.case(job));
    }

    fn position(&self) -> Position {
        self.breakers.state("p", "d", self.now).position
    }

    /// Three jobs fail twice each.
    fn with_all_failing() -> Self {
        let world = Self::new();
        for uid in ["a", "b", "c", "a", "b"] {
            assert_eq!(world.fails(&job(uid, 1)), "Trapped");
        }
        assert_eq!(world.fails(&job("c", 1)), "BreakerOpen");
        world
    }
}

#[test]
fn the_third_fault_in_a_row_of_a_job_opens_its_circuit_and_only_that() {
    let world = World::new();
    let (bad, good) = (job("bad", 1), job("good", 1));
    assert_eq!([world.fails(&bad), world.fails(&bad), world.fails(&bad)], ["Trapped", "Trapped", "BreakerOpen"]);
    assert_eq!((world.pause(&bad), world.pause(&good)), (60, 0));
    assert_eq!(world.breakers.state("p", "d", world.now).jobs, 1);
    for _ in 0..100 {
        world.fails(&bad);
    }
    assert_eq!((world.pause(&good), world.position()), (0, Position::Closed));
}

#[test]
fn each_failed_probe_doubles_the_pause_up_to_a_limit() {
    let mut world = World::new();
    let bad = job("bad", 1);
    for _ in 0..3 {
        world.fails(&bad);
    }
    let mut pauses = vec![];
    for _ in 0..6 {
        let pause = world.pause(&bad);
        pauses.push(pause);
        world.wait(pause);
        assert_eq!((world.pause(&bad), world.fails(&bad)), (0, "BreakerOpen"));
    }
    assert_eq!(pauses, [60, 120, 240, 480, 900, 900]);
}

#[test]
fn a_probe_that_is_answered_closes_the_circuit() {
    let mut world = World::new();
    let bad = job("bad", 1);
    for _ in 0..3 {
        world.fails(&bad);
    }
    world.wait(60);
    assert_eq!(world.pause(&bad), 0);
    world.answers(&bad);
    assert_eq!([world.fails(&bad), world.fails(&bad)], ["Trapped", "Trapped"]);
    assert_eq!(world.pause(&bad), 0);
}

#[test]
fn a_refusal_is_an_answer() {
    let world = World::new();
    let bad = job("bad", 1);
    for _ in 0..3 {
        world.fails(&bad);
        world.fails(&bad);
        let refusal = Rejection::Unsupported("that".into());
        assert_eq!(world.breakers.unanswered(&world.case(&bad), refusal.clone().into()), refusal.into());
    }
    assert_eq!(world.pause(&bad), 0);
}

#[test]
fn a_job_that_was_changed_is_asked_about_at_once() {
    let world = World::new();
    for _ in 0..3 {
        world.fails(&job("bad", 1));
    }
    assert_eq!((world.pause(&job("bad", 1)), world.pause(&job("bad", 2))), (60, 0));
    assert_eq!(world.fails(&job("bad", 2)), "Trapped");
}

#[test]
fn faults_of_several_jobs_open_the_plugins_circuit_for_all() {
    let world = World::with_all_failing();
    assert_eq!(world.pause(&job("innocent", 1)), 30);
    assert!(matches!(world.position(), Position::Open { cause, .. } if cause.contains("it fell")));
}

#[test]
fn an_answer_in_between_keeps_the_plugins_circuit_closed() {
    let world = World::new();
    for round in 0..20 {
        for uid in ["a", "b", "c"] {
            world.fails(&job(&format!("{uid}{round}"), 1));
        }
        world.answers(&job("good", 1));
    }
    assert_eq!(world.position(), Position::Closed);
}

#[test]
fn one_job_probes_for_all_and_another_may_when_it_does_not_come_back() {
    let mut world = World::with_all_failing();
    world.wait(30);
    let (first, second) = (job("first", 1), job("second", 1));
    assert_eq!((world.pause(&first), world.pause(&second), world.pause(&first)), (0, 30, 0));
    assert_eq!(world.position(), Position::HalfOpen);
    world.wait(30);
    assert_eq!((world.pause(&second), world.pause(&first)), (0, 30));
    world.answers(&second);
    assert_eq!((world.pause(&first), world.position()), (0, Position::Closed));
}

#[test]
fn a_late_answer_does_not_close_a_circuit_that_opened_meanwhile() {
    let world = World::with_all_failing();
    world.answers(&job("asked before", 1));
    assert_eq!(world.pause(&job("innocent", 1)), 30);
}

#[test]
fn however_many_jobs_fail_the_breaker_holds_only_so_many() {
    let world = World::new();
    for uid in 0..MOST_JOBS + 100 {
        world.fails(&job(&uid.to_string(), 1));
    }
    assert_eq!(world.breakers.lock().jobs.len(), MOST_JOBS);
}

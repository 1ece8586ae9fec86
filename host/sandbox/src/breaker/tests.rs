//! Tests of the breaker over time, with jobs that fail and jobs that do not.

use super::*;
use decide::{
    plan::{Budget, Rejection},
    testkit,
};

struct World {
    digest: Digest,
    breakers: Breakers,
    now: Timestamp,
}

fn job(uid: &str, generation: i64) -> Job {
    Job { generation, ..testkit::job(uid, uid) }
}

/// Returns a job in this namespace.
fn of(namespace: &str, uid: &str) -> Job {
    Job { namespace: namespace.into(), ..job(&format!("{namespace}-{uid}"), 1) }
}

fn fault(words: &str) -> NoPlan {
    Fault::Trapped { plugin: "p".into(), function: "plan".into(), message: words.into() }.into()
}

fn out_of(budget: Budget) -> NoPlan {
    Fault::OutOfBudget { plugin: "p".into(), function: "plan".into(), budget }.into()
}

impl World {
    fn new() -> Self {
        Self { digest: testkit::digest("d"), breakers: Breakers::default(), now: Timestamp::UNIX_EPOCH }
    }

    fn wait(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    fn case<'a>(&'a self, job: &'a Job) -> Case<'a> {
        Case { plugin: "p", digest: &self.digest, job, now: self.now, is_heavy: false }
    }

    /// Returns why calls for this job are paused, if they are.
    fn paused(&self, job: &Job) -> Option<NoPlan> {
        self.breakers.admit(&self.case(job)).err()
    }

    /// Returns for how many seconds calls for this job are paused: 0 if a call is admitted now.
    fn pause(&self, job: &Job) -> i64 {
        match self.paused(job) {
            None => 0,
            Some(NoPlan::Faulted(Fault::BreakerOpen { until, .. })) => until.duration_since(self.now).as_secs(),
            Some(other) => panic!("{other}"),
        }
    }

    /// Records a call without an answer and returns the error that its job gets.
    fn gives(&self, job: &Job, no_plan: NoPlan) -> NoPlan {
        self.breakers.unanswered(&self.case(job), no_plan)
    }

    /// Records a fault and returns the reason that its job gets.
    fn fails(&self, job: &Job) -> &'static str {
        match self.gives(job, fault("it fell")) {
            NoPlan::Faulted(fault) => fault.reason().as_str(),
            NoPlan::Rejected(rejection) => rejection.reason().as_str(),
        }
    }

    fn answers(&self, job: &Job) {
        self.breakers.answered(&self.case(job));
    }

    fn state(&self) -> BreakerState {
        self.breakers.state("p", &self.digest, self.now)
    }

    fn position(&self) -> Position {
        self.state().position
    }

    /// Returns a world where one job of each of three namespaces has failed twice.
    fn with_all_failing() -> Self {
        let world = Self::new();
        for namespace in ["a", "b", "c", "a", "b"] {
            assert_eq!(world.fails(&of(namespace, "1")), "Trapped");
        }
        assert_eq!(world.fails(&of("c", "1")), "BreakerOpen");
        world
    }
}

#[test]
fn the_third_fault_in_a_row_opens_the_circuit_of_its_job_only() {
    let world = World::new();
    let (bad, good) = (job("bad", 1), job("good", 1));
    assert_eq!([world.fails(&bad), world.fails(&bad), world.fails(&bad)], ["Trapped", "Trapped", "BreakerOpen"]);
    assert_eq!((world.pause(&bad), world.pause(&good)), (60, 0));
    assert_eq!(world.state().jobs, 1);
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
fn an_answered_probe_closes_the_circuit() {
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
fn a_rejection_counts_as_an_answer() {
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
fn a_changed_job_is_admitted_at_once() {
    let world = World::new();
    for _ in 0..3 {
        world.fails(&job("bad", 1));
    }
    assert_eq!((world.pause(&job("bad", 1)), world.pause(&job("bad", 2))), (60, 0));
    assert_eq!(world.fails(&job("bad", 2)), "Trapped");
}

#[test]
fn faults_of_several_jobs_open_the_circuit_of_their_namespace_only() {
    let world = World::new();
    for uid in ["1", "2", "3", "1", "2", "3"] {
        world.fails(&of("noisy", uid));
    }
    assert_eq!((world.pause(&of("noisy", "4")), world.pause(&of("quiet", "1"))), (60, 0));
    assert_eq!(world.position(), Position::Closed);
    assert_eq!(world.state().namespaces, 1);
    let message = world.paused(&of("noisy", "4")).unwrap().to_string();
    assert!(message.contains("jobs in this namespace") && message.contains("it fell"), "{message}");
    for uid in 0..1000 {
        world.fails(&of("noisy", &uid.to_string()));
    }
    assert_eq!((world.pause(&of("quiet", "1")), world.position()), (0, Position::Closed));
}

#[test]
fn faults_in_several_namespaces_open_the_plugins_circuit_for_all() {
    let world = World::with_all_failing();
    assert_eq!(world.pause(&of("innocent", "1")), 30);
    assert!(matches!(world.position(), Position::Open { cause, .. } if cause.contains("it fell")));
}

#[test]
fn no_namespace_reads_the_fault_messages_of_another() {
    let world = World::new();
    for (namespace, words) in [("a", "of a"), ("b", "of b"), ("a", "of a"), ("b", "of b"), ("c", "of c"), ("c", "of c")]
    {
        world.gives(&of(namespace, "1"), fault(words));
    }
    let message = world.paused(&of("innocent", "1")).unwrap().to_string();
    assert!(message.ends_with(OF_OTHERS) && !message.contains("of c"), "{message}");
    assert!(world.paused(&of("c", "2")).unwrap().to_string().contains("of c"));
}

#[test]
fn a_recent_answer_to_one_namespace_keeps_the_plugins_circuit_closed() {
    let mut world = World::new();
    world.answers(&of("good", "1"));
    world.wait(30);
    for namespace in 0..100 {
        for uid in 0..10 {
            world.fails(&of(&namespace.to_string(), &uid.to_string()));
        }
    }
    assert_eq!((world.position(), world.pause(&of("innocent", "1"))), (Position::Closed, 0));
    world.wait(31);
    for namespace in ["x", "y", "z", "x", "y", "z"] {
        world.fails(&of(namespace, "1"));
    }
    assert_eq!(world.pause(&of("innocent", "1")), 30);
}

#[test]
fn an_answer_between_faults_keeps_all_other_circuits_closed() {
    let world = World::new();
    for round in 0..20 {
        for uid in ["a", "b", "c"] {
            world.fails(&job(&format!("{uid}{round}"), 1));
        }
        world.answers(&job("good", 1));
    }
    assert_eq!((world.position(), world.pause(&job("other", 1))), (Position::Closed, 0));
}

#[test]
fn a_job_that_exceeds_the_limits_pauses_only_itself_and_gets_its_rejection() {
    let world = World::new();
    let too_much: NoPlan = Rejection::TooMuch("300000 bytes".into()).into();
    for namespace in ["a", "b", "c", "d"] {
        for uid in ["1", "2", "3"] {
            let heavy = of(namespace, uid);
            for _ in 0..3 {
                assert_eq!(world.gives(&heavy, too_much.clone()), too_much);
            }
            assert_eq!(world.paused(&heavy), Some(too_much.clone()), "it is not asked again for a while");
        }
        assert_eq!(world.pause(&of(namespace, "innocent")), 0);
    }
    assert_eq!((world.position(), world.state().jobs), (Position::Closed, 12));
}

#[test]
fn a_heavy_job_that_runs_out_of_time_and_a_host_that_runs_out_of_instances_are_not_the_plugins_fault() {
    let world = World::new();
    for uid in 0..100 {
        let (heavy, modest) = (of(&format!("h{uid}"), "1"), of(&format!("m{uid}"), "1"));
        let case = Case { is_heavy: true, ..world.case(&heavy) };
        assert_eq!(world.breakers.unanswered(&case, out_of(Budget::Time)), out_of(Budget::Time));
        assert_eq!(world.gives(&modest, out_of(Budget::Instances)), out_of(Budget::Instances));
    }
    assert_eq!(world.position(), Position::Closed);
    for uid in 0..6 {
        world.gives(&of(&uid.to_string(), "1"), out_of(Budget::Time));
    }
    assert!(matches!(world.position(), Position::Open { .. }));
}

#[test]
fn one_namespace_probes_for_all_and_another_one_after_a_timeout() {
    let mut world = World::with_all_failing();
    world.wait(30);
    let (first, second) = (of("first", "1"), of("second", "1"));
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
    world.answers(&of("late", "1"));
    assert_eq!(world.pause(&of("innocent", "1")), 30);
}

#[test]
fn the_number_of_circuits_is_limited() {
    let world = World::new();
    for uid in 0..MOST + 100 {
        world.fails(&of(&uid.to_string(), "1"));
    }
    let circuits = world.breakers.0.lock();
    assert_eq!((circuits.jobs.len(), circuits.namespaces.len()), (MOST, MOST));
}

//! Derives a decision from a snapshot and the plugin's answer. `decide` is total: every input has a decision; and
//! idempotent: once the actions are applied, it returns no more.

use crate::{
    Snapshot, blocker, cleanup,
    condition::{Condition, Reason},
    counted,
    decision::{Action, Decision, HostCondition, Report, Wake, Write},
    diff::{self, Of},
    failures::{self, Due},
    first_failure, jobs,
    ledger::{Finished, Ledger, MOST_WARNINGS},
    outdated, over,
    plan::{Answer, Bindings, Fault, Outcome, Plan, Queueing, Rejection, Success, Verdict},
    ports, queue,
    queue::Step,
    replicas::replicas,
    runs,
    standing::Standing,
    status,
    suspend::{self, suspend, suspend_unplanned},
    ttl,
    waiting::Waiting,
};
use jiff::SignedDuration;

/// Requeue delay when a name or host ports are taken: no watch event may report when they become free.
const TAKEN_AGAIN: SignedDuration = SignedDuration::from_secs(10);

/// Requeue delay after a plugin fault, unless the fault names a time.
const FAULT_AGAIN: SignedDuration = SignedDuration::from_secs(30);

/// How long content that a plan depends on may be out of date, as in a kubelet.
const CONTENTS_AGAIN: SignedDuration = SignedDuration::from_secs(60);

/// Minimum requeue delay that a plugin can ask for.
const SOONEST: SignedDuration = SignedDuration::from_secs(1);

/// Returns the decision for the snapshot and the answer.
///
/// A rejection or a fault becomes a condition on the job and changes no child, unless the user has suspended the job.
#[must_use]
pub fn decide(snapshot: &Snapshot, answer: &Answer) -> Decision {
    match (answer, &snapshot.ledger.finished) {
        (Answer::Judged { plan, .. }, _) => Standing::of(snapshot, plan).decide(answer),
        // Its user may have asked for another time to live in the edit, and no plan says so.
        (Answer::Rejected(_) | Answer::Faulted(_), Some(finished)) if finished.was_edited(snapshot.job.generation) => {
            let over = over::over(snapshot, &Finished { delete_at: None, ..finished.clone() });
            match answer {
                Answer::Faulted(fault) => Decision { wake: over.wake.min(again(snapshot, fault)), ..over },
                _ => over,
            }
        }
        (Answer::Rejected(_) | Answer::Faulted(_), Some(finished)) => over::over(snapshot, finished),
        (Answer::Rejected(rejection), None) => rejected(snapshot, rejection),
        (Answer::Faulted(fault), None) => faulted(snapshot, fault),
    }
}

impl Standing<'_> {
    /// Returns the decision for the job and the plugin's answer to it, as `decide` does.
    #[must_use]
    pub fn decide(&self, answer: &Answer) -> Decision {
        let snapshot = self.snapshot;
        match (answer, &snapshot.ledger.finished) {
            (Answer::Judged { verdict, .. }, Some(finished)) => after_the_end(self, finished, verdict),
            (Answer::Judged { bindings, verdict, .. }, None) => judged(self, bindings, verdict),
            (Answer::Rejected(_) | Answer::Faulted(_), _) => decide(snapshot, answer),
        }
    }
}

/// Decides for a finished job. The outcome never changes. If the job was edited, the policy of the new plan applies;
/// the pods that a failed job keeps are counted until they have ended.
fn after_the_end(standing: &Standing<'_>, finished: &Finished, verdict: &Verdict) -> Decision {
    let Standing { snapshot, plan, .. } = standing;
    // An edit is acted on only from a snapshot whose ledger holds the new policy.
    let decision = if finished.was_edited(snapshot.job.generation) {
        Decision::without_report(vec![], Wake::OnChange)
    } else {
        over::over(snapshot, finished)
    };
    let counts = finished.counting && verdict.outcome == finished.outcome;
    let status = if counts { verdict.status.clone() } else { status::of_framework(&snapshot.job.status) };
    let clean = finished.clean_is_final.then_some(finished.clean);
    let next = cleanup::finished(snapshot, plan, (finished.outcome, clean), finished.at);
    let ledger = Ledger { finished: Some(next), ..snapshot.ledger.clone() };
    let headline = ledger.headline.clone();
    Decision { report: Report::Verdict { status, headline, ledger: Box::new(ledger), events: vec![] }, ..decision }
}

fn judged(standing: &Standing<'_>, bindings: &Bindings, verdict: &Verdict) -> Decision {
    let Standing { snapshot, plan, .. } = standing;
    let due = Due::of(snapshot, plan);
    let mut ledger = next_ledger(standing, &due, verdict);
    let (expired, until_expired) = ttl::expire(snapshot, ttl::due_unfinished(snapshot, plan.policy.ttl));
    if let Some(delete) = expired {
        return Decision::without_report(vec![delete], Wake::OnChange);
    }
    let (mut actions, mut waiting) = match verdict.outcome {
        // Create nothing before the ledger names the job's host ports.
        Outcome::Open if ports::lacks(snapshot, plan) => (vec![], no_ports(snapshot, plan).into_iter().collect()),
        Outcome::Open if snapshot.ledger.ending.is_none() => open(standing, bindings),
        Outcome::Open | Outcome::Succeeding | Outcome::Failing => (cleanup::ending(snapshot), vec![]),
        // The clean-up starts from a snapshot whose ledger says that the job is finished.
        Outcome::Succeeded | Outcome::Failed => (vec![], vec![]),
    };
    if verdict.outcome == Outcome::Open && ledger.ending.is_none() {
        // They would be of the attempt that is over.
        let again: Vec<bool> = plan.roles.iter().map(|role| due.restarts(role)).collect();
        actions.retain(|action| action.creates_pod_of().is_none_or(|role| !again[role]));
    }
    failures::settle(standing, &due, &mut actions, &mut ledger);
    if snapshot.namespace_terminating {
        actions.retain(|action| !action.creates() && *action.write() != Write::Require);
        waiting = vec![Waiting::NamespaceTerminating { namespace: snapshot.job.namespace.clone() }];
    }
    if snapshot.pruned && due.is_any() {
        waiting.push(Waiting::StatusPruned { crd: snapshot.kind.crd() });
    }
    waiting.sort_by_key(distance_from_cause);
    let over_before_us = ledger.finished.as_ref().is_some_and(|finished| {
        cleanup::cleanup(snapshot, finished).is_empty()
            && finished.delete_at.is_none()
            && status::of_framework(&snapshot.job.status) == verdict.status
            && snapshot.ledger.headline.is_empty()
    });
    let report = if over_before_us {
        Report::Unchanged
    } else {
        let warnings = if snapshot.ledger.headline.is_empty() { plan.warnings.as_slice() } else { &[] };
        Report::Verdict {
            status: verdict.status.clone(),
            headline: verdict.headline.clone(),
            ledger: Box::new(ledger),
            events: warnings.iter().chain(&verdict.events).cloned().collect(),
        }
    };
    let taken = !snapshot.taken.is_empty() && waiting.iter().any(|it| matches!(it, Waiting::Terminating { .. }));
    let wake = match no_ports(snapshot, plan) {
        Some(Waiting::StatusPruned { .. }) => Wake::At(later(snapshot, status::PRUNED_AGAIN)),
        Some(_) => Wake::At(later(snapshot, TAKEN_AGAIN)),
        None if verdict.outcome == Outcome::Open && ports::are_written_down(snapshot) => Wake::At(snapshot.now),
        None if taken => Wake::At(later(snapshot, TAKEN_AGAIN)),
        None => Wake::OnChange,
    };
    let prepared = if verdict.outcome == Outcome::Open { blocker::wake(snapshot) } else { Wake::OnChange };
    let contents = if verdict.outcome.is_over() { Wake::OnChange } else { contents_again(snapshot) };
    let wakes = [wake, contents, until_expired, failures::wake(snapshot), asked_for(snapshot, verdict), prepared];
    let is_open = verdict.outcome == Outcome::Open;
    let outdated = if is_open { outdated::message(standing) } else { None };
    let misplaced = if is_open { queue::misplaced(snapshot, plan) } else { None };
    let warnings = if is_open { plan.warnings.as_slice() } else { &[] };
    let warnings = warnings.iter().take(MOST_WARNINGS).map(|event| event.message.clone()).collect();
    let wake = wakes.into_iter().min().unwrap_or(wake);
    Decision { actions, report, waiting, outdated, misplaced, warnings, wake }
}

/// Returns when the plugin wants to be asked again. A time that has come is put off: the same answer would follow.
fn asked_for(snapshot: &Snapshot, verdict: &Verdict) -> Wake {
    match verdict.wake_at {
        Some(at) if !verdict.outcome.is_over() => Wake::At(at.max(later(snapshot, SOONEST))),
        _ => Wake::OnChange,
    }
}

fn no_ports(snapshot: &Snapshot, plan: &Plan) -> Option<Waiting> {
    if !ports::lacks(snapshot, plan) {
        return None;
    }
    match snapshot.set_aside {
        None => Some(Waiting::HostPorts { count: plan.host_ports, why: snapshot.no_ports.unwrap_or_default() }),
        Some(_) => snapshot.pruned.then(|| Waiting::StatusPruned { crd: snapshot.kind.crd() }),
    }
}

/// Returns the rank of a reason, causes first: only the first reason is published, and a pod whose name is taken has no
/// address either.
fn distance_from_cause(waiting: &Waiting) -> u8 {
    match waiting {
        Waiting::Blocked { by, .. } if by.is_preparation() => 4,
        Waiting::Blocked { .. } => 1,
        Waiting::Terminating { .. } => 2,
        Waiting::Pods { .. } => 3,
        _ => 0,
    }
}

fn open(standing: &Standing<'_>, bindings: &Bindings) -> (Vec<Action>, Vec<Waiting>) {
    let queued = match queue::queue(standing) {
        Step::Renew(delete) => return (vec![delete], vec![]),
        Step::Keep(actions, waiting) => (actions, waiting),
    };
    let (mut actions, mut waiting) = (queued.0, Vec::from_iter(queued.1));
    let (more, why) = diff::objects(standing, &bindings.bodies, Of::Job);
    actions.extend(more);
    waiting.extend(why);
    actions.extend(diff::secrets(standing));
    if standing.snapshot.suspended() {
        actions.extend(suspend(standing));
    } else {
        let (more, why) = replicas(standing);
        actions.extend(more);
        waiting.extend(why);
        waiting.extend(blocker::blocked(standing.snapshot));
    }
    // Objects of replicas follow the pods, which take longest to start.
    let (more, why) = diff::objects(standing, &bindings.bodies, Of::Replicas);
    actions.extend(more);
    waiting.extend(why);
    let (more, why) = runs::runs(standing, &bindings.runs);
    actions.extend(more);
    waiting.extend(why);
    let (more, why) = jobs::jobs(standing);
    actions.extend(more);
    waiting.extend(why);
    actions.extend(diff::required_secrets(standing, &actions));
    (actions, waiting)
}

fn next_ledger(standing: &Standing<'_>, due: &Due<'_>, verdict: &Verdict) -> Ledger {
    let Standing { snapshot, plan, .. } = standing;
    let mut ledger = snapshot.ledger.clone();
    ledger.digest = snapshot.digest.clone().filter(|_| !is_at_rest(snapshot)).into();
    ledger.headline.clone_from(&verdict.headline);
    let begins_anew = suspend::begins_anew(snapshot, plan);
    if begins_anew {
        ledger.succeeded.clear();
    }
    for replica in &standing.replicas {
        let is_kept = replica.role.success != Success::Momentary && !begins_anew;
        let succeeds = |pod| counted::succeeds(snapshot, replica.role, replica.index, pod);
        if is_kept
            && replica.pod.is_some_and(|pod| succeeds(pod))
            && !ledger.has_succeeded(&replica.role.name, replica.index)
        {
            ledger.record_success(&replica.role.name, replica.index);
            failures::succeed(&mut ledger, replica.role);
        }
    }
    ledger.queued |= snapshot.kind.queueing == Queueing::Elsewhere && snapshot.hold().is_some();
    ledger.ending = ledger.ending.or(verdict.outcome.ending());
    due.record(standing, verdict.outcome, &mut ledger);
    forget_removed(plan, &mut ledger);
    for role in plan.roles.iter().filter(|role| role.removes_itself()) {
        match snapshot.job_behind(role) {
            // A time to live deletes only finished Jobs: somebody else deletes this one, so it is created again.
            Some(job) if job.terminating && !job.job_is_over() => drop(ledger.made.remove(&jobs::ledger_key(role))),
            // Jobs of an original operator are recorded too.
            Some(_) => drop(ledger.made.insert(jobs::ledger_key(role))),
            None => {}
        }
    }
    outdated::record(snapshot, plan, &mut ledger);
    ledger.host_ports = ports::next(snapshot, plan, verdict.outcome);
    if matches!(verdict.outcome, Outcome::Failed | Outcome::Failing) && ledger.first_failure.is_none() {
        ledger.first_failure = first_failure::of(snapshot);
    }
    if verdict.outcome.is_over() {
        let at = cleanup::ended_at(snapshot, &verdict.status);
        ledger.finished = Some(cleanup::finished(snapshot, plan, (verdict.outcome, verdict.clean), at));
    }
    ledger
}

/// Forgets what became of replicas that a role with turns has no more: as in a Job, they run again if they come back.
fn forget_removed(plan: &Plan, ledger: &mut Ledger) {
    for role in plan.roles.iter().filter(|role| role.at_once.is_some()) {
        for indices in [ledger.succeeded.get_mut(&role.name), ledger.given_up.get_mut(&role.name)].into_iter().flatten()
        {
            *indices = indices.within(&role.indices());
        }
    }
}

/// Returns whether the job is suspended and nothing of it runs: the digest that serves at its resumption plans it anew.
#[must_use]
pub fn is_at_rest(snapshot: &Snapshot) -> bool {
    snapshot.suspended() && snapshot.pods.is_empty() && !snapshot.has_active_job()
}

fn rejected(snapshot: &Snapshot, rejection: &Rejection) -> Decision {
    let message = match rejection {
        Rejection::Invalid(_) => format!("Found validation errors: {rejection}"),
        Rejection::Unsupported(_) | Rejection::TooMuch(_) | Rejection::NotServed(_) => rejection.to_string(),
    };
    without_verdict(snapshot, Condition::Rejected, rejection.reason(), message, contents_again(snapshot))
}

fn faulted(snapshot: &Snapshot, fault: &Fault) -> Decision {
    let wake = again(snapshot, fault);
    without_verdict(snapshot, Condition::PluginFaulted, fault.reason(), fault.to_string(), wake)
}

/// Returns when the plugin is asked again after a fault.
fn again(snapshot: &Snapshot, fault: &Fault) -> Wake {
    Wake::At(match fault {
        Fault::BreakerOpen { until, .. } | Fault::Throttled { until, .. } => *until,
        _ => later(snapshot, FAULT_AGAIN),
    })
}

fn without_verdict(snapshot: &Snapshot, kind: Condition, reason: Reason, message: String, wake: Wake) -> Decision {
    let report = Report::Condition(HostCondition { kind, reason, message });
    let actions = suspend_unplanned(snapshot).into_iter().chain(queue::release(snapshot)).collect();
    Decision { report, ..Decision::without_report(actions, wake) }
}

/// Returns when the content that the plan depends on is read again: no watch shows that it has changed.
fn contents_again(snapshot: &Snapshot) -> Wake {
    if snapshot.contents.is_empty() { Wake::OnChange } else { Wake::At(later(snapshot, CONTENTS_AGAIN)) }
}

fn later(snapshot: &Snapshot, after: SignedDuration) -> jiff::Timestamp {
    snapshot.now.checked_add(after).unwrap_or(jiff::Timestamp::MAX)
}

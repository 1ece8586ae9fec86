//! Failed pods: which of them count, what becomes of them, and when the next one is created.
//!
//! A pod is counted in the ledger before it is deleted, and by its uid, so that it counts once whatever happens to the
//! host in between. For the same reason a pod that is deleted and must not count is in the ledger before.

use crate::{
    Snapshot, attempts,
    back_off::Failures,
    counted::{ends_too_late, is_known, was_stopped},
    decision::{Action, Wake, Write},
    ledger::Ledger,
    names,
    plan::{Deletion, Ending, Failure, Outcome, Plan, Remedy, Role, Success},
    ranges::Ranges,
    restarts,
    snapshot::{ContainerState, ContainerStatus, Pod, PodPhase},
    standing::{Replica, Standing},
};
use jiff::Timestamp;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Maximum number of pods of a role whose uids the ledger holds at once.
const MOST_AT_ONCE: usize = 500;

/// What becomes of a pod by the rules of its role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replacement {
    /// It has not failed, or it stays.
    None,
    /// It has failed, and the next ledger counts it.
    Due,
    /// It is counted, or cannot be: it is deleted, and another is created.
    UnderWay,
    /// It is counted, and its replica has no other pod.
    GivenUp,
}

/// The failed pods that the next ledger counts.
#[derive(Debug)]
pub struct Due<'a> {
    snapshot: &'a Snapshot,
    /// By role, then by index and uid.
    counted: BTreeMap<&'a str, BTreeMap<(u32, &'a str), DuePod<'a>>>,
}

/// A failed pod that the next ledger counts.
#[derive(Debug)]
struct DuePod<'a> {
    /// When it ended.
    at: Timestamp,
    role: &'a Role,
    remedy: Remedy,
    /// Whether the job is ending: the pod is not replaced.
    ending: bool,
    /// Whether it is the failure with which its replica is given up.
    gives_up: bool,
}

impl DuePod<'_> {
    /// Returns whether more than the pod starts again. Nothing does while the job is ending.
    fn starts_again(&self) -> bool {
        self.remedy.restarts() && !self.ending
    }
}

impl<'a> Due<'a> {
    /// Returns the failed pods of wanted replicas that a rule is about and that the ledger lacks. Of a suspended job only
    /// those of roles that distinguish the host's deletions from others.
    #[must_use]
    pub fn of(snapshot: &'a Snapshot, plan: &'a Plan) -> Self {
        let mut counted: BTreeMap<&str, BTreeMap<_, _>> = BTreeMap::new();
        if plan.roles.iter().all(|role| role.failures.is_empty()) {
            return Self { snapshot, counted };
        }
        for pod in snapshot.own_pods() {
            let Some((role, index)) = place(snapshot, plan, pod) else { continue };
            let (Some(remedy), ledger) = (remedy(snapshot, role, pod), &snapshot.ledger) else { continue };
            if remedy == Remedy::Keep || attempts::is_old(snapshot, role, pod) || ledger.is_given_up(&role.name, index)
            {
                continue;
            }
            let known = ledger.failures.get(&role.name);
            // What is counted while the job is ending needs no uid.
            let under_way = known.filter(|_| ledger.ending.is_none()).map_or(0, |known| known.pods.len());
            let due = counted.entry(&role.name).or_default();
            let is_full = ledger.ending.is_none() && under_way + due.len() >= MOST_AT_ONCE;
            if known.is_some_and(|known| is_known(known, ledger, index, pod)) || is_full {
                continue;
            }
            let before = known.and_then(|known| known.replicas.get(&index)).map_or(0, |of| of.count);
            let is_last = role.failures_per_replica.is_some_and(|most| before >= most);
            let gives_up = remedy == Remedy::GiveUp || remedy == Remedy::Replace && is_last;
            // Not what the host ends because the job has failed.
            let gives_up = gives_up && (pod.phase == PodPhase::Failed || pod.terminating);
            let (at, ending) = (ended_at(pod, snapshot.now), ledger.ending.is_some());
            due.insert((index, &*pod.uid), DuePod { at, role, remedy, ending, gives_up });
        }
        one_restart(&mut counted);
        counted.retain(|_, due| !due.is_empty());
        Self { snapshot, counted }
    }

    /// Returns whether any pod is due.
    pub(crate) fn is_any(&self) -> bool {
        !self.counted.is_empty()
    }

    /// Returns what becomes of a pod of this role and index.
    #[must_use]
    pub fn replacement(&self, role: &Role, index: u32, pod: &Pod) -> Replacement {
        if attempts::is_old(self.snapshot, role, pod) {
            return Replacement::UnderWay;
        }
        let known = self.snapshot.ledger.failures.get(&role.name);
        let counts_no_more = known.is_some_and(|known| is_known(known, &self.snapshot.ledger, index, pod));
        if pod.phase.is_terminal() && self.snapshot.ledger.is_given_up(&role.name, index) {
            return Replacement::GivenUp;
        }
        let is_over = counts_no_more && pod.phase.is_terminal() || was_stopped(role, pod);
        if is_over || ends_too_late(self.snapshot, role, index, pod) {
            return Replacement::UnderWay;
        }
        let is_terminating = pod.terminating && pod.phase == PodPhase::Failed;
        let remedy = remedy(self.snapshot, role, pod).or(is_terminating.then(|| rule(role, pod)));
        let Some(remedy) = remedy.filter(|remedy| *remedy != Remedy::Keep && role.wants(index)) else {
            return Replacement::None;
        };
        if self.has(&role.name, index, &pod.uid) {
            return Replacement::Due;
        }
        match self.snapshot.ledger.is_given_up(&role.name, index) || remedy == Remedy::GiveUp {
            true => Replacement::GivenUp,
            false => Replacement::UnderWay,
        }
    }

    /// Returns how many failed pods of the role are counted, with those that are due.
    #[must_use]
    pub fn count(&self, role: &str) -> u32 {
        let before = self.snapshot.ledger.failures.get(role).map_or(0, |failures| failures.count);
        let due = self.of_role(role).filter(|(_, due)| due.remedy != Remedy::ReplaceUncounted).count();
        before.saturating_add(u32::try_from(due).unwrap_or(u32::MAX))
    }

    /// Returns the wanted replicas that are given up, with those that are due.
    #[must_use]
    pub fn given_up(&self, role: &Role) -> Ranges {
        let recorded = self.snapshot.ledger.given_up.get(&role.name);
        let mut indices = recorded.map_or_else(Ranges::default, |indices| indices.within(&role.indices()));
        self.of_role(&role.name).filter(|(_, due)| due.gives_up).for_each(|((index, _), _)| indices.insert(*index));
        indices
    }

    fn of_role(&self, role: &str) -> impl Iterator<Item = (&(u32, &'a str), &DuePod<'a>)> {
        self.counted.get(role).into_iter().flatten()
    }

    fn has(&self, role: &str, index: u32, uid: &str) -> bool {
        self.counted.get(role).is_some_and(|due| due.contains_key(&(index, uid)))
    }

    /// Returns whether pods of the role are due to be deleted and created again as a whole.
    pub(crate) fn restarts(&self, role: &Role) -> bool {
        let mut all = self.counted.values().flat_map(BTreeMap::values).filter(|due| due.starts_again());
        all.any(|due| restarts::is_meant(role, due.role, due.remedy))
    }

    /// Counts the pods that are due, and forgets those whose place another pod has taken. What would start roles again starts
    /// none in a pass that ends the job.
    pub(crate) fn record(&self, standing: &Standing<'_>, outcome: Outcome, ledger: &mut Ledger) {
        for (role, failures) in &mut ledger.failures {
            forget(failures, role, standing, ledger.ending);
        }
        // What is being deleted of a suspended job is the host's doing, whatever it ends with later.
        for replica in standing.replicas.iter().filter(|_| self.snapshot.suspended()) {
            let Some(pod) = replica.pod.filter(|pod| pod.terminating) else { continue };
            let known = ledger.failures.get(&replica.role.name);
            let is_known = known.is_some_and(|known| known.replaces(replica.index, &pod.uid));
            if replica.role.deletion != Deletion::Uncounted && !is_known {
                let failures = ledger.failures.entry(replica.role.name.clone()).or_default();
                failures.settled.insert(replica.index, pod.uid.clone());
            }
        }
        for (&(index, uid), due) in self.counted.values().flatten() {
            let failures = ledger.failures.entry(due.role.name.clone()).or_default();
            if due.remedy != Remedy::ReplaceUncounted {
                failures.count = failures.count.saturating_add(1);
            }
            if due.gives_up {
                failures.replicas.remove(&index);
                ledger.given_up.entry(due.role.name.clone()).or_default().insert(index);
            }
            if due.ending {
                failures.ended.insert(index);
                continue;
            }
            if due.gives_up {
                continue;
            }
            failures.settled.remove(&index);
            failures.row.add(due.at, self.snapshot.now);
            if due.role.failures_per_replica.is_some() {
                let own = failures.replicas.entry(index).or_default();
                own.count += u32::from(due.remedy == Remedy::Replace);
                own.row.add(due.at, self.snapshot.now);
            }
            failures.pods.insert(index, uid.to_owned());
        }
        if outcome != Outcome::Open {
            return;
        }
        // Last: it forgets what was recorded of the pods that end with it.
        for (&(index, uid), due) in self.counted.values().flatten().filter(|(_, due)| due.starts_again()) {
            let failures = ledger.failures.entry(due.role.name.clone()).or_default();
            let not_before = failures.row.ends_at(self.snapshot.now).unwrap_or(self.snapshot.now);
            restarts::record(standing, (due.role, due.remedy), not_before, ledger);
            // It is known by its uid, whatever attempt it names.
            ledger.failures.entry(due.role.name.clone()).or_default().pods.insert(index, uid.to_owned());
        }
    }
}

/// Leaves of the pods with which roles start again the one that ended first: of the job if any is of that, else of each role.
/// Whatever else has failed in these roles ends with it, and each restart is counted once.
fn one_restart<'a>(counted: &mut BTreeMap<&'a str, BTreeMap<(u32, &'a str), DuePod<'a>>>) {
    let mut restarts: Vec<(Timestamp, &str, u32, &str, Remedy)> = vec![];
    for (role, due) in &*counted {
        let of_role = due.iter().filter(|(_, due)| due.starts_again());
        restarts.extend(of_role.map(|(&(index, uid), due)| (due.at, *role, index, uid, due.remedy)));
    }
    restarts.sort_unstable_by_key(|&(at, role, index, uid, _)| (at, role, index, uid));
    if let Some(&(.., of_job, _)) = restarts.iter().find(|(.., remedy)| *remedy == Remedy::RestartJob) {
        counted.values_mut().for_each(|due| due.retain(|(_, uid), due| due.ending || *uid == of_job));
        return;
    }
    for (role, due) in counted {
        if let Some(&(.., of_role, _)) = restarts.iter().find(|(_, of, ..)| of == role) {
            due.retain(|(_, uid), due| due.ending || *uid == of_role);
        }
    }
}

/// Forgets the records that are of no use any more. [`settle`] does so for the settled pods.
fn forget(failures: &mut Failures, role: &str, standing: &Standing<'_>, ending: Option<Ending>) {
    if failures.pods.is_empty() && failures.replicas.is_empty() {
        return;
    }
    let of_role = |replica: &&Replica<'_>| replica.role.name == *role;
    let wanted: BTreeMap<_, _> = standing.replicas.iter().filter(of_role).map(|it| (it.index, it)).collect();
    failures.pods.retain(|index, uid| match wanted.get(index) {
        Some(replica) => replica.pod.map_or(ending.is_none(), |pod| pod.uid == *uid),
        None => false,
    });
    failures.replicas.retain(|index, _| wanted.get(index).is_some_and(|replica| !standing.has_succeeded(replica)));
}

/// Returns the wanted replica that the pod belongs to.
fn place<'a>(snapshot: &Snapshot, plan: &'a Plan, pod: &Pod) -> Option<(&'a Role, u32)> {
    let (role, index) = names::role_of_pod(plan, &snapshot.job.name, &pod.name)?;
    let role = plan.roles.get(role)?;
    role.wants(index).then_some((role, index))
}

/// Returns when the last container of the pod ended, which is what a Job's back-off counts from; now where one has not, as in
/// a pod that was evicted.
fn ended_at(pod: &Pod, now: Timestamp) -> Timestamp {
    let main = pod.containers.iter().filter(|status| !status.init);
    let ended: Option<Vec<Timestamp>> = main
        .map(|status| match status.state {
            ContainerState::Terminated { at, .. } => Some(at).filter(|at| *at != Timestamp::default()),
            ContainerState::Unknown | ContainerState::Waiting { .. } | ContainerState::Running { .. } => None,
        })
        .collect();
    ended.and_then(|ended| ended.into_iter().max()).filter(|at| *at <= now).unwrap_or(now)
}

/// Returns what becomes of the pod if it counts as failed.
fn remedy(snapshot: &Snapshot, role: &Role, pod: &Pod) -> Option<Remedy> {
    let (tells, ended) = (role.deletion != Deletion::Uncounted, pod.phase.is_terminal());
    // As in a Job, nothing counts after the success is known.
    if pod.phase == PodPhase::Succeeded || snapshot.ledger.ending == Some(Ending::Succeeding) {
        return None;
    }
    if tells && !ended && is_failing(snapshot) {
        // No rule is about a pod that has not ended.
        return Some(Remedy::Replace);
    }
    let fails = match (pod.phase, role.deletion) {
        // The host ends the pods of a suspended job.
        _ if snapshot.suspended() && (pod.terminating || !tells) => false,
        (PodPhase::Failed, Deletion::Uncounted) => !pod.terminating,
        (PodPhase::Failed, Deletion::WhenFailed | Deletion::AtOnce) => true,
        (_, Deletion::Uncounted | Deletion::WhenFailed) => false,
        (_, Deletion::AtOnce) => pod.terminating,
    };
    fails.then(|| rule(role, pod))
}

fn is_failing(snapshot: &Snapshot) -> bool {
    snapshot.ledger.ending == Some(Ending::Failing)
}

fn rule(role: &Role, pod: &Pod) -> Remedy {
    role.failures.iter().find(|rule| matches(&rule.about, pod)).map_or(Remedy::Keep, |rule| rule.then)
}

fn matches(rule: &Failure, pod: &Pod) -> bool {
    match rule {
        Failure::Any => true,
        Failure::ExitCodes { container, ranges } => {
            exit_codes(pod, container).any(|code| ranges.iter().any(|(first, last)| (*first..=*last).contains(&code)))
        }
        Failure::NoExitCode { container } => exit_codes(pod, container).next().is_none(),
        Failure::Condition { kind, status } => pod.conditions.iter().any(|(it, is)| it == kind && is == status),
    }
}

/// Returns the exit codes of the container of this name, or of all containers where the name is "".
fn exit_codes<'a>(pod: &'a Pod, container: &'a str) -> impl Iterator<Item = i32> + 'a {
    let is_meant = move |status: &&ContainerStatus| container.is_empty() || status.name == container;
    pod.containers.iter().filter(is_meant).filter_map(|status| match status.state {
        ContainerState::Terminated { exit_code, .. } => Some(exit_code),
        ContainerState::Unknown | ContainerState::Waiting { .. } | ContainerState::Running { .. } => None,
    })
}

/// Returns the deletion of the replica's pod if the ledger has counted it as failed and another pod follows.
pub(crate) fn removal(standing: &Standing<'_>, replica: &Replica<'_>) -> Option<Action> {
    // A pod of an earlier attempt goes with the others of it.
    let is_current = |pod: &&Arc<Pod>| !pod.terminating && !attempts::is_old(standing.snapshot, replica.role, pod);
    let pod: &Arc<Pod> = replica.pod.filter(is_current)?;
    let counted = standing.snapshot.ledger.failures.get(&replica.role.name)?.pods.get(&replica.index)?;
    let is_replaced = *counted == pod.uid && pod.phase == PodPhase::Failed && !standing.is_done(replica.role);
    is_replaced.then(|| Action::delete_pod(pod))
}

/// Returns whether the replica, whose last pod has failed, is not created yet.
pub(crate) fn backs_off(snapshot: &Snapshot, replica: &Replica<'_>) -> bool {
    let own = replica.role.failures_per_replica.is_some();
    let failures = snapshot.ledger.failures.get(&replica.role.name);
    let one = failures.is_some_and(|it| {
        it.pods.contains_key(&replica.index) && it.ends_at(replica.index, own, snapshot.now).is_some()
    });
    one || restarts::backs_off_until(snapshot, &replica.role.name).is_some()
}

/// Returns when the first back-off of the job ends.
pub(crate) fn wake(snapshot: &Snapshot) -> Wake {
    let restarts = snapshot.ledger.attempts.keys().filter_map(|role| restarts::backs_off_until(snapshot, role));
    let ends = snapshot.ledger.failures.values().flat_map(|failures| {
        let own = failures.pods.keys().filter_map(|index| failures.replicas.get(index)).map(|replica| replica.row);
        let of_role = (!failures.pods.is_empty()).then_some(failures.row);
        of_role.into_iter().chain(own).filter_map(|row| row.ends_at(snapshot.now))
    });
    ends.chain(restarts).min().map_or(Wake::OnChange, Wake::At)
}

/// Takes out the deletions of pods that are due, and of those whose end would count although the host causes it, unless the
/// ledger names them. Adds the latter to the next ledger, so that they follow once it is written.
pub(crate) fn settle(standing: &Standing<'_>, due: &Due<'_>, actions: &mut Vec<Action>, ledger: &mut Ledger) {
    let Standing { snapshot, plan, .. } = standing;
    if plan.roles.iter().all(|role| role.deletion == Deletion::Uncounted) {
        return;
    }
    let pods: BTreeMap<&str, &Arc<Pod>> = snapshot.own_pods().map(|pod| (&*pod.uid, pod)).collect();
    let mut deleted: BTreeSet<String> = BTreeSet::new();
    actions.retain(|action| {
        let (Write::Delete { uid, .. }, "Pod") = (action.write(), &*action.kind) else { return true };
        let Some((place, index)) = names::role_of_pod(plan, &snapshot.job.name, &action.name) else { return true };
        let role = &plan.roles[place];
        let is_old = |pod: &&Arc<Pod>| attempts::is_old(snapshot, role, pod);
        if role.deletion == Deletion::Uncounted || pods.get(uid.as_str()).is_some_and(is_old) {
            return true;
        }
        if due.has(&role.name, index, uid) {
            return false;
        }
        if pods.get(uid.as_str()).is_none_or(|pod| pod.phase.is_terminal()) || snapshot.ledger.ending.is_some() {
            return true;
        }
        deleted.insert(uid.clone());
        let recorded = snapshot.ledger.failures.get(&role.name);
        if recorded.is_some_and(|known| known.replaces(index, uid) || known.has_settled(index, uid)) {
            return true;
        }
        let failures = ledger.failures.entry(role.name.clone()).or_default();
        if failures.settled.len() < MOST_AT_ONCE {
            failures.settled.insert(index, uid.clone());
        }
        false
    });
    // A pod that is not deleted after all counts like any other.
    for failures in ledger.failures.values_mut() {
        let goes = |uid: &String| pods.get(uid.as_str()).is_some_and(|pod| pod.terminating) || deleted.contains(uid);
        failures.settled.retain(|_, uid| goes(uid));
    }
}

/// Ends the row of failures of a role of which a replica has succeeded.
pub(crate) fn succeed(ledger: &mut Ledger, role: &Role) {
    if role.success != Success::Momentary
        && let Some(failures) = ledger.failures.get_mut(&role.name)
    {
        failures.row.in_a_row = 0;
    }
}

#[cfg(test)]
mod tests;

//! Which jobs Troupe would take over, and how: found by a dry-run pass over each job.

use super::Finding;
use decide::{
    Action, Report, Snapshot, Triage, Write,
    plan::{Answer, Outcome},
    status::step,
    triage,
};
use std::collections::BTreeMap;
use troupe::record::passes::Pass;

/// The maximum number of jobs that are listed by name.
const NAMED: usize = 10;

/// The maximum number of writes reported per job.
const WRITES: usize = 3;

/// What Troupe would do with a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TakeOver {
    /// Start it: no operator has.
    New,
    /// Take it over without a write.
    AsItIs,
    /// Take it over and write at once.
    Changed,
    /// Keep it suspended.
    Suspended,
    /// Leave it alone: it has finished.
    Finished,
    /// Leave it alone: it is being deleted.
    Leaving,
    /// Leave it alone: another manager owns it.
    Another,
    /// Only report what is wrong with it. It has running pods.
    RefusedRunning,
    /// Only report what is wrong with it.
    Refused,
}

/// A job, and what a pass over it would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFacts {
    /// Kind.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// What Troupe would do with it.
    pub take_over: TakeOver,
    /// Its step as users of the framework know it; "" if it has none.
    pub phase: String,
    /// The writes that would happen at once, or what is wrong.
    pub details: Vec<String>,
}

impl JobFacts {
    pub(super) fn of(pass: &Pass) -> Self {
        let Pass { snapshot, answer, decision, .. } = pass;
        // Secrets are not watched: only an attempt to create one shows whether it exists.
        let writes = decision.actions.iter().filter(|action| !matches!(action.write(), Write::CreateSecret { .. }));
        let writes: Vec<_> = writes.map(Action::to_string).collect();
        let (phase, outcome) = match answer {
            Answer::Judged { verdict, .. } if triage(snapshot) == Triage::NeedsPlan => {
                (step(&verdict.status).unwrap_or(&verdict.headline).to_owned(), verdict.outcome)
            }
            _ => (step(&snapshot.job.status).unwrap_or_default().to_owned(), Outcome::Open),
        };
        let (take_over, details) = match &decision.report {
            _ if snapshot.managed_by_another() => (TakeOver::Another, vec![]),
            _ if snapshot.job.deleting => (TakeOver::Leaving, vec![]),
            Report::Condition(condition) if snapshot.pods.iter().any(|pod| !pod.phase.is_terminal()) => {
                (TakeOver::RefusedRunning, vec![condition.message.clone()])
            }
            Report::Condition(condition) => (TakeOver::Refused, vec![condition.message.clone()]),
            _ if outcome.is_over() || snapshot.ledger.finished.is_some() => (TakeOver::Finished, writes),
            _ if snapshot.suspended() => (TakeOver::Suspended, writes),
            _ if is_untouched(snapshot) => (TakeOver::New, vec![]),
            _ if writes.is_empty() => (TakeOver::AsItIs, writes),
            _ => (TakeOver::Changed, writes),
        };
        let (kind, job) = (snapshot.kind.kind.clone(), &snapshot.job);
        Self { kind, namespace: job.namespace.clone(), name: job.name.clone(), take_over, phase, details }
    }

    fn line(&self) -> String {
        let Self { kind, namespace, name, details, .. } = self;
        let more = details.len().saturating_sub(WRITES);
        let mut details = details[..details.len() - more].join(", ");
        if more > 0 {
            details.push_str(&format!(" and {more} more"));
        }
        format!("{kind} {namespace}/{name}: {details}")
    }
}

/// Whether no operator has started the job.
fn is_untouched(snapshot: &Snapshot) -> bool {
    let status = &snapshot.job.status;
    snapshot.pods.is_empty() && snapshot.children.is_empty() && status.as_object().is_none_or(serde_json::Map::is_empty)
}

pub(super) fn findings(jobs: &[JobFacts], unlisted: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !unlisted.is_empty() {
        let what = format!("not all jobs are known: the API server did not list {}", unlisted.join(", "));
        findings.push(Finding::in_the_way(what, "see to the definitions and the rights below, then look again"));
    }
    let mut counts: BTreeMap<(&str, TakeOver, &str), usize> = BTreeMap::new();
    for job in jobs {
        *counts.entry((&job.kind, job.take_over, &job.phase)).or_default() += 1;
    }
    for ((kind, take_over, phase), count) in &counts {
        let phase = if phase.is_empty() { String::new() } else { format!(" {phase}:") };
        findings.push(Finding::note(format!("{count} {kind}{phase} {}", meaning(*take_over))));
    }
    let changed = |job: &&JobFacts| {
        !job.details.is_empty() && !matches!(job.take_over, TakeOver::Refused | TakeOver::RefusedRunning)
    };
    findings.extend(named(jobs.iter().filter(changed), |job| Finding::note(format!("at once, {}", job.line()))));
    findings.extend(named(jobs.iter().filter(|job| job.take_over == TakeOver::Refused), |job| {
        Finding::note(job.line()).but("change that field of the job, or delete it")
    }));
    findings.extend(jobs.iter().filter(|job| job.take_over == TakeOver::RefusedRunning).map(|job| {
        Finding::in_the_way(job.line(), "change that field of the job, or let it end before you stop its operator")
    }));
    if findings.is_empty() {
        findings.push(Finding::fine("there are none"));
    }
    findings
}

fn named<'a>(jobs: impl Iterator<Item = &'a JobFacts>, of: impl Fn(&JobFacts) -> Finding) -> Vec<Finding> {
    let jobs: Vec<_> = jobs.collect();
    let mut findings: Vec<_> = jobs.iter().take(NAMED).map(|job| of(job)).collect();
    if let Some(more) = jobs.len().checked_sub(NAMED + 1) {
        findings.push(Finding::note(format!("and {} more such jobs", more + 1)));
    }
    findings
}

fn meaning(take_over: TakeOver) -> &'static str {
    match take_over {
        TakeOver::New => "not begun by anybody, will be",
        TakeOver::AsItIs => "taken over, pods and other children stay as they are",
        TakeOver::Changed => "taken over, with writes that are listed below",
        TakeOver::Suspended => "stay suspended",
        TakeOver::Finished => "finished, left alone but for their clean-up",
        TakeOver::Leaving => "being deleted, left alone",
        TakeOver::Another => "managed by another, left alone",
        TakeOver::RefusedRunning => "refused while their pods run, left alone",
        TakeOver::Refused => "refused, left alone",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preflight::Weight;

    fn job(name: &str, take_over: TakeOver, phase: &str, details: &[&str]) -> JobFacts {
        JobFacts {
            kind: "Echo".into(),
            namespace: "ns".into(),
            name: name.into(),
            take_over,
            phase: phase.into(),
            details: details.iter().map(ToString::to_string).collect(),
        }
    }

    fn weights_and_texts(findings: &[Finding]) -> Vec<(Weight, &str)> {
        findings.iter().map(|finding| (finding.weight, finding.what.as_str())).collect()
    }

    #[test]
    fn jobs_are_counted_by_kind_standing_and_phase() {
        let jobs = [
            job("a", TakeOver::AsItIs, "Running", &[]),
            job("b", TakeOver::AsItIs, "Running", &[]),
            job("c", TakeOver::AsItIs, "Pending", &[]),
            job("d", TakeOver::Finished, "Completed", &[]),
            job("e", TakeOver::Another, "", &[]),
            job("f", TakeOver::Suspended, "Suspended", &[]),
        ];
        assert_eq!(
            weights_and_texts(&findings(&jobs, &[])),
            [
                (Weight::Note, "1 Echo Pending: taken over, pods and other children stay as they are"),
                (Weight::Note, "2 Echo Running: taken over, pods and other children stay as they are"),
                (Weight::Note, "1 Echo Suspended: stay suspended"),
                (Weight::Note, "1 Echo Completed: finished, left alone but for their clean-up"),
                (Weight::Note, "1 Echo managed by another, left alone"),
            ]
        );
        assert_eq!(findings(&[], &[]), [Finding::fine("there are none")]);
    }

    #[test]
    fn what_would_be_written_is_reported_but_not_without_end() {
        let writes = ["create pod/a-0", "create pod/a-1", "create pod/a-2", "create pod/a-3"];
        let many: Vec<_> = (0..12).map(|n| job(&n.to_string(), TakeOver::Changed, "Running", &writes)).collect();
        let found = findings(&many, &[]);
        assert_eq!(found.len(), 1 + NAMED + 1);
        let first = "at once, Echo ns/0: create pod/a-0, create pod/a-1, create pod/a-2 and 1 more";
        assert_eq!(found[1].what, first);
        assert_eq!(found[11].what, "and 2 more such jobs");
        assert!(found.iter().all(|finding| finding.weight == Weight::Note));
    }

    #[test]
    fn a_job_that_is_refused_is_in_the_way_while_its_pods_run() {
        let wrong = "spec.size: must be 1";
        let found = findings(&[job("a", TakeOver::Refused, "", &[wrong])], &[]);
        assert_eq!(weights_and_texts(&found)[1], (Weight::Note, "Echo ns/a: spec.size: must be 1"));
        let found = findings(&[job("a", TakeOver::RefusedRunning, "", &[wrong])], &[]);
        assert_eq!(weights_and_texts(&found)[1], (Weight::InTheWay, "Echo ns/a: spec.size: must be 1"));
    }

    #[test]
    fn jobs_that_were_not_listed_are_in_the_way() {
        let found = findings(&[], &["pods".into()]);
        assert_eq!(found[0].weight, Weight::InTheWay);
    }
}

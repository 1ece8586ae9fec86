//! The status of a job, and whether it is over: the order in which a Job's controller looks at its limits.

use crate::conditions::{Conditions, Reason};
use crate::tally::Tally;
use crate::valid::{Mode, Valid, validate};
use crate::{IndexedJob, rules, success};
use serde_json::{Map, Value, json};
use troupe_plugin::types::{Event, Observation, Outcome, Outlook, Refusal, Verdict};
use troupe_plugin::{ObservationExt, parse_rfc3339, rfc3339};

/// How a job is going to end.
enum End {
    Succeeds(Reason),
    Fails(Reason),
}

/// Returns the verdict.
///
/// # Errors
/// All errors of the job.
pub(crate) fn judge(job: &IndexedJob, seen: &Observation, outlook: &Outlook) -> Result<Verdict, Refusal> {
    let valid = validate(job)?;
    let previous: Value = seen.previous();
    let (tally, now) = (Tally::of(&valid, seen), rfc3339(seen.now));
    let mut conditions = Conditions::of(&previous);
    let mut events = vec![];
    let mut start = previous["startTime"].as_str().map(str::to_owned);
    if start.is_none() && !outlook.suspended {
        start = Some(now.clone());
    }
    let deadline = deadline(&valid, start.as_deref()).filter(|_| !outlook.suspended);
    let end = known_end(&conditions).or_else(|| end(&valid, job, &tally, deadline.is_some_and(|at| at <= seen.now)));
    let outcome = match &end {
        None => {
            suspension(&mut conditions, outlook.suspended, &mut start, &now, &mut events);
            Outcome::Open
        }
        Some(end) => finish(&mut conditions, end, tally.active + tally.terminating == 0, &now, &mut events),
    };
    let headline = match conditions.newest() {
        Some(kind) => kind.to_owned(),
        None => if tally.active > 0 { "Running" } else { "Pending" }.to_owned(),
    };
    let mut status = counts(&valid, &tally, &previous);
    if let Some(start) = start {
        status.insert("startTime".into(), start.into());
    }
    if outcome == Outcome::Succeeded {
        status.insert("completionTime".into(), now.into());
    }
    status.insert("conditions".into(), conditions.into_json());
    let wake_at = deadline.filter(|_| outcome == Outcome::Open);
    Ok(Verdict { wake_at, events, ..Verdict::new(Value::from(status).to_string(), headline, outcome) })
}

/// Returns when the job has been active for too long, in Unix milliseconds.
fn deadline(valid: &Valid<'_>, start: Option<&str>) -> Option<u64> {
    Some(parse_rfc3339(start?)? + u64::from(valid.deadline_seconds?) * 1000)
}

/// Returns the end that the status names already: it is not taken back.
fn known_end(conditions: &Conditions) -> Option<End> {
    let succeeds = conditions.is_true("SuccessCriteriaMet").map(End::Succeeds);
    succeeds.or_else(|| conditions.is_true("FailureTarget").map(End::Fails))
}

/// Returns the end that what is seen leads to: failures come before successes.
fn end(valid: &Valid<'_>, job: &IndexedJob, tally: &Tally<'_>, is_late: bool) -> Option<End> {
    if let Some(message) = rules::fail_job(valid, job.namespace(), &tally.pods) {
        return Some(End::Fails(Reason::new("PodFailurePolicy", message)));
    }
    let restarts = valid.restarts_in_place && tally.restarts > 0 && tally.restarts >= valid.backoff_limit;
    if tally.failed > valid.backoff_limit || restarts {
        return Some(End::Fails(Reason::new("BackoffLimitExceeded", "Job has reached the specified backoff limit")));
    }
    if is_late {
        return Some(End::Fails(Reason::new("DeadlineExceeded", "Job was active longer than specified deadline")));
    }
    let (succeeded, failed) = (tally.succeeded.count(), tally.failed_indexes.count());
    if valid.max_failed_indexes.is_some_and(|most| failed > most) {
        let message = "Job has exceeded the specified maximal number of failed indexes";
        return Some(End::Fails(Reason::new("MaxFailedIndexesExceeded", message)));
    }
    if failed > 0 && valid.backoff_limit_per_index.is_some() && failed + succeeded >= valid.replicas() {
        return Some(End::Fails(Reason::new("FailedIndexes", "Job has failed indexes")));
    }
    if let Some(rule) = success::met(valid, &tally.succeeded) {
        return Some(End::Succeeds(Reason::new("SuccessPolicy", format!("Matched rules at index {rule}"))));
    }
    let is_complete = match valid.mode {
        Mode::Indexed { completions } | Mode::Counted { completions } => succeeded >= completions,
        Mode::WorkQueue => succeeded > 0,
    };
    let reached = || Reason::new("CompletionsReached", "Reached expected number of succeeded pods");
    (is_complete && tally.active == 0).then(|| End::Succeeds(reached()))
}

/// Sets the condition Suspended. A job that is suspended has no start; one that is resumed starts anew.
fn suspension(
    conditions: &mut Conditions,
    suspended: bool,
    start: &mut Option<String>,
    now: &str,
    events: &mut Vec<Event>,
) {
    let (reason, message, event) = match suspended {
        true => ("JobSuspended", "Job suspended", "Suspended"),
        false => ("JobResumed", "Job resumed", "Resumed"),
    };
    if !conditions.set("Suspended", suspended, &Reason::new(reason, message), now) {
        return;
    }
    events.push(Event { warning: false, reason: event.into(), message: message.into() });
    *start = (!suspended).then(|| now.to_owned());
}

/// Sets the condition that says how the job is going to end, and the last one once no pod is left that has not ended.
fn finish(conditions: &mut Conditions, end: &End, is_over: bool, now: &str, events: &mut Vec<Event>) -> Outcome {
    let (interim, last, reason, outcomes) = match end {
        End::Succeeds(reason) => ("SuccessCriteriaMet", "Complete", reason, (Outcome::Succeeding, Outcome::Succeeded)),
        End::Fails(reason) => ("FailureTarget", "Failed", reason, (Outcome::Failing, Outcome::Failed)),
    };
    conditions.set(interim, true, reason, now);
    if !is_over {
        return outcomes.0;
    }
    conditions.set(last, true, reason, now);
    events.push(match end {
        End::Succeeds(_) => Event { warning: false, reason: "Completed".into(), message: "Job completed".into() },
        End::Fails(Reason { reason, message }) => {
            Event { warning: true, reason: reason.clone(), message: message.clone() }
        }
    });
    outcomes.1
}

/// Returns the counts as a status has them. What failed is never fewer than before.
fn counts(valid: &Valid<'_>, tally: &Tally<'_>, previous: &Value) -> Map<String, Value> {
    let mut status = Map::new();
    let before = previous["failed"].as_u64().and_then(|before| u32::try_from(before).ok());
    let failed = tally.failed.max(before.unwrap_or_default());
    for (field, count) in [("active", tally.active), ("succeeded", tally.succeeded.count()), ("failed", failed)] {
        if count > 0 {
            status.insert(field.into(), count.into());
        }
    }
    status.insert("ready".into(), tally.ready.into());
    status.insert("terminating".into(), tally.terminating.into());
    if let Mode::Indexed { .. } = valid.mode {
        if tally.succeeded.count() > 0 {
            status.insert("completedIndexes".into(), json!(tally.succeeded.to_string()));
        }
        if valid.backoff_limit_per_index.is_some() {
            status.insert("failedIndexes".into(), json!(tally.failed_indexes.to_string()));
        }
    }
    status
}

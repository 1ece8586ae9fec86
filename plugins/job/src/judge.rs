//! The status of a job, and whether it is over: the order in which a Job's controller looks at its limits.

use crate::conditions::{Conditions, Reason};
use crate::tally::Tally;
use crate::valid::{Mode, Valid, validate};
use crate::{IndexedJob, rules};
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
    let known = previous["startTime"].as_str().filter(|time| parse_rfc3339(time).is_some());
    let mut start = known.map(str::to_owned);
    if start.is_none() && !outlook.suspended {
        start = Some(now.clone());
    }
    let deadline = deadline(&valid, start.as_deref()).filter(|_| !outlook.suspended);
    let is_late = deadline.is_some_and(|at| at <= seen.now);
    let end = known_end(&conditions).or_else(|| end(&valid, job, &tally, (outlook.criteria_met, is_late)));
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
    status.extend(conditions.into_json().map(|all| ("conditions".into(), all)));
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
fn end(
    valid: &Valid<'_>,
    job: &IndexedJob,
    tally: &Tally<'_>,
    (criteria_met, is_late): (Option<u32>, bool),
) -> Option<End> {
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
    if let Some(rule) = criteria_met {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{indexed, job, running, seen, spec};
    use troupe_plugin::testkit::{PodFixture, calm};
    use troupe_plugin::types::{PodRow, Replacement};

    /// The verdict on these pods and so many counted failures after this status.
    fn judged(fields: &Value, pods: Vec<PodRow>, failures: u32, previous: &Value) -> (Value, Verdict) {
        let mut seen = seen(pods, failures);
        seen.previous_status = previous.to_string();
        let verdict = judge(&job(&indexed(3, fields)), &seen, &calm()).unwrap();
        (serde_json::from_str(&verdict.status).unwrap(), verdict)
    }

    fn counted(mut pod: PodRow) -> PodRow {
        pod.replacement = Replacement::Due;
        pod
    }

    fn told(status: &Value) -> Vec<String> {
        let word = |of: &Value| of.as_str().unwrap_or_default().to_owned();
        let listed = status["conditions"].as_array().unwrap().iter();
        listed.map(|of| format!("{}={} {}", word(&of["type"]), word(&of["status"]), word(&of["reason"]))).collect()
    }

    // J06
    #[test]
    fn what_is_zero_is_left_out_but_for_ready_and_terminating() {
        let pods = vec![running(0), running(1).succeeded(), running(2).going()];
        let (status, verdict) = judged(&json!({}), pods, 0, &json!({}));
        let expected = json!({
            "active": 1, "ready": 1, "terminating": 1, "succeeded": 1, "completedIndexes": "1",
            "startTime": "2026-01-01T00:00:00Z",
        });
        assert_eq!((status, verdict.headline.as_str(), verdict.outcome), (expected, "Running", Outcome::Open));
    }

    // J03, J05: the last condition waits until no pod is active or terminating
    #[test]
    fn a_job_has_failed_once_its_pods_have_ended() {
        let limit = json!({ "backoffLimit": 0 });
        let (status, verdict) = judged(&limit, vec![counted(running(0).failed(1)), running(1).going()], 1, &json!({}));
        assert_eq!(told(&status), ["FailureTarget=True BackoffLimitExceeded"]);
        assert_eq!(verdict.outcome, Outcome::Failing);
        let (status, verdict) = judged(&limit, vec![running(0).failed(1)], 1, &status);
        assert_eq!(told(&status), ["FailureTarget=True BackoffLimitExceeded", "Failed=True BackoffLimitExceeded"]);
        assert_eq!((verdict.outcome, verdict.events[0].reason.as_str()), (Outcome::Failed, "BackoffLimitExceeded"));
        assert!(status.get("completionTime").is_none());
    }

    // J03: what the status names is not taken back
    #[test]
    fn a_success_that_is_known_is_not_taken_back() {
        let known =
            json!({ "conditions": [{ "type": "SuccessCriteriaMet", "status": "True", "reason": "SuccessPolicy" }] });
        let (status, verdict) = judged(&json!({ "backoffLimit": 0 }), vec![running(1)], 7, &known);
        assert_eq!(verdict.outcome, Outcome::Succeeding);
        assert_eq!(told(&status), ["SuccessCriteriaMet=True SuccessPolicy"]);
        let (status, verdict) = judged(&json!({ "backoffLimit": 0 }), vec![], 7, &known);
        assert_eq!((verdict.outcome, told(&status).len()), (Outcome::Succeeded, 2));
        assert_eq!(status["completionTime"], "2026-01-01T00:00:00Z");
    }

    // J08: the pod that fails the job stays, and the host does not count it
    #[test]
    fn a_pod_that_fails_the_job_is_named() {
        let policy = json!({ "podFailurePolicy": { "rules": [
            { "action": "Count", "onExitCodes": { "operator": "In", "values": [1] } },
            { "action": "FailJob", "onExitCodes": { "operator": "NotIn", "values": [2] } },
        ] } });
        let (_, verdict) = judged(&policy, vec![counted(running(0).failed(1)), running(1)], 1, &json!({}));
        assert_eq!(verdict.outcome, Outcome::Open);
        let (status, _) = judged(&policy, vec![running(0), running(1).failed(9)], 1, &json!({}));
        assert_eq!(status["failed"], 2);
        let message = "Container main for pod ns/sums-1 failed with exit code 9 matching FailJob rule at index 1";
        assert_eq!(status["conditions"][0]["message"], message);
    }

    // J10
    #[test]
    fn restarts_in_place_count_from_the_limit_on() {
        let mut template = spec(&json!({ "backoffLimit": 2 }));
        template["template"]["spec"]["restartPolicy"] = json!("OnFailure");
        let outcome = |restarts: u32| {
            let mut pod = running(0);
            pod.containers[0].restarts = restarts;
            judge(&job(&template), &seen(vec![pod], 0), &calm()).unwrap().outcome
        };
        assert_eq!((outcome(1), outcome(2)), (Outcome::Open, Outcome::Failing));
        template["backoffLimit"] = json!(0);
        let none = judge(&job(&template), &seen(vec![running(0)], 0), &calm()).unwrap();
        assert_eq!(none.outcome, Outcome::Open);
    }

    // J13: it asks to be looked at when the deadline comes
    #[test]
    fn a_deadline_counts_from_the_start() {
        let fields = json!({ "activeDeadlineSeconds": 60 });
        let started = json!({ "startTime": "2025-12-31T23:59:30Z" });
        let (_, verdict) = judged(&fields, vec![running(0)], 0, &started);
        assert_eq!((verdict.outcome, verdict.wake_at), (Outcome::Open, Some(1_767_225_630_000)));
        let started = json!({ "startTime": "2025-12-31T23:59:00Z" });
        assert_eq!(judged(&fields, vec![running(0)], 0, &started).1.outcome, Outcome::Failing);
        // A time that is none, from a user's hand, is as good as no start.
        let (status, _) = judged(&fields, vec![running(0)], 0, &json!({ "startTime": "soon" }));
        assert_eq!(status["startTime"], "2026-01-01T00:00:00Z");
    }

    // J12
    #[test]
    fn a_suspended_job_has_no_start() {
        let suspended = Outlook { suspended: true, ..calm() };
        let job = job(&indexed(1, &json!({ "suspend": true })));
        let mut shown = seen(vec![], 0);
        let verdict = judge(&job, &shown, &suspended).unwrap();
        let status: Value = serde_json::from_str(&verdict.status).unwrap();
        assert_eq!((told(&status), &status["startTime"]), (vec!["Suspended=True JobSuspended".into()], &Value::Null));
        shown.previous_status = verdict.status;
        let resumed = judge(&job, &shown, &calm()).unwrap();
        let status: Value = serde_json::from_str(&resumed.status).unwrap();
        assert_eq!(told(&status), ["Suspended=False JobResumed"]);
        assert_eq!((&status["startTime"], resumed.events.len()), (&json!("2026-01-01T00:00:00Z"), 1));
    }
}

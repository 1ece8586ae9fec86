//! A job and its pods in a word and a sentence each: the same for the command line and for the page of the host.

use crate::{
    blocker,
    condition::Condition,
    own_conditions::{current_true, last_true_of_framework},
    snapshot::Pod,
    status::step,
    waiting::Waiting,
};
use serde_json::Value;

/// Returns the job's state as one word, from its status; `-` where the status says nothing yet.
#[must_use]
pub fn state(status: &Value) -> String {
    step(status).unwrap_or("-").to_owned()
}

/// Returns what is in the job's way, or what has failed, else what its user is warned of, as one sentence from its status.
#[must_use]
pub fn why(status: &Value) -> Option<String> {
    let own = |kind: Condition| current_true(status, kind)?["message"].as_str();
    let of_host = [Condition::Rejected, Condition::PluginFaulted, Condition::Contested].into_iter().find_map(own);
    let of_host = of_host.map(str::to_owned);
    of_host
        .or_else(|| own(Condition::Waiting).map(|message| format!("waits for {message}")))
        .or_else(|| failed(status))
        .or_else(|| own(Condition::Warned).map(|message| format!("warning: {message}")))
}

/// Returns how the job failed, in a sentence: what failed first, or the framework's words where no pod has failed, as at
/// a deadline.
fn failed(status: &Value) -> Option<String> {
    let is_failed = status.pointer("/troupe/finished/outcome").is_some_and(|outcome| outcome == "failed");
    let in_its_words = || {
        let message = last_true_of_framework(status)?["message"].as_str();
        message.filter(|message| !message.is_empty()).map(str::to_owned)
    };
    first_failure(status).or_else(|| is_failed.then(in_its_words).flatten())
}

fn first_failure(status: &Value) -> Option<String> {
    let first = status.pointer("/troupe/firstFailure")?;
    let text = |field: &str| first[field].as_str().filter(|text| !text.is_empty());
    let container = text("container").map(|it| format!("container {it} of ")).unwrap_or_default();
    let code = first["exitCode"].as_i64().map(|it| format!(" with exit code {it}")).unwrap_or_default();
    let said: Vec<_> = ["reason", "message"].into_iter().filter_map(text).map(str::trim).collect();
    let said = if said.is_empty() { String::new() } else { format!(": {}", said.join(": ")) };
    Some(format!("{container}pod/{} failed first{code}{said}", text("pod").unwrap_or_default()))
}

/// Returns the phase of a pod as one word; `Terminating` while it is being deleted.
#[must_use]
pub fn phase_of(pod: &Pod) -> String {
    if pod.terminating { "Terminating".to_owned() } else { format!("{:?}", pod.phase) }
}

/// Returns what keeps a pod from running, as one sentence.
#[must_use]
pub fn why_of(pod: &Pod) -> Option<String> {
    let by = blocker::of(pod)?;
    Some(format!("waits for {}", Waiting::Blocked { pod: pod.name.clone(), by, others: 0 }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_job_says_why_it_waits_is_refused_or_has_failed() {
        let condition = |kind: Condition, status: &str| json!({ "type": kind, "status": status, "message": "quota" });
        let of = |conditions: Value| why(&json!({ "troupe": { "conditions": conditions } }));
        assert_eq!(of(json!([condition(Condition::Waiting, "True")])).as_deref(), Some("waits for quota"));
        assert_eq!(of(json!([condition(Condition::Waiting, "False")])), None);
        assert_eq!(
            of(json!([condition(Condition::Waiting, "True"), condition(Condition::Rejected, "True")])).as_deref(),
            Some("quota")
        );
        assert_eq!(of(json!([condition(Condition::Warned, "True")])).as_deref(), Some("warning: quota"));
        let also = json!([condition(Condition::Warned, "True"), condition(Condition::Waiting, "True")]);
        assert_eq!(of(also).as_deref(), Some("waits for quota"));
        let first =
            json!({ "pod": "w-1", "container": "main", "exitCode": 3, "reason": "Error", "message": "no data\n" });
        assert_eq!(
            why(&json!({ "troupe": { "firstFailure": first } })).as_deref(),
            Some("container main of pod/w-1 failed first with exit code 3: Error: no data")
        );
        let evicted = json!({ "pod": "w-1", "reason": "Evicted" });
        let said = why(&json!({ "troupe": { "firstFailure": evicted } }));
        assert_eq!(said.as_deref(), Some("pod/w-1 failed first: Evicted"));
        let ended = |outcome: &str| {
            let conditions = [("Failed", "True"), ("Running", "False")]
                .map(|(kind, status)| json!({ "type": kind, "status": status, "message": format!("{kind} too long") }));
            why(&json!({ "conditions": conditions, "troupe": { "finished": { "outcome": outcome } } }))
        };
        assert_eq!((ended("failed").as_deref(), ended("succeeded")), (Some("Failed too long"), None));
    }
}

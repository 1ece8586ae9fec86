//! The validation of an IndexedJob: what the API server checks of a Job. It reports all errors at once, each with its field.

use crate::IndexedJob;
use crate::rules::Action;
use crate::spec::{ExitCodes, FailureRule, JobSpec, SuccessRule};
use serde::Deserialize;
use std::collections::BTreeSet;
use troupe_plugin::types::{FieldError, Refusal};
use troupe_plugin::{Indexes, MAX_REPLICAS};

/// The most rules of a policy, and the most conditions of a rule.
const MOST_RULES: usize = 20;

/// The most ranges of indexes in the criteria of a plan (V46 of the rules of plans).
const MOST_RANGES: usize = 10_000;

/// The most exit codes of a rule.
const MOST_CODES: usize = 255;

/// The most pods that may fail where no limit is given: 6, or as many as do where each index has a limit.
const BACKOFF_LIMIT: u32 = 6;

/// How many pods have to succeed, and whether they differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// One of each index.
    Indexed { completions: u32 },
    /// So many, whichever.
    Counted { completions: u32 },
    /// One, after which the others end by themselves.
    WorkQueue,
}

/// A valid job.
#[derive(Debug)]
pub(crate) struct Valid<'a> {
    spec: &'a JobSpec,
    pub(crate) mode: Mode,
    pub(crate) parallelism: u32,
    pub(crate) backoff_limit: u32,
    pub(crate) backoff_limit_per_index: Option<u32>,
    pub(crate) max_failed_indexes: Option<u32>,
    pub(crate) deadline_seconds: Option<u32>,
    pub(crate) ttl: Option<u32>,
    /// A pod is replaced only once it has failed.
    pub(crate) only_failed: bool,
    /// The kubelet starts failed containers again.
    pub(crate) restarts_in_place: bool,
}

impl Valid<'_> {
    /// Returns how many replicas there are: one for each pod that has to succeed.
    pub(crate) fn replicas(&self) -> u32 {
        match self.mode {
            Mode::Indexed { completions } | Mode::Counted { completions } => completions,
            Mode::WorkQueue => self.parallelism,
        }
    }

    /// Returns the rules of `podFailurePolicy` with their actions.
    pub(crate) fn failure_rules(&self) -> impl Iterator<Item = (&FailureRule, Action)> {
        let rules = self.spec.pod_failure_policy.iter().flat_map(|policy| &policy.rules);
        rules.filter_map(|rule| Some((rule, Action::read(&rule.action)?)))
    }

    /// Returns the rules of `successPolicy`.
    pub(crate) fn success_rules(&self) -> impl Iterator<Item = &SuccessRule> {
        self.spec.success_policy.iter().flat_map(|policy| &policy.rules)
    }
}

/// What is read of the template.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Template {
    spec: Option<PodSpec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodSpec {
    restart_policy: Option<String>,
    containers: Option<Vec<Container>>,
    init_containers: Option<Vec<Container>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Container {
    name: String,
}

/// Collects errors.
#[derive(Default)]
struct Errors(Vec<FieldError>);

impl Errors {
    fn add(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.0.push(FieldError { path: path.into(), message: message.into() });
    }

    /// Returns the number if it is one from 0 to `most`.
    fn count(&mut self, field: &str, value: Option<i64>, most: u32) -> Option<u32> {
        self.within(field, value, 0, most)
    }

    /// Returns the number if it is one from `least` to `most`.
    fn within(&mut self, field: &str, value: Option<i64>, least: u32, most: u32) -> Option<u32> {
        let count = u32::try_from(value?).ok().filter(|count| (least..=most).contains(count));
        if count.is_none() {
            self.add(format!("spec.{field}"), format!("must be a number from {least} to {most}"));
        }
        count
    }
}

/// Returns what was read of a valid job.
///
/// # Errors
/// All errors of the job.
pub(crate) fn validate(job: &IndexedJob) -> Result<Valid<'_>, Refusal> {
    const MOST: u32 = i32::MAX.unsigned_abs();
    let (spec, mut errors) = (&job.spec, Errors::default());
    let template = spec.template.as_ref().and_then(troupe_plugin::UserTemplate::read::<Template>);
    let pod = template.unwrap_or_default().spec.unwrap_or_default();
    let never = restart_policy(&mut errors, &pod);
    let parallelism = errors.count("parallelism", spec.parallelism, MAX_REPLICAS);
    let completions = errors.count("completions", spec.completions, MAX_REPLICAS);
    let mode = mode(&mut errors, spec, completions);
    let is_indexed = matches!(mode, Mode::Indexed { .. });
    let backoff_limit = errors.count("backoffLimit", spec.backoff_limit, MOST);
    let per_index = errors.count("backoffLimitPerIndex", spec.backoff_limit_per_index, MOST);
    let max_failed = errors.count("maxFailedIndexes", spec.max_failed_indexes, completions.unwrap_or(MAX_REPLICAS));
    // Better: a Job takes 0, with which it fails before it has a pod.
    let deadline_seconds = errors.within("activeDeadlineSeconds", spec.active_deadline_seconds, 1, MOST);
    let ttl = errors.count("ttlSecondsAfterFinished", spec.ttl_seconds_after_finished, MOST);
    if spec.backoff_limit_per_index.is_some() && !is_indexed {
        errors.add("spec.backoffLimitPerIndex", "needs completionMode Indexed");
    }
    if spec.max_failed_indexes.is_some() && spec.backoff_limit_per_index.is_none() {
        errors.add("spec.maxFailedIndexes", "needs backoffLimitPerIndex");
    }
    let only_failed = replacement(&mut errors, spec);
    failure_policy(&mut errors, spec, &pod, never);
    success_policy(&mut errors, spec, mode);
    if !errors.0.is_empty() {
        return Err(Refusal::Invalid(errors.0));
    }
    Ok(Valid {
        spec,
        mode,
        parallelism: parallelism.unwrap_or(1),
        backoff_limit: backoff_limit.unwrap_or(if per_index.is_some() { MOST } else { BACKOFF_LIMIT }),
        backoff_limit_per_index: per_index,
        max_failed_indexes: max_failed,
        deadline_seconds,
        ttl,
        only_failed,
        restarts_in_place: !never,
    })
}

/// Returns whether the policy is Never.
fn restart_policy(errors: &mut Errors, pod: &PodSpec) -> bool {
    let policy = pod.restart_policy.as_deref();
    if !matches!(policy, Some("Never" | "OnFailure")) {
        errors.add("spec.template.spec.restartPolicy", "must be OnFailure or Never");
    }
    policy == Some("Never")
}

fn mode(errors: &mut Errors, spec: &JobSpec, completions: Option<u32>) -> Mode {
    // As in a Job, without either number one pod runs.
    let completions = completions.or((spec.parallelism.is_none() && spec.completions.is_none()).then_some(1));
    match (spec.completion_mode.as_deref().unwrap_or("Indexed"), completions) {
        ("Indexed", Some(completions)) => Mode::Indexed { completions },
        ("Indexed", None) => {
            if spec.completions.is_none() {
                errors.add("spec.completions", "is required with completionMode Indexed");
            }
            Mode::Indexed { completions: 0 }
        }
        ("NonIndexed", Some(completions)) => Mode::Counted { completions },
        ("NonIndexed", None) => Mode::WorkQueue,
        _ => {
            errors.add("spec.completionMode", "must be Indexed or NonIndexed");
            Mode::WorkQueue
        }
    }
}

/// Returns whether pods are replaced only once they have failed.
fn replacement(errors: &mut Errors, spec: &JobSpec) -> bool {
    let has_policy = spec.pod_failure_policy.is_some();
    match spec.pod_replacement_policy.as_deref() {
        None => has_policy,
        Some("Failed") => true,
        Some("TerminatingOrFailed") if has_policy => {
            errors.add("spec.podReplacementPolicy", "must be Failed where there is a podFailurePolicy");
            true
        }
        Some("TerminatingOrFailed") => false,
        Some(_) => {
            errors.add("spec.podReplacementPolicy", "must be TerminatingOrFailed or Failed");
            false
        }
    }
}

fn failure_policy(errors: &mut Errors, spec: &JobSpec, pod: &PodSpec, never: bool) {
    let Some(policy) = &spec.pod_failure_policy else { return };
    const AT: &str = "spec.podFailurePolicy";
    if !never {
        errors.add(AT, "needs restartPolicy Never in the template");
    }
    if policy.rules.len() > MOST_RULES {
        errors.add(format!("{AT}.rules"), format!("must have at most {MOST_RULES} rules"));
    }
    for (index, rule) in policy.rules.iter().enumerate().take(MOST_RULES) {
        let at = format!("{AT}.rules[{index}]");
        match Action::read(&rule.action) {
            None => errors.add(format!("{at}.action"), "must be FailJob, FailIndex, Ignore or Count"),
            Some(Action::FailIndex) if spec.backoff_limit_per_index.is_none() => {
                errors.add(format!("{at}.action"), "FailIndex needs backoffLimitPerIndex");
            }
            Some(_) => {}
        }
        match (&rule.on_exit_codes, rule.on_pod_conditions.as_deref().filter(|all| !all.is_empty())) {
            (Some(_), Some(_)) | (None, None) => errors.add(at, "must have either onExitCodes or onPodConditions"),
            (Some(codes), None) => exit_codes(errors, &format!("{at}.onExitCodes"), codes, pod),
            (None, Some(conditions)) => {
                if conditions.len() > MOST_RULES {
                    errors.add(format!("{at}.onPodConditions"), format!("must have at most {MOST_RULES} conditions"));
                }
                for (place, condition) in conditions.iter().enumerate().take(MOST_RULES) {
                    let at = format!("{at}.onPodConditions[{place}]");
                    if !is_condition_type(&condition.kind) {
                        errors.add(format!("{at}.type"), "must be a type of condition, such as DisruptionTarget");
                    }
                    if !matches!(condition.status.as_deref().unwrap_or("True"), "True" | "False" | "Unknown") {
                        errors.add(format!("{at}.status"), "must be True, False or Unknown");
                    }
                }
            }
        }
    }
}

fn exit_codes(errors: &mut Errors, at: &str, codes: &ExitCodes, pod: &PodSpec) {
    let containers = pod.containers.iter().chain(&pod.init_containers).flatten();
    if let Some(name) = &codes.container_name
        && !containers.map(|container| &container.name).any(|known| known == name)
    {
        errors.add(format!("{at}.containerName"), "must be a container or an init container of the template");
    }
    if !matches!(codes.operator.as_str(), "In" | "NotIn") {
        errors.add(format!("{at}.operator"), "must be In or NotIn");
    }
    let values = format!("{at}.values");
    if codes.values.is_empty() || codes.values.len() > MOST_CODES {
        errors.add(&*values, format!("must have 1 to {MOST_CODES} codes"));
    } else if codes.values.windows(2).any(|pair| pair[0] >= pair[1]) {
        errors.add(&*values, "must be in ascending order, each once");
    } else if codes.operator == "In" && codes.values.contains(&0) {
        errors.add(&*values, "must not have 0: a container that succeeded fails no pod");
    }
}

/// Returns whether this is a qualified name: a word, after a domain and a slash or alone.
fn is_condition_type(text: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_name = |text: &str| {
        let bytes = text.as_bytes();
        is_end(bytes.first()) && is_end(bytes.last()) && bytes.iter().all(inner)
    };
    match text.split_once('/') {
        Some((domain, name)) => is_name(domain) && is_name(name),
        None => is_name(text),
    }
}

fn success_policy(errors: &mut Errors, spec: &JobSpec, mode: Mode) {
    let Some(policy) = &spec.success_policy else { return };
    const AT: &str = "spec.successPolicy";
    let Mode::Indexed { completions } = mode else {
        errors.add(AT, "needs completionMode Indexed");
        return;
    };
    if policy.rules.is_empty() || policy.rules.len() > MOST_RULES {
        errors.add(format!("{AT}.rules"), format!("must have 1 to {MOST_RULES} rules"));
    }
    let (mut known, mut ranges) = (BTreeSet::new(), 0);
    for (index, rule) in policy.rules.iter().enumerate().take(MOST_RULES) {
        let at = format!("{AT}.rules[{index}]");
        let mut most = completions;
        match rule.succeeded_indexes.as_deref().map(Indexes::parse) {
            Some(Ok(indexes)) => {
                most = indexes.count();
                if let Some(last) = indexes.last().filter(|last| *last >= completions) {
                    let message = format!("index {last} is not below spec.completions, {completions}");
                    errors.add(format!("{at}.succeededIndexes"), message);
                }
                ranges += indexes.into_ranges().len();
            }
            Some(Err(why)) => errors.add(format!("{at}.succeededIndexes"), why.to_string()),
            None if rule.succeeded_count.is_none() => {
                errors.add(&*at, "must have succeededIndexes, succeededCount or both");
            }
            None => {}
        }
        if let Some(count) = rule.succeeded_count
            && !(0..=i64::from(most)).contains(&count)
        {
            errors.add(format!("{at}.succeededCount"), format!("must be a number from 0 to {most}"));
        }
        if !known.insert((&rule.succeeded_indexes, rule.succeeded_count)) {
            errors.add(at, "must not be there twice");
        }
    }
    if ranges > MOST_RANGES {
        let message = format!("must have at most {MOST_RANGES} ranges of indexes in all, not {ranges}");
        errors.add(format!("{AT}.rules"), message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{indexed, job, spec};
    use serde_json::{Value, json};

    fn told(spec: &Value) -> Vec<String> {
        match validate(&job(spec)) {
            Err(Refusal::Invalid(errors)) => {
                errors.into_iter().map(|error| format!("{}: {}", error.path, error.message)).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    // J01
    #[test]
    fn without_numbers_one_pod_runs() {
        let job = job(&spec(&json!({})));
        let valid = validate(&job).unwrap();
        assert_eq!((valid.mode, valid.parallelism), (Mode::Indexed { completions: 1 }, 1));
        assert_eq!((valid.backoff_limit, valid.only_failed, valid.restarts_in_place), (6, false, false));
    }

    // J01: only completions that are not given make a work queue
    #[test]
    fn completions_say_what_the_numbers_mean() {
        let mode = |fields: Value| validate(&job(&spec(&fields))).unwrap().mode;
        assert_eq!(mode(json!({ "completionMode": "NonIndexed", "parallelism": 3 })), Mode::WorkQueue);
        let counted = json!({ "completionMode": "NonIndexed", "parallelism": 3, "completions": 2 });
        assert_eq!(mode(counted), Mode::Counted { completions: 2 });
        assert_eq!(mode(json!({ "completions": 2 })), Mode::Indexed { completions: 2 });
        assert_eq!(
            told(&spec(&json!({ "parallelism": 3 }))),
            ["spec.completions: is required with completionMode Indexed"]
        );
    }

    // J07, J09
    #[test]
    fn limits_and_policies_have_defaults_that_depend_on_each_other() {
        let job = job(&indexed(2, &json!({ "backoffLimitPerIndex": 1, "podFailurePolicy": { "rules": [] } })));
        let valid = validate(&job).unwrap();
        assert_eq!((valid.backoff_limit, valid.only_failed), (i32::MAX.unsigned_abs(), true));
    }

    #[test]
    fn all_errors_are_reported_at_once() {
        let rule = |action: &str| json!({ "action": action });
        let spec = json!({
            "parallelism": -1, "completions": 10_001, "completionMode": "Odd", "backoffLimit": -1, "maxFailedIndexes": 1,
            "podReplacementPolicy": "TerminatingOrFailed",
            "podFailurePolicy": { "rules": [
                rule("Retry"), rule("FailIndex"),
                { "action": "Count", "onExitCodes": { "containerName": "b", "operator": "Is", "values": [] } },
                { "action": "Count", "onExitCodes": { "operator": "In", "values": [0, 1] } },
                { "action": "Count", "onExitCodes": { "operator": "In", "values": [2, 2] } },
                { "action": "Count", "onPodConditions": [{ "status": "Maybe" }] },
            ] },
            "successPolicy": { "rules": [] },
            "template": { "spec": { "containers": [{ "name": "a" }] } },
        });
        assert_eq!(
            told(&spec),
            [
                "spec.template.spec.restartPolicy: must be OnFailure or Never",
                "spec.parallelism: must be a number from 0 to 10000",
                "spec.completions: must be a number from 0 to 10000",
                "spec.completionMode: must be Indexed or NonIndexed",
                "spec.backoffLimit: must be a number from 0 to 2147483647",
                "spec.maxFailedIndexes: needs backoffLimitPerIndex",
                "spec.podReplacementPolicy: must be Failed where there is a podFailurePolicy",
                "spec.podFailurePolicy: needs restartPolicy Never in the template",
                "spec.podFailurePolicy.rules[0].action: must be FailJob, FailIndex, Ignore or Count",
                "spec.podFailurePolicy.rules[0]: must have either onExitCodes or onPodConditions",
                "spec.podFailurePolicy.rules[1].action: FailIndex needs backoffLimitPerIndex",
                "spec.podFailurePolicy.rules[1]: must have either onExitCodes or onPodConditions",
                "spec.podFailurePolicy.rules[2].onExitCodes.containerName: must be a container or an init container of the template",
                "spec.podFailurePolicy.rules[2].onExitCodes.operator: must be In or NotIn",
                "spec.podFailurePolicy.rules[2].onExitCodes.values: must have 1 to 255 codes",
                "spec.podFailurePolicy.rules[3].onExitCodes.values: must not have 0: a container that succeeded fails no pod",
                "spec.podFailurePolicy.rules[4].onExitCodes.values: must be in ascending order, each once",
                "spec.podFailurePolicy.rules[5].onPodConditions[0].type: must be a type of condition, such as DisruptionTarget",
                "spec.podFailurePolicy.rules[5].onPodConditions[0].status: must be True, False or Unknown",
                "spec.successPolicy: needs completionMode Indexed",
            ]
        );
    }

    // J11
    #[test]
    fn a_success_rule_can_be_met() {
        let rules = json!({ "successPolicy": { "rules": [
            {}, { "succeededIndexes": "0-4" }, { "succeededIndexes": "0,2", "succeededCount": 3 },
            { "succeededCount": -1 }, { "succeededCount": 2 }, { "succeededCount": 2 },
        ] } });
        assert_eq!(
            told(&indexed(4, &rules)),
            [
                "spec.successPolicy.rules[0]: must have succeededIndexes, succeededCount or both",
                "spec.successPolicy.rules[1].succeededIndexes: index 4 is not below spec.completions, 4",
                "spec.successPolicy.rules[2].succeededCount: must be a number from 0 to 2",
                "spec.successPolicy.rules[3].succeededCount: must be a number from 0 to 4",
                "spec.successPolicy.rules[5]: must not be there twice",
            ]
        );
    }

    #[test]
    fn rules_have_no_more_ranges_than_a_plan_may_have() {
        let even = (0..5_000).map(|n| (2 * n).to_string()).collect::<Vec<_>>().join(",");
        let rules = [1, 2, 3].map(|count| json!({ "succeededIndexes": even, "succeededCount": count }));
        let spec = |rules: &[Value]| indexed(10_000, &json!({ "successPolicy": { "rules": rules } }));
        assert!(validate(&job(&spec(&rules[..2]))).is_ok());
        let message = "spec.successPolicy.rules: must have at most 10000 ranges of indexes in all, not 15000";
        assert_eq!(told(&spec(&rules)), [message]);
    }
}

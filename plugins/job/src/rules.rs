//! `podFailurePolicy` as the host's rules, and what a pod that fails the job says.

use crate::spec::{ExitCodes, FailureRule};
use crate::valid::Valid;
use troupe_plugin::types::{ContainerState, Failure, FailureRule as Rule, PodPhase, PodRow, Remedy};

/// What a rule makes of a failed pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    FailJob,
    FailIndex,
    Ignore,
    Count,
}

impl Action {
    /// Returns the action of this name.
    pub(crate) fn read(name: &str) -> Option<Self> {
        match name {
            "FailJob" => Some(Self::FailJob),
            "FailIndex" => Some(Self::FailIndex),
            "Ignore" => Some(Self::Ignore),
            "Count" => Some(Self::Count),
            _ => None,
        }
    }

    fn remedy(self) -> Remedy {
        match self {
            Self::FailJob => Remedy::Keep,
            Self::FailIndex => Remedy::GiveUp,
            Self::Ignore => Remedy::ReplaceUncounted,
            Self::Count => Remedy::Replace,
        }
    }
}

/// Returns the host's rules: the policy's, and that every other failed pod is counted and replaced.
pub(crate) fn failures(valid: &Valid<'_>) -> Vec<Rule> {
    let of_policy = valid
        .failure_rules()
        .flat_map(|(rule, action)| about(rule).into_iter().map(move |about| Rule { about, then: action.remedy() }));
    of_policy.chain([Rule { about: Failure::Any, then: Remedy::Replace }]).collect()
}

fn about(rule: &FailureRule) -> Vec<Failure> {
    if let Some(codes) = &rule.on_exit_codes {
        let container = codes.container_name.clone().unwrap_or_default();
        return vec![Failure::ExitCodes((container, ranges(codes)))];
    }
    let conditions = rule.on_pod_conditions.iter().flatten();
    conditions.map(|it| Failure::Condition((it.kind.clone(), status(it.status.as_deref()).to_owned()))).collect()
}

fn status(given: Option<&str>) -> &str {
    given.unwrap_or("True")
}

/// Returns the ranges of the exit codes. 0 is in none: a container that succeeded failed nothing.
fn ranges(codes: &ExitCodes) -> Vec<(i32, i32)> {
    let mut values: Vec<i32> = codes.values.iter().copied().filter(|code| *code != 0).collect();
    if codes.operator == "In" {
        return values.into_iter().map(|code| (code, code)).collect();
    }
    values.push(0);
    values.sort_unstable();
    let (mut between, mut next) = (vec![], Some(i32::MIN));
    for code in values {
        if let Some(first) = next.filter(|first| *first < code) {
            between.push((first, code - 1));
        }
        next = code.checked_add(1);
    }
    between.extend(next.map(|first| (first, i32::MAX)));
    between
}

/// Returns what the first pod says that fails the job by a rule; None if no pod does.
pub(crate) fn fail_job(valid: &Valid<'_>, namespace: &str, pods: &[&PodRow]) -> Option<String> {
    let failed = pods.iter().filter(|pod| pod.phase == PodPhase::Failed);
    failed
        .filter_map(|pod| {
            let mut rules = valid.failure_rules().enumerate();
            let (index, action, what) =
                rules.find_map(|(index, (rule, action))| Some((index, action, met(rule, pod)?)))?;
            let pod = format!("{namespace}/{}", pod.name);
            let what = match what {
                Met::Code { container, code } => {
                    format!("Container {container} for pod {pod} failed with exit code {code}")
                }
                Met::Condition(kind) => format!("Pod {pod} has condition {kind}"),
            };
            (action == Action::FailJob).then(|| format!("{what} matching FailJob rule at index {index}"))
        })
        .next()
}

/// What of a pod meets a rule.
enum Met<'a> {
    Code { container: &'a str, code: i32 },
    Condition(&'a str),
}

fn met<'a>(rule: &FailureRule, pod: &'a PodRow) -> Option<Met<'a>> {
    if let Some(codes) = &rule.on_exit_codes {
        let ranges = ranges(codes);
        // As in a Job, the init containers come last.
        let rows = [false, true].into_iter().flat_map(|init| pod.containers.iter().filter(move |row| row.init == init));
        return rows.filter(|row| codes.container_name.as_ref().is_none_or(|name| *name == row.name)).find_map(|row| {
            match &row.state {
                ContainerState::Terminated(ended) => {
                    let code = ended.exit_code;
                    let is_in = ranges.iter().any(|(first, last)| (*first..=*last).contains(&code));
                    is_in.then_some(Met::Code { container: &row.name, code })
                }
                ContainerState::Unknown | ContainerState::Waiting(_) | ContainerState::Running(_) => None,
            }
        });
    }
    let patterns = || rule.on_pod_conditions.iter().flatten();
    let is_met = |(kind, is): &&(String, String)| {
        patterns().any(|pattern| pattern.kind == *kind && status(pattern.status.as_deref()) == is)
    };
    pod.conditions.iter().find(is_met).map(|(kind, _)| Met::Condition(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    // J08: exit code 0 never matches
    #[test]
    fn the_codes_of_a_rule_are_ranges() {
        let codes = |operator: &str, values: &[i32]| {
            ranges(&ExitCodes { container_name: None, operator: operator.into(), values: values.into() })
        };
        assert_eq!(codes("In", &[3, 42]), [(3, 3), (42, 42)]);
        assert_eq!(codes("NotIn", &[1, 5]), [(i32::MIN, -1), (2, 4), (6, i32::MAX)]);
        assert_eq!(codes("NotIn", &[i32::MAX]), [(i32::MIN, -1), (1, i32::MAX - 1)]);
    }
}

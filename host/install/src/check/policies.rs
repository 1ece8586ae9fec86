//! Whether the API server applies the policies around the host: each is there, bound, denies, and covers every kind of job.

use super::Facts;
use crate::preflight::{Finding, Read, ReadError, Weight, look::get};
use decide::plan::JobKind;
use kube::Client;
use serde_json::Value;
use troupe::api::resource::Resource;

/// A policy of `deploy/`.
struct Policy {
    name: &'static str,
    file: &'static str,
    /// What may happen without it.
    without: &'static str,
    /// How it is made for the kinds of all plugins; `None` where it covers all kinds by its parameters.
    made_by: Option<&'static str>,
}

/// The policies that a host is installed with.
const POLICIES: [Policy; 3] = [
    Policy {
        name: "troupe-fence",
        file: "deploy/fence.yaml",
        without: "the host, if it is deceived, can create what no plugin is granted",
        made_by: None,
    },
    Policy {
        name: "troupe-authors",
        file: "deploy/authors.yaml",
        without: "whoever may create jobs has pods created, without the right to create pods",
        made_by: Some("troupe rbac --policy authors --cluster | kubectl apply -f -"),
    },
    Policy {
        name: "troupe-ledger",
        file: "deploy/ledger.yaml",
        without: "whoever may write a job's status can change what the host remembers of that job",
        made_by: Some("troupe rbac --policy ledger --cluster | kubectl apply -f -"),
    },
];

/// Returns the resource of policies and that of their bindings.
pub(super) fn resources() -> [Resource; 2] {
    let names = [
        ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
        ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    ];
    names.map(|(kind, plural)| Resource::new("admissionregistration.k8s.io/v1", kind, plural))
}

pub(super) fn findings(facts: &Facts) -> Vec<Finding> {
    let (policies, bindings) = match (&facts.policies, &facts.bindings) {
        (Ok(policies), Ok(bindings)) => (policies, bindings),
        (Err(why), _) => return vec![unread("validatingadmissionpolicies", why)],
        (_, Err(why)) => return vec![unread("validatingadmissionpolicybindings", why)],
    };
    let mut findings: Vec<_> =
        POLICIES.iter().map(|policy| of_policy(policy, policies, bindings, &facts.kinds)).collect();
    findings.extend(of_parameters(&facts.parameters, &facts.kinds));
    findings
}

fn unread(what: &str, why: &ReadError) -> Finding {
    let to_do = format!("run this as somebody who may list {what}.admissionregistration.k8s.io");
    Finding::in_the_way(format!("{what} cannot be read: {why}"), to_do)
}

fn of_policy(policy: &Policy, policies: &[Value], bindings: &[Value], kinds: &[JobKind]) -> Finding {
    let Policy { name, file, without, made_by } = policy;
    let apply = format!("kubectl apply -f {file}");
    let Some(there) = policies.iter().find(|it| it["metadata"]["name"] == *name) else {
        return Finding::in_the_way(format!("{name} is missing: {without}"), apply);
    };
    let denies = |binding: &&Value| {
        let actions = binding.pointer("/spec/validationActions").and_then(Value::as_array);
        binding["spec"]["policyName"] == *name && actions.is_some_and(|actions| actions.iter().any(|it| it == "Deny"))
    };
    if bindings.iter().find(denies).is_none() {
        return Finding::in_the_way(format!("{name} has no binding that denies: {without}"), apply);
    }
    let uncovered: Vec<_> = match made_by {
        Some(_) => kinds.iter().filter(|kind| !covers(there, kind)).map(JobKind::crd).collect(),
        None => vec![],
    };
    match made_by {
        Some(made_by) if !uncovered.is_empty() => {
            Finding::in_the_way(format!("{name} does not cover {}: {without}", uncovered.join(", ")), *made_by)
        }
        _ => Finding::fine(format!("{name} is there and bound")),
    }
}

/// Returns whether each of the policies is applied, has its parameters and covers these kinds: its name, and what is wrong
/// if it is not.
///
/// # Errors
/// The API server does not say.
pub async fn applied(client: &Client, kinds: &[JobKind]) -> Read<Vec<(&'static str, Option<Finding>)>> {
    let [policies, bindings] = resources();
    let mut all = vec![];
    for policy in &POLICIES {
        let there = get(client, &policies, None, policy.name).await?;
        let binding = get(client, &bindings, None, policy.name).await?;
        let finding = of_policy(policy, there.as_slice(), binding.as_slice(), kinds);
        let mut wrong = Some(finding).filter(|finding| finding.weight == Weight::InTheWay);
        if wrong.is_none() && lacks_parameters(client, binding.as_ref()).await? {
            wrong = Some(without_parameters());
        }
        all.push((policy.name, wrong));
    }
    Ok(all)
}

/// Returns whether the ConfigMap that the binding names for the policy's parameters is missing.
async fn lacks_parameters(client: &Client, binding: Option<&Value>) -> Read<bool> {
    let Some(reference) = binding.and_then(|binding| binding.pointer("/spec/paramRef")) else { return Ok(false) };
    // The fence's binding, the only one with parameters, names both.
    let (Some(namespace), Some(name)) = (reference["namespace"].as_str(), reference["name"].as_str()) else {
        return Ok(false);
    };
    let there = get(client, &Resource::new("v1", "ConfigMap", "configmaps"), Some(namespace), name).await?;
    Ok(there.is_none())
}

/// Returns whether a resource rule of the policy names this kind.
fn covers(policy: &Value, kind: &JobKind) -> bool {
    let rules = policy.pointer("/spec/matchConstraints/resourceRules").and_then(Value::as_array);
    let has =
        |list: &Value, word: &str| list.as_array().is_some_and(|all| all.iter().any(|it| it == word || it == "*"));
    rules
        .into_iter()
        .flatten()
        .any(|rule| has(&rule["apiGroups"], &kind.group) && has(&rule["resources"], &kind.plural))
}

/// Without its parameters the fence holds nobody: `parameterNotFoundAction` is Allow.
fn without_parameters() -> Finding {
    let what = "the ConfigMap troupe-fence is missing: without it the fence holds nobody";
    Finding::in_the_way(what, "kubectl apply -f deploy/rbac.yaml")
}

fn of_parameters(parameters: &Read<Option<Value>>, kinds: &[JobKind]) -> Option<Finding> {
    let there = match parameters {
        Ok(Some(there)) => there,
        Ok(None) => return Some(without_parameters()),
        Err(why) => {
            let to_do = "run this as somebody who may get that ConfigMap";
            return Some(Finding::in_the_way(format!("the ConfigMap troupe-fence cannot be read: {why}"), to_do));
        }
    };
    let known: Vec<_> = there["data"]["jobResources"].as_str().unwrap_or_default().lines().collect();
    let missing: Vec<_> = kinds.iter().map(JobKind::crd).filter(|kind| !known.contains(&kind.as_str())).collect();
    (!missing.is_empty()).then(|| {
        let what =
            format!("the ConfigMap troupe-fence lacks {}: the fence denies writes for such jobs", missing.join(", "));
        Finding::in_the_way(what, "troupe rbac --cluster | kubectl apply -f -")
    })
}

//! Whether the host has the rights that it needs.

use super::{Finding, Read, Weight};
use decide::workload::{CLASSES, Class, WORKLOADS};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The rights given to the host; a test limits them to those that it uses.
const ROLE: &str = include_str!("../../../../deploy/rbac.yaml");

/// The API group of CustomResourceDefinitions, which only `--install-crds` writes.
const DEFINITIONS: &str = "apiextensions.k8s.io";

/// The API group of Plugin resources, which are cluster-scoped as well.
const PLUGINS: &str = "troupe.dev";

/// The API group of the policies around the host, which it only reads.
const POLICIES: &str = "admissionregistration.k8s.io";

/// The API group of Leases, which only `--leader-elect` needs.
const LEASES: &str = "coordination.k8s.io";

/// How to grant the rights.
const GIVE: &str = "kubectl apply -f deploy/rbac.yaml, and run Troupe as the service account in it";

/// One verb on one kind of object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// API group; "" is the core group.
    pub group: String,
    /// Plural.
    pub resource: String,
    /// Subresource, or "".
    pub subresource: String,
    /// Verb.
    pub verb: String,
    /// The only namespace in which the right is needed; None for the namespaces of the jobs.
    pub namespace: Option<String>,
    /// Whether jobs are served without the right.
    pub optional: bool,
}

/// The answer to an access review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The right.
    pub right: Right,
    /// Whether the right is granted.
    pub given: Read<bool>,
}

impl Right {
    /// Whether the kind is cluster-scoped.
    #[must_use]
    pub fn is_of_cluster(&self) -> bool {
        let is_it = |class: &Class| class.group() == self.group && class.plural == self.resource;
        [DEFINITIONS, PLUGINS, POLICIES].contains(&self.group.as_str()) || CLASSES.iter().any(is_it)
    }

    /// The resource in the form `pods`, `deployments.apps` or `jobs.batch/status`.
    fn of(&self) -> String {
        let dot = if self.group.is_empty() { "" } else { "." };
        let slash = if self.subresource.is_empty() { "" } else { "/" };
        format!("{}{dot}{}{slash}{}", self.resource, self.group, self.subresource)
    }
}

/// Returns every right that the host uses. `optional` holds groups and plurals of kinds that jobs can do without.
pub(super) fn needed(optional: &BTreeSet<(String, String)>) -> Vec<Right> {
    let documents = serde_norway::Deserializer::from_str(ROLE).filter_map(|it| Value::deserialize(it).ok());
    let roles: Vec<_> = documents.filter(|it| it["kind"] == "ClusterRole" || it["kind"] == "Role").collect();
    let rules = roles.iter().flat_map(|role| {
        let namespace = role["metadata"]["namespace"].as_str();
        role["rules"].as_array().into_iter().flatten().map(move |rule| (namespace, rule))
    });
    let mut rights: Vec<Right> = Vec::new();
    for (namespace, rule) in rules {
        for (group, resource, verb) in combinations(rule) {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            let is_optional = namespace.is_some()
                || group == DEFINITIONS
                || group == POLICIES
                || is_of_queues(group, resource)
                || is_of_reports(group, resource, verb)
                || optional.contains(&(group.to_owned(), resource.to_owned()));
            let right = Right {
                group: group.into(),
                resource: resource.into(),
                subresource: subresource.into(),
                verb: verb.into(),
                namespace: namespace.map(ToOwned::to_owned),
                optional: is_optional,
            };
            // Several plugins may need the same right.
            if !rights.contains(&right) {
                rights.push(right);
            }
        }
    }
    rights
}

/// Returns whether only jobs in queues need the kind.
fn is_of_queues(group: &str, resource: &str) -> bool {
    let is_workload = WORKLOADS.plural == resource && WORKLOADS.api_version.starts_with(group);
    is_workload || CLASSES.iter().any(|class| class.group() == group && class.plural == resource)
}

/// Returns whether the right only shows what the scheduler of a gang says in events.
fn is_of_reports(group: &str, resource: &str, verb: &str) -> bool {
    (group, resource) == ("", "events") && ["list", "watch"].contains(&verb)
}

/// Returns every combination of group, resource and verb in a rule.
fn combinations(rule: &Value) -> Vec<(&str, &str, &str)> {
    let texts = |field: &str| rule[field].as_array().into_iter().flatten().filter_map(Value::as_str);
    let pairs = texts("apiGroups").flat_map(|group| texts("resources").map(move |resource| (group, resource)));
    pairs.flat_map(|(group, resource)| texts("verbs").map(move |verb| (group, resource, verb))).collect()
}

pub(crate) fn findings(who: &str, answered: &[Answered]) -> Vec<Finding> {
    let mut lacking: BTreeMap<String, Vec<&Right>> = BTreeMap::new();
    let mut findings = Vec::new();
    for Answered { right, given } in answered {
        match given {
            Ok(true) => {}
            Ok(false) => lacking.entry(right.of()).or_default().push(right),
            Err(why) if findings.is_empty() => {
                let to_do = "run this as somebody who may ask for access reviews";
                findings.push(Finding::in_the_way(format!("the rights of {who} are not known: {why}"), to_do));
            }
            Err(_) => {}
        }
    }
    findings.extend(lacking.into_iter().map(|(of, rights)| {
        let verbs: Vec<_> = rights.iter().map(|right| right.verb.as_str()).collect();
        let may_not = format!("{who} may not {} {of}", verbs.join(", "));
        match rights.iter().all(|right| right.optional) {
            true if rights.iter().all(|right| right.group == POLICIES) => {
                Finding::note(format!("{may_not}; without it the host cannot tell that it runs without its policies"))
            }
            true if rights.iter().all(|right| right.group == DEFINITIONS) => {
                Finding::note(format!("{may_not}; only --install-crds does"))
            }
            true if rights.iter().all(|right| right.namespace.is_some()) => {
                let is_lease = rights.iter().all(|right| right.group == LEASES);
                let who = if is_lease { "only --leader-elect does" } else { "only Plugin resources need it" };
                Finding::note(format!("{may_not}; {who}"))
            }
            true => Finding::note(format!("{may_not}; only jobs that use that kind need it")),
            false => Finding::in_the_way(may_not, GIVE),
        }
    }));
    findings.sort_by_key(|finding| finding.weight != Weight::InTheWay);
    if findings.is_empty() {
        findings.push(Finding::fine(format!("{who} may do all that Troupe does")));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preflight::ReadError;

    fn answered(resource: &str, verb: &str, optional: bool, given: Read<bool>) -> Answered {
        let right = Right {
            group: "echo.dev".into(),
            resource: resource.into(),
            subresource: String::new(),
            verb: verb.into(),
            namespace: None,
            optional,
        };
        Answered { right, given }
    }

    #[test]
    fn the_rights_are_those_of_the_role_in_deploy() {
        let optional = BTreeSet::from([("scheduling.volcano.sh".to_owned(), "podgroups".to_owned())]);
        let needed = needed(&optional);
        let of = |verb: &str, of: &str| needed.iter().find(|right| right.verb == verb && right.of() == of);
        assert!(!of("create", "pods").unwrap().optional);
        assert!(!of("patch", "jobs.batch/status").unwrap().optional);
        assert!(of("list", "podgroups.scheduling.volcano.sh").unwrap().optional);
        let definitions = of("patch", "customresourcedefinitions.apiextensions.k8s.io").unwrap();
        assert!(definitions.optional && definitions.is_of_cluster());
        let lease = of("update", "leases.coordination.k8s.io").unwrap();
        assert!(lease.optional && lease.namespace.as_deref() == Some("troupe-system"));
        assert!(of("list", "secrets").is_none());
        let plugins = of("list", "plugins.troupe.dev").unwrap();
        assert!(plugins.is_of_cluster() && !plugins.optional);
        assert!(of("patch", "workloads.kueue.x-k8s.io/status").unwrap().optional);
        let flavors = of("watch", "resourceflavors.kueue.x-k8s.io").unwrap();
        assert!(flavors.optional && flavors.is_of_cluster());
        assert_eq!(needed.iter().filter(|right| right.verb == "create" && right.of() == "pods").count(), 1);
    }

    #[test]
    fn missing_verbs_are_reported_by_kind_of_object_and_only_needed_ones_are_in_the_way() {
        let all = [
            answered("echoes", "list", false, Ok(true)),
            answered("echoes", "patch", false, Ok(false)),
            answered("echoes", "delete", false, Ok(false)),
            answered("groups", "list", true, Ok(false)),
        ];
        let found = findings("x", &all);
        let reported: Vec<_> = found.iter().map(|finding| (finding.weight, finding.what.as_str())).collect();
        assert_eq!(
            reported,
            [
                (Weight::InTheWay, "x may not patch, delete echoes.echo.dev"),
                (Weight::Note, "x may not list groups.echo.dev; only jobs that use that kind need it"),
            ]
        );
        assert_eq!(findings("x", &all[..1]), [Finding::fine("x may do all that Troupe does")]);
    }

    #[test]
    fn rights_that_are_not_known_are_reported_once() {
        let unknown = || answered("echoes", "list", false, Err(ReadError("Forbidden".into())));
        let found = findings("x", &[unknown(), unknown()]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].what, "the rights of x are not known: Forbidden");
    }
}

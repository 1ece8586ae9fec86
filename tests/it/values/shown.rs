//! Where users look for what is said of a job.

use super::{Case, outcome::Outcome};
use crate::{cluster::objects::Namespace, kubectl::Kubectl, operator::Operator};
use anyhow::Result;
use std::collections::BTreeMap;

/// Returns where the words of one job of each kind that is rejected, and of one that is warned of, are not shown: `kubectl get`,
/// `troupe job explain`, the page, and of one that is rejected `troupe job list`: of another it says what the job waits for. The
/// jobs' names begin with this.
pub(crate) async fn missing(
    namespace: &Namespace,
    user: &Kubectl,
    operator: &Operator,
    begin: &str,
    cases: &[Case],
    outcomes: &[Outcome],
) -> Result<Vec<String>> {
    let mut of_kinds = BTreeMap::new();
    for (number, (case, outcome)) in cases.iter().zip(outcomes).enumerate() {
        let is_rejected = matches!(outcome, Outcome::Rejected(_));
        if (is_rejected || matches!(outcome, Outcome::Warned(_))) && case.job["metadata"]["name"].is_null() {
            let (name, words) = (format!("{begin}{number}"), outcome.words());
            of_kinds.entry((&case.resource, is_rejected)).or_insert((name, words));
        }
    }
    assert!(of_kinds.keys().any(|(_, is_rejected)| *is_rejected), "no job is rejected");
    let mut missing = vec![];
    for ((resource, is_rejected), (name, words)) in of_kinds {
        let wide: &[&str] = if is_rejected { &[] } else { &["-o", "wide"] };
        let (_, page) = operator.admin(&format!("/page/jobs/{resource}/{}/{name}", namespace.name)).await?;
        let mut printed = vec![
            ("kubectl get", user.run(&[&["get", resource, &name], wide].concat())?),
            ("troupe job explain", user.troupe(&["explain", &format!("{resource}/{name}")])?),
            ("the page", page),
        ];
        if is_rejected {
            printed.push(("troupe job list", user.troupe(&["list"])?));
        }
        let without = printed.iter().filter(|(_, text)| !text.replace("\\\"", "\"").contains(words));
        missing.extend(without.map(|(place, text)| format!("{place} of {resource}/{name}: {words}\n{text}")));
    }
    Ok(missing)
}

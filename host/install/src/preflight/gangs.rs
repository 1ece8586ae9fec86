//! Objects of Kubernetes 1.36's gangs that an upgrade to 1.37 leaves unreadable.
//!
//! Source: the changes of Kubernetes 1.37, "Remove all `v1alpha2` objects from the `kube-apiserver` before upgrading".

use super::{Finding, Read};

/// The API version that Kubernetes 1.36 alone has.
pub(super) const API_VERSION: &str = "scheduling.k8s.io/v1alpha2";

/// Its kinds, and their plurals.
pub(super) const KINDS: [(&str, &str); 2] = [("PodGroup", "podgroups"), ("Workload", "workloads")];

/// Maximum number of objects that are named.
const NAMED: usize = 5;

/// The objects of the API version, each as `podgroup/NAMESPACE/NAME`; `None` if the API server does not have it.
pub type Gangs = Read<Option<Vec<String>>>;

pub(super) fn findings(gangs: &Gangs) -> Vec<Finding> {
    let objects = match gangs {
        Ok(None) => return vec![Finding::fine(format!("the API server does not serve {API_VERSION}"))],
        Ok(Some(objects)) => objects,
        Err(why) => return vec![Finding::note(format!("objects of {API_VERSION} cannot be listed: {why}"))],
    };
    if objects.is_empty() {
        return vec![Finding::fine(format!("there are no objects of {API_VERSION}"))];
    }
    let (count, more) = (objects.len(), objects.len().saturating_sub(NAMED));
    let mut named = objects[..count - more].join(", ");
    if more > 0 {
        named.push_str(&format!(" and {more} more"));
    }
    let there_are = if count == 1 { "there is 1 object".to_owned() } else { format!("there are {count} objects") };
    let what = format!("{there_are} of {API_VERSION}, which Kubernetes 1.37 does not serve: {named}");
    let to_do = "before an upgrade to 1.37 suspend the jobs with these gangs, which removes their PodGroups; delete what is \
                 left; resume the jobs after the upgrade";
    vec![Finding::note(what).but(to_do)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preflight::{ReadError, Weight};

    fn found(gangs: &Gangs) -> (Weight, String) {
        let mut findings = findings(gangs);
        let Finding { weight, what, to_do } = findings.remove(0);
        assert_eq!(to_do.is_some(), what.contains("1.37 does not serve"));
        (weight, what)
    }

    #[test]
    fn objects_that_an_upgrade_leaves_unreadable_are_named() {
        let (weight, what) = found(&Ok(Some((0..7).map(|i| format!("podgroup/ns/g{i}")).collect())));
        assert_eq!(weight, Weight::Note);
        let expected = "there are 7 objects of scheduling.k8s.io/v1alpha2, which Kubernetes 1.37 does not serve: podgroup/ns/g0, \
                        podgroup/ns/g1, podgroup/ns/g2, podgroup/ns/g3, podgroup/ns/g4 and 2 more";
        assert_eq!(what, expected);
    }

    #[test]
    fn nothing_is_asked_where_there_is_nothing_to_lose() {
        assert_eq!(found(&Ok(None)).0, Weight::Fine);
        assert_eq!(found(&Ok(Some(vec![]))).0, Weight::Fine);
        let refused = ReadError::new(&std::io::Error::other("403"));
        assert_eq!(found(&Err(refused)), (Weight::Note, format!("objects of {API_VERSION} cannot be listed: 403")));
    }
}

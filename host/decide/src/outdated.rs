//! Pods that were created from an older template: an edit of a job does not change its live pods, and its user is to know.
//!
//! The ledger names the template of each role that the job began with, and pods of it carry nothing. A pod that is created
//! from another template names it by an annotation. So a job that nobody edits costs its pods nothing.

use crate::{
    ledger::Ledger,
    plan::{Plan, Role},
    snapshot::{Pod, Snapshot},
    standing::Standing,
    waiting::object,
};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The annotation of a pod that names the template it was created from, if that is not the job's first.
pub const TEMPLATE_HASH_ANNOTATION: &str = "troupe.dev/template-hash";

/// Returns the hash of a template, in 8 hexadecimal digits. Where the user writes the template it is the user's, without the
/// plugin's edits: these change when a job is scaled, which is no reason to replace its pods.
#[must_use]
pub fn template_hash(template: &Value) -> String {
    // The text of its `Display`, in half the time.
    let text = serde_json::to_vec(template).expect("its keys are text");
    let [a, b, c, d, ..] = <[u8; 32]>::from(Sha256::digest(text));
    format!("{:08x}", u32::from_be_bytes([a, b, c, d]))
}

/// Returns the value of the annotation of a new pod of the role, if it needs one.
pub(crate) fn annotation<'a>(snapshot: &Snapshot, role: &'a Role) -> Option<&'a str> {
    let first = snapshot.ledger.templates.get(&role.name);
    // The ledger that the first pass writes names the template.
    let is_first = first.map_or(snapshot.ledger.headline.is_empty(), |first| *first == role.template_hash);
    (!is_first && !role.template_hash.is_empty()).then_some(&role.template_hash)
}

/// Records the templates that the job begins with. A job of an earlier host has none, and nothing is written for it.
pub(crate) fn record(snapshot: &Snapshot, plan: &Plan, ledger: &mut Ledger) {
    if snapshot.ledger.headline.is_empty() && ledger.templates.is_empty() {
        let known = plan.roles.iter().filter(|role| !role.template_hash.is_empty());
        ledger.templates = known.map(|role| (role.name.clone(), role.template_hash.clone())).collect();
    }
}

/// Returns how many pods that have not ended were created from an older template, in words, those of Jobs among them.
pub(crate) fn message(standing: &Standing<'_>) -> Option<String> {
    let Standing { snapshot, plan, .. } = standing;
    let of_replicas = standing.replicas.iter().filter_map(|replica| Some((replica.place, &**replica.pod?)));
    let behind = |place: usize| snapshot.job_behind(&plan.roles[place]);
    let of_jobs = (0..plan.roles.len()).filter_map(|place| Some((place, behind(place)?))).flat_map(|(place, job)| {
        let pods = snapshot.pods.iter().filter(|pod| pod.owner_uid == job.uid);
        pods.map(move |pod| (place, &**pod))
    });
    // By place of the role: pods that have not ended, and the outdated ones of them.
    let mut counts: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for (place, pod) in of_replicas.chain(of_jobs).filter(|(_, pod)| !pod.terminating && !pod.phase.is_terminal()) {
        let (live, old) = counts.entry(place).or_default();
        *live += 1;
        *old += usize::from(is_outdated(snapshot, &plan.roles[place], pod));
    }
    counts.retain(|_, (_, old)| *old > 0);
    let jobs: Vec<_> = counts.keys().filter_map(|place| Some(object("Job", &behind(*place)?.name))).collect();
    let parts: Vec<_> = counts
        .iter()
        .map(|(place, (live, old))| format!("{old} of {live} pods of role {}", plan.roles[*place].name))
        .collect();
    (!parts.is_empty()).then(|| {
        let then = match jobs.as_slice() {
            [] => "a pod that is deleted is created from the new one".to_owned(),
            jobs => format!("{} creates pods from the old one until it is deleted", jobs.join(", ")),
        };
        format!("created from an older template: {}; {then}", parts.join(", "))
    })
}

fn is_outdated(snapshot: &Snapshot, role: &Role, pod: &Pod) -> bool {
    let made = pod.template_hash.as_ref().or_else(|| snapshot.ledger.templates.get(&role.name));
    made.is_some_and(|made| *made != role.template_hash) && !role.template_hash.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        decision::Part,
        plan::Answer,
        snapshot::PodPhase,
        testkit::{self, text},
    };
    use serde_json::json;
    use std::sync::Arc;

    fn role(image: &str) -> Role {
        let template = json!({ "spec": { "containers": [{ "name": "c", "image": image }] } });
        let mut role = testkit::role("worker", 2, text(&["JOB", "-worker-", "INDEX"]), template);
        role.template_hash = template_hash(&role.template);
        role
    }

    /// A job that began with the image `one` and has both pods.
    fn running() -> Snapshot {
        let mut snapshot = testkit::snapshot(testkit::job("j", "u"));
        let mut ledger = snapshot.ledger.clone();
        record(&snapshot, &testkit::plan(vec![role("one")]), &mut ledger);
        snapshot.ledger = ledger;
        snapshot.ledger.headline = "Running".into();
        let pods = ["j-worker-0", "j-worker-1"].map(|name| testkit::pod(name, "u", PodPhase::Running));
        snapshot.pods = pods.into_iter().map(Arc::new).collect();
        snapshot
    }

    fn said(snapshot: &Snapshot, image: &str) -> Option<String> {
        message(&Standing::of(snapshot, &Arc::new(testkit::plan(vec![role(image)]))))
    }

    fn created(snapshot: &Snapshot, image: &str) -> Value {
        let plan = Arc::new(testkit::plan(vec![role(image)]));
        let answer = Answer::Judged {
            plan,
            bindings: crate::plan::Bindings::default(),
            verdict: crate::plan::Verdict::new(json!({}), "", crate::plan::Outcome::Open),
        };
        crate::build::body(snapshot, &answer, Part::Pod { role: 0, index: 1 }).unwrap()
    }

    // Annotations of pods and ledgers of jobs have these hashes.
    #[test]
    fn the_hash_of_a_template_is_eight_digits_for_ever() {
        let hash = |json: &str| template_hash(&serde_json::from_str(json).unwrap());
        assert_eq!((&*hash("{}"), &*hash(r#"{"a":1}"#)), ("44136fa3", "015abd7f"));
    }

    #[test]
    fn an_edit_leaves_live_pods_outdated_until_they_are_created_again() {
        let mut snapshot = running();
        assert_eq!(said(&snapshot, "one"), None);
        let words = "created from an older template: 2 of 2 pods of role worker; a pod that is deleted is created from \
                     the new one";
        assert_eq!(said(&snapshot, "two").unwrap(), words);
        let hash = created(&snapshot, "two")["metadata"]["annotations"][TEMPLATE_HASH_ANNOTATION].clone();
        Arc::make_mut(&mut snapshot.pods[1]).template_hash = Some(hash.as_str().unwrap().to_owned());
        assert!(said(&snapshot, "two").unwrap().contains(": 1 of 2 pods"));
        // The edit is taken back: now the new pod is the odd one.
        assert!(said(&snapshot, "one").unwrap().contains(": 1 of 2 pods"));
        Arc::make_mut(&mut snapshot.pods[1]).phase = PodPhase::Succeeded;
        assert_eq!(said(&snapshot, "one"), None);
    }

    #[test]
    fn pods_of_a_job_that_nobody_edited_carry_nothing() {
        assert_eq!(created(&running(), "one")["metadata"]["annotations"][TEMPLATE_HASH_ANNOTATION], Value::Null);
        let fresh = testkit::snapshot(testkit::job("j", "u"));
        assert!(annotation(&fresh, &role("one")).is_none());
    }

    #[test]
    fn nothing_is_said_of_pods_that_an_earlier_host_created() {
        let mut snapshot = running();
        snapshot.ledger.templates.clear();
        assert_eq!(said(&snapshot, "two"), None);
        let mut ledger = snapshot.ledger.clone();
        record(&snapshot, &testkit::plan(vec![role("two")]), &mut ledger);
        assert_eq!(ledger, snapshot.ledger, "no status is written for it alone");
        assert_eq!(annotation(&snapshot, &role("two")), Some(&*role("two").template_hash));
    }
}

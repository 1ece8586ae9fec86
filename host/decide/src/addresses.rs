//! Pods that hold addresses of other pods, and are replaced once one of these was made again at another address.
//!
//! A pod names by a hash what it was created with. Of one that names nothing it is not known, and it stays.

use crate::{
    Snapshot,
    decision::Action,
    plan::{OnNewAddress, Piece, Plan, Role},
    standing::{Standing, address},
};
use sha2::{Digest, Sha256};

/// The annotation of a pod that names the addresses it was created with.
pub const ADDRESSES_ANNOTATION: &str = "troupe.dev/addresses";

/// Returns the hash, in 8 hexadecimal digits, of the addresses that a new pod of the role gets; `None` where that is of no
/// use, or while a pod that it names has no address.
pub(crate) fn hash(snapshot: &Snapshot, plan: &Plan, role: &Role) -> Option<String> {
    if role.on_new_address == OnNewAddress::Keep {
        return None;
    }
    let texts = role.env.iter().map(|entry| &entry.value);
    let texts = texts.chain(role.labels.iter().chain(&role.fill).map(|(_, text)| text));
    let mut peers = texts.flat_map(|text| &text.0).filter_map(|piece| match piece {
        Piece::PeerIp(role, index) | Piece::PeerHost(role, index) => Some((role.as_str(), *index)),
        Piece::Fixed(_) | Piece::Index(_) | Piece::Attempt | Piece::JobName | Piece::PodName => None,
    });
    let mut hashed = None;
    peers.try_for_each(|(role, index)| {
        let hash = hashed.get_or_insert_with(Sha256::new);
        hash.update(address(snapshot, plan, role, index)?);
        hash.update("\n");
        Some(())
    })?;
    Some(format!("{:x}", hashed?.finalize())[..8].to_owned())
}

/// Returns the deletions of the pods that hold an address which is another by now.
pub(crate) fn removals(standing: &Standing<'_>) -> Vec<Action> {
    let Standing { snapshot, plan, .. } = standing;
    let current: Vec<Option<String>> = plan.roles.iter().map(|role| hash(snapshot, plan, role)).collect();
    let stale = standing.replicas.iter().filter_map(|replica| {
        let pod = replica.pod.filter(|pod| !pod.terminating && !pod.phase.is_terminal())?;
        let (made, now) = (pod.addresses.as_ref()?, current[replica.place].as_ref()?);
        (made != now).then(|| Action::delete_pod(pod))
    });
    stale.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        decision::Part,
        plan::{Answer, Bindings, EnvEntry, Gate, Outcome, Reached, Text, Verdict},
        snapshot::PodPhase,
        testkit::{self, job, pod, snapshot, text},
    };
    use serde_json::json;
    use std::sync::Arc;

    /// A launcher, and a worker that holds its address.
    fn plan(on_new_address: OnNewAddress) -> Arc<Plan> {
        let template = json!({ "spec": { "containers": [{ "name": "c", "image": "i" }] } });
        let named = |name: &str| text(&["JOB", name]);
        let launcher = testkit::role("launcher", 1, named("-launcher"), template.clone());
        let value = Text(vec![Piece::PeerIp("launcher".into(), 0)]);
        let worker = Role {
            env: vec![EnvEntry { container: String::new(), name: "LAUNCHER".into(), value }],
            on_new_address,
            after: vec![Gate::Pods { role: "launcher".into(), reached: Reached::Ip }],
            ..testkit::role("worker", 1, named("-worker"), template)
        };
        Arc::new(testkit::plan(vec![launcher, worker]))
    }

    /// The launcher's pod with this address, and the worker's that was created with these.
    fn seen(ip: Option<&str>, addresses: Option<String>) -> Snapshot {
        let mut snapshot = snapshot(job("j", "u"));
        let mut launcher = pod("j-launcher", "u", PodPhase::Running);
        launcher.ips = ip.into_iter().map(str::to_owned).collect();
        let worker = crate::snapshot::Pod { addresses, ..pod("j-worker", "u", PodPhase::Running) };
        snapshot.pods = vec![Arc::new(launcher), Arc::new(worker)];
        snapshot
    }

    fn deleted(snapshot: &Snapshot, on_new_address: OnNewAddress) -> Vec<String> {
        let plan = plan(on_new_address);
        let verdict = Verdict::new(json!({}), "Running", Outcome::Open);
        let answer = Answer::Judged { plan, bindings: Bindings::default(), verdict };
        let decision = crate::decide(snapshot, &answer);
        assert!(decision.actions.iter().all(|action| !action.creates()), "it has both pods");
        decision.actions.into_iter().map(|action| action.name).collect()
    }

    /// What a worker names that is created while the launcher has this address.
    fn made(ip: &str) -> Option<String> {
        let snapshot = seen(Some(ip), None);
        let verdict = Verdict::new(json!({}), "", Outcome::Open);
        let answer = Answer::Judged { plan: plan(OnNewAddress::Replace), bindings: Bindings::default(), verdict };
        let pod = crate::build::body(&snapshot, &answer, Part::Pod { role: 1, index: 0 }).unwrap();
        pod["metadata"]["annotations"][ADDRESSES_ANNOTATION].as_str().map(str::to_owned)
    }

    #[test]
    fn a_pod_that_holds_an_old_address_is_replaced_once_the_new_one_is_known() {
        let old = made("10.0.0.1");
        assert!(old.is_some());
        let replaced = |ip| deleted(&seen(ip, old.clone()), OnNewAddress::Replace);
        assert_eq!(replaced(Some("10.0.0.2")), ["j-worker"]);
        assert!(replaced(Some("10.0.0.1")).is_empty());
        assert!(replaced(None).is_empty(), "no address is not another address");
    }

    #[test]
    fn a_pod_stays_that_names_no_address_or_whose_role_keeps_its_pods() {
        assert!(deleted(&seen(Some("10.0.0.2"), None), OnNewAddress::Replace).is_empty());
        assert!(deleted(&seen(Some("10.0.0.2"), made("10.0.0.1")), OnNewAddress::Keep).is_empty());
    }
}

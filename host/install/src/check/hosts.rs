//! Whether hosts run, are ready, and take turns; and whether the namespace is there in which they keep plugins.

use super::{Facts, Place};
use crate::preflight::{Finding, Read, ReadError};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// The duration of a Lease that sets none.
const USUAL_SECONDS: i64 = 15;

pub(super) fn findings(facts: &Facts) -> Vec<Finding> {
    let Place { namespace, .. } = &facts.place;
    match &facts.namespace {
        Ok(Some(there)) if there["status"]["phase"] != "Terminating" => {}
        Ok(Some(_)) => {
            let what = format!("namespace {namespace} is being deleted: the host keeps the bytes of plugins there");
            return vec![Finding::in_the_way(what, "install Troupe again once it is gone")];
        }
        Ok(None) => {
            let what = format!("namespace {namespace} is missing: the host keeps the bytes of plugins there");
            return vec![Finding::in_the_way(
                what,
                "kubectl apply -f deploy/rbac.yaml, or name the host's --namespace",
            )];
        }
        Err(why) => return vec![unread(&format!("namespace {namespace}"), why)],
    }
    let hosts = match &facts.hosts {
        Ok(hosts) => hosts,
        Err(why) => return vec![unread("pods", why)],
    };
    let live: Vec<_> = hosts.iter().filter(|pod| is_live(pod)).collect();
    let mut findings = of_pods(&facts.place, &live);
    findings.push(of_lease(facts.now, &facts.place, &facts.lease, &live));
    findings
}

fn unread(what: &str, why: &ReadError) -> Finding {
    Finding::in_the_way(format!("{what} cannot be read: {why}"), "run this as somebody who may read it")
}

fn is_live(pod: &Value) -> bool {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    pod["metadata"]["deletionTimestamp"].is_null() && !["Succeeded", "Failed"].contains(&phase)
}

fn name(pod: &Value) -> &str {
    pod["metadata"]["name"].as_str().unwrap_or_default()
}

fn of_pods(place: &Place, live: &[&Value]) -> Vec<Finding> {
    let Place { namespace, service_account } = place;
    if live.is_empty() {
        let what = format!("no pod of service account {namespace}/{service_account} runs");
        let to_do = "start a host; if one runs outside the cluster, look at its own log and /readyz";
        return vec![Finding::in_the_way(what, to_do)];
    }
    let findings = live.iter().map(|pod| match is_ready(pod) {
        true => Finding::fine(format!("host {namespace}/{} is ready", name(pod))),
        false => Finding::in_the_way(
            format!("host {namespace}/{} is not ready", name(pod)),
            format!("kubectl --namespace {namespace} logs {}; it names what it waits for", name(pod)),
        ),
    });
    let mut findings: Vec<_> = findings.collect();
    let alone: Vec<_> = live.iter().filter(|pod| !elects(pod)).map(|pod| name(pod)).collect();
    if live.len() > 1 && !alone.is_empty() {
        let what = format!(
            "{} hosts run, and {} without --leader-elect: they undo each other's work",
            live.len(),
            alone.join(", ")
        );
        findings.push(Finding::in_the_way(what, "run one host, or add --leader-elect to the arguments of all"));
    }
    findings
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|it| it["type"] == "Ready" && it["status"] == "True")
}

/// Returns whether the pod's host takes part in an election.
fn elects(pod: &Value) -> bool {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let words = containers.flat_map(|container| [&container["command"], &container["args"]]);
    words.filter_map(Value::as_array).flatten().any(|word| word == "--leader-elect")
}

fn of_lease(now: Timestamp, place: &Place, lease: &Read<Option<Value>>, live: &[&Value]) -> Finding {
    let what = format!("lease {}/troupe", place.namespace);
    let lease = match lease {
        Ok(Some(lease)) => lease,
        Ok(None) if live.iter().any(|pod| elects(pod)) => {
            let to_do = "look at the log of a host: it says why it cannot write the lease";
            return Finding::in_the_way(format!("{what} is missing, though hosts elect a leader"), to_do);
        }
        Ok(None) => return Finding::note(format!("{what} is missing: hosts run without --leader-elect")),
        Err(why) => return unread(&what, why),
    };
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
    if holder.is_empty() {
        return Finding::in_the_way(format!("{what} is held by nobody: no job is served"), "start a host");
    }
    let seconds = lease["spec"]["leaseDurationSeconds"].as_i64().unwrap_or(USUAL_SECONDS);
    let renewed = lease["spec"]["renewTime"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
    // Twice the duration, since the holder's clock and this one may differ.
    let is_old = renewed.is_none_or(|renewed| now.duration_since(renewed) > SignedDuration::from_secs(2 * seconds));
    if is_old {
        let what =
            format!("{what} is held by {holder}, which has not renewed it for {} s: no job is served", 2 * seconds);
        return Finding::in_the_way(what, "start a host, or look at the log of one that waits for the lease");
    }
    Finding::fine(format!("{what} is held by {holder}"))
}

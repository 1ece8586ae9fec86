//! What is there before the first host starts, and must hurt nobody: jobs whose ledgers claim all ports of the nodes for a
//! digest that no host has accepted, or name bytes that a source will have and no host accepts, as whoever may write their
//! statuses can; jobs with a name in spec and status that serde_json reserves; and a Plugin that cannot be read.

use super::{
    deeds::address,
    deliveries::{self, Deliveries},
    draw::Draw,
    jobs,
    neighbours::ODD,
    tally::Tally,
};
use serde_json::{Value, json};
use sim::Sim;

/// Makes those of a seed. Only hosts that plugins are delivered to look at Plugins.
pub(super) fn settle(sim: &Sim, seed: u64, deliveries: Option<&Deliveries>, tally: &Tally) {
    if Draw::new(seed, "a claim").one_in(10) {
        let ports = json!({ "first": 1, "count": 65_534 });
        claim(sim, "claims-all", "Host", json!({ "digest": "f".repeat(64), "hostPorts": ports }));
        tally.count("a ledger claims all ports");
    }
    if Draw::new(seed, "an odd name").one_in(10) {
        let odd = json!({ "$serde_json::private::RawValue": 7 });
        let mut job = jobs::of_one_pod(ODD, "reserves-a-name", "PodIP");
        job["spec"]["worker"]["template"]["spec"]["x"] = odd.clone();
        sim.create(job);
        let job = sim.create(jobs::of_one_pod(ODD, "reports-a-name", "PodIP"));
        write_status(sim, &job, &json!({ "x": odd }));
        tally.count("a spec and a status have a reserved name");
    }
    let Some(deliveries) = deliveries else { return };
    if let Some(digest) = deliveries.digest_of_another().filter(|_| Draw::new(seed, "wanted bytes").one_in(3)) {
        claim(sim, "names-another", "PodIP", json!({ "digest": digest }));
        tally.count("a ledger names bytes that no host accepts");
    }
    if Draw::new(seed, "unreadable").one_in(10) {
        let upgrade = json!({ "canary": { "percent": 1_u64 << 32 } });
        sim.create(json!({
            "apiVersion": deliveries::API, "kind": "Plugin", "metadata": { "name": "unreadable" },
            "spec": { "source": { "configMap": { "name": "none" } }, "upgrade": upgrade },
        }));
        tally.count("a Plugin cannot be read");
    }
}

/// Makes a job with this ledger, as if a host had written it.
fn claim(sim: &Sim, name: &str, intranet: &str, mut ledger: Value) {
    let job = sim.create(jobs::of_one_pod(ODD, name, intranet));
    ledger["uid"] = job["metadata"]["uid"].clone();
    write_status(sim, &job, &json!({ "troupe": ledger }));
}

fn write_status(sim: &Sim, job: &Value, status: &Value) {
    let (version, kind, namespace, name) = address(job);
    let patched = sim.patch_status(version, kind, namespace, name, json!({ "status": status }));
    patched.expect("it was just made");
}

//! What is there before the first host starts, and must hurt nobody: a job whose ledger claims all ports of the nodes for a
//! digest that no host has accepted, as whoever may write its status can, and a Plugin that cannot be read.

use super::{deeds::address, deliveries, draw::Draw, jobs, neighbours::ODD, tally::Tally};
use serde_json::json;
use sim::Sim;

/// Makes those of a seed. Only hosts that plugins are delivered to look at Plugins.
pub(super) fn settle(sim: &Sim, seed: u64, delivers: bool, tally: &Tally) {
    if Draw::new(seed, "a claim").one_in(10) {
        claim_all_ports(sim);
        tally.count("a ledger claims all ports");
    }
    if delivers && Draw::new(seed, "unreadable").one_in(10) {
        let upgrade = json!({ "canary": { "percent": 1_u64 << 32 } });
        sim.create(json!({
            "apiVersion": deliveries::API, "kind": "Plugin", "metadata": { "name": "unreadable" },
            "spec": { "source": { "configMap": { "name": "none" } }, "upgrade": upgrade },
        }));
        tally.count("a Plugin cannot be read");
    }
}

fn claim_all_ports(sim: &Sim) {
    let job = sim.create(jobs::on_host_ports(ODD, "claims-all"));
    let ports = json!({ "first": 1, "count": 65_534 });
    let ledger = json!({ "uid": job["metadata"]["uid"], "digest": "f".repeat(64), "hostPorts": ports });
    let (version, kind, namespace, name) = address(&job);
    let patched = sim.patch_status(version, kind, namespace, name, json!({ "status": { "troupe": ledger } }));
    patched.expect("it was just made");
}

//! What the API server refuses for a while: everything, or what a quota or a webhook of one namespace is against.

use super::{deeds::rescue, draw::Draw, hosts::ACTORS, tally::Tally, workload::BUSY};
use jiff::SignedDuration;
use sim::{ApiError, Matching, Sim};
use std::time::Duration;

/// A quota or a webhook refuses for at most three minutes: longer than any back-off of a write.
const LONGEST_REFUSAL_MS: u32 = 180_000;

/// Something is refused for a while.
#[derive(Debug, Clone)]
pub(super) struct Outage {
    from: Duration,
    to: Duration,
    matching: Matching,
    error: ApiError,
}

impl Outage {
    /// The outages of a seed.
    pub(super) fn drawn(draw: &mut Draw) -> Vec<Self> {
        let mut outages = Vec::new();
        if draw.one_in(4) {
            let error = ApiError::new(*draw.of(&[500, 503]), "", "the API server is starting");
            let matching = Matching::default().called("outage: API server down at the start");
            outages.push(Self { from: Duration::ZERO, to: draw.ms(500, 6000), matching, error });
        }
        if draw.one_in(4) {
            let (resource, error) = Self::of_namespace(draw);
            let matching = Matching::create(resource).within(BUSY);
            let called = if error.code == 403 { "outage: quota" } else { "outage: webhook" };
            let from = draw.ms(0, 8000);
            outages.push(Self {
                from,
                to: from + draw.ms(10_000, LONGEST_REFUSAL_MS),
                matching: matching.called(called),
                error,
            });
        }
        outages
    }

    fn of_namespace(draw: &mut Draw) -> (&'static str, ApiError) {
        let resource = *draw.of(&["pods", "services", "configmaps", "jobs"]);
        let error = match draw.below(3) {
            0 => ApiError::quota(resource, "x", "compute"),
            1 => ApiError::webhook("check.example.com", "not now"),
            _ => ApiError::webhook_down("check.example.com"),
        };
        (resource, error)
    }

    /// Begins and ends in its time.
    pub(super) async fn happen(self, sim: Sim) {
        tokio::time::sleep(self.from).await;
        let refusal = sim.refuse(self.matching, self.error);
        tokio::time::sleep(self.to.saturating_sub(self.from)).await;
        sim.lift(refusal);
    }
}

/// At most this long a host is held.
pub(super) const LONGEST_FREEZE_MS: u32 = 40_000;

/// One of two hosts is held for longer than its lease lasts, and goes on.
pub(super) async fn freeze(sim: Sim, seed: u64) {
    let mut draw = Draw::new(seed, "freeze");
    let actor = *draw.of(&ACTORS);
    tokio::time::sleep(draw.ms(2000, 20_000)).await;
    sim.freeze(actor);
    tokio::time::sleep(draw.ms(5000, LONGEST_FREEZE_MS)).await;
    sim.thaw(actor);
}

/// How often somebody looks for pods on nodes that are lost.
pub(super) const RESCUE: Duration = Duration::from_secs(30);

/// How rarely at most: for longer than a host waits for a watch, or for an answer.
const RAREST_RESCUE_MS: u32 = 200_000;

/// A pod that is there so long after its grace period, which is 30 s unless it has another, was deleted a minute ago.
const LATE: SignedDuration = SignedDuration::from_secs(30);

/// How often somebody looks in a seed with lost nodes: in some, rarely.
pub(super) fn rescued_every(seed: u64) -> Duration {
    let mut draw = Draw::new(seed, "rescues");
    if draw.one_in(8) { draw.ms(30_000, RAREST_RESCUE_MS) } else { RESCUE }
}

/// Removes pods that do not end, as the administrator of lost nodes does.
pub(super) async fn rescues(sim: Sim, every: Duration, tally: Tally) {
    loop {
        tokio::time::sleep(every).await;
        let removed = rescue(&sim, BUSY);
        let late = removed.iter().filter(|overdue| **overdue >= LATE).count();
        tally.add("node lost: pod removed by force", removed.len() as u64);
        tally.add("node lost: pod removed by force after a minute", late as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use sim::{Life, Options};

    #[tokio::test(start_paused = true)]
    async fn a_pod_that_is_removed_by_force_is_counted_apart_if_that_is_late() {
        for (every, is_late) in [(30, false), (100, true)] {
            let life = Life::default().rule("*", "terminate-after", "forever");
            let sim = Sim::new(Options { life, ..Options::default() });
            let _running = sim.start();
            sim.create(json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "x", "namespace": BUSY },
                "spec": { "containers": [{ "name": "main", "image": "x" }] },
            }));
            let tally = Tally::default();
            let rescues = tokio::spawn(rescues(sim.clone(), Duration::from_secs(every), tally.clone()));
            tokio::time::sleep(Duration::from_secs(5)).await;
            sim.delete("v1", "Pod", BUSY, "x").unwrap();
            tokio::time::sleep(Duration::from_secs(every)).await;
            rescues.abort();
            let counts = tally.counts();
            assert_eq!(counts.get("node lost: pod removed by force"), Some(&1), "{counts:?}");
            assert_eq!(counts.contains_key("node lost: pod removed by force after a minute"), is_late, "{counts:?}");
        }
    }
}

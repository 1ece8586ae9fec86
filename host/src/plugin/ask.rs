//! The questions of one pass, in the only order there is: `plan`, then `bind` and `judge` with the host's outlook.

use super::Plugins;
use decide::{Outlook, Snapshot, ledger::HostPorts, outlook, plan::Answer};

/// What came of the questions of one pass.
#[derive(Debug)]
pub struct Asked {
    /// What the plugin answered.
    pub answer: Answer,
    /// What the host's own rules said, if the plugin had a plan.
    pub outlook: Option<Outlook>,
}

impl Plugins {
    /// Asks the plugin with the snapshot's digest about it. `set_aside` gives so many ports of the nodes to the job with
    /// this uid, if it can; they become part of the snapshot.
    pub async fn ask(
        &self,
        snapshot: &mut Snapshot,
        set_aside: impl FnOnce(&str, u32) -> Option<HostPorts> + Send,
    ) -> Asked {
        let plan = match self.plan(snapshot).await {
            Ok(plan) => plan,
            Err(no_plan) => return Asked { answer: no_plan.into(), outlook: None },
        };
        if plan.host_ports > 0 && snapshot.ledger.host_ports.is_none() {
            snapshot.set_aside = set_aside(&snapshot.job.uid, plan.host_ports);
        }
        let (outlook, wanted) = outlook(snapshot, &plan);
        let answer = self.judge(snapshot, &plan, &wanted, outlook.clone()).await;
        Asked { answer, outlook: Some(outlook) }
    }
}

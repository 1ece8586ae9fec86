//! The questions of one pass, in the only order there is: `plan`, then `bind` and `judge` with the host's outlook.

use super::Plugins;
use decide::{
    Outlook, Snapshot,
    ledger::HostPorts,
    outlook,
    plan::Answer,
    ports::{self, NoPorts},
};

/// What came of the questions of one pass.
#[derive(Debug)]
pub struct Asked {
    /// What the plugin answered.
    pub answer: Answer,
    /// What the host's own rules said, if the plugin had a plan.
    pub outlook: Option<Outlook>,
}

impl Plugins {
    /// Asks the plugin with the snapshot's digest about it. `set_aside` gives so many ports of the nodes to the job, or says
    /// why not; that becomes part of the snapshot.
    pub async fn ask(
        &self,
        snapshot: &mut Snapshot,
        set_aside: impl FnOnce(u32) -> Result<HostPorts, NoPorts> + Send,
    ) -> Asked {
        let plan = match self.plan(snapshot).await {
            Ok(plan) => plan,
            Err(no_plan) => return Asked { answer: no_plan.into(), outlook: None },
        };
        if ports::lacks(snapshot, &plan) {
            match set_aside(plan.host_ports) {
                Ok(ports) => snapshot.set_aside = Some(ports),
                Err(why) => snapshot.no_ports = Some(why),
            }
        }
        let (outlook, wanted) = outlook(snapshot, &plan);
        let answer = self.judge(snapshot, &plan, &wanted, outlook.clone()).await;
        Asked { answer, outlook: Some(outlook) }
    }
}

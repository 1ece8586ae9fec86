//! The plugin calls of one pass, in their fixed order: `plan`, then `bind` and `judge` with the host's outlook.

use super::Plugins;
use decide::{
    Outlook, Snapshot,
    ledger::HostPorts,
    outlook,
    plan::Answer,
    ports::{self, NoPorts},
};

/// The result of the plugin calls of one pass.
#[derive(Debug)]
pub struct PassAnswer {
    /// The plugin's answer.
    pub answer: Answer,
    /// The outlook of the host's own rules, if the plugin had a plan.
    pub outlook: Option<Outlook>,
}

impl Plugins {
    /// Calls the plugin with the snapshot's digest. `set_aside` assigns that many node ports to the job or says why
    /// not; the result becomes part of the snapshot.
    pub async fn ask(
        &self,
        snapshot: &mut Snapshot,
        set_aside: impl FnOnce(u32) -> Result<HostPorts, NoPorts> + Send,
    ) -> PassAnswer {
        let plan = match self.plan(snapshot).await {
            Ok(plan) => plan,
            Err(no_plan) => return PassAnswer { answer: no_plan.into(), outlook: None },
        };
        if ports::lacks(snapshot, &plan) {
            match set_aside(plan.host_ports) {
                Ok(ports) => snapshot.set_aside = Some(ports),
                Err(why) => snapshot.no_ports = Some(why),
            }
        }
        let (outlook, wanted) = outlook(snapshot, &plan);
        let answer = self.judge(snapshot, &plan, &wanted, outlook.clone()).await;
        PassAnswer { answer, outlook: Some(outlook) }
    }
}

//! The plugin calls of one pass, in their fixed order: `plan`, then `bind` and `judge` with the host's outlook.

use super::Plugins;
use decide::{
    Decision, Outlook, Snapshot, Standing,
    ledger::HostPorts,
    plan::{Answer, Plan},
    ports::{self, NoPorts},
};
use futures::FutureExt;
use std::sync::Arc;

/// The result of the plugin calls of one pass.
#[derive(Debug)]
pub struct PassAnswer {
    /// The plugin's answer.
    pub answer: Answer,
    /// The outlook of the host's own rules, if the plugin had a plan.
    pub outlook: Option<Outlook>,
}

impl Plugins {
    /// Calls the plugin with the snapshot's digest as [`ask`](Self::ask) does, and decides: all in one turn and on one thread,
    /// since to wake another thread costs as much as a call. Returns the snapshot with the answer and the decision.
    pub async fn ask_and_decide(
        &self,
        snapshot: Box<Snapshot>,
        set_aside: impl FnOnce(u32) -> Result<HostPorts, NoPorts> + Send + 'static,
    ) -> (Box<Snapshot>, PassAnswer, Decision) {
        let work = |here: &Self, mut snapshot: Box<Snapshot>| {
            let decided = here.decided(&mut snapshot, set_aside).now_or_never();
            let (answer, decision) = decided.expect("calls run on this thread, so nothing is waited for");
            (snapshot, answer, decision)
        };
        self.in_one_turn(snapshot, work).await
    }

    async fn decided(
        &self,
        snapshot: &mut Snapshot,
        set_aside: impl FnOnce(u32) -> Result<HostPorts, NoPorts> + Send,
    ) -> (PassAnswer, Decision) {
        match self.plan_for_pass(snapshot, set_aside).await {
            Ok(plan) => {
                let standing = Standing::of(snapshot, &plan);
                let asked = self.judge_for_pass(&standing).await;
                let decision = standing.decide(&asked.answer);
                (asked, decision)
            }
            Err(answer) => {
                let decision = decide::decide(snapshot, &answer);
                (PassAnswer { answer, outlook: None }, decision)
            }
        }
    }

    /// Calls the plugin with the snapshot's digest. `set_aside` assigns that many node ports to the job or says why
    /// not; the result becomes part of the snapshot.
    pub async fn ask(
        &self,
        snapshot: &mut Snapshot,
        set_aside: impl FnOnce(u32) -> Result<HostPorts, NoPorts> + Send,
    ) -> PassAnswer {
        match self.plan_for_pass(snapshot, set_aside).await {
            Ok(plan) => self.judge_for_pass(&Standing::of(snapshot, &plan)).await,
            Err(answer) => PassAnswer { answer, outlook: None },
        }
    }

    /// Calls `plan`: the first half of `ask`.
    ///
    /// # Errors
    /// The answer, if there is no plan.
    async fn plan_for_pass(
        &self,
        snapshot: &mut Snapshot,
        set_aside: impl FnOnce(u32) -> Result<HostPorts, NoPorts> + Send,
    ) -> Result<Arc<Plan>, Answer> {
        let plan = self.plan(snapshot).await?;
        if ports::lacks(snapshot, &plan) {
            match set_aside(plan.host_ports) {
                Ok(ports) => snapshot.set_aside = Some(ports),
                Err(why) => snapshot.no_ports = Some(why),
            }
        }
        Ok(plan)
    }

    /// Calls `bind` and `judge` about a job that was compared with its plan: the second half of `ask`.
    async fn judge_for_pass(&self, standing: &Standing<'_>) -> PassAnswer {
        let outlook = Outlook::of(standing);
        let wanted = standing.bodies_wanted();
        let answer = self.judge(standing.snapshot, standing.plan, &wanted, outlook.clone()).await;
        PassAnswer { answer, outlook: Some(outlook) }
    }
}

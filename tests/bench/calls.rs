//! How benchmarks and budgets call a plugin about a job.

use decide::{
    Outlook, Snapshot,
    plan::{Answer, Body, Plan},
};
use futures::executor::block_on;
use sandbox::Plugins;
use std::sync::Arc;

/// Asks the plugin to bind and to judge with this plan. Every body that the plan leaves to it is wanted, and is there.
pub(crate) fn judged(plugins: &Plugins, snapshot: &Snapshot, plan: &Arc<Plan>) -> Answer {
    let bound = plan.objects.iter().filter(|object| object.body == Body::Bound);
    let wanted: Vec<String> = bound.map(|object| object.key.clone()).collect();
    let outlook = Outlook { suspended: false, waiting: None, criteria_met: None };
    let answer = block_on(plugins.judge(snapshot, plan, &wanted, outlook));
    let has_all = matches!(&answer, Answer::Judged { bindings, .. } if bindings.bodies.len() == wanted.len());
    assert!(has_all, "{}: {answer:?}", snapshot.kind.kind);
    answer
}

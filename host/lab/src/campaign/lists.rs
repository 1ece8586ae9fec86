//! How often hosts list: a list does not show how what it lacks has ended, so a watch that breaks goes on from where it was.

use super::hosts::is_host;
use sim::{RequestRecord, Sim};

/// S12: each watch of each life of a host lists once, and again only where its version has expired. `watches` is their
/// number in all lives. A watch that gets no event in eight attempts in a row may list, too; that happens to none here.
pub(super) fn needless(sim: &Sim, watches: usize) -> Option<String> {
    let expired: usize =
        sim.troubles().iter().filter(|(what, _)| what.ends_with("410")).map(|(_, when)| when.len()).sum();
    let requests = sim.requests();
    let lists = requests.iter().filter(|request| is_of_a_watch(request)).count();
    let needless = lists.saturating_sub(watches + expired);
    (needless > 0).then(|| format!("S12: {lists} lists of {watches} watches, of which {expired} had expired"))
}

/// The host got this list, for a watch of jobs or of what they have made: those of the delivery are kube-runtime's.
fn is_of_a_watch(request: &RequestRecord) -> bool {
    let is_list = request.verb == "list" && request.code == 200 && !request.reply_lost;
    let is_ours = request.namespace.is_empty() && !["plugins", "events"].contains(&request.resource.as_str());
    is_list && is_ours && is_host(&request.actor)
}

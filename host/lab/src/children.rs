//! The kinds of object that jobs own, beside those that each simulated cluster serves.

use sandbox::Plugins;
use sim::{Kind, Sim};

/// Returns the kinds of the children of all jobs.
pub(crate) fn children(plugins: &Plugins) -> Vec<Kind> {
    let frameworks = plugins.frameworks();
    let kinds = frameworks.iter().flat_map(|(framework, _)| &framework.children);
    kinds.map(|kind| Kind::new(&kind.api_version, &kind.kind, &kind.plural, true, true)).collect()
}

/// Serves those kinds of children that are not served yet.
pub(crate) fn serve_children(sim: &Sim, plugins: &Plugins) {
    let is_new = |kind: &Kind| sim.kind(&kind.group, &kind.plural).is_none();
    children(plugins).into_iter().filter(is_new).for_each(|kind| sim.serve(kind));
}

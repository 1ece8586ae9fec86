//! The input of commands that replay: a component's file, and the passes of a recording that its plugin serves.

use crate::input;
use anyhow::{Context, ensure};
use std::path::Path;
use troupe::record::{
    passes::Pass,
    replay::{self, Replayer},
};

/// Loads the plugin in a file, or the built-in plugin of this name, as the host does.
pub(crate) fn read(file: &Path) -> anyhow::Result<Replayer> {
    replayer(file, &input::component(file)?)
}

/// Loads a plugin as the host does from the bytes that were read from this file.
pub(super) fn replayer(file: &Path, wasm: &[u8]) -> anyhow::Result<Replayer> {
    Replayer::load(&input::label(file), wasm).with_context(|| {
        format!(
            "the host would refuse {}; plugins/README.md says what a plugin may import and must export",
            file.display()
        )
    })
}

/// Returns the recorded passes of jobs whose kinds the plugin serves, and the number of other passes.
pub(super) fn passes(file: &Path, plugin: &Replayer) -> anyhow::Result<(Vec<Pass>, usize)> {
    let text = input::text(file)?;
    let name = file.display();
    let all = replay::read(&text).with_context(|| {
        format!(
            "{name} is no recording; take one from a host's admin port: curl http://localhost:8080/recording > {name}"
        )
    })?;
    let count = all.len();
    let (served, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|pass| plugin.serves(pass));
    let kinds: Vec<_> = plugin.descriptor().kinds.iter().map(|kind| kind.kind.as_str()).collect();
    let kinds = kinds.join(", ");
    ensure!(
        !served.is_empty(),
        "none of the {count} passes in {name} is over a job that the plugin serves ({kinds}); let the host run such a job, \
         then record again"
    );
    Ok((served, others.len()))
}

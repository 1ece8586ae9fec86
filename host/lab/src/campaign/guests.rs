//! Jobs of a plugin that does not come with the host: copies of what its author gives as an example.

use super::{
    draw::Draw,
    jobs::{Job, JobParams},
    plugins_of,
};
use crate::manifest;
use anyhow::{Context, ensure};
use decide::plan::JobKind;
use sandbox::{Plugins, source};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use troupe::observe::layout::{Layout, Route};

/// A job that is to be among those of a campaign.
#[derive(Debug, Clone)]
pub struct Guest {
    manifest: Value,
    /// Where the spec says that the job is suspended.
    suspend: Option<String>,
    digest: String,
}

/// The built-in plugins with these, and the jobs of these manifests, which have to end well when all their pods do.
///
/// # Errors
/// A component that the host would refuse, or a manifest of which this is not a job.
pub fn invited(components: &[(String, Vec<u8>)], manifests: &[PathBuf]) -> anyhow::Result<(Arc<Plugins>, Vec<Guest>)> {
    let plugins = plugins_of(components)?;
    let digests: Vec<_> = components.iter().map(|(_, wasm)| source::digest(wasm)).collect();
    let mut layout = Layout::default();
    for (framework, digest) in plugins.frameworks().iter().filter(|(_, digest)| digests.contains(digest)) {
        layout.add(framework, digest);
        layout.route(&framework.name, &Route::to(digest));
    }
    let read = manifests.iter().map(|file| guests_in(file, &layout, &plugins));
    let guests: Vec<_> = read.collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect();
    Ok((plugins, guests))
}

fn guests_in(file: &Path, layout: &Layout, plugins: &Plugins) -> anyhow::Result<Vec<Guest>> {
    let frameworks = plugins.frameworks();
    let guest = |manifest: Value| {
        let mut kinds = frameworks.iter().flat_map(|(of, digest)| of.kinds.iter().map(move |kind| (kind, digest)));
        let is_of = |kind: &JobKind| manifest["kind"] == kind.kind && manifest["apiVersion"] == kind.api_version();
        let kind = kinds.find(|(kind, _)| is_of(kind));
        let (kind, digest) =
            kind.with_context(|| format!("{}: no plugin serves the kind of a job in it", file.display()))?;
        ensure!(
            manifest["metadata"]["name"].as_str().is_some_and(|name| name.len() <= 40),
            "{}: a job of a campaign has a name of at most 40 characters",
            file.display()
        );
        Ok(Guest { suspend: kind.suspend.clone(), manifest, digest: digest.to_string() })
    };
    manifest::read(file, layout)?.into_iter().map(guest).collect()
}

impl Guest {
    /// The kind of the job.
    pub(super) fn kind(&self) -> &str {
        self.manifest["kind"].as_str().unwrap_or_default()
    }

    /// The digest of the component that plans the job.
    pub(super) fn digest(&self) -> &str {
        &self.digest
    }

    /// A copy of the job, and how its pods live unless its manifest says so: some time each, and well where `sound` says so.
    pub(super) fn job(&self, draw: &mut Draw, params: JobParams<'_>) -> Job {
        let mut manifest = self.manifest.clone();
        let name = format!("{}-{}", manifest["metadata"]["name"].as_str().unwrap_or_default(), params.number);
        manifest["metadata"]["name"] = json!(name);
        manifest["metadata"]["namespace"] = json!(params.namespace);
        let fails = !params.sound && draw.one_in(5);
        let pods = format!("{name}-*");
        let lives = vec![
            [pods.clone(), "run-for".to_owned(), format!("{}ms", draw.ms(200, 5000).as_millis())],
            [pods, "exit-code".to_owned(), if fails { "1" } else { "0" }.to_owned()],
        ];
        let outcome = if fails { "failed" } else { "succeeded" };
        Job { manifest, lives, outcome, is_restarted: false, suspend: self.suspend.clone() }
    }
}

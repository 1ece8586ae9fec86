//! `troupe plugin rollback` and `troupe plugin approve`: change which digest of a Plugin serves.

use crate::{runtime, serve};
use anyhow::{Context, bail};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use std::process::ExitCode;
use troupe::{
    measure::requests::Requests,
    out,
    plugin_resource::{CandidateState, Plugin, PluginStatus},
};

/// Pins the Plugin to its previous digest.
pub(super) fn rollback(name: &str) -> anyhow::Result<ExitCode> {
    change(name, |status| {
        let Some(previous) = status.previous.clone().filter(|previous| status.digest.as_ref() != Some(previous)) else {
            bail!("plugin {name} has served no other digest before, so there is none to go back to");
        };
        let told = format!(
            "new jobs of {name} are planned by {} again; it stays so until spec.digest is changed or removed",
            short(&previous)
        );
        Ok((json!({ "spec": { "digest": previous } }), told))
    })
}

/// Sets `spec.upgrade.approve` to the digest of the candidate, or of the component that the host does not look at again.
pub(super) fn approve(name: &str) -> anyhow::Result<ExitCode> {
    change(name, |status| {
        let has_crashed = status.conditions.iter().any(|condition| condition.reason == "CrashedHost");
        if let Some(looking) = status.looking.as_ref().filter(|_| has_crashed) {
            let told = format!("{} is looked at once more", short(&looking.digest));
            return Ok((json!({ "spec": { "upgrade": { "approve": looking.digest } } }), told));
        }
        let may = [CandidateState::Waiting, CandidateState::Stopped];
        let Some(candidate) = status.candidate.as_ref().filter(|candidate| may.contains(&candidate.state)) else {
            bail!(
                "no digest of plugin {name} waits to be approved or was stopped; see `kubectl get plugin {name} -o yaml`"
            );
        };
        let told = format!("{}, version {}, may serve", short(&candidate.digest), candidate.version);
        Ok((json!({ "spec": { "upgrade": { "approve": candidate.digest } } }), told))
    })
}

/// Returns the first twelve digits.
fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

fn change(name: &str, of: impl FnOnce(&PluginStatus) -> anyhow::Result<(Value, String)>) -> anyhow::Result<ExitCode> {
    runtime::on_one_thread(Box::pin(async {
        let plugins = Api::<Plugin>::all(serve::client(&Requests::default(), None).await?);
        let plugin = plugins.get(name).await.with_context(|| {
            format!("there is no plugin {name}, or it may not be read; `kubectl get plugins` lists them")
        })?;
        let (patch, told) = of(&plugin.status.unwrap_or_default())?;
        let patched = plugins.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.with_context(|| format!("plugin {name} cannot be changed"))?;
        out::line(&told);
        Ok(ExitCode::SUCCESS)
    }))?
}

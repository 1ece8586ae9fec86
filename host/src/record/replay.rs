//! Replay of recorded passes: by the plugin that answered them, or by another version of it.

use crate::record::passes::Pass;
use decide::{
    Digest,
    plan::{Answer, Descriptor},
};
use futures::executor::block_on;
use sandbox::{ConfigError, Executor, LARGEST_COMPONENT, Limits, LoadError, Options, PassAnswer, Plugins};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};

/// A line of a recording that is no pass.
#[derive(Debug, thiserror::Error)]
#[error("line {line} is no pass")]
pub struct NoPass {
    /// The number of the line, from 1.
    line: usize,
    /// Why it is no pass.
    source: serde_json::Error,
}

/// Returns the passes of a recording: one line of JSON for each, as the admin port returns them. A single pass may have
/// many lines.
///
/// # Errors
/// The first line that is no pass.
pub fn read(text: &str) -> Result<Vec<Pass>, NoPass> {
    if let Ok(alone) = Pass::from_json(text) {
        return Ok(vec![alone]);
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let pass = |(at, line)| Pass::from_json(line).map_err(|source| NoPass { line: at + 1, source });
    lines.map(pass).collect()
}

/// Returns the answer of the loaded plugin with this digest to the snapshot of a recorded pass. The plugin needs the
/// settings that the pass was recorded with.
pub async fn replay(plugins: &Plugins, digest: &Digest, pass: &Pass) -> Answer {
    let mut snapshot = pass.snapshot.clone();
    let recorded = snapshot.set_aside.take();
    let why = snapshot.no_ports.take().unwrap_or_default();
    snapshot.digest = Some(digest.clone());
    let PassAnswer { answer, .. } =
        plugins.ask(&mut snapshot, |count| recorded.filter(|ports| ports.count == count).ok_or(why)).await;
    answer
}

/// A plugin that answers recorded passes, loaded apart from all others, without a cluster and a clock.
pub struct Replayer {
    descriptor: Arc<Descriptor>,
    digest: Digest,
    fuel_of_describe: u64,
    plain: Plugins,
    /// The plugin with settings, by the text of the settings.
    configured: BTreeMap<String, Plugins>,
}

/// Options to inspect a component: a host can be configured to accept each component that is loaded here.
fn options() -> Options {
    let usual = Options::new(Executor::Inline);
    Options { limits: Limits { component: LARGEST_COMPONENT, ..usual.limits }, ..usual }
}

impl Replayer {
    /// Loads a component's bytes as the host does. `label` names the plugin until it has described itself.
    ///
    /// # Errors
    /// If the bytes are no plugin.
    pub fn load(label: &str, wasm: &[u8]) -> Result<Self, LoadError> {
        let plain = Plugins::empty(options())?;
        let digest = plain.load(label, wasm)?;
        let calls = plain.calls();
        let describe = calls.iter().find(|(_, function, _)| function == "describe");
        let fuel_of_describe = describe.map_or(0, |(_, _, stats)| stats.fuel / stats.count.max(1));
        let (descriptor, _) = plain.frameworks().remove(0);
        Ok(Self { descriptor, digest, fuel_of_describe, plain, configured: BTreeMap::new() })
    }

    /// Returns the plugin's descriptor.
    #[must_use]
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// Returns the digest of its bytes.
    #[must_use]
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Returns the fuel that one call of `describe` took; it is called twice when a component is loaded.
    #[must_use]
    pub fn fuel_of_describe(&self) -> u64 {
        self.fuel_of_describe
    }

    /// Returns the plugin without settings. A fork of it can be configured.
    #[must_use]
    pub fn plugins(&self) -> &Plugins {
        &self.plain
    }

    /// Returns whether the plugin serves the kind of this pass's job.
    #[must_use]
    pub fn serves(&self, pass: &Pass) -> bool {
        self.descriptor.kinds.iter().any(|own| own.is_same(&pass.snapshot.kind))
    }

    /// Returns the plugin's answer to the snapshot of the pass, with the settings that the pass was recorded with.
    ///
    /// # Errors
    /// If the plugin's schema does not allow these settings.
    pub fn answer(&mut self, pass: &Pass) -> Result<Answer, ConfigError> {
        let plugins = if pass.config == "{}" {
            &self.plain
        } else {
            if !self.configured.contains_key(&pass.config) {
                self.configured.insert(pass.config.clone(), self.with_settings(&pass.config)?);
            }
            &self.configured[&pass.config]
        };
        Ok(block_on(replay(plugins, &self.digest, pass)))
    }

    fn with_settings(&self, config: &str) -> Result<Plugins, ConfigError> {
        let refused = |error: serde_json::Error| ConfigError::Refused {
            plugin: self.descriptor.name.clone(),
            message: format!("they are no JSON: {error}"),
        };
        let config: Value = serde_json::from_str(config).map_err(refused)?;
        let plugins = self.plain.fork();
        plugins.configure(&self.descriptor.name, &config)?;
        Ok(plugins)
    }
}

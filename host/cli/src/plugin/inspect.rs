//! `troupe plugin inspect`: the description of a component, and what the host needs to run it.

use super::{configmap::ROOM, recording::replayer};
use crate::{args::InspectArgs, input};
use anyhow::Context;
use decide::{
    Digest,
    grants::Grants,
    plan::{ChildKind, JobKind},
};
use sandbox::{Limits, source, surface::Surface};
use serde::Serialize;
use std::{fmt, process::ExitCode};
use troupe::{out, record::replay::Replayer};

/// The facts about a component that need no cluster.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Facts {
    name: String,
    version: String,
    digest: Digest,
    /// The version of the contract that the component was built against.
    contract: Option<String>,
    /// The size in bytes.
    size: usize,
    /// The size in bytes after compression with zstd.
    compressed: usize,
    /// Whether the component fits into a ConfigMap, compressed if necessary.
    fits_config_map: bool,
    kinds: Vec<JobKind>,
    children: Vec<ChildKind>,
    asks_for: Grants,
    /// The names of the plugin's settings.
    settings: Vec<String>,
    imports: Vec<String>,
    fuel_of_describe: u64,
}

pub(super) fn inspect(args: &InspectArgs) -> anyhow::Result<ExitCode> {
    let wasm = input::component(&args.file)?;
    let plugin = replayer(&args.file, &wasm)?;
    let facts = facts_of(&plugin, &wasm)?;
    if args.json {
        out::line(serde_json::to_string_pretty(&facts).context("the facts as JSON")?);
    } else {
        out::line(&facts);
    }
    if let Some(crd) = &args.crd {
        super::crd::check(crd, plugin.descriptor())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the facts about the plugin in a component.
pub(super) fn facts_of(plugin: &Replayer, wasm: &[u8]) -> anyhow::Result<Facts> {
    let surface = Surface::of(wasm).context("the component is broken; build it again")?;
    let compressed = source::compress(wasm, source::Ratio::Small).context("it cannot be compressed")?.len();
    Ok(facts(plugin, surface, wasm.len(), compressed))
}

fn facts(plugin: &Replayer, surface: Surface, size: usize, compressed: usize) -> Facts {
    let said = plugin.descriptor().clone();
    let settings = said.config_schema["properties"].as_object();
    Facts {
        digest: plugin.digest().clone(),
        contract: surface.contract().map(str::to_owned),
        size,
        compressed,
        fits_config_map: size.min(compressed) <= ROOM,
        asks_for: said.wanted_grants(),
        settings: settings.map(|all| all.keys().cloned().collect()).unwrap_or_default(),
        imports: surface.imports,
        fuel_of_describe: plugin.fuel_of_describe(),
        name: said.name,
        version: said.version,
        kinds: said.kinds,
        children: said.children,
    }
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |name: &str, text: &str| writeln!(f, "{name:<10} {text}");
        line("plugin", &format!("{} {}", self.name, self.version))?;
        line("digest", self.digest.as_str())?;
        line("contract", self.contract.as_deref().unwrap_or("none"))?;
        let fits = if self.fits_config_map { "fits into a ConfigMap" } else { "too large for a ConfigMap" };
        let beyond = match self.size > Limits::default().component {
            true => format!("; a host takes it with --max-plugin-bytes {}", self.size),
            false => String::new(),
        };
        line("size", &format!("{} bytes, {} with zstd: {fits}{beyond}", self.size, self.compressed))?;
        for kind in &self.kinds {
            line("serves", &serves(kind))?;
            line("roles", &roles(kind))?;
            line("events as", &kind.event_source)?;
        }
        for child in &self.children {
            line("owns", &owns(child))?;
        }
        let listed = |names: &mut dyn Iterator<Item = &String>| {
            let names: Vec<_> = names.map(String::as_str).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        };
        line("asks for", &serde_json::to_string(&self.asks_for).unwrap_or_default())?;
        line("settings", &listed(&mut self.settings.iter()))?;
        line("imports", &listed(&mut self.imports.iter()))?;
        write!(f, "{:<10} {} units of fuel", "describe", self.fuel_of_describe)
    }
}

fn serves(kind: &JobKind) -> String {
    let switch = |name: &str, at: &Option<String>| at.as_ref().map(|at| format!("; {name} at spec{at}"));
    let suspend = switch("suspend", &kind.suspend).unwrap_or_default();
    let managed = switch("managed-by", &kind.managed_by).unwrap_or_default();
    format!("{} ({}, {}){suspend}{managed}", kind.kind, kind.api_version(), kind.plural)
}

fn roles(kind: &JobKind) -> String {
    if kind.roles.is_empty() { "as the job's user names them".to_owned() } else { kind.roles.join(", ") }
}

fn owns(child: &ChildKind) -> String {
    let selector = child.selector.as_ref().map(|labels| format!(" with {labels}")).unwrap_or_default();
    let optional = if child.optional { ", where the cluster has it" } else { "" };
    format!("{} ({}, {}){selector}{optional}", child.kind, child.api_version, child.plural)
}

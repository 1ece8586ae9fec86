//! Limits: what one call of a plugin may use up, and what happens at the edge.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wasmtime::ResourceLimiter;

/// What a plugin may use up. Fuel decides, since it is the same on every machine; the wall clock only saves the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Fuel of one function, about one unit per WebAssembly instruction.
    pub fuel: u64,
    /// More fuel for each pod that is shown.
    pub fuel_per_pod: u64,
    /// Fuel of all calls of a plugin in a minute, whatever its digests; what it saves up is never more than that.
    pub fuel_per_minute: u64,
    /// Wall clock of one function, where the epoch ticks.
    pub wall: Duration,
    /// Linear memory of an instance, in bytes.
    pub memory: usize,
    /// Elements of a table of an instance.
    pub table: usize,
    /// A whole answer, and so a status or a body from `bind`, which say something of every pod; and the arguments of one
    /// call of the host. In bytes.
    pub answer: usize,
    /// A template, an edit or a fixed body within a plan, in bytes.
    pub body: usize,
    /// A job's spec, its templates included, as JSON in bytes. A larger one is its user's mistake.
    pub spec: usize,
    /// Lines of log in the life of an instance.
    pub log_lines: u32,
    /// A component's file, in bytes.
    pub component: usize,
    /// Calls under way at once; None is all that the host has room for but one, so that another plugin always finds room.
    pub concurrency: Option<usize>,
}

/// What a plugin may use up; what does not stand here has the host's own limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginLimits {
    /// Fuel of one function, about one unit for each WebAssembly instruction.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 9_007_199_254_740_991_u64))]
    pub fuel: Option<u64>,
    /// Fuel of all of its calls in a minute. While it is used up the plugin is not asked, and its jobs say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 9_007_199_254_740_991_u64))]
    pub fuel_per_minute: Option<u64>,
    /// Wall clock of one function, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 4_294_967_295_u64))]
    pub wall_milliseconds: Option<u32>,
    /// Linear memory of an instance, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 4_294_967_295_u64))]
    pub memory_bytes: Option<u32>,
    /// A whole answer, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 4_294_967_295_u64))]
    pub answer_bytes: Option<u32>,
    /// Lines of log in one pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 4_294_967_295_u64))]
    pub log_lines: Option<u32>,
    /// Calls under way at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 4_294_967_295_u64))]
    pub concurrency: Option<u32>,
}

impl Limits {
    /// These, with what a `Plugin` resource says in their place. Memory can only be lowered: the host has no larger room.
    #[must_use]
    pub fn with(&self, own: &PluginLimits) -> Self {
        let size = |own: Option<u32>, otherwise: usize| own.map_or(otherwise, |own| own as usize);
        Self {
            fuel: own.fuel.unwrap_or(self.fuel),
            fuel_per_minute: own.fuel_per_minute.unwrap_or(self.fuel_per_minute),
            wall: own.wall_milliseconds.map_or(self.wall, |wall| Duration::from_millis(wall.into())),
            memory: size(own.memory_bytes, self.memory).min(self.memory),
            answer: size(own.answer_bytes, self.answer),
            log_lines: own.log_lines.unwrap_or(self.log_lines),
            concurrency: own.concurrency.map(|own| own as usize).or(self.concurrency),
            ..self.clone()
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fuel: 200_000_000,
            fuel_per_pod: 1_000_000,
            fuel_per_minute: 30_000_000_000,
            wall: Duration::from_secs(2),
            memory: 64 << 20,
            table: 16_384,
            answer: 1 << 20,
            body: 256 << 10,
            spec: 256 << 10,
            log_lines: 64,
            component: 16 << 20,
            concurrency: None,
        }
    }
}

/// An instance asked for more memory than [`Limits::memory`].
#[derive(Debug, thiserror::Error)]
#[error("{wanted} bytes of memory are more than {limit}")]
pub(super) struct OutOfMemory {
    wanted: usize,
    limit: usize,
}

/// Keeps an instance below its limits: growing beyond them traps, so that the fault says `memory` and not `unreachable`.
#[derive(Debug)]
pub(super) struct Ceiling {
    memory: usize,
    table: usize,
}

impl Ceiling {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { memory: limits.memory, table: limits.table }
    }
}

fn below(wanted: usize, limit: usize) -> wasmtime::Result<bool> {
    if wanted <= limit { Ok(true) } else { Err(OutOfMemory { wanted, limit }.into()) }
}

impl ResourceLimiter for Ceiling {
    fn memory_growing(&mut self, _: usize, wanted: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        below(wanted, self.memory)
    }

    fn table_growing(&mut self, _: usize, wanted: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        below(wanted, self.table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugins_own_limits_stand_in_place_of_the_hosts_and_memory_is_only_lowered() {
        let usual = Limits::default();
        let own =
            |memory_bytes| PluginLimits { fuel: Some(7), memory_bytes: Some(memory_bytes), ..PluginLimits::default() };
        assert_eq!(usual.with(&PluginLimits::default()), usual);
        assert_eq!(usual.with(&own(1 << 20)), Limits { fuel: 7, memory: 1 << 20, ..usual.clone() });
        assert_eq!(usual.with(&own(u32::MAX)), Limits { fuel: 7, ..usual });
    }
}

//! Resource limits of plugins, and the limiter that enforces those of memory and tables.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wasmtime::ResourceLimiter;

/// The largest component that a host can be configured to accept, in bytes. An interpreter of Python with a plugin has 18 MiB.
pub const LARGEST_COMPONENT: usize = 64 << 20;

/// The resource limits of a plugin. Fuel is the effective one, since it is the same on every machine; the wall clock
/// only protects the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Fuel of one function call, about one unit per WebAssembly instruction.
    pub fuel: u64,
    /// Additional fuel for each observed pod.
    pub fuel_per_pod: u64,
    /// Fuel per minute of all calls of a plugin, in all its digests. Unused fuel accumulates up to this amount.
    pub fuel_per_minute: u64,
    /// Wall-clock time of one function call, where the epoch advances.
    pub wall: Duration,
    /// Linear memory of an instance, all its memories together, in bytes.
    pub memory: usize,
    /// Elements of each table of an instance.
    pub table: usize,
    /// Maximum bytes of a whole answer, and so of a status or a body from `bind`, which contain data of every pod. Also
    /// limits the arguments of one call of a host function.
    pub answer: usize,
    /// Maximum bytes of a template, an edit or a fixed body in a plan.
    pub body: usize,
    /// Maximum bytes of a job's spec as JSON, including its templates. A job with a larger one is rejected.
    pub spec: usize,
    /// Maximum log lines of an instance.
    pub log_lines: u32,
    /// Maximum bytes of a component's file.
    pub component: usize,
    /// Maximum number of concurrent calls. None means all permits but one, so that another plugin always gets one.
    pub concurrency: Option<usize>,
}

/// The resource limits of a plugin. The host's default applies where a field is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginLimits {
    /// Maximum fuel of one function call, about one unit per WebAssembly instruction.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9_007_199_254_740_991_u64))]
    pub fuel: Option<u64>,
    /// Maximum fuel of all calls of the plugin in one minute. While none is left, the host does not call the plugin,
    /// and its jobs have the condition `PluginFaulted` with the reason `Throttled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9_007_199_254_740_991_u64))]
    pub fuel_per_minute: Option<u64>,
    /// Maximum wall-clock time of one function call, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4_294_967_295_u64))]
    pub wall_milliseconds: Option<u32>,
    /// Maximum linear memory of an instance, all its memories together, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4_294_967_295_u64))]
    pub memory_bytes: Option<u32>,
    /// Maximum size of one answer of the plugin, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4_294_967_295_u64))]
    pub answer_bytes: Option<u32>,
    /// Maximum number of log lines in one pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 4_294_967_295_u64))]
    pub log_lines: Option<u32>,
    /// Maximum number of concurrent calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4_294_967_295_u64))]
    pub concurrency: Option<u32>,
}

impl Limits {
    /// Returns these limits with those of a `Plugin` resource in their place. Memory can only be lowered: the host has
    /// no larger slots.
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

/// An instance requested more memory, or a larger table, than its limits allow.
#[derive(Debug, thiserror::Error)]
#[error("{wanted} bytes of memory are more than {limit}")]
pub(super) struct OutOfMemory {
    wanted: usize,
    limit: usize,
}

/// Enforces the limits of an instance. Growth beyond them traps, so that the fault says `memory` and not `unreachable`.
#[derive(Debug)]
pub(super) struct Ceiling {
    memory: usize,
    table: usize,
    /// Bytes of all memories of the instance. Counts too much once the machine has no memory left for a growth.
    held: usize,
}

impl Ceiling {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { memory: limits.memory, table: limits.table, held: 0 }
    }
}

fn below(wanted: usize, limit: usize) -> wasmtime::Result<bool> {
    if wanted <= limit { Ok(true) } else { Err(OutOfMemory { wanted, limit }.into()) }
}

impl ResourceLimiter for Ceiling {
    /// A component may have several memories, and a limit for each would be a limit for none.
    fn memory_growing(&mut self, has: usize, wanted: usize, most: Option<usize>) -> wasmtime::Result<bool> {
        let held = self.held.saturating_sub(has).saturating_add(wanted);
        below(held, self.memory)?;
        // A memory that its own type limits does not grow, whatever is said here.
        if most.is_none_or(|most| wanted <= most) {
            self.held = held;
        }
        Ok(true)
    }

    fn table_growing(&mut self, _: usize, wanted: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        below(wanted, self.table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugins_own_limits_replace_the_hosts_and_memory_is_only_lowered() {
        let usual = Limits::default();
        let own =
            |memory_bytes| PluginLimits { fuel: Some(7), memory_bytes: Some(memory_bytes), ..PluginLimits::default() };
        assert_eq!(usual.with(&PluginLimits::default()), usual);
        assert_eq!(usual.with(&own(1 << 20)), Limits { fuel: 7, memory: 1 << 20, ..usual.clone() });
        assert_eq!(usual.with(&own(u32::MAX)), Limits { fuel: 7, ..usual });
    }

    #[test]
    fn all_memories_of_an_instance_share_one_limit() {
        let mut ceiling = Ceiling::new(&Limits { memory: 100, ..Limits::default() });
        let mut grow = |has, wanted, most| ceiling.memory_growing(has, wanted, most).map_err(|error| error.to_string());
        assert_eq!(grow(0, 40, None), Ok(true));
        assert_eq!(grow(0, 30, Some(30)), Ok(true));
        // Not granted, so not held.
        assert_eq!(grow(30, 50, Some(30)), Ok(true));
        assert_eq!(grow(40, 71, None), Err("101 bytes of memory are more than 100".to_owned()));
        assert_eq!(grow(40, 70, None), Ok(true));
        assert_eq!(grow(30, 31, None), Err("101 bytes of memory are more than 100".to_owned()));
    }
}

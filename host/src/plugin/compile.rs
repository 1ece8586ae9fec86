//! From a file's bytes to a component that can be instantiated in microseconds.

use super::{convert::Exports, limits::Limits, wasi};
use sha2::{Digest, Sha256};
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, component::Component};

/// How far a guest may recurse, in bytes of the host's stack. Threads that call plugins have 2 MiB.
const STACK: usize = 512 << 10;

/// Memory of a pool's slot that is cleared by hand instead of being given back, which would cost page faults.
const KEEP_RESIDENT: usize = 2 << 20;

/// Instances that the pool has room for. An unused slot costs address space only.
pub(super) const SLOTS: usize = 64;

/// Why a plugin is not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Its file is too large.
    #[error("the component has {bytes} bytes, more than {limit}")]
    TooLarge {
        /// How large it is.
        bytes: usize,
        /// What is allowed.
        limit: usize,
    },
    /// It is a core module, or no WebAssembly at all.
    #[error("this is {0}, not a WebAssembly component")]
    NotAComponent(&'static str),
    /// It does not compile.
    #[error("failed to compile the component")]
    Compile(#[source] wasmtime::Error),
    /// It imports something that no plugin gets.
    #[error("the component imports {0}, which the host does not offer")]
    Import(String),
    /// It imports something under a known name that is not what the host has.
    #[error("the component's {name} is not what the contract has")]
    Invalid {
        /// What.
        name: String,
        /// In which way.
        source: wasmtime::Error,
    },
    /// It does not export what the contract asks for.
    #[error("the component does not export troupe:framework/framework@0.1 as the contract has it")]
    Export(#[source] wasmtime::Error),
    /// It cannot say what it is.
    #[error("the component cannot describe itself")]
    Describe(#[from] decide::plan::Fault),
    /// What it says of itself does not hold together, or clashes with another plugin.
    #[error("the description of plugin {plugin} is not acceptable: {message}")]
    Description {
        /// Which plugin.
        plugin: String,
        /// What is wrong.
        message: String,
    },
    /// This machine cannot run WebAssembly.
    #[error("failed to set up the WebAssembly engine")]
    Engine(#[source] wasmtime::Error),
}

/// An engine with a pool of slots for instances; without a pool where the address space is too small for one.
///
/// # Errors
/// This machine cannot run WebAssembly.
pub(super) fn engine(limits: &Limits) -> Result<Engine, LoadError> {
    let mut config = config();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(limits)));
    Engine::new(&config).or_else(|error| {
        tracing::warn!(error = %error, "no address space for a pool of plugin instances, each call will be slower");
        config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
        Engine::new(&config).map_err(LoadError::Engine)
    })
}

/// The same result for the same input, whatever the machine: no threads, one NaN, fuel counted.
fn config() -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .epoch_interruption(true)
        .max_wasm_stack(STACK)
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        .concurrency_support(false)
        .memory_init_cow(true);
    config
}

/// A pool whose slots stay warm as far as they are used: as many as threads run at once.
fn pool(limits: &Limits) -> PoolingAllocationConfig {
    let instances = u32::try_from(SLOTS).unwrap_or(u32::MAX);
    let workers = std::thread::available_parallelism().map_or(2, |cores| u32::try_from(cores.get()).unwrap_or(2));
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(instances)
        .total_core_instances(8 * instances)
        .max_core_instances_per_component(16)
        .total_memories(instances)
        .max_memories_per_component(1)
        .total_tables(4 * instances)
        .max_tables_per_component(4)
        .max_memory_size(limits.memory)
        .table_elements(limits.table)
        .linear_memory_keep_resident(KEEP_RESIDENT)
        .table_keep_resident(64 << 10)
        .max_unused_warm_slots(workers)
        .pagemap_scan(Enabled::Auto);
    pool
}

/// The component's exports, ready to be instantiated, and the digest of its bytes.
///
/// # Errors
/// It is not a component, imports too much, exports too little, or does not compile.
pub(super) fn compile(engine: &Engine, limits: &Limits, wasm: &[u8]) -> Result<(Exports, String), LoadError> {
    if wasm.len() > limits.component {
        return Err(LoadError::TooLarge { bytes: wasm.len(), limit: limits.component });
    }
    match wasm.get(..8) {
        Some([0, b'a', b's', b'm', _, _, 1, 0]) => {}
        Some([0, b'a', b's', b'm', ..]) => return Err(LoadError::NotAComponent("a core module")),
        _ => return Err(LoadError::NotAComponent("no WebAssembly at all")),
    }
    let component = Component::new(engine, wasm).map_err(LoadError::Compile)?;
    let linker = wasi::link(engine, &component)?;
    let ready = linker
        .instantiate_pre(&component)
        .map_err(|source| LoadError::Invalid { name: "imports".to_owned(), source })?;
    let exports = Exports::new(ready).map_err(LoadError::Export)?;
    Ok((exports, digest(wasm)))
}

fn digest(wasm: &[u8]) -> String {
    use std::fmt::Write;
    Sha256::digest(wasm).iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

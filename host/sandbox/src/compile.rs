//! From a file's bytes to a component that can be instantiated in microseconds.

use super::{
    convert::{Exports, INTERFACE, TRACK},
    gate::{self, MEMORIES, TABLES},
    limits::Limits,
    load_error::LoadError,
    log::clean,
    source::{digest, is_component},
    wasi,
};
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, component::Component};

/// How far a guest may recurse, in bytes of the host's stack. Threads that call plugins have 2 MiB.
const STACK: usize = 512 << 10;

/// Memory of a pool's slot that is cleared by hand instead of being given back, which would cost page faults.
const KEEP_RESIDENT: usize = 2 << 20;

/// Instances that the pool has room for. An unused slot costs address space only.
pub(super) const SLOTS: usize = 64;

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

/// The same result for the same input, whatever the machine: no threads, one NaN, fuel counted. A child that compiles has
/// the very same, so that what it makes fits the host's engine.
pub(super) fn config() -> Config {
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
        .max_memories_per_component(MEMORIES)
        .total_tables(4 * instances)
        .max_tables_per_component(TABLES)
        .max_memory_size(limits.memory)
        .table_elements(limits.table)
        .linear_memory_keep_resident(KEEP_RESIDENT)
        .table_keep_resident(64 << 10)
        .max_unused_warm_slots(workers)
        .pagemap_scan(Enabled::Auto);
    pool
}

/// The component's exports, ready to be instantiated, and the digest of its bytes. Compiled in this process: for what comes
/// with the host, and where runs must repeat; see `child` for what others made.
///
/// # Errors
/// It is not a component, imports too much, exports too little, or does not compile.
pub(super) fn compile(engine: &Engine, limits: &Limits, wasm: &[u8]) -> Result<(Exports, String), LoadError> {
    plausible(limits, wasm)?;
    let component = Component::new(engine, wasm).map_err(LoadError::Compile)?;
    Ok((ready(engine, &component)?, digest(wasm)))
}

/// The same component once more, from what it was compiled to.
///
/// # Errors
/// It cannot be loaded a second time.
pub(super) fn reload(engine: &Engine, exports: &Exports) -> Result<Exports, LoadError> {
    load(engine, &exports.component().serialize().map_err(LoadError::Compile)?)
}

/// The exports of what a component was compiled to.
///
/// # Errors
/// It imports too much or exports too little.
#[expect(unsafe_code, reason = "there is no other way to load what was compiled before")]
pub(super) fn load(engine: &Engine, artifact: &[u8]) -> Result<Exports, LoadError> {
    // SAFETY: these bytes are what this same program compiled: this process just now, or its own child, over a pipe that
    // nobody else could write to. They have been nowhere else.
    let component = unsafe { Component::deserialize(engine, artifact) };
    ready(engine, &component.map_err(LoadError::Compile)?)
}

/// Lets bytes pass that are worth compiling.
///
/// # Errors
/// They are too many, no component, or too complicated a one.
pub(super) fn plausible(limits: &Limits, wasm: &[u8]) -> Result<(), LoadError> {
    if wasm.len() > limits.component {
        return Err(LoadError::TooLarge { bytes: wasm.len(), limit: limits.component });
    }
    if !is_component(wasm) {
        let module = wasm.starts_with(b"\0asm");
        return Err(LoadError::NotAComponent(if module { "a core module" } else { "no WebAssembly at all" }));
    }
    gate::pass(wasm)
}

/// The exports of a compiled component, linked with what it imports.
///
/// # Errors
/// It imports too much or exports too little.
fn ready(engine: &Engine, component: &Component) -> Result<Exports, LoadError> {
    let of_contract = |name: &str| name.starts_with(INTERFACE) && !name.starts_with(TRACK);
    if component.component_type().exports(engine).any(|(name, _)| of_contract(name)) {
        let source = wasmtime::Error::msg("it is made for another version of the contract");
        return Err(LoadError::Export { exports: exported(engine, component), source });
    }
    let linker = wasi::link(engine, component)?;
    let linked = linker
        .instantiate_pre(component)
        .map_err(|source| LoadError::Invalid { name: "imports".to_owned(), source })?;
    Exports::new(linked).map_err(|source| LoadError::Export { exports: exported(engine, component), source })
}

/// The names that a component exports, the first of them at least.
fn exported(engine: &Engine, component: &Component) -> String {
    const SHOWN: usize = 8;
    let ty = component.component_type();
    let mut names: Vec<_> = ty.exports(engine).map(|(name, _)| clean(name, 128)).collect();
    if names.is_empty() {
        return "nothing".to_owned();
    }
    if names.len() > SHOWN {
        let more = names.len() - SHOWN;
        names.truncate(SHOWN);
        names.push(format!("{more} more"));
    }
    names.join(", ")
}

//! Compiles a component's bytes to exports that can be instantiated in microseconds.

use super::{
    convert::Exports,
    gate::{self, MEMORIES, MODULES, TABLES},
    limits::Limits,
    load_error::LoadError,
    needs,
    source::{component, digest},
    wasi,
};
use decide::Digest;
use std::path::Path;
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, component::Component,
};

/// Maximum stack of a guest, in bytes of the host's stack. Threads that call plugins have 2 MiB.
const STACK: usize = 512 << 10;

/// Bytes of a pool slot that are cleared in place. Returning them to the operating system would cost page faults.
const KEEP_RESIDENT: usize = 2 << 20;

/// Number of instances that fit into the pool. An unused slot costs address space only.
pub(super) const SLOTS: usize = 64;

/// Returns an engine with a pool of instance slots, or without a pool if the address space is too small for one.
///
/// # Errors
/// Returns an error if this machine cannot run WebAssembly.
pub(super) fn engine(limits: &Limits) -> Result<Engine, LoadError> {
    let mut config = config();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(limits)));
    Engine::new(&config).or_else(|error| {
        tracing::warn!(error = %error, "no address space for a pool of plugin instances, each call will be slower");
        config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
        Engine::new(&config).map_err(LoadError::Engine)
    })
}

/// Returns a configuration that gives the same result for the same input on every machine: no threads, canonical NaNs,
/// counted fuel. Only how deep calls may nest depends on the code that is made for a processor: [`STACK`] is in bytes of
/// native frames, and wasmtime counts no others. The child process that compiles uses the same configuration, so that the
/// host's engine can load its output.
pub(super) fn config() -> Config {
    let mut config = Config::new();
    config
        // Components come optimised. Optimising them again makes no call faster, and the host ready a third later.
        .cranelift_opt_level(OptLevel::None)
        // Read by nobody: offsets in backtraces, and the tables of unwinders that are not wasmtime's.
        .generate_address_map(false)
        .native_unwind_info(false)
        .consume_fuel(true)
        .epoch_interruption(true)
        .max_wasm_stack(STACK)
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        // Code that passes values between two components inside of one has both their memories. Without this, wasmtime
        // panics when it compiles such a component.
        .wasm_multi_memory(true)
        .concurrency_support(false)
        .memory_init_cow(true);
    config
}

/// Returns a pool configuration that keeps as many unused slots warm as threads run in parallel.
fn pool(limits: &Limits) -> PoolingAllocationConfig {
    let instances = u32::try_from(SLOTS).unwrap_or(u32::MAX);
    let workers = std::thread::available_parallelism().map_or(2, |cores| u32::try_from(cores.get()).unwrap_or(2));
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(instances)
        .total_core_instances(2 * MODULES * instances)
        .max_core_instances_per_component(2 * MODULES)
        .total_memories(MEMORIES * instances)
        .max_memories_per_component(MEMORIES)
        .total_tables(TABLES * instances)
        .max_tables_per_component(TABLES)
        .max_memory_size(limits.memory)
        .table_elements(limits.table)
        .linear_memory_keep_resident(KEEP_RESIDENT)
        .table_keep_resident(64 << 10)
        .max_unused_warm_slots(workers)
        .pagemap_scan(Enabled::Auto);
    pool
}

/// Compiles the component in this process and returns its exports with the digest of its bytes. For built-in plugins
/// and for reproducible runs; `child` compiles foreign components.
///
/// # Errors
/// Returns an error if the bytes are not a component, if an import is unknown or an export missing, or if compilation
/// fails.
pub(super) fn compile(engine: &Engine, limits: &Limits, wasm: &[u8]) -> Result<(Exports, Digest), LoadError> {
    plausible(limits, wasm)?;
    let component = Component::new(engine, wasm).map_err(LoadError::Compile)?;
    Ok((ready(engine, &component)?, digest(wasm)))
}

/// Loads a second copy of the component from its compiled code.
///
/// # Errors
/// Returns an error if the compiled code cannot be loaded again.
pub(super) fn reload(engine: &Engine, exports: &Exports) -> Result<Exports, LoadError> {
    load(engine, &exports.component().serialize().map_err(LoadError::Compile)?)
}

/// Returns a component with a second copy of it.
///
/// # Errors
/// As for [`reload`].
pub(super) fn twice(engine: &Engine, exports: Exports) -> Result<[Exports; 2], LoadError> {
    let again = reload(engine, &exports)?;
    Ok([exports, again])
}

/// Loads compiled code and returns the component's exports.
///
/// # Errors
/// Returns an error if the code cannot be loaded, if an import is unknown or an export missing.
#[expect(unsafe_code, reason = "there is no other way to load what was compiled before")]
pub(super) fn load(engine: &Engine, artifact: &[u8]) -> Result<Exports, LoadError> {
    // SAFETY: this program compiled these bytes, either in this process or in its own child, which sent them over a
    // pipe that nobody else can write to, or they are a copy of code that was loaded before.
    let component = unsafe { Component::deserialize(engine, artifact) };
    ready(engine, &component.map_err(LoadError::Compile)?)
}

/// Loads compiled code from a file, which is mapped and not read, and returns the component's exports.
///
/// # Errors
/// Returns an error if the code was made by another program or for another processor.
#[expect(unsafe_code, reason = "there is no other way to load what was compiled before")]
pub(super) fn load_file(engine: &Engine, file: &Path) -> Result<Exports, LoadError> {
    // SAFETY: the file is in the folder that the caller of this program names as being as trustworthy as the program's
    // own file, and this same program wrote it.
    let component = unsafe { Component::deserialize_file(engine, file) };
    ready(engine, &component.map_err(LoadError::Compile)?)
}

/// Checks cheaply that the bytes are worth compiling.
///
/// # Errors
/// Returns an error if they are too large, not a component, too complex, or need what the host does not offer.
pub(super) fn plausible(limits: &Limits, wasm: &[u8]) -> Result<(), LoadError> {
    if wasm.len() > limits.component {
        return Err(LoadError::TooLarge { bytes: wasm.len(), limit: limits.component });
    }
    component(wasm).map_err(LoadError::NotAComponent)?;
    gate::pass(wasm)?;
    needs::met(wasm)
}

/// Links a compiled component with its imports and returns its exports.
///
/// # Errors
/// Returns an error if an import is unknown or an export missing.
fn ready(engine: &Engine, component: &Component) -> Result<Exports, LoadError> {
    let linker = wasi::link(engine, component)?;
    let linked = linker
        .instantiate_pre(component)
        .map_err(|source| LoadError::Invalid { name: "imports".to_owned(), source })?;
    let ty = component.component_type();
    Exports::new(linked).map_err(|source| LoadError::export(ty.exports(engine).map(|(name, _)| name), source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasmtime::{Store, component::Linker};

    /// Functions whose fuel is known.
    const KNOWN: &str = r#"(component
        (core module $m
            (memory 1)
            (func $leaf)
            (func (export "count") (local $i i32)
                (loop $again
                    (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 1000)))))
            (func (export "call") (call $leaf) (call $leaf))
            (func (export "grow") (drop (memory.grow (i32.const 16))))
            (func (export "fill") (memory.fill (i32.const 0) (i32.const 7) (i32.const 65536)))
            (func (export "copy") (memory.copy (i32.const 0) (i32.const 32768) (i32.const 32768))))
        (core instance $i (instantiate $m))
        (func (export "count") (canon lift (core func $i "count")))
        (func (export "call") (canon lift (core func $i "call")))
        (func (export "grow") (canon lift (core func $i "grow")))
        (func (export "fill") (canon lift (core func $i "fill")))
        (func (export "copy") (canon lift (core func $i "copy"))))"#;

    // Budgets of plugins are in fuel: an upgrade of wasmtime that counts otherwise is for the upgrade notes.
    #[test]
    fn the_fuel_of_a_known_component_is_what_it_was() {
        const FULL: u64 = 1_000_000;
        let engine = Engine::new(&config()).unwrap();
        let component = Component::new(&engine, wat::parse_str(KNOWN).unwrap()).unwrap();
        let linker = Linker::new(&engine);
        let fuel = |function: &str| {
            let mut store = Store::new(&engine, ());
            store.set_fuel(FULL).unwrap();
            store.set_epoch_deadline(1);
            let instance = linker.instantiate(&mut store, &component).unwrap();
            let before = store.get_fuel().unwrap();
            let function = instance.get_typed_func::<(), ()>(&mut store, function).unwrap();
            function.call(&mut store, ()).unwrap();
            before - store.get_fuel().unwrap()
        };
        let fuels = ["count", "call", "grow", "fill", "copy"].map(|function| (function, fuel(function)));
        assert_eq!(fuels, [("count", 7001), ("call", 5), ("grow", 3), ("fill", 65_541), ("copy", 32_773)]);
    }
}

//! What a fuzzer calls of the stubs: a component that passes on each of them, and calls of it that bytes choose.

use crate::wasi::{COST, link};
use crate::{Limits, compile::engine, guest::Guest, log::Log};
use std::sync::LazyLock;
use wasmtime::{
    Engine, Store,
    component::{
        Component, ComponentExportIndex, InstancePre, Val,
        types::{ComponentItem, Type},
    },
};

/// The component: `stubs.wat`.
const STUBS: &[u8] = include_bytes!("fuzz/stubs.wasm");

/// A call that traps ends its instance; so many are made for the bytes that are left.
const INSTANCES: usize = 4;

/// Calls of one instance.
const CALLS: usize = 1024;

/// A byte from here on has eight more behind it, which are the argument.
const LONG: u8 = 0xf0;

/// Something to call.
struct Callable {
    at: ComponentExportIndex,
    /// It ends in a stub, which is not for nothing.
    is_stub: bool,
    params: Vec<Type>,
    results: usize,
}

struct Ready {
    engine: Engine,
    instance: InstancePre<Guest>,
    callable: Vec<Callable>,
}

static READY: LazyLock<Ready> = LazyLock::new(|| {
    let engine = engine(&Limits::default()).expect("an engine");
    let component = Component::new(&engine, STUBS).expect("it compiles");
    let instance = link(&engine, &component).expect("it may import all of it").instantiate_pre(&component);
    let exports: Vec<_> = component.component_type().exports(&engine).map(|(name, _)| name.to_owned()).collect();
    let callable = exports.iter().map(|name| callable(&component, name)).collect();
    Ready { instance: instance.expect("all of it is there"), callable, engine }
});

fn callable(component: &Component, name: &str) -> Callable {
    let (item, at) = component.get_export(None, name).expect("it exports that");
    let ComponentItem::ComponentFunc(function) = item else { panic!("{name} is a function") };
    let params = function.params().map(|(_, of)| of).collect();
    Callable { at, is_stub: name.starts_with("call-"), params, results: function.results().len() }
}

/// Makes the calls that the bytes choose, under a plugin's limits: each is answered or traps, and costs fuel.
pub fn calls(mut bytes: &[u8]) {
    for _ in 0..INSTANCES {
        if bytes.is_empty() {
            return;
        }
        let limits = Limits::default();
        let log = Log::new("fuzz".into(), "ns/job".into(), limits.log_lines);
        let mut store = Guest::new(&limits, log, 1_767_225_600_000, "seed").into_store(&READY.engine, &limits);
        store.set_fuel(limits.fuel).expect("fuel is counted");
        store.set_epoch_deadline(1);
        drop(live(&mut store, &mut bytes));
    }
}

/// One instance, until a call traps.
fn live(store: &mut Store<Guest>, bytes: &mut &[u8]) -> wasmtime::Result<()> {
    let instance = READY.instance.instantiate(&mut *store)?;
    for _ in 0..CALLS {
        let Some(which) = take(bytes) else { break };
        let called = &READY.callable[usize::from(which) % READY.callable.len()];
        let params: Vec<_> = called.params.iter().map(|of| argument(of, bytes)).collect();
        let mut results = vec![Val::Bool(false); called.results];
        let function = instance.get_func(&mut *store, called.at).expect("it exports that");
        let before = store.get_fuel()?;
        function.call(&mut *store, &params, &mut results)?;
        assert!(!called.is_stub || before - store.get_fuel()? >= COST, "a call of the host is for nothing");
    }
    Ok(())
}

fn take(bytes: &mut &[u8]) -> Option<u8> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*first)
}

fn argument(of: &Type, bytes: &mut &[u8]) -> Val {
    let first = take(bytes).unwrap_or_default();
    let number = match first {
        LONG.. => (0..8).fold(0, |number, place| number | u64::from(take(bytes).unwrap_or_default()) << (8 * place)),
        _ => first.into(),
    };
    match of {
        Type::U64 => Val::U64(number),
        // The core module's parameters are 32 bits wide or 64.
        _ => Val::U32(number as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wasi::STUBS as OFFERED;
    use std::collections::BTreeSet;

    // A stub that is not there would not be fuzzed.
    #[test]
    fn the_component_imports_every_stub() {
        let component = Component::new(&READY.engine, STUBS).unwrap();
        let mut imported = BTreeSet::new();
        for (name, import) in component.component_type().imports(&READY.engine) {
            let ComponentItem::ComponentInstance(instance) = import.ty else { panic!("{name} is an interface") };
            let interface = name.strip_suffix("@0.2.0").or(name.strip_suffix("@0.1.0")).unwrap_or_default();
            imported.extend(instance.exports(&READY.engine).map(|(function, _)| format!("{interface} {function}")));
        }
        let lacking = OFFERED.iter().map(|(interface, function, _)| format!("{interface} {function}"));
        let lacking: Vec<_> = lacking.filter(|stub| !imported.contains(stub)).collect();
        assert!(lacking.is_empty(), "stubs.wat lacks {lacking:?}");
    }
}

//! The imports of a component: the log, and stubs of our own for what a standard library drags in.
//!
//! A stub gives nothing away and is the same on every run: no environment, no arguments, no files, closed input, printing
//! goes to the log, clocks stand still, random numbers follow from the job. What is on the list but has no stub traps when
//! it is called; what is off the list is refused when the component is loaded. Not the crate wasmtime-wasi: it serves a
//! real system, and a plugin must have none.

use super::{
    guest::{Guest, charge},
    load_error::LoadError,
    logging,
    remedy::GUIDE,
};
use wasmtime::{
    AsContextMut, Engine, StoreContextMut, bail,
    component::{
        Component, Linker, LinkerInstance, Resource, ResourceAny, ResourceType, Val,
        types::{ComponentInstance, ComponentItem},
    },
    format_err,
};

/// The interface that every plugin may import.
const LOG: &str = "troupe:framework/log";

/// Interfaces without functions that come with the log.
const TYPES: &str = "troupe:framework/types";

/// The interfaces of WASI 0.2 that a component may import, of whatever patch version.
const ALLOWED: &[&str] = &[
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:filesystem/preopens",
    "wasi:filesystem/types",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:random/random",
];

/// Fuel for a call of a stub, beyond the guest's own instructions.
pub(super) const COST: u64 = 2_000;

/// The most that a stream takes, and random bytes are given, at once.
const CHUNK: u64 = 4096;

type Store<'a> = StoreContextMut<'a, Guest>;
type Stub = fn(Store<'_>, &[Val]) -> wasmtime::Result<Option<Val>>;

/// What a component may call, by interface and function.
pub(super) const STUBS: &[(&str, &str, Stub)] = &[
    (LOG, "write", logging::write),
    ("wasi:cli/environment", "get-environment", |_, _| Ok(Some(Val::List(vec![])))),
    ("wasi:cli/environment", "get-arguments", |_, _| Ok(Some(Val::List(vec![])))),
    ("wasi:cli/environment", "initial-cwd", |_, _| Ok(Some(Val::Option(None)))),
    ("wasi:cli/exit", "exit", |_, _| bail!("it exited")),
    ("wasi:cli/exit", "exit-with-code", |_, _| bail!("it exited")),
    ("wasi:cli/stdin", "get-stdin", |store, _| own::<Input>(store)),
    ("wasi:cli/stdout", "get-stdout", |store, _| own::<Output>(store)),
    ("wasi:cli/stderr", "get-stderr", |store, _| own::<Output>(store)),
    ("wasi:cli/terminal-stdin", "get-terminal-stdin", |_, _| Ok(Some(Val::Option(None)))),
    ("wasi:cli/terminal-stdout", "get-terminal-stdout", |_, _| Ok(Some(Val::Option(None)))),
    ("wasi:cli/terminal-stderr", "get-terminal-stderr", |_, _| Ok(Some(Val::Option(None)))),
    ("wasi:clocks/monotonic-clock", "now", |store, _| Ok(Some(Val::U64(nanoseconds(store.data().now))))),
    ("wasi:clocks/monotonic-clock", "resolution", |_, _| Ok(Some(Val::U64(1_000_000)))),
    ("wasi:clocks/wall-clock", "now", |store, _| Ok(Some(datetime(store.data().now)))),
    ("wasi:clocks/wall-clock", "resolution", |_, _| Ok(Some(datetime(1)))),
    ("wasi:filesystem/preopens", "get-directories", |_, _| Ok(Some(Val::List(vec![])))),
    ("wasi:io/poll", "[method]pollable.block", |_, _| Ok(None)),
    ("wasi:io/poll", "[method]pollable.ready", |_, _| Ok(Some(Val::Bool(true)))),
    ("wasi:io/streams", "[method]input-stream.read", |_, _| Ok(Some(closed()))),
    ("wasi:io/streams", "[method]input-stream.blocking-read", |_, _| Ok(Some(closed()))),
    ("wasi:io/streams", "[method]input-stream.subscribe", |store, _| own::<Pollable>(store)),
    ("wasi:io/streams", "[method]output-stream.check-write", |_, _| Ok(Some(ok(Some(Val::U64(CHUNK)))))),
    ("wasi:io/streams", "[method]output-stream.write", print),
    ("wasi:io/streams", "[method]output-stream.blocking-write-and-flush", print),
    ("wasi:io/streams", "[method]output-stream.flush", |_, _| Ok(Some(ok(None)))),
    ("wasi:io/streams", "[method]output-stream.blocking-flush", |_, _| Ok(Some(ok(None)))),
    ("wasi:io/streams", "[method]output-stream.subscribe", |store, _| own::<Pollable>(store)),
    ("wasi:random/random", "get-random-bytes", bytes),
    ("wasi:random/random", "get-random-u64", |mut store, _| Ok(Some(Val::U64(store.data_mut().draw())))),
    ("wasi:random/insecure", "get-insecure-random-bytes", bytes),
    ("wasi:random/insecure", "get-insecure-random-u64", |mut store, _| Ok(Some(Val::U64(store.data_mut().draw())))),
    ("wasi:random/insecure-seed", "insecure-seed", |mut store, _| {
        let guest = store.data_mut();
        Ok(Some(Val::Tuple(vec![Val::U64(guest.draw()), Val::U64(guest.draw())])))
    }),
];

/// Returns what the monotonic clock reads at this time in milliseconds: nanoseconds, at least 1. `describe` and `plan` are
/// called with the time 0, and Go's runtime exits if the clock reads 0.
fn nanoseconds(now: u64) -> u64 {
    now.saturating_mul(1_000_000).max(1)
}

/// The host's side of the resources. Each is only a type: there is nothing behind a handle.
struct Input;
struct Output;
struct Pollable;
struct Other;

fn resource(name: &str) -> ResourceType {
    match name {
        "input-stream" => ResourceType::host::<Input>(),
        "output-stream" => ResourceType::host::<Output>(),
        "pollable" => ResourceType::host::<Pollable>(),
        _ => ResourceType::host::<Other>(),
    }
}

/// Everything that the component imports, under the very names and versions it imports them by.
///
/// # Errors
/// The first import that is off the list, by name.
pub(super) fn link(engine: &Engine, component: &Component) -> Result<Linker<Guest>, LoadError> {
    let mut linker = Linker::new(engine);
    for (name, import) in component.component_type().imports(engine) {
        // Seen in the bytes before they were compiled, but for an import that is no interface.
        let refused = || LoadError::import(name, GUIDE);
        let ComponentItem::ComponentInstance(instance) = import.ty else { return Err(refused()) };
        let interface = allowed(name).ok_or_else(refused)?;
        let defined = linker.instance(name).and_then(|slot| define(engine, slot, interface, &instance));
        defined.map_err(|source| LoadError::Invalid { name: name.to_owned(), source })?;
    }
    Ok(linker)
}

/// Returns whether a component may import this interface.
pub(super) fn offers(import: &str) -> bool {
    allowed(import).is_some()
}

/// The listed interface that this import is a version of.
fn allowed(import: &str) -> Option<&'static str> {
    let (interface, version) = import.split_once('@')?;
    let ours = [LOG, TYPES].into_iter().find(|ours| *ours == interface);
    match ours {
        Some(ours) => version.starts_with("0.1.").then_some(ours),
        None => ALLOWED.iter().copied().find(|known| *known == interface && version.starts_with("0.2.")),
    }
}

fn define(
    engine: &Engine,
    mut slot: LinkerInstance<'_, Guest>,
    interface: &'static str,
    instance: &ComponentInstance,
) -> wasmtime::Result<()> {
    for (name, export) in instance.exports(engine) {
        match export.ty {
            ComponentItem::ComponentFunc(_) => define_function(&mut slot, interface, name)?,
            ComponentItem::Resource(_) => slot.resource(name, resource(name), |_, _| Ok(()))?,
            ComponentItem::Type(_) => {}
            _ => bail!("{name} is neither a function nor a type"),
        }
    }
    Ok(())
}

fn define_function(slot: &mut LinkerInstance<'_, Guest>, interface: &'static str, name: &str) -> wasmtime::Result<()> {
    let known = STUBS.iter().find(|(of, function, _)| *of == interface && *function == name);
    let Some((_, _, stub)) = known.copied() else {
        let called = format!("it called {interface} {name}, which the host does not have");
        return slot.func_new(name, move |_, _, _, _| Err(format_err!("{called}")));
    };
    slot.func_new(name, move |mut store, _, args, results| {
        charge(&mut store, COST)?;
        let answer = stub(store.as_context_mut(), args)?;
        for arg in args {
            if let Val::Resource(handle) = arg {
                handle.resource_drop(&mut store)?;
            }
        }
        match (results, answer) {
            ([], None) => Ok(()),
            ([result], Some(value)) => {
                *result = value;
                Ok(())
            }
            _ => bail!("it imports a function of another shape than the host's"),
        }
    })
}

fn own<T: 'static>(mut store: Store<'_>) -> wasmtime::Result<Option<Val>> {
    let handle: Resource<T> = Resource::new_own(0);
    Ok(Some(Val::Resource(ResourceAny::try_from_resource(handle, &mut store)?)))
}

fn ok(value: Option<Val>) -> Val {
    Val::Result(Ok(value.map(Box::new)))
}

fn closed() -> Val {
    Val::Result(Err(Some(Box::new(Val::Variant("closed".to_owned(), None)))))
}

fn datetime(milliseconds: u64) -> Val {
    let nanoseconds = u32::try_from(milliseconds % 1000).unwrap_or_default() * 1_000_000;
    Val::Record(vec![
        ("seconds".to_owned(), Val::U64(milliseconds / 1000)),
        ("nanoseconds".to_owned(), Val::U32(nanoseconds)),
    ])
}

fn print(mut store: Store<'_>, args: &[Val]) -> wasmtime::Result<Option<Val>> {
    let Some(Val::List(bytes)) = args.get(1) else { bail!("it prints something else than bytes") };
    charge(&mut store, 10 * bytes.len() as u64)?;
    let bytes = bytes.iter().filter_map(|byte| if let Val::U8(byte) = byte { Some(*byte) } else { None });
    store.data_mut().log.print(bytes);
    Ok(Some(ok(None)))
}

fn bytes(mut store: Store<'_>, args: &[Val]) -> wasmtime::Result<Option<Val>> {
    let Some(Val::U64(wanted @ 0..=CHUNK)) = args.first() else {
        bail!("it asked for more than {CHUNK} random bytes at once");
    };
    charge(&mut store, 10 * wanted)?;
    let mut bytes = Vec::with_capacity(CHUNK as usize);
    while (bytes.len() as u64) < *wanted {
        bytes.extend(store.data_mut().draw().to_le_bytes().map(Val::U8));
    }
    bytes.truncate(usize::try_from(*wanted)?);
    Ok(Some(Val::List(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_is_allowed_by_interface_and_track() {
        assert_eq!(allowed("wasi:io/streams@0.2.6"), Some("wasi:io/streams"));
        assert_eq!(allowed("wasi:io/streams@0.2.0"), Some("wasi:io/streams"));
        assert_eq!(allowed("troupe:framework/log@0.1.3"), Some(LOG));
        for stranger in [
            "wasi:sockets/tcp@0.2.6",
            "wasi:http/types@0.2.6",
            "wasi:io/streams@0.3.0",
            "wasi:io/streams",
            "troupe:framework/log@0.2.0",
            "wasi:io/streams/more@0.2.0",
        ] {
            assert_eq!(allowed(stranger), None, "{stranger}");
        }
    }

    #[test]
    fn the_monotonic_clock_reads_the_time_and_never_0() {
        assert_eq!([0, 1, 1500, u64::MAX].map(nanoseconds), [1, 1_000_000, 1_500_000_000, u64::MAX]);
    }

    #[test]
    fn every_stub_is_of_an_allowed_interface() {
        for (interface, function, _) in STUBS {
            assert!(*interface == LOG || ALLOWED.contains(interface), "{interface} {function}");
        }
    }
}

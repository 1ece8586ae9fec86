//! Files that are no plugin: refused when they are loaded, with words that say why.

use super::guest;
use troupe::plugin::{Limits, LoadError, Options, Plugins, Seam};

fn load(wasm: &[u8]) -> LoadError {
    let limits = Limits { fuel: 20_000_000, ..Limits::default() };
    let mut plugins = Plugins::empty(Options { limits, ..Options::new(Seam::Inline) }).unwrap();
    let error = plugins.load("it", wasm).unwrap_err();
    assert!(plugins.frameworks().is_empty());
    error
}

/// A component of these sections: id and content.
fn component(sections: &[(u8, &[u8])]) -> Vec<u8> {
    let mut wasm = b"\0asm\x0d\0\x01\0".to_vec();
    for (id, content) in sections {
        wasm.extend([*id, u8::try_from(content.len()).unwrap()]);
        wasm.extend(*content);
    }
    wasm
}

/// A component that imports an empty instance under this name.
fn importing(name: &str) -> Vec<u8> {
    let mut import = vec![1, 0, u8::try_from(name.len()).unwrap()];
    import.extend(name.as_bytes());
    import.extend([5, 0]);
    component(&[(7, &[1, 0x42, 0]), (10, &import)])
}

/// A component around a core module with this memory section.
fn with_memory(memory: &[u8]) -> Vec<u8> {
    let mut module = b"\0asm\x01\0\0\0".to_vec();
    module.extend([5, u8::try_from(memory.len()).unwrap()]);
    module.extend(memory);
    component(&[(1, &module), (2, &[1, 0, 0, 0])])
}

#[test]
fn what_is_no_component_is_refused() {
    assert_eq!(load(b"").to_string(), "this is no WebAssembly at all, not a WebAssembly component");
    assert_eq!(load(b"#!/bin/sh\n").to_string(), "this is no WebAssembly at all, not a WebAssembly component");
    assert_eq!(load(b"\0asm\x01\0\0\0").to_string(), "this is a core module, not a WebAssembly component");
    assert!(matches!(load(b"\0asm\x0d\0\x01\0\xff\xff"), LoadError::Compile(_)));
    let limit = Limits::default().component;
    assert!(matches!(load(&vec![0; limit + 1]), LoadError::TooLarge { .. }));
}

#[test]
fn an_import_off_the_list_is_refused_by_name() {
    for name in
        ["wasi:sockets/tcp@0.2.6", "wasi:http/outgoing-handler@0.2.6", "wasi:io/streams@0.3.0", "mine:own/thing"]
    {
        let error = load(&importing(name));
        assert_eq!(error.to_string(), format!("the component imports {name}, which the host does not offer"));
    }
    let LoadError::Import(name) = load(&guest("sockets")) else { panic!() };
    assert!(name.starts_with("wasi:sockets/"), "{name}");
}

#[test]
fn a_component_without_the_contracts_exports_is_refused() {
    assert!(matches!(load(&component(&[])), LoadError::Export(_)));
    assert!(matches!(load(&importing("wasi:io/poll@0.2.6")), LoadError::Export(_)));
}

#[test]
fn features_that_are_off_are_refused() {
    let memories: [(&str, &[u8]); 4] = [
        ("two memories", &[2, 0, 1, 0, 1]),
        ("memory64", &[1, 4, 1]),
        ("threads", &[1, 3, 1, 1]),
        ("custom page sizes", &[1, 8, 1, 0]),
    ];
    for (feature, memory) in memories {
        let error = load(&with_memory(memory));
        assert!(matches!(error, LoadError::Compile(_)), "{feature}: {error}");
    }
    assert!(matches!(load(&with_memory(&[1, 0, 1])), LoadError::Export(_)));
}

#[test]
fn a_plugin_that_cannot_describe_itself_is_refused() {
    let said = |feature: &str| match load(&guest(feature)) {
        LoadError::Describe(fault) => fault.to_string(),
        error => error.to_string(),
    };
    let trapped = said("describe-traps");
    assert!(trapped.starts_with("plugin it trapped in describe") && trapped.contains("as I was told"), "{trapped}");
    assert_eq!(said("describe-loops"), "plugin it ran out of fuel in describe");
    assert_eq!(said("describe-exits"), "plugin it trapped in describe: it exited");
    let unnamed = said("describe-unnamed");
    assert_eq!(unnamed, "the description of plugin it is not acceptable: the name \"No Label\" is no DNS label");
}

#[test]
fn a_plugin_is_not_loaded_twice() {
    let mut plugins = Plugins::empty(Options::new(Seam::Inline)).unwrap();
    plugins.load("one", &guest("")).unwrap();
    let error = plugins.load("two", &guest("")).unwrap_err();
    assert!(error.to_string().contains("is served by plugin hostile already"), "{error}");
}

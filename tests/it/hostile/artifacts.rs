//! Files that are no plugin: refused when they are loaded, with words that say why.

use super::{guest, handmade::component};
use sandbox::{
    Executor, Limits, LoadError, Options, Plugins,
    source::{DecompressError, Ratio, compress, decompress},
};

fn load(wasm: &[u8]) -> LoadError {
    let limits = Limits { fuel: 20_000_000, ..Limits::default() };
    let plugins = Plugins::empty(Options { limits, ..Options::new(Executor::Inline) }).unwrap();
    let error = plugins.load("it", wasm).unwrap_err();
    assert!(plugins.frameworks().is_empty());
    error
}

/// A component that imports an empty instance under this name.
fn importing(name: &str) -> Vec<u8> {
    let mut import = vec![1, 0, u8::try_from(name.len()).unwrap()];
    import.extend(name.as_bytes());
    import.extend([5, 0]);
    component(&[(7, &[1, 0x42, 0]), (10, &import)])
}

#[test]
fn a_file_that_is_no_component_is_refused_with_what_would_be_right() {
    let right = "not a WebAssembly component; build the plugin for wasm32-wasip2";
    assert_eq!(load(b"").to_string(), format!("this is no WebAssembly at all, {right}"));
    let core = load(b"\0asm\x01\0\0\0").to_string();
    assert!(core.starts_with(&format!("this is a core module, {right}")), "{core}");
    let limit = Limits::default().component;
    assert!(matches!(load(&vec![0; limit + 1]), LoadError::TooLarge { .. }));
}

#[test]
fn an_import_off_the_list_is_refused_by_name() {
    for name in
        ["wasi:sockets/tcp@0.2.6", "wasi:http/outgoing-handler@0.2.6", "wasi:io/streams@0.3.0", "mine:own/thing"]
    {
        let error = load(&importing(name));
        let words = error.to_string();
        assert!(
            words.starts_with(&format!("the component imports {name}, which the host does not offer; ")),
            "{words}"
        );
    }
    let LoadError::Import { name, .. } = load(&guest("sockets")) else { panic!() };
    assert!(name.starts_with("wasi:sockets/"), "{name}");
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
    let greedy = said("describe-greedy");
    assert!(greedy.ends_with("grants: this host knows no grant \"everything\""), "{greedy}");
}

#[test]
fn a_plugin_is_not_loaded_twice() {
    let plugins = Plugins::empty(Options::new(Executor::Inline)).unwrap();
    plugins.load("one", &guest("")).unwrap();
    let error = plugins.load("two", &guest("")).unwrap_err();
    assert!(error.to_string().contains("another plugin is called hostile"), "{error}");
}

#[test]
fn a_zstd_bomb_is_refused_before_it_goes_off() {
    let limit = Limits::default().component;
    let bomb = compress(&vec![0; limit + 1], Ratio::Quick).unwrap();
    assert!(bomb.len() < 4096, "{}", bomb.len());
    assert!(matches!(decompress(&bomb, limit), Err(DecompressError::TooLarge(_))));
    // Frames one after the other are as much.
    let half = compress(&vec![0; limit / 2 + 1], Ratio::Quick).unwrap();
    assert!(matches!(decompress(&[half.clone(), half].concat(), limit), Err(DecompressError::TooLarge(_))));
    // One that only asks for memory: a window of 128 MiB, and nothing in it.
    let greedy = [0x28, 0xb5, 0x2f, 0xfd, 0, 17 << 3, 1, 0, 0];
    assert!(matches!(decompress(&greedy, limit), Err(DecompressError::Broken(_))));
    let modest = [0x28, 0xb5, 0x2f, 0xfd, 0, 10 << 3, 1, 0, 0];
    assert_eq!(decompress(&modest, limit).unwrap(), b"");
}

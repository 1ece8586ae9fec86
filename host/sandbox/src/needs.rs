//! What a component needs of its host, read from its bytes: before it is compiled, which can take half a minute.

use super::{
    convert::{INTERFACE, TRACK},
    load_error::LoadError,
    remedy::{Trouble, remedy},
    surface::Surface,
    wasi,
};
use wasmparser::{BinaryReaderError, CanonicalFunction, CanonicalOption, Parser, Payload};

/// Checks that a component is made for this version of the contract, that the host offers every import of it, and that no
/// function of it is asynchronous.
///
/// # Errors
/// Returns the first need that the host does not meet, with what to tell the tool that made the component, or an error if
/// the bytes cannot be read as WebAssembly.
pub(super) fn met(wasm: &[u8]) -> Result<(), LoadError> {
    let broken = |error: BinaryReaderError| LoadError::Compile(error.into());
    let Surface { imports, exports } = Surface::of(wasm).map_err(broken)?;
    if exports.iter().any(|name| name.starts_with(INTERFACE) && !name.starts_with(TRACK)) {
        let source = wasmtime::Error::msg("it is made for another version of the contract");
        return Err(LoadError::export(exports.iter().map(String::as_str), source));
    }
    if let Some(name) = imports.iter().find(|name| !wasi::offers(name)) {
        return Err(LoadError::import(name, remedy(Trouble::of_import(name), wasm)));
    }
    if is_asynchronous(wasm).map_err(broken)? {
        return Err(LoadError::Asynchronous { remedy: remedy(Trouble::Asynchronous, wasm) });
    }
    Ok(())
}

/// Returns whether a function of the component, or of one inside it, is of the asynchronous ABI.
fn is_asynchronous(wasm: &[u8]) -> Result<bool, BinaryReaderError> {
    for payload in Parser::new(0).parse_all(wasm) {
        if let Payload::ComponentCanonicalSection(functions) = payload? {
            for function in functions {
                let is_plain = match function? {
                    CanonicalFunction::Lift { options, .. } | CanonicalFunction::Lower { options, .. } => {
                        !options.contains(&CanonicalOption::Async)
                    }
                    CanonicalFunction::ResourceNew { .. }
                    | CanonicalFunction::ResourceDrop { .. }
                    | CanonicalFunction::ResourceRep { .. } => true,
                    // Tasks, streams, futures, threads.
                    _ => false,
                };
                if !is_plain {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the component is refused with, if it is.
    fn refused(text: &str) -> Option<String> {
        met(&wat::parse_str(text).unwrap()).err().map(|error| error.to_string())
    }

    /// A component that imports this, and was made by this tool.
    fn importing(name: &str, made_by: &str) -> String {
        format!("(component {made_by} (import \"{name}\" (instance)))")
    }

    /// What each tool leaves in a component.
    const COMPONENTIZE_JS: &str = r#"(@producers (language "JavaScript" "") (processed-by "ComponentizeJS" "0.23.0"))"#;
    const COMPONENTIZE_PY: &str =
        r#"(@producers (processed-by "component-init-transform" "0.2.0")) (core module $libpython3.14.so)"#;
    const COMPONENTIZE_QJS: &str = r#"(component $init (core module (@custom ".dep-v0" "")) (core module $m (func (export "f")))
        (core instance $i (instantiate $m)) (func $f (canon lift (core func $i "f"))) (export "f" (func $f)))
        (instance $init (instantiate $init)) (alias export $init "f" (func $f)) (export "init" (func $f))"#;

    #[test]
    fn an_import_that_the_host_does_not_offer_is_refused_with_what_to_tell_the_tool() {
        for (name, made_by, remedy) in [
            ("wasi:http/types@0.2.10", COMPONENTIZE_JS, "build it with `-d http -d fetch-event` of componentize-js"),
            ("wasi:sockets/tcp@0.2.9", COMPONENTIZE_PY, "build it with `--stub-wasi` of componentize-py"),
            ("wasi:sockets/tcp@0.2.6", "", "a plugin has no network: leave out what opens connections"),
            ("wasi:cli/stdout@0.3.0", "", "build it for WASI 0.2, as the target wasm32-wasip2 does"),
            ("wasi:cli/stdout@0.3.0", COMPONENTIZE_QJS, "build it with `--sync` of componentize-qjs"),
            ("troupe:framework/types@0.2.0", "", "it is made for another version of the contract"),
            ("mine:own/thing", "", "the guide to writing a plugin lists what one may import"),
        ] {
            let words = refused(&importing(name, made_by)).unwrap();
            let expected = format!("the component imports {name}, which the host does not offer; {remedy}");
            assert!(words.starts_with(&expected), "{words}");
        }
        for offered in ["wasi:io/streams@0.2.12", "troupe:framework/log@0.1.0"] {
            assert_eq!(refused(&importing(offered, COMPONENTIZE_JS)), None);
        }
    }

    #[test]
    fn another_version_of_the_contract_is_told_by_its_name() {
        let of_version = |version: &str| {
            refused(&format!(
                r#"(component (import "troupe:framework/types@{version}" (instance)) (instance $i)
                    (export "troupe:framework/framework@{version}" (instance $i)))"#
            ))
        };
        let words = of_version("0.2.0").unwrap();
        assert!(words.starts_with("the component exports troupe:framework/framework@0.2.0; the host wants"), "{words}");
        assert_eq!(of_version("0.1.7"), None);
    }

    #[test]
    fn an_asynchronous_function_is_refused_with_what_to_tell_the_tool() {
        let asynchronous = "(component (core func (canon task.cancel)))";
        let words = refused(&format!("(component {COMPONENTIZE_QJS} {asynchronous})")).unwrap();
        assert_eq!(
            words,
            "the component has asynchronous functions, which the host does not offer; build it with `--sync` of \
             componentize-qjs"
        );
        let words = refused(asynchronous).unwrap();
        assert!(words.ends_with("make its bindings without `async`"), "{words}");
        assert_eq!(refused(&format!("(component {COMPONENTIZE_QJS})")), None);
    }
}

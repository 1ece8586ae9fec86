//! What an author has to tell the tool that made a component which the host does not take.
//!
//! The tool is known by what it leaves in the bytes. That only chooses among the sentences here: nothing of the bytes is
//! repeated.

use wasmparser::{KnownCustom, Name, Parser, Payload, ProducersSectionReader};

/// For an import of which the host knows nothing.
pub(super) const GUIDE: &str = "the guide to writing a plugin lists what one may import";

/// For a count that no plugin of a usual tool has.
pub(super) const LESS: &str = "a plugin is made of less";

/// Why the host does not take a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It is a core module.
    Module,
    /// It has asynchronous functions.
    Asynchronous,
    /// It has more memories than the host gives it.
    Memories,
    /// It imports HTTP.
    Http,
    /// It imports sockets.
    Sockets,
    /// It imports a later WASI.
    LaterWasi,
    /// It imports another version of the contract.
    Contract,
    /// It imports something else.
    Stranger,
}

impl Trouble {
    /// Returns why the host does not offer this import.
    pub(super) fn of_import(name: &str) -> Self {
        let (interface, version) = name.split_once('@').unwrap_or((name, ""));
        match interface.split('/').next() {
            Some("wasi:http") => Self::Http,
            Some("wasi:sockets") => Self::Sockets,
            Some("troupe:framework") => Self::Contract,
            Some(package) if package.starts_with("wasi:") && version.starts_with("0.3.") => Self::LaterWasi,
            _ => Self::Stranger,
        }
    }
}

/// The tool, or the compiler, that made a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    ComponentizeJs,
    ComponentizePy,
    ComponentizeQjs,
    Go,
    Rust,
    C,
    Unknown,
}

/// Returns what to tell the tool that made these bytes.
pub(super) fn remedy(trouble: Trouble, wasm: &[u8]) -> &'static str {
    match (trouble, Tool::of(wasm)) {
        (Trouble::Module, Tool::Rust) => "build it for the target wasm32-wasip2, or with `cargo component build`",
        (Trouble::Module, Tool::Go) => {
            "build it with `troupe plugin build` in a project of `troupe plugin new --lang go`, or make a component of it with \
             `wasm-tools component embed` and `wasm-tools component new --adapt`, with the reactor adapter of WASI preview 1"
        }
        (Trouble::Module, Tool::C) => {
            "build it with `troupe plugin build` in a project of `troupe plugin new --lang c`, or make a component of it with \
             `wasm-tools component new`"
        }
        (Trouble::Module, _) => {
            "build the plugin for wasm32-wasip2, or make a component of it with `wasm-tools component new`"
        }
        (Trouble::Asynchronous | Trouble::LaterWasi, Tool::ComponentizeQjs) => {
            "build it with `--sync` of componentize-qjs"
        }
        (Trouble::Asynchronous, _) => "make its bindings without `async`",
        (Trouble::Memories, Tool::ComponentizeQjs) => "build it without `--stub-wasi` of componentize-qjs",
        (Trouble::Memories, _) => LESS,
        (Trouble::Http, Tool::ComponentizeJs) => "build it with `-d http -d fetch-event` of componentize-js",
        (Trouble::Sockets, Tool::ComponentizePy) => "build it with `--stub-wasi` of componentize-py",
        (Trouble::Http | Trouble::Sockets, _) => "a plugin has no network: leave out what opens connections",
        (Trouble::LaterWasi, _) => "build it for WASI 0.2, as the target wasm32-wasip2 does",
        (Trouble::Contract, _) => {
            "it is made for another version of the contract: make its bindings from the wit/framework.wit of this host's version"
        }
        (Trouble::Stranger, _) => GUIDE,
    }
}

/// What tools leave in a file.
#[derive(Debug, Default)]
struct Traces {
    componentize_js: bool,
    componentize_py: bool,
    /// A section of libraries that are linked when a component is made.
    linked: bool,
    /// A function of the component that sets up an interpreter.
    init: bool,
    go: bool,
    rust: bool,
    c: bool,
}

impl Tool {
    /// Returns the tool that made these bytes, as far as they can be read.
    fn of(wasm: &[u8]) -> Self {
        let mut traces = Traces::default();
        for payload in Parser::new(0).parse_all(wasm) {
            let Ok(payload) = payload else { break };
            traces.add(&payload);
        }
        match traces {
            Traces { componentize_js: true, .. } => Self::ComponentizeJs,
            Traces { componentize_py: true, .. } => Self::ComponentizePy,
            Traces { linked: true, init: true, .. } => Self::ComponentizeQjs,
            Traces { go: true, .. } => Self::Go,
            // The standard library of Rust has parts in C.
            Traces { rust: true, .. } => Self::Rust,
            Traces { c: true, .. } => Self::C,
            _ => Self::Unknown,
        }
    }
}

impl Traces {
    fn add(&mut self, payload: &Payload<'_>) {
        match payload {
            Payload::ComponentExportSection(exports) => {
                self.init |= exports.clone().into_iter().flatten().any(|export| export.name.name == "init");
            }
            Payload::CustomSection(section) => match section.as_known() {
                KnownCustom::Producers(producers) => self.add_producers(producers),
                KnownCustom::Name(names) => {
                    let of_python = |name: &str| name.starts_with("libpython") || name.starts_with("componentize_py");
                    self.componentize_py |=
                        names.flatten().any(|part| matches!(part, Name::Module { name, .. } if of_python(name)));
                }
                _ => self.linked |= section.name() == ".dep-v0",
            },
            _ => {}
        }
    }

    fn add_producers(&mut self, producers: ProducersSectionReader<'_>) {
        for field in producers.into_iter().flatten() {
            for value in field.values.into_iter().flatten() {
                match (field.name, value.name) {
                    ("processed-by", "ComponentizeJS") => self.componentize_js = true,
                    ("processed-by", "component-init-transform") => self.componentize_py = true,
                    ("language", "Go") => self.go = true,
                    ("language", "Rust") => self.rust = true,
                    ("language", language) if language.starts_with('C') => self.c = true,
                    _ => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(trouble: Trouble, text: &str) -> &'static str {
        remedy(trouble, &wat::parse_str(text).unwrap())
    }

    #[test]
    fn a_core_module_is_made_a_component_by_the_tools_of_its_language() {
        let module = |languages: &str| told(Trouble::Module, &format!("(module (@producers {languages}))"));
        assert!(module(r#"(language "Rust" "")"#).contains("`cargo component build`"));
        assert!(module(r#"(language "C11" "") (language "Rust" "")"#).contains("`cargo component build`"));
        assert!(module(r#"(language "Go" "go1.26") (processed-by "Go cmd/compile" "go1.26")"#).contains("--lang go"));
        assert!(module(r#"(language "C11" "")"#).contains("--lang c`"));
        assert!(module("").contains("wasm32-wasip2"));
    }

    #[test]
    fn a_third_memory_comes_from_stubs_of_wasi() {
        let init = r#"(core module $m (@custom ".dep-v0" "") (func (export "f"))) (core instance $i (instantiate $m))
            (func $f (canon lift (core func $i "f"))) (export "init" (func $f))"#;
        let words = told(Trouble::Memories, &format!("(component {init})"));
        assert_eq!(words, "build it without `--stub-wasi` of componentize-qjs");
        assert_eq!(told(Trouble::Memories, "(component)"), LESS);
    }
}

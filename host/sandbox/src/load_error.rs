//! Why a plugin is not loaded.

use super::convert::CONTRACT;
use std::path::PathBuf;

/// Why a plugin is not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Its file is too large.
    #[error("the component has {bytes} bytes, more than {limit}; build it with optimisation and strip its symbols")]
    TooLarge {
        /// How large it is.
        bytes: usize,
        /// What is allowed.
        limit: usize,
    },
    /// It is a core module, or no WebAssembly at all.
    #[error("this is {0}, not a WebAssembly component; build the plugin for wasm32-wasip2")]
    NotAComponent(&'static str),
    /// There is too much of something in it to be compiled.
    #[error("the component has {is} {what}, more than {most}; a plugin is made of less")]
    TooComplex {
        /// Of what.
        what: &'static str,
        /// How much.
        is: u64,
        /// What is allowed.
        most: u64,
    },
    /// It does not compile.
    #[error("failed to compile the component")]
    Compile(#[source] wasmtime::Error),
    /// Compiling it takes more than a compiler may use up.
    #[error("the compiler was stopped: it used up its {budget} ({limit}); make the component's functions smaller")]
    CompilerStopped {
        /// `processor time`, `memory`, `time` or `output`.
        budget: &'static str,
        /// What is allowed.
        limit: String,
    },
    /// The compiler ended in a way that nobody foresaw. Only its own process did.
    #[error("the compiler broke down on the component ({how}): {words}")]
    CompilerBroke {
        /// Its exit code or signal.
        how: String,
        /// The last that it said.
        words: String,
    },
    /// The compiler's process cannot be run.
    #[error("failed to run the compiler {}", program.display())]
    NoCompiler {
        /// The host's own program.
        program: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
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
    #[error("the component exports {exports}; the host wants {CONTRACT} as this version's framework.wit has it")]
    Export {
        /// What it does export.
        exports: String,
        /// In which way that is wrong.
        source: wasmtime::Error,
    },
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

//! Errors of loading a plugin.

use super::{
    child_error::ChildError, convert::CONTRACT, description::DescriptionError, log::clean, source::NotAComponent,
};
use std::path::PathBuf;

/// The reason why a plugin is not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The component's file is too large.
    #[error(
        "the component has {bytes} bytes, more than {limit}; build it with optimisation and strip its symbols, or let the \
         host take it with --max-plugin-bytes"
    )]
    TooLarge {
        /// Its size in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The bytes are a core module, or not WebAssembly.
    #[error("this is {0}")]
    NotAComponent(NotAComponent),
    /// A count of the component's parts exceeds its limit.
    #[error("the component has {is} {what}, more than {most}; {remedy}")]
    TooComplex {
        /// The counted part.
        what: &'static str,
        /// The count.
        is: u64,
        /// The limit.
        most: u64,
        /// What to tell the tool that made it.
        remedy: &'static str,
    },
    /// The component does not compile.
    #[error("failed to compile the component")]
    Compile(#[source] wasmtime::Error),
    /// The compiler exceeded one of its resource limits.
    #[error("the compiler was stopped: it used up its {budget} ({limit}); make the component's functions smaller")]
    CompilerStopped {
        /// The resource: `processor time`, `memory`, `time` or `output`.
        budget: &'static str,
        /// The limit with its unit.
        limit: String,
    },
    /// The compiler's process ended unexpectedly. The host goes on.
    #[error("the compiler broke down on the component ({how}): {words}")]
    CompilerBroke {
        /// Its exit code or signal.
        how: String,
        /// Its output on standard error, cut.
        words: String,
    },
    /// The compiler's process cannot be run.
    #[error("failed to run the compiler {}", program.display())]
    NoCompiler {
        /// The path of the host's own program.
        program: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The component imports something that the host does not offer.
    #[error("the component imports {name}, which the host does not offer; {remedy}")]
    Import {
        /// The name of the import, cut.
        name: String,
        /// What to tell the tool that made it.
        remedy: &'static str,
    },
    /// The component has functions of the asynchronous ABI.
    #[error("the component has asynchronous functions, which the host does not offer; {remedy}")]
    Asynchronous {
        /// What to tell the tool that made it.
        remedy: &'static str,
    },
    /// The component imports a known name with another type than the host offers.
    #[error("the component's {name} is not what the contract has")]
    Invalid {
        /// The name of the import.
        name: String,
        /// The cause.
        source: wasmtime::Error,
    },
    /// The component does not export the contract.
    #[error("the component exports {exports}; the host wants {CONTRACT} as this version's framework.wit has it")]
    Export {
        /// The names that it exports.
        exports: String,
        /// The cause.
        source: wasmtime::Error,
    },
    /// The plugin's `describe` failed.
    #[error("the component cannot describe itself")]
    Describe(#[from] decide::plan::Fault),
    /// The plugin's description is inconsistent, or conflicts with another plugin.
    #[error("the description of plugin {plugin} is not acceptable: {why}")]
    Description {
        /// The plugin's name.
        plugin: String,
        /// What is wrong.
        why: DescriptionError,
    },
    /// This machine cannot run WebAssembly.
    #[error("failed to set up the WebAssembly engine")]
    Engine(#[source] wasmtime::Error),
}

impl LoadError {
    /// Returns the error for an import that the host does not offer.
    pub(super) fn import(name: &str, remedy: &'static str) -> Self {
        Self::Import { name: clean(name, 128), remedy }
    }

    /// Returns the error for exports that are not the contract's, of which it names the first.
    pub(super) fn export<'a>(names: impl Iterator<Item = &'a str>, source: wasmtime::Error) -> Self {
        const SHOWN: usize = 8;
        let mut names = names.map(|name| clean(name, 128));
        let mut shown: Vec<_> = names.by_ref().take(SHOWN).collect();
        match names.count() {
            0 => {}
            more => shown.push(format!("{more} more")),
        }
        let exports = if shown.is_empty() { "nothing".to_owned() } else { shown.join(", ") };
        Self::Export { exports, source }
    }
}

impl From<ChildError> for LoadError {
    fn from(error: ChildError) -> Self {
        match error {
            ChildError::Stopped { budget, limit } => Self::CompilerStopped { budget, limit },
            ChildError::Broke { how, words } => Self::CompilerBroke { how, words },
            ChildError::Refused(words) => Self::Compile(wasmtime::Error::msg(words)),
            ChildError::NotRun { program, source } => Self::NoCompiler { program, source },
        }
    }
}

//! Where components are compiled that did not come with the host.

use super::{
    child::{self, Bounds},
    compile::{self, LoadError},
    convert::Exports,
    limits::Limits,
};
use std::path::PathBuf;
use wasmtime::Engine;

/// Where components are compiled that did not come with the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compiler {
    /// In this process: the same on every run. For the simulator and for tests.
    InProcess,
    /// In a child process, one at a time. For production.
    Child {
        /// A program that is this one.
        program: PathBuf,
        /// What each child may use up.
        bounds: Bounds,
    },
}

impl Compiler {
    /// Children of the program that is running, even if its file has been replaced meanwhile, with the usual bounds.
    #[must_use]
    pub fn of_this_program() -> Self {
        Self::Child { program: "/proc/self/exe".into(), bounds: Bounds::default() }
    }

    /// The component's exports, ready to be instantiated, and the digest of its bytes.
    ///
    /// # Errors
    /// It is no plugin, or cannot be compiled within bounds.
    pub(super) async fn compile(
        &self,
        engine: &Engine,
        limits: &Limits,
        wasm: &[u8],
    ) -> Result<(Exports, String), LoadError> {
        match self {
            Self::InProcess => compile::compile(engine, limits, wasm),
            Self::Child { program, bounds } => child::compile(program, bounds, engine, limits, wasm).await,
        }
    }
}

//! Where components are compiled.

use super::{
    child::{self, Bounds},
    compile::{self, LoadError},
    convert::Exports,
    limits::Limits,
};
use std::path::PathBuf;
use tokio::sync::Semaphore;
use tracing::warn;
use wasmtime::Engine;

/// One foreign component at a time: a compiler can use as much as all plugins together.
static TURN: Semaphore = Semaphore::const_new(1);

/// Where components are compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compiler {
    /// In this process: the same on every run. For the simulator and for tests.
    InProcess,
    /// In a child process: what a compiler takes for its work goes with it. For production.
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

    /// The exports of a component that others made, ready to be instantiated, and the digest of its bytes.
    ///
    /// # Errors
    /// It is no plugin, or cannot be compiled within bounds.
    pub(super) async fn foreign(
        &self,
        engine: &Engine,
        limits: &Limits,
        wasm: &[u8],
    ) -> Result<(Exports, String), LoadError> {
        match self {
            Self::InProcess => compile::compile(engine, limits, wasm),
            Self::Child { program, bounds } => {
                let _turn = TURN.acquire().await.expect("the semaphore is never closed");
                child::compile(program, bounds, engine, limits, wasm).await
            }
        }
    }

    /// The same of a component that came with the host: side by side with others, and in this process where a child cannot.
    ///
    /// # Errors
    /// It is no plugin.
    pub(super) async fn bundled(
        &self,
        engine: &Engine,
        limits: &Limits,
        wasm: &[u8],
    ) -> Result<(Exports, String), LoadError> {
        if let Self::Child { program, bounds } = self {
            match child::compile(program, bounds, engine, limits, wasm).await {
                Ok(compiled) => return Ok(compiled),
                Err(error) => warn!(%error, "a built-in plugin is compiled in this process"),
            }
        }
        compile::compile(engine, limits, wasm)
    }
}

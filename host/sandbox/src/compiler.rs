//! Where components are compiled.

use super::{
    child::{self, Bounds},
    compile,
    convert::Exports,
    limits::Limits,
    load_error::LoadError,
    source,
};
use decide::Digest;
use parking_lot::Mutex;
use std::{collections::HashMap, fmt, path::PathBuf, sync::Arc};
use tokio::sync::Semaphore;
use tracing::warn;
use wasmtime::Engine;

/// Permit to compile a foreign component, one at a time: a compiler can use as much memory and time as all plugins
/// together.
static TURN: Semaphore = Semaphore::const_new(1);

/// Where components are compiled.
#[derive(Debug, Clone)]
pub enum Compiler {
    /// In this process: the same on every run. For the simulator and for tests.
    InProcess,
    /// In this process, each component only once. For campaigns, whose hosts load the same components again and again.
    Once(Compiled),
    /// In a child process, which frees the compiler's memory when it ends. For production.
    Child {
        /// The path of this same program.
        program: PathBuf,
        /// Resource limits of each child.
        bounds: Bounds,
    },
}

/// Components that were compiled for one engine, by digest. Clones share them.
#[derive(Clone, Default)]
pub struct Compiled(Arc<Mutex<HashMap<Digest, Exports>>>);

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Compiled")
    }
}

impl Compiled {
    fn once(
        &self,
        wasm: &[u8],
        compile: impl FnOnce() -> Result<(Exports, Digest), LoadError>,
    ) -> Result<(Exports, Digest), LoadError> {
        let digest = source::digest(wasm);
        let mut compiled = self.0.lock();
        if let Some(exports) = compiled.get(&digest) {
            return Ok((exports.clone(), digest));
        }
        let (exports, digest) = compile()?;
        compiled.insert(digest.clone(), exports.clone());
        Ok((exports, digest))
    }
}

impl Compiler {
    /// Returns a compiler that runs children of the running program, even if its file was replaced meanwhile, with the
    /// default bounds.
    #[must_use]
    pub fn of_this_program() -> Self {
        Self::Child { program: "/proc/self/exe".into(), bounds: Bounds::default() }
    }

    /// Compiles a foreign component and returns its exports with the digest of its bytes.
    ///
    /// # Errors
    /// Returns an error if it is not a plugin, or cannot be compiled within bounds.
    pub(super) async fn foreign(
        &self,
        engine: &Engine,
        limits: &Limits,
        wasm: &[u8],
    ) -> Result<(Exports, Digest), LoadError> {
        match self {
            Self::InProcess => compile::compile(engine, limits, wasm),
            Self::Once(compiled) => compiled.once(wasm, || compile::compile(engine, limits, wasm)),
            Self::Child { program, bounds } => {
                let _turn = TURN.acquire().await.expect("the semaphore is never closed");
                child::compile(program, bounds, engine, limits, wasm).await
            }
        }
    }

    /// Compiles a built-in component like [`foreign`](Self::foreign), but concurrently with others, and in this process
    /// if the child fails.
    ///
    /// # Errors
    /// Returns an error if it is not a plugin.
    pub(super) async fn bundled(
        &self,
        engine: &Engine,
        limits: &Limits,
        wasm: &[u8],
    ) -> Result<(Exports, Digest), LoadError> {
        if let Self::Child { program, bounds } = self {
            match child::compile(program, bounds, engine, limits, wasm).await {
                Ok(compiled) => return Ok(compiled),
                Err(error) => warn!(%error, "a built-in plugin is compiled in this process"),
            }
        }
        compile::compile(engine, limits, wasm)
    }
}

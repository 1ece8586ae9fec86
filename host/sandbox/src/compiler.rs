//! Where components are compiled, and asked what settings they allow.

use super::{
    child::{self, Bounds},
    child_error::ChildError,
    compile,
    convert::Exports,
    limits::Limits,
    load_error::LoadError,
    settings::{ConfigError, allowed},
    source,
    verdict::{Question, Verdict},
};
use decide::{Digest, plan::Descriptor};
use parking_lot::Mutex;
use serde_json::Value;
use std::{
    collections::HashMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};
use tokio::{
    runtime::{self, Handle, RuntimeFlavor},
    sync::Semaphore,
    task::block_in_place,
};
use tracing::warn;
use wasmtime::Engine;

/// Permit to compile a foreign component, one at a time: a compiler can use as much memory and time as all plugins
/// together.
static TURN: Semaphore = Semaphore::const_new(1);

/// Resource limits of a child that checks settings.
fn of_settings() -> Bounds {
    Bounds { cpu_seconds: 5, memory: 512 << 20, wall: Duration::from_secs(60), output: 64 << 10 }
}

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

    /// Returns whether the schema of a foreign component allows the config. A child is asked within bounds, and the thread of
    /// the caller waits for it.
    ///
    /// # Errors
    /// The schema does not allow it, is none, or takes more than its bounds.
    pub(super) fn allows(&self, described: &Descriptor, config: &Value) -> Result<(), ConfigError> {
        let (plugin, schema) = (&described.name, &described.config_schema);
        let verdict = match self {
            Self::InProcess | Self::Once(_) => Verdict::of(schema, config),
            Self::Child { program, .. } => {
                let failed = |why| ConfigError::NotChecked { plugin: plugin.clone(), why };
                waiting(|| asked_of_a_child(program, schema, config)).map_err(failed)?
            }
        };
        allowed(verdict, plugin)
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

fn asked_of_a_child(program: &Path, schema: &Value, config: &Value) -> Result<Verdict, ChildError> {
    let failed = |source| ChildError::NotRun { program: program.to_owned(), source };
    let question = serde_json::to_vec(&Question { schema, config }).map_err(|error| failed(error.into()))?;
    // The caller may be on any runtime, or on none.
    let answer = thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
            runtime.block_on(child::run(program, "check-settings", &of_settings(), &question))
        });
        asking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    serde_json::from_slice(&answer).map_err(|error| failed(error.into()))
}

/// Does what makes this thread wait; other tasks of its runtime go on where it has other threads.
fn waiting<T>(work: impl FnOnce() -> T) -> T {
    let has_others = Handle::try_current().is_ok_and(|it| it.runtime_flavor() == RuntimeFlavor::MultiThread);
    if has_others { block_in_place(work) } else { work() }
}

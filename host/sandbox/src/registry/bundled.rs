//! The built-in plugins: which they are, and how all of them are loaded.

use super::{
    super::{compile::twice, executor::Executor, limits::Limits, load_error::LoadError, precompiled, source},
    Options, Plugins,
};
use decide::Digest;
use futures::future::join_all;
use std::sync::LazyLock;

/// Asked for with each component that a plugin is to be served by: the bytes are hashed once.
static DIGESTS: LazyLock<Vec<Digest>> =
    LazyLock::new(|| builtin::BUILTIN.iter().map(|(_, wasm)| source::digest(wasm)).collect());

impl Plugins {
    /// Loads the built-in plugins with the default limits.
    ///
    /// # Errors
    /// Returns an error if one of them does not load.
    pub fn builtin(executor: Executor) -> Result<Self, LoadError> {
        Self::builtin_within(executor, Limits::default())
    }

    /// Loads the built-in plugins, with these limits for those that have none of their own.
    ///
    /// # Errors
    /// Returns an error if one of them does not load.
    pub fn builtin_within(executor: Executor, limits: Limits) -> Result<Self, LoadError> {
        let plugins = Self::empty(Options { limits, ..Options::new(executor) })?;
        for (name, wasm) in builtin::BUILTIN {
            plugins.load(name, wasm)?;
        }
        Ok(plugins)
    }

    /// Loads the built-in plugins: those that the options have compiled code of, and the others compiled concurrently by
    /// the compiler of the options.
    ///
    /// # Errors
    /// Returns an error if one of them does not load.
    pub async fn builtin_with(options: Options) -> Result<Self, LoadError> {
        let folder = options.precompiled.clone();
        let plugins = Self::empty(options)?;
        let (engine, limits) = (plugins.caller.engine(), plugins.caller.limits());
        let prepared = builtin::BUILTIN.iter().map(async |(name, wasm)| {
            if let Some(copies) = folder.as_deref().and_then(|folder| precompiled::find(folder, engine, wasm)) {
                return plugins.described(name, copies, source::digest(wasm));
            }
            let (exports, digest) = plugins.compiler.bundled(engine, limits, wasm).await?;
            plugins.described(name, twice(engine, exports)?, digest)
        });
        for (prepared, (name, _)) in join_all(prepared).await.into_iter().zip(builtin::BUILTIN) {
            plugins.add_new(name, &prepared?)?;
        }
        Ok(plugins)
    }

    /// Returns the digests of the built-in plugins.
    pub fn built_in_digests() -> impl Iterator<Item = Digest> {
        DIGESTS.iter().cloned()
    }

    /// Returns the bytes of the built-in plugin of this name.
    #[must_use]
    pub fn built_in(name: &str) -> Option<&'static [u8]> {
        builtin::BUILTIN.iter().find(|(called, _)| *called == name).map(|(_, wasm)| *wasm)
    }
}

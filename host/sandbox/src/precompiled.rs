//! Compiled code of the built-in plugins, made ahead of time by this same program: a host that has it is ready without
//! compiling anything. The image carries it beside the program.
//!
//! Compiled code is not checked when it is loaded: whoever can write to the folder decides what the host does, as whoever
//! can write to the program's own file. Only the built-in plugins come from there, never a component from a cluster.

use super::{
    compile::{config, load_file},
    convert::Exports,
    load_error::LoadError,
    source::digest,
};
use decide::Digest;
use std::{
    env::consts::ARCH,
    fs, io,
    path::{Path, PathBuf},
};
use tracing::{debug, warn};
use wasmtime::Engine;

/// The reason why the built-in plugins are not compiled ahead of time.
#[derive(Debug, thiserror::Error)]
pub enum PrecompileError {
    /// The folder or a file in it cannot be written.
    #[error("failed to write {}", path.display())]
    Write {
        /// The folder or file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A built-in plugin does not compile.
    #[error("failed to compile the built-in plugin {name}")]
    Compile {
        /// The plugin's name.
        name: &'static str,
        /// The cause.
        source: wasmtime::Error,
    },
}

/// Compiles the built-in plugins into the folder, a file each, and returns the files. The code runs on every processor
/// of this architecture, and the same program writes the same bytes.
///
/// # Errors
/// Returns an error if a file cannot be written.
pub fn precompile(folder: &Path) -> Result<Vec<PathBuf>, PrecompileError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        |source| PrecompileError::Write { path, source }
    };
    fs::create_dir_all(folder).map_err(failed(folder))?;
    let compile = |(name, wasm): &(&'static str, &[u8])| {
        let code = engine().and_then(|engine| engine.precompile_component(wasm));
        let code = code.map_err(|source| PrecompileError::Compile { name, source })?;
        let file = file(folder, &digest(wasm));
        fs::write(&file, code).map_err(failed(&file))?;
        Ok(file)
    };
    builtin::BUILTIN.iter().map(compile).collect()
}

/// Returns an engine that compiles for this architecture and not for this very processor.
fn engine() -> wasmtime::Result<Engine> {
    let mut config = config();
    config.target(&format!("{ARCH}-unknown-linux-gnu"))?;
    Engine::new(&config)
}

/// Loads two copies of a built-in plugin from the folder. Returns nothing if it is not there, or if it is code of another
/// program or for another processor, which is reported.
pub(super) fn find(folder: &Path, engine: &Engine, wasm: &[u8]) -> Option<[Exports; 2]> {
    let file = file(folder, &digest(wasm));
    if !file.exists() {
        debug!(file = %file.display(), "there is no compiled code");
        return None;
    }
    // The second is mapped, too: copying the first would make all of it resident.
    let loaded = load_file(engine, &file).and_then(|first| Ok([first, load_file(engine, &file)?]));
    let copies = loaded.inspect_err(|error| {
        let error = match error {
            LoadError::Compile(cause) => format!("{cause:#}"),
            other => other.to_string(),
        };
        warn!(file = %file.display(), error, "compiled code does not fit this host, the plugin is compiled again");
    });
    copies.ok()
}

fn file(folder: &Path, digest: &Digest) -> PathBuf {
    folder.join(format!("{digest}.cwasm"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Compiler, Executor, Options, Plugins};
    use std::{env, path::PathBuf};

    fn folder(name: &str) -> PathBuf {
        env::temp_dir().join(format!("troupe-precompiled-{name}-{}", std::process::id()))
    }

    /// Loads the built-in plugins from the folder with an engine of their own, and returns how many it has code of.
    fn found(folder: &Path) -> usize {
        let limits = crate::Limits::default();
        let engine = crate::compile::engine(&limits).unwrap();
        builtin::BUILTIN.iter().filter(|(_, wasm)| find(folder, &engine, wasm).is_some()).count()
    }

    #[tokio::test]
    async fn a_host_serves_the_built_in_plugins_from_their_compiled_code() {
        let [one, two] = ["one", "two"].map(folder);
        let files = precompile(&one).unwrap();
        assert_eq!((files.len(), found(&one)), (builtin::BUILTIN.len(), builtin::BUILTIN.len()));
        for (first, second) in files.iter().zip(precompile(&two).unwrap()) {
            assert!(fs::read(first).unwrap() == fs::read(&second).unwrap(), "{} differs", second.display());
        }

        let load = async |precompiled| {
            // A compiler that is not there: whoever compiles says so.
            let compiler = Compiler::Child { program: "/nowhere".into(), bounds: crate::Bounds::default() };
            let options = Options { compiler, precompiled, ..Options::new(Executor::Inline) };
            Plugins::builtin_with(options).await.unwrap().frameworks()
        };
        let described = load(Some(one.clone())).await;
        assert_eq!(described, load(None).await, "as if they had been compiled");

        // Code of another program, a torn file, and a plugin that the folder does not have.
        fs::write(&files[0], "no code").unwrap();
        let whole = fs::read(&files[1]).unwrap();
        fs::write(&files[1], &whole[..whole.len() / 2]).unwrap();
        fs::remove_file(&files[2]).unwrap();
        assert_eq!(found(&one), builtin::BUILTIN.len() - 3);
        assert_eq!(load(Some(one.clone())).await, described, "these three are compiled again");
        [one, two].iter().for_each(|folder| fs::remove_dir_all(folder).unwrap());
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named() {
        let refused = precompile(Path::new("/proc/nowhere")).unwrap_err().to_string();
        assert_eq!(refused, "failed to write /proc/nowhere");
    }
}

//! Compiles components in a child process: this same program, which may use up only so much and holds nothing worth
//! taking. It has none of the host's environment, can open neither file nor socket, and a crash of it is an error like any other.
//!
//! What it makes comes back over a pipe and stays in memory. Nothing compiled is ever written to or read from a file, a
//! cache, a ConfigMap or a registry, so there is none that could be tampered with. A compiler that is taken over by its
//! input could still answer with code of its own: the child keeps a compiler that does not end away from the host, not one
//! that lies.

use super::{
    compile::{config, load, plausible},
    convert::Exports,
    limits::Limits,
    load_error::LoadError,
    log::clean,
    source::digest,
};
use rlimit::{Resource, setrlimit};
use std::{
    io::{Read, Write},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::Command,
    time::timeout,
};
use wasmtime::{Engine, error::Context};

/// What a child may say before it is not listened to any more, in bytes.
const WORDS: u64 = 16 << 10;

/// The compiler's own stack, in bytes.
const STACK: usize = 16 << 20;

/// What Linux ends a process with that has used up its processor time.
const SIGXCPU: i32 = 24;

/// What a child may use up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// Processor time, in whole seconds.
    pub cpu_seconds: u64,
    /// Address space, in bytes.
    pub memory: u64,
    /// From its start to its end.
    pub wall: Duration,
    /// What it makes of the component, in bytes.
    pub output: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { cpu_seconds: 60, memory: 1 << 30, wall: Duration::from_secs(180), output: 256 << 20 }
    }
}

/// The component's exports and the digest of its bytes, as [`compile`](super::compile::compile) gives them.
///
/// # Errors
/// The same, and the child could not be run, broke down, or used up what it may.
pub(super) async fn compile(
    program: &Path,
    bounds: &Bounds,
    engine: &Engine,
    limits: &Limits,
    wasm: &[u8],
) -> Result<(Exports, String), LoadError> {
    plausible(limits, wasm)?;
    let artifact = artifact(program, bounds, wasm).await?;
    Ok((load(engine, &artifact)?, digest(wasm)))
}

async fn artifact(program: &Path, bounds: &Bounds, wasm: &[u8]) -> Result<Vec<u8>, LoadError> {
    let failed = |source| LoadError::NoCompiler { program: program.to_owned(), source };
    let mut child = Command::new(program)
        .arg("compile")
        .args(["--cpu-seconds", &bounds.cpu_seconds.to_string(), "--memory-bytes", &bounds.memory.to_string()])
        .env_clear()
        // The allocator would set a whole GiB of address space aside, which the child's limit is on.
        .env("MIMALLOC_ARENA_RESERVE", "0")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(mut stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(failed(std::io::Error::other("it has no pipes")));
    };
    let whole = async {
        let feed = async move {
            // A child that does not read to the end says why by how it ends.
            drop(stdin.write_all(wasm).await);
        };
        let ((), made, words) = tokio::join!(feed, up_to(stdout, bounds.output + 1), up_to(stderr, WORDS));
        (made, words, child.wait().await)
    };
    let Ok((made, words, status)) = timeout(bounds.wall, whole).await else {
        child.kill().await.map_err(failed)?;
        return Err(LoadError::CompilerStopped { budget: "time", limit: format!("{:?}", bounds.wall) });
    };
    let (made, words, status) = (made.map_err(failed)?, words.map_err(failed)?, status.map_err(failed)?);
    if made.len() as u64 > bounds.output {
        return Err(LoadError::CompilerStopped { budget: "output", limit: format!("{} bytes", bounds.output) });
    }
    if status.success() { Ok(made) } else { Err(ended(bounds, status, &String::from_utf8_lossy(&words))) }
}

/// The first bytes that come out of a pipe, which is closed after so many.
async fn up_to(pipe: impl AsyncRead + Unpin, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.take(most).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

/// Why a child that failed did.
fn ended(bounds: &Bounds, status: ExitStatus, words: &str) -> LoadError {
    let out_of_memory = ["memory allocation of", "Cannot allocate memory"].iter().any(|it| words.contains(it));
    if out_of_memory {
        return LoadError::CompilerStopped { budget: "memory", limit: format!("{} bytes", bounds.memory) };
    }
    if status.signal() == Some(SIGXCPU) {
        let limit = format!("{} s", bounds.cpu_seconds);
        return LoadError::CompilerStopped { budget: "processor time", limit };
    }
    let words = clean(words.trim(), 1024);
    match status.code() {
        Some(1) => LoadError::Compile(wasmtime::Error::msg(words)),
        _ => LoadError::CompilerBroke { how: status.to_string(), words },
    }
}

/// The child itself: a component on standard input becomes code on standard output.
///
/// # Errors
/// The component does not compile.
pub fn compile_as_child(cpu_seconds: u64, memory: u64) -> wasmtime::Result<()> {
    // Its stack is there from the start: one that has to grow ends a process without a word when memory is short.
    let compiler = std::thread::Builder::new().stack_size(STACK).spawn(move || -> wasmtime::Result<()> {
        confine(cpu_seconds, memory).context("the compiler cannot be confined")?;
        let mut wasm = Vec::new();
        std::io::stdin().lock().read_to_end(&mut wasm).context("standard input")?;
        let made = Engine::new(&config())?.precompile_component(&wasm)?;
        let mut out = std::io::stdout().lock();
        out.write_all(&made).and_then(|()| out.flush()).context("standard output")
    });
    compiler.context("no thread")?.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Gives up what a compiler does not need: time without end, memory without end, files, sockets, processes, core dumps.
fn confine(cpu_seconds: u64, memory: u64) -> std::io::Result<()> {
    // The soft one ends it with a signal that tells why, the hard one whatever it does.
    setrlimit(Resource::CPU, cpu_seconds, cpu_seconds + 1)?;
    setrlimit(Resource::AS, memory, memory)?;
    setrlimit(Resource::FSIZE, 0, 0)?;
    setrlimit(Resource::CORE, 0, 0)?;
    setrlimit(Resource::NPROC, 0, 0)?;
    // Standard input, output and error are open already.
    setrlimit(Resource::NOFILE, 3, 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(raw: i32, words: &str) -> String {
        ended(&Bounds::default(), ExitStatus::from_raw(raw), words).to_string()
    }

    #[test]
    fn a_child_that_failed_is_told_by_its_end_and_its_words() {
        assert!(told(24, "").contains("used up its processor time (60 s)"));
        assert!(told(6, "memory allocation of 5 bytes failed").contains("used up its memory"));
        assert_eq!(told(1 << 8, "it is wrong"), "failed to compile the component");
        let broke = told(11, "thread 'main' has\noverflowed its stack\n");
        assert!(broke.contains("(signal: 11") && broke.ends_with("thread 'main' has overflowed its stack"), "{broke}");
    }
}

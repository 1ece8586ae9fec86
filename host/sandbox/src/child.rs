//! Compiles components, and checks settings by a plugin's own schema, in a child process: this same program, with limited
//! resources and without secrets. The child inherits none of the host's environment and cannot open files or sockets. Its
//! crash is an ordinary error.
//!
//! The compiler returns the compiled code over a pipe, and the host keeps it in memory. Compiled code of a foreign component
//! is never written to or read from a file, a cache, a ConfigMap or a registry, so nobody can tamper with it there. The child protects the
//! host from a compiler that does not end. It does not protect it from a compromised compiler, which could return code
//! of its own.

use super::{
    child_error::ChildError,
    compile::{config, load, plausible},
    convert::Exports,
    limits::Limits,
    load_error::LoadError,
    log::clean,
    source::digest,
    verdict::{Question, Verdict},
};
use decide::Digest;
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

/// Maximum bytes that the host reads from the child's standard error.
const STDERR_LIMIT: u64 = 16 << 10;

/// Stack of the thread that does the work, in bytes.
const STACK: usize = 16 << 20;

/// The signal that Linux sends to a process that has reached its limit of processor time.
const SIGXCPU: i32 = 24;

/// Resource limits of a child process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// Processor time, in whole seconds.
    pub cpu_seconds: u64,
    /// Address space, in bytes.
    pub memory: u64,
    /// Wall-clock time from its start to its end.
    pub wall: Duration,
    /// Size of the compiled code, in bytes.
    pub output: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { cpu_seconds: 60, memory: 1 << 30, wall: Duration::from_secs(180), output: 256 << 20 }
    }
}

/// Compiles in a child process. Returns the component's exports and the digest of its bytes, as
/// [`compile`](super::compile::compile) does.
///
/// # Errors
/// Returns the errors of that function, or an error if the child cannot run, crashes or exceeds its bounds.
pub(super) async fn compile(
    program: &Path,
    bounds: &Bounds,
    engine: &Engine,
    limits: &Limits,
    wasm: &[u8],
) -> Result<(Exports, Digest), LoadError> {
    plausible(limits, wasm)?;
    let artifact = run(program, "compile", bounds, wasm).await?;
    Ok((load(engine, &artifact)?, digest(wasm)))
}

/// Runs a command of this program in a child process with this input, and returns what it writes to standard output.
///
/// # Errors
/// The child cannot run, exceeds its bounds, or fails.
pub(super) async fn run(program: &Path, command: &str, bounds: &Bounds, input: &[u8]) -> Result<Vec<u8>, ChildError> {
    let failed = |source| ChildError::NotRun { program: program.to_owned(), source };
    let mut child = Command::new(program)
        .arg(command)
        .args(["--cpu-seconds", &bounds.cpu_seconds.to_string(), "--memory-bytes", &bounds.memory.to_string()])
        .env_clear()
        // Without this, the allocator would reserve 1 GiB of address space, which counts against the child's limit.
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
            // If the child does not read to the end, its exit status says why.
            drop(stdin.write_all(input).await);
        };
        let ((), made, words) = tokio::join!(feed, up_to(stdout, bounds.output + 1), up_to(stderr, STDERR_LIMIT));
        (made, words, child.wait().await)
    };
    let Ok((made, words, status)) = timeout(bounds.wall, whole).await else {
        child.kill().await.map_err(failed)?;
        return Err(ChildError::Stopped { budget: "time", limit: format!("{:?}", bounds.wall) });
    };
    let (made, words, status) = (made.map_err(failed)?, words.map_err(failed)?, status.map_err(failed)?);
    if made.len() as u64 > bounds.output {
        return Err(ChildError::Stopped { budget: "output", limit: format!("{} bytes", bounds.output) });
    }
    if status.success() { Ok(made) } else { Err(ended(bounds, status, &String::from_utf8_lossy(&words))) }
}

/// Reads at most `most` bytes from the pipe, then closes it.
async fn up_to(pipe: impl AsyncRead + Unpin, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.take(most).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

/// Returns the error for a child that failed with this status and this text on standard error.
fn ended(bounds: &Bounds, status: ExitStatus, words: &str) -> ChildError {
    let out_of_memory = ["memory allocation of", "Cannot allocate memory", "standard input: out of memory"]
        .iter()
        .any(|it| words.contains(it));
    if out_of_memory {
        return ChildError::Stopped { budget: "memory", limit: format!("{} bytes", bounds.memory) };
    }
    if status.signal() == Some(SIGXCPU) {
        return ChildError::Stopped { budget: "processor time", limit: format!("{} s", bounds.cpu_seconds) };
    }
    let words = clean(words.trim(), 1024);
    match status.code() {
        Some(1) => ChildError::Refused(words),
        _ => ChildError::Broke { how: status.to_string(), words },
    }
}

/// Runs the child process that compiles: reads a component from standard input and writes compiled code to standard output.
///
/// # Errors
/// Returns an error if the process cannot be confined, if input or output fails, or if the component does not compile.
pub fn compile_as_child(cpu_seconds: u64, memory: u64) -> wasmtime::Result<()> {
    as_child(cpu_seconds, memory, |wasm| Engine::new(&config())?.precompile_component(&wasm))
}

/// Runs the child process that checks settings: reads a schema and a config from standard input and writes what the schema
/// says of the config to standard output, each as JSON.
///
/// # Errors
/// Returns an error if the process cannot be confined, or if input or output fails.
pub fn check_settings_as_child(cpu_seconds: u64, memory: u64) -> wasmtime::Result<()> {
    as_child(cpu_seconds, memory, |question| {
        let Question { schema, config } = serde_json::from_slice(&question)?;
        Ok(serde_json::to_vec(&Verdict::of(&schema, &config))?)
    })
}

/// Does the work on what is read from standard input, within limits, and writes what it returns to standard output.
fn as_child(
    cpu_seconds: u64,
    memory: u64,
    work: impl FnOnce(Vec<u8>) -> wasmtime::Result<Vec<u8>> + Send + 'static,
) -> wasmtime::Result<()> {
    // This thread's stack exists from the start. A stack that must grow ends the process silently if memory is short.
    let worker = std::thread::Builder::new().stack_size(STACK).spawn(move || -> wasmtime::Result<()> {
        confine(cpu_seconds, memory).context("the child cannot be confined")?;
        let mut input = Vec::new();
        std::io::stdin().lock().read_to_end(&mut input).context("standard input")?;
        let made = work(input)?;
        let mut out = std::io::stdout().lock();
        out.write_all(&made).and_then(|()| out.flush()).context("standard output")
    });
    worker.context("no thread")?.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Limits this process to what the work needs: bounded time and memory, and no more files, sockets, processes or core
/// dumps.
fn confine(cpu_seconds: u64, memory: u64) -> std::io::Result<()> {
    // The soft limit ends the process with a signal that says why, the hard limit ends it in any case.
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

    fn message(raw: i32, words: &str) -> String {
        LoadError::from(ended(&Bounds::default(), ExitStatus::from_raw(raw), words)).to_string()
    }

    #[test]
    fn the_error_of_a_failed_child_follows_from_its_status_and_output() {
        assert!(message(24, "").contains("used up its processor time (60 s)"));
        assert!(message(6, "memory allocation of 5 bytes failed").contains("used up its memory"));
        assert!(message(1 << 8, "standard input: out of memory").contains("used up its memory"));
        assert_eq!(message(1 << 8, "it is wrong"), "failed to compile the component");
        let broke = message(11, "thread 'main' has\noverflowed its stack\n");
        assert!(broke.contains("(signal: 11") && broke.ends_with("thread 'main' has overflowed its stack"), "{broke}");
    }
}

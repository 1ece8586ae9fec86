//! A machine that has nothing of ours: a root file system of Debian's smallest set of packages, in which commands run as they
//! do for a new user. It has this machine's kernel and network.

use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::process::output;
use crate::run_dir::{locked, workspace};

const MAKE: &str = include_str!("new_machine/make.sh");
const RUN: &str = include_str!("new_machine/run.sh");

/// Variables that say how this machine reaches the registries of packages; none else of its environment is there.
const NETWORK: [&str; 9] = [
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "GOPROXY",
    "GONOSUMDB",
    "PIP_CERT",
];

/// The files of a new machine, and its user.
#[derive(Debug)]
pub struct NewMachine {
    root: PathBuf,
    user: &'static str,
    log: PathBuf,
    _lock: File,
}

/// A command that has ended.
#[derive(Debug)]
pub struct Ran {
    /// Whether it ended well.
    pub success: bool,
    /// How long it ran.
    pub took: Duration,
    /// All that it printed, to both outputs.
    pub output: String,
}

impl NewMachine {
    /// One with these packages of Debian, Rust and Go, and a clone of the commit that is checked out in the home of `user`,
    /// who is made unless it is root. What an earlier run of the same user has left is removed.
    ///
    /// # Errors
    /// A step of making it fails.
    pub fn make(packages: &[&str], user: &'static str) -> Result<Self> {
        let folder = workspace().join("target/new-machine");
        let lock = locked(&folder.join(format!(".{user}.lock")))?;
        let root = folder.join(user);
        if root.exists() {
            fs::remove_dir_all(&root).with_context(|| format!("failed to remove {}", root.display()))?;
        }
        let toolchain = output(Command::new("rustup").args(["show", "active-toolchain"]).current_dir(workspace()))?;
        let toolchain = toolchain.split_whitespace().next().context("rustup shows no toolchain")?.to_owned();
        eprintln!("new machine: Debian with {}, {toolchain} and Go, for {user}", packages.join(", "));
        let arguments = [root.to_str().context("a path is text")?, &packages.join(","), &toolchain, user];
        output(Command::new("sh").args(["-c", MAKE, "make"]).args(arguments).arg(workspace()))?;
        let log = folder.join(format!("{user}.log"));
        File::create(&log)?;
        Ok(Self { root, user, log, _lock: lock })
    }

    /// Runs a command of the shell in the clone, as the user. Prints where its output goes, and each minute how long it runs.
    ///
    /// # Errors
    /// It does not start.
    pub fn run(&self, command: &str) -> Result<Ran> {
        let begun = Instant::now();
        eprintln!("new machine: {} runs `{command}`, with its output in {}", self.user, self.log.display());
        let mut child = Command::new("unshare");
        child.args(["--mount", "--pid", "--fork", "--kill-child=KILL", "sh", "-c", RUN, "run"]).arg(&self.root);
        child.args([self.user, &format!("{command} 2>&1")]).env_clear();
        child.env("PATH", env::var_os("PATH").unwrap_or_default());
        child.envs(NETWORK.iter().filter_map(|name| Some((name, env::var_os(name)?))));
        let mut child = child.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("unshare does not start")?;
        let mut log = File::options().append(true).open(&self.log)?;
        writeln!(log, "$ {command}")?;
        let (mut output, mut minutes) = (String::new(), 0);
        let mut lines = BufReader::new(child.stdout.take().context("its output is read")?);
        let mut line = vec![];
        while lines.read_until(b'\n', &mut line)? > 0 {
            log.write_all(&line)?;
            let text = String::from_utf8_lossy(&line);
            if begun.elapsed().as_secs() / 60 > minutes {
                minutes = begun.elapsed().as_secs() / 60;
                eprintln!("new machine: {minutes} min: {}", text.trim_end());
            }
            output.push_str(&text);
            line.clear();
        }
        Ok(Ran { success: child.wait()?.success(), took: begun.elapsed(), output })
    }

    /// Removes its files, and keeps what its commands have printed.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn remove(self) -> Result<()> {
        fs::remove_dir_all(&self.root).with_context(|| format!("failed to remove {}", self.root.display()))
    }
}

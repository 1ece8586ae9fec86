//! Child processes that end when their test does, however it ends.
//!
//! Each process is the leader of its own process group and has a guard: a shell that waits for one line on a pipe of ours.
//! An orderly stop writes that line. If this process dies without it, the pipe closes, and the guard kills the group.

use std::fmt::Display;
use std::fs::{self, File};
use std::future::Future;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
pub(crate) use image::run::output;

use crate::poll::until;

/// A running child process, ended with the value.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    command: Command,
    child: Child,
    guard: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command` with its output going to `<logs>/<name>.log`.
    pub(crate) fn start(name: &str, logs: &Path, mut command: Command) -> Result<Process> {
        let log = logs.join(format!("{name}.log"));
        let out = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| format!("failed to open {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out).process_group(0);
        let (child, guard) = spawn(name, &mut command)?;
        Ok(Process { name: name.to_owned(), command, child, guard, log })
    }

    /// The name it was started under.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Has it stand still, as on a machine that is out of memory, until [`Process::go_on`].
    pub(crate) fn stand_still(&self) -> Result<()> {
        signal_group(self.child.id(), "STOP")
    }

    /// Ends what [`Process::stand_still`] began.
    pub(crate) fn go_on(&self) -> Result<()> {
        signal_group(self.child.id(), "CONT")
    }

    /// Kills it without a last word, and starts it anew.
    pub(crate) fn kill_and_start(&mut self) -> Result<()> {
        signal_group(self.child.id(), "KILL")?;
        self.child.wait()?;
        // Before another process has the id.
        self.dismiss_guard();
        (self.child, self.guard) = spawn(&self.name, &mut self.command)?;
        Ok(())
    }

    fn dismiss_guard(&mut self) {
        if let Some(mut line) = self.guard.stdin.take() {
            let _ = line.write_all(b"done\n");
        }
        let _ = self.guard.wait();
    }

    /// An error with the last lines of its log if it has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        let Some(status) = self.child.try_wait()? else {
            return Ok(());
        };
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let last: Vec<&str> = log.lines().rev().take(15).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        bail!("{} ended with {status}; the end of {}:\n{}", self.name, self.log.display(), last.join("\n"))
    }

    fn signal(&self, signal: &str) {
        let _ = signal_group(self.child.id(), signal);
    }

    fn ended_within(&mut self, deadline: Instant) -> bool {
        loop {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        stop_all(std::slice::from_mut(self), Duration::from_secs(1));
        self.dismiss_guard();
    }
}

/// Ends the processes together: asks all, and kills those that are still there after `patience`.
pub(crate) fn stop_all(processes: &mut [Process], patience: Duration) {
    let running = |process: &mut Process| matches!(process.child.try_wait(), Ok(None));
    for process in processes.iter_mut().filter_map(|process| running(process).then_some(process)) {
        process.signal("TERM");
    }
    let deadline = Instant::now() + patience;
    for process in processes {
        if !process.ended_within(deadline) {
            process.signal("KILL");
            let _ = process.child.wait();
        }
    }
}

/// As [`until`], but over at once if one of the processes has ended.
pub(crate) async fn until_alive<T, F, Fut>(
    processes: &mut [Process],
    deadline: Duration,
    what: impl Display,
    mut look: F,
) -> Result<T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<Option<T>>>,
{
    until(deadline, what, || {
        let look = processes.iter_mut().try_for_each(Process::check).map(|()| look());
        async move {
            match look {
                Ok(look) => Ok(look.await?.map(Ok)),
                Err(ended) => Ok(Some(Err(ended))),
            }
        }
    })
    .await?
}

/// Sends a signal to the process group of a child that has not been waited for.
fn signal_group(leader: u32, signal: &str) -> Result<()> {
    let status = Command::new("sh")
        .args(["-c", "kill -s \"$1\" -- \"-$2\"", "kill", signal, &leader.to_string()])
        .stderr(Stdio::null())
        .status()?;
    if !status.success() {
        bail!("failed to send {signal} to process group {leader}: {status}");
    }
    Ok(())
}

fn spawn(name: &str, command: &mut Command) -> Result<(Child, Child)> {
    let started = command.spawn();
    let mut child = started.with_context(|| format!("failed to start {name} as {:?}", command.get_program()))?;
    match guard(child.id()) {
        Ok(guard) => Ok((child, guard)),
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(error.context(format!("failed to guard {name}")))
        }
    }
}

fn guard(leader: u32) -> Result<Child> {
    let guard = Command::new("sh")
        .args(["-c", "read -r line || kill -s KILL -- \"-$1\"", "guard", &leader.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    Ok(guard)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_dir::RunDir;

    fn state(pid: u32) -> Option<String> {
        fs::read_to_string(format!("/proc/{pid}/stat")).ok()
    }

    fn sleeper() -> (Process, RunDir) {
        let dir = RunDir::create("process").unwrap();
        let mut command = Command::new("sleep");
        command.arg("1000");
        (Process::start("sleeper", dir.path(), command).unwrap(), dir)
    }

    #[test]
    fn a_dropped_process_and_its_guard_are_gone() {
        let (process, _dir) = sleeper();
        let (child, guard) = (process.child.id(), process.guard.id());
        drop(process);
        assert_eq!((state(child), state(guard)), (None, None));
    }

    #[test]
    fn a_process_that_is_started_anew_is_another_and_guarded() {
        let (mut process, _dir) = sleeper();
        let (child, guard) = (process.child.id(), process.guard.id());
        process.kill_and_start().unwrap();
        assert_eq!((state(child), state(guard)), (None, None));
        assert!(state(process.child.id()).is_some() && state(process.guard.id()).is_some());
    }

    #[test]
    fn a_process_whose_owner_died_is_killed_by_its_guard() {
        let (mut process, _dir) = sleeper();
        drop(process.guard.stdin.take()); // as the kernel does when this process dies
        assert!(process.ended_within(Instant::now() + Duration::from_secs(5)));
    }

    #[test]
    fn a_process_that_ended_is_reported_with_its_last_words() {
        let dir = RunDir::create("process").unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo no such flag; exit 3"]);
        let mut process = Process::start("speaker", dir.path(), command).unwrap();
        assert!(process.ended_within(Instant::now() + Duration::from_secs(5)));
        let error = process.check().unwrap_err().to_string();
        assert!(error.contains("speaker ended with exit status: 3") && error.ends_with("no such flag"), "{error}");
    }
}

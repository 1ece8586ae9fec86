//! The ten slowest tests of a suite, said at its end. libtest measures no single test in a stable toolchain; when each began
//! follows from the order in which it starts them and from the ends that it prints.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::env;
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::process::{Command, Stdio};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::set_up::selected_tests;

/// Number of tests that are said.
const SAID: usize = 10;

/// A suite with fewer tests is over soon, or one of its tests is looked for.
const FEWEST: usize = 50;

/// Set for a test program whose output is read here.
const WATCHED: &str = "TROUPE_WATCHED_TESTS";

/// Whether another process of this program reads the output of this one.
pub(crate) fn is_watched() -> bool {
    env::var_os(WATCHED).is_some()
}

/// Runs the tests that the arguments select in another process of this program, passes on what it prints, says the slowest,
/// and ends this process as that one ended. Returns if there are few tests, or a test prints what it likes.
///
/// # Errors
/// The program does not start or cannot be read.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let prints =
        |argument: &String| ["--nocapture", "--no-capture", "--show-output", "--format"].contains(&&**argument);
    let order = selected_tests(arguments)?;
    if order.len() < FEWEST || arguments.iter().any(prints) {
        return Ok(());
    }
    let mut command = Command::new("/proc/self/exe");
    if std::io::stdout().is_terminal() && !arguments.iter().any(|argument| argument.starts_with("--color")) {
        command.arg("--color=always");
    }
    let mut child = command.args(arguments).env(WATCHED, "1").stdout(Stdio::piped()).spawn()?;
    let mut turns = Turns::new(&order, at_once(arguments), Instant::now());
    let mut out = std::io::stdout();
    let lines = BufReader::new(child.stdout.take().context("no output")?).lines();
    for line in lines {
        let line = line?;
        writeln!(out, "{line}")?;
        if let Some((test, end)) = ended(&line) {
            turns.ended(test, end, Instant::now());
        }
    }
    let status = child.wait()?;
    writeln!(out, "{}", turns.slowest())?;
    std::process::exit(status.code().unwrap_or(101));
}

/// Returns how many tests run at once, as libtest has it.
fn at_once(arguments: &[String]) -> usize {
    let option = "--test-threads";
    let next = arguments.iter().skip_while(|argument| *argument != option).nth(1).cloned();
    let joined =
        || arguments.iter().find_map(|argument| Some(argument.strip_prefix(option)?.strip_prefix('=')?.to_owned()));
    let said = next.or_else(joined).or_else(|| env::var("RUST_TEST_THREADS").ok());
    said.and_then(|number| number.parse().ok()).unwrap_or_else(|| available_parallelism().map_or(1, usize::from))
}

#[derive(Clone, Copy, PartialEq)]
enum End {
    /// The test ran.
    Ran,
    /// It was not run.
    Ignored,
}

/// Returns the test that a line of libtest is about, if it has ended.
fn ended(line: &str) -> Option<(&str, End)> {
    let (test, end) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let test = test.strip_suffix(" - should panic").unwrap_or(test);
    Some((test, if end.contains("ignored") { End::Ignored } else { End::Ran }))
}

/// When tests begin: in the order of their names, the next one as soon as one has ended.
struct Turns {
    waiting: VecDeque<String>,
    running: BTreeMap<String, Instant>,
    /// Tests that are said to be ignored before their turn comes.
    ignored: BTreeSet<String>,
    took: Vec<(Duration, String)>,
}

impl Turns {
    fn new(order: &BTreeSet<String>, at_once: usize, now: Instant) -> Self {
        let waiting = order.iter().cloned().collect();
        let mut turns = Self { waiting, running: BTreeMap::new(), ignored: BTreeSet::new(), took: vec![] };
        (0..at_once).for_each(|_| turns.next(now));
        turns
    }

    fn next(&mut self, now: Instant) {
        while let Some(test) = self.waiting.pop_front() {
            if !self.ignored.remove(&test) {
                self.running.insert(test, now);
                return;
            }
        }
    }

    fn ended(&mut self, test: &str, end: End, now: Instant) {
        match (self.running.remove(test), end) {
            (Some(began), End::Ran) => self.took.push((now.duration_since(began), test.to_owned())),
            // Its turn takes no time.
            (Some(_), End::Ignored) => {}
            (None, _) => {
                self.ignored.insert(test.to_owned());
                return;
            }
        }
        self.next(now);
    }

    fn slowest(mut self) -> String {
        self.took.sort_by(|one, other| other.cmp(one));
        let lines = self.took.iter().take(SAID).map(|(took, test)| format!("\n{:>6.1} s  {test}", took.as_secs_f64()));
        format!("slowest tests:{}", lines.collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_begins_when_another_has_ended() {
        let order = ["a", "b", "c", "d", "e"].map(str::to_owned).into();
        let began = Instant::now();
        let mut turns = Turns::new(&order, 2, began);
        let lines = [
            (2, "test a ... ok"),
            (2, "test c ... ignored, no node here"),
            (5, "test b ... FAILED"),
            (9, "test e ... ok"),
        ];
        for (second, line) in lines {
            let (test, end) = ended(line).unwrap();
            turns.ended(test, end, began + Duration::from_secs(second));
        }
        turns.ended("d", End::Ran, began + Duration::from_millis(14_500));
        let said = "slowest tests:\n  12.5 s  d\n   5.0 s  b\n   4.0 s  e\n   2.0 s  a";
        assert_eq!(turns.slowest(), said);
    }

    #[test]
    fn other_lines_end_no_test() {
        for line in ["running 3 tests", "test a has been running for over 60 seconds", "test result: ok. 3 passed"] {
            assert!(ended(line).is_none(), "{line}");
        }
        assert!(ended("test a - should panic ... ok").is_some_and(|(test, end)| test == "a" && end == End::Ran));
    }
}

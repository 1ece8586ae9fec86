//! `troupe sim`: runs jobs under seeded faults.

use crate::{args::SimArgs, input};
use lab::campaign;
use rayon::prelude::*;
use std::{collections::BTreeMap, io, process::ExitCode, sync::mpsc, thread};
use troupe::out;

/// Seeds between two lines of progress.
const PROGRESS: u64 = 100;

/// What is kept of a run. Its requests are not: of a hundred runs they would be gigabytes.
struct Kept {
    seed: u64,
    violations: Vec<String>,
    log_hash: u64,
    trace: Vec<String>,
    happened: BTreeMap<String, u64>,
}

/// What all runs led to.
#[derive(Default)]
struct Tally {
    /// Seeds with violations.
    violations: u64,
    happened: BTreeMap<String, u64>,
}

impl Tally {
    /// Adds a run, and prints its trace and its violations, with the arguments that run its seed again.
    fn add(&mut self, kept: &Kept, again: &str) {
        for line in &kept.trace {
            out::line(line);
        }
        for (what, times) in &kept.happened {
            *self.happened.entry(what.clone()).or_default() += times;
        }
        for violation in &kept.violations {
            out::line(format_args!("seed {}: {violation}", kept.seed));
        }
        if !kept.violations.is_empty() {
            self.violations += 1;
            out::line(format_args!("replay: troupe sim --seeds 1 --first {} --trace{again}", kept.seed));
        }
    }
}

pub(super) fn simulate(args: &SimArgs) -> anyhow::Result<ExitCode> {
    let components = args.plugin.iter().map(|file| Ok((input::label(file), input::component(file)?)));
    let components = components.collect::<anyhow::Result<Vec<_>>>()?;
    let (plugins, guests) = campaign::invited(&components, &args.manifests)?;
    let again = again(args);
    let end = args.first.saturating_add(args.seeds);
    let run = |seed| {
        let campaign::Run { violations, log_hash, trace, happened, .. } =
            campaign::run_with(seed, &plugins, &guests, args.trace && seed + 1 == end)?;
        io::Result::Ok(Kept { seed, violations, log_hash, trace, happened })
    };
    let mut tally = Tally::default();
    thread::scope(|scope| {
        let (done, runs) = mpsc::channel();
        // They start in order, one at a time: some take ten times as long as others.
        let all = (args.first..end).par_bridge();
        scope.spawn(|| all.try_for_each_with(done, |done, seed| done.send(run(seed))));
        let (mut early, mut next) = (BTreeMap::new(), args.first);
        for kept in runs {
            let kept = kept?;
            early.insert(kept.seed, kept);
            while let Some(kept) = early.remove(&next) {
                next += 1;
                tally.add(&kept, &again);
                if (next - args.first).is_multiple_of(PROGRESS) || next == end {
                    out::line(format_args!(
                        "{} of {} seeds, {} with violations, last log hash {:016x}",
                        next - args.first,
                        end - args.first,
                        tally.violations,
                        kept.log_hash
                    ));
                }
            }
        }
        io::Result::Ok(())
    })?;
    out::line("what happened, and how often:");
    for (what, times) in &tally.happened {
        out::line(format_args!("{times:>9}  {what}"));
    }
    Ok(if tally.violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The arguments of the command that say what is simulated.
fn again(args: &SimArgs) -> String {
    let plugins = args.plugin.iter().map(|file| format!(" --plugin {}", file.display()));
    plugins.chain(args.manifests.iter().map(|file| format!(" {}", file.display()))).collect()
}

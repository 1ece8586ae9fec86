//! `troupe sim`: runs jobs under seeded faults.

use crate::{args::SimArgs, input};
use lab::campaign;
use rayon::prelude::*;
use std::{collections::BTreeMap, io, process::ExitCode};
use troupe::out;

/// Seeds that are run, each on any core, before the next line of progress.
const BATCH: u64 = 100;

/// What is kept of a run. Its requests are not: of a hundred runs they would be gigabytes.
struct Kept {
    seed: u64,
    violations: Vec<String>,
    log_hash: u64,
    trace: Vec<String>,
    happened: BTreeMap<String, u64>,
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
        Ok(Kept { seed, violations, log_hash, trace, happened })
    };
    let mut violations = 0;
    let mut happened: BTreeMap<String, u64> = BTreeMap::new();
    let mut first = args.first;
    while first < end {
        let next = first.saturating_add(BATCH).min(end);
        // One at a time: some seeds take ten times as long as others.
        let seeds = (first..next).collect::<Vec<_>>().into_par_iter().with_max_len(1);
        let batch = seeds.map(run).collect::<io::Result<Vec<_>>>()?;
        for kept in &batch {
            for line in &kept.trace {
                out::line(line);
            }
            for (what, times) in &kept.happened {
                *happened.entry(what.clone()).or_default() += times;
            }
            for violation in &kept.violations {
                out::line(format_args!("seed {}: {violation}", kept.seed));
            }
            if !kept.violations.is_empty() {
                violations += 1;
                out::line(format_args!("replay: troupe sim --seeds 1 --first {} --trace{again}", kept.seed));
            }
        }
        out::line(format_args!(
            "{} of {} seeds, {violations} with violations, last log hash {:016x}",
            next - args.first,
            end - args.first,
            batch.last().map_or(0, |kept| kept.log_hash)
        ));
        first = next;
    }
    out::line("what happened, and how often:");
    for (what, times) in &happened {
        out::line(format_args!("{times:>9}  {what}"));
    }
    Ok(if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The arguments of the command that say what is simulated.
fn again(args: &SimArgs) -> String {
    let plugins = args.plugin.iter().map(|file| format!(" --plugin {}", file.display()));
    plugins.chain(args.manifests.iter().map(|file| format!(" {}", file.display()))).collect()
}

//! `troupe sim`: runs jobs under seeded faults.

use crate::args::SimArgs;
use lab::campaign;
use std::{collections::BTreeMap, process::ExitCode};
use troupe::out;

pub(super) fn simulate(args: &SimArgs) -> anyhow::Result<ExitCode> {
    let plugins = campaign::plugins()?;
    let mut violations = 0;
    let mut happened: BTreeMap<String, u64> = BTreeMap::new();
    for seed in args.first..args.first + args.seeds {
        let is_last = seed + 1 == args.first + args.seeds;
        let run =
            if args.trace && is_last { campaign::traced(seed, &plugins)? } else { campaign::run(seed, &plugins)? };
        for line in &run.trace {
            out::line(line);
        }
        for (what, times) in &run.happened {
            *happened.entry(what.clone()).or_default() += times;
        }
        for violation in &run.violations {
            out::line(format_args!("seed {seed}: {violation}"));
        }
        if !run.violations.is_empty() {
            violations += 1;
            out::line(format_args!("replay: troupe sim --seeds 1 --first {seed} --trace"));
        }
        if (seed + 1 - args.first).is_multiple_of(100) || is_last {
            let done = seed + 1 - args.first;
            out::line(format_args!(
                "{done} of {} seeds, {violations} with violations, last log hash {:016x}",
                args.seeds, run.log_hash
            ));
        }
    }
    out::line("what happened, and how often:");
    for (what, times) in &happened {
        out::line(format_args!("{times:>9}  {what}"));
    }
    Ok(if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

//! `troupe sim`: runs jobs under seeded faults.

use crate::{args::SimArgs, input};
use lab::campaign;
use std::{collections::BTreeMap, process::ExitCode};
use troupe::out;

pub(super) fn simulate(args: &SimArgs) -> anyhow::Result<ExitCode> {
    let components = args.plugin.iter().map(|file| Ok((input::label(file), input::component(file)?)));
    let components = components.collect::<anyhow::Result<Vec<_>>>()?;
    let (plugins, guests) = campaign::invited(&components, &args.manifests)?;
    let again = again(args);
    let mut violations = 0;
    let mut happened: BTreeMap<String, u64> = BTreeMap::new();
    for seed in args.first..args.first + args.seeds {
        let is_last = seed + 1 == args.first + args.seeds;
        let run = campaign::run_with(seed, &plugins, &guests, args.trace && is_last)?;
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
            out::line(format_args!("replay: troupe sim --seeds 1 --first {seed} --trace{again}"));
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

/// The arguments of the command that say what is simulated.
fn again(args: &SimArgs) -> String {
    let plugins = args.plugin.iter().map(|file| format!(" --plugin {}", file.display()));
    plugins.chain(args.manifests.iter().map(|file| format!(" {}", file.display()))).collect()
}

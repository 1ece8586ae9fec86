//! `troupe sim`: jobs under seeded faults.

use crate::{args::SimArgs, campaign};
use std::process::ExitCode;

pub(super) fn simulate(args: &SimArgs) -> anyhow::Result<ExitCode> {
    let plugins = campaign::plugins()?;
    let mut violations = 0;
    for seed in args.first..args.first + args.seeds {
        let run = campaign::run(seed, &plugins)?;
        if args.trace && seed + 1 == args.first + args.seeds {
            for line in &run.trace {
                println!("{line}");
            }
        }
        for violation in &run.violations {
            println!("seed {seed}: {violation}");
        }
        if !run.violations.is_empty() {
            violations += 1;
            println!("replay: troupe sim --seeds 1 --first {seed} --trace");
        }
        if (seed + 1 - args.first).is_multiple_of(100) || seed + 1 == args.first + args.seeds {
            let done = seed + 1 - args.first;
            println!(
                "{done} of {} seeds, {violations} with violations, last log hash {:016x}",
                args.seeds, run.log_hash
            );
        }
    }
    Ok(if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

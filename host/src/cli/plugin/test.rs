//! `troupe plugin test`: recorded passes asked of a plugin again. Its answers should be those of the recording.

use super::{
    changes::Changes,
    recording::{candidate, passes},
};
use crate::args::TestArgs;
use decide::difference::differences;
use std::{collections::BTreeSet, process::ExitCode};

pub(super) fn test(args: &TestArgs) -> anyhow::Result<ExitCode> {
    let mut plugin = candidate(&args.file)?;
    let (recorded, others) = passes(&args.recording, &plugin)?;
    let mut changes = Changes::default();
    for pass in &recorded {
        let answer = plugin.answer(pass)?;
        changes.note(pass, differences(&pass.snapshot, &pass.answer, &answer));
    }
    let said = plugin.descriptor();
    println!("{} {}, digest {}", said.name, said.version, plugin.digest());
    let by: BTreeSet<&str> = recorded.iter().map(|pass| pass.snapshot.digest.as_str()).collect();
    println!("answered then by digest {}", by.into_iter().collect::<Vec<_>>().join(", "));
    if others > 0 {
        println!("{others} passes over jobs of other kinds are left out");
    }
    println!("{changes}");
    Ok(if changes.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

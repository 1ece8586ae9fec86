//! `troupe plugin test --scenarios`: replays a folder of scenarios with this plugin and no other.

use anyhow::ensure;
use lab::scenario::{self, Outcome, Shorthand};
use std::path::Path;
use troupe::{out, record::replay::Replayer};

/// Prints the outcome of each scenario. Returns whether every scenario has the expected outcome, or was rewritten.
pub(super) fn scenarios(plugin: &Replayer, folder: &Path, update: bool) -> anyhow::Result<bool> {
    let files = scenario::files(folder)?;
    ensure!(
        !files.is_empty(),
        "no scenario in {}: looked for *.txt there and in the folders in it; plugins/README.md says how to write one",
        folder.display()
    );
    let shorthand = Shorthand::of_folder(folder)?;
    let (mut well, mut rewritten, mut otherwise) = (0, 0, 0);
    for file in &files {
        let name = file.strip_prefix(folder).unwrap_or(file).display();
        match scenario::check(file, plugin.plugins(), &shorthand, update) {
            Outcome::AsItSays => {
                out::line(format_args!("ok {name}"));
                well += 1;
            }
            Outcome::Rewritten => {
                out::line(format_args!("rewritten {name}"));
                rewritten += 1;
            }
            Outcome::Otherwise(difference) => {
                out::text(format_args!("FAILED {name}\n{difference}"));
                otherwise += 1;
            }
            Outcome::Stuck { error, before } => out::text(format_args!("FAILED {name}\n{before}  {error:#}\n")),
        }
    }
    let rewriting = if rewritten > 0 { format!(", {rewritten} rewritten") } else { String::new() };
    let hint = if otherwise > 0 { "; --update rewrites what the others print" } else { "" };
    out::line(format_args!("{well} of {} scenarios went as they say{rewriting}{hint}", files.len()));
    Ok(well + rewritten == files.len())
}

//! Parses a scenario's text into commands, their manifests and their output.

use super::{Shorthand, command, world::World};
use anyhow::Context;

/// Returns the text with the new output of the commands. Comments, blank lines and commands are unchanged.
pub(super) async fn replay(text: &str, mut world: World, shorthand: &Shorthand) -> anyhow::Result<String> {
    let mut replayed = String::new();
    let lines: Vec<&str> = text.lines().collect();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        at += 1;
        push(&mut replayed, line);
        let Some(command) = line.strip_prefix('>') else { continue };
        let rest = lines.get(at..).unwrap_or_default();
        let manifest: Vec<&str> = match command::takes_manifest(command) {
            true => rest.iter().copied().take_while(|line| line.starts_with(' ')).collect(),
            false => vec![],
        };
        manifest.iter().for_each(|line| push(&mut replayed, line));
        at += manifest.len();
        let manifest = manifest.join("\n");
        let printed = command::run(&mut world, shorthand, command.trim(), &manifest).await;
        let printed = printed.with_context(|| format!("line {at}: >{command}"))?;
        printed.iter().for_each(|line| push(&mut replayed, line));
        at += lines.get(at..).unwrap_or_default().iter().take_while(|line| is_printed(line)).count();
    }
    Ok(replayed)
}

fn push(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

/// Whether the line is output: neither a command nor a comment nor blank.
fn is_printed(line: &str) -> bool {
    !line.is_empty() && !line.starts_with('>') && !line.starts_with('#')
}

//! Parses a scenario's text into commands, their manifests and their output.

use super::{Shorthand, command, world::World};
/// A scenario's text with the new output of its commands.
pub(super) struct Replayed {
    /// Comments, blank lines and commands are unchanged. Ends with the command that cannot be run, if there is one.
    pub(super) text: String,
    /// The command that cannot be run.
    pub(super) stuck: Option<Stuck>,
}

/// A command that cannot be run.
pub(super) struct Stuck {
    /// The number of lines of the file up to the command, with it and its manifest.
    pub(super) lines: usize,
    /// The reason, with the command.
    pub(super) error: anyhow::Error,
}

/// Replays the commands of a text, as far as they can be run.
pub(super) async fn replay(text: &str, mut world: World, shorthand: &Shorthand) -> Replayed {
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
        let printed = match printed {
            Ok(printed) => printed,
            Err(error) => {
                let error = error.context(format!("line {at}: >{command}"));
                return Replayed { text: replayed, stuck: Some(Stuck { lines: at, error }) };
            }
        };
        printed.iter().for_each(|line| push(&mut replayed, line));
        at += lines.get(at..).unwrap_or_default().iter().take_while(|line| is_printed(line)).count();
    }
    Replayed { text: replayed, stuck: None }
}

fn push(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

/// Whether the line is output: neither a command nor a comment nor blank.
fn is_printed(line: &str) -> bool {
    !line.is_empty() && !line.starts_with('>') && !line.starts_with('#')
}

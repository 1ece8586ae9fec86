//! The files of sequences: what is done to a job, and what its controller then says.

use super::step::Step;
use anyhow::{Context, Result, bail, ensure};
use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

/// One file: its opening comment and its sequences.
pub(super) struct File {
    pub(super) path: PathBuf,
    head: String,
    pub(super) sequences: Vec<Sequence>,
}

/// What is done to one job.
pub(super) struct Sequence {
    /// Also the name of its job.
    pub(super) name: String,
    comments: Vec<String>,
    /// IndexedJob cannot do its steps: a comment says `# not IndexedJob: REASON`.
    pub(super) is_theirs_alone: bool,
    pub(super) commands: Vec<Command>,
}

/// A step, and what it prints.
pub(super) struct Command {
    /// As it is written, `> ` included.
    lines: Vec<String>,
    pub(super) step: Step,
    /// What the real controller's job is like after it.
    pub(super) said: Vec<String>,
    /// Where IndexedJob differs, and why.
    differences: Vec<Difference>,
}

struct Difference {
    /// The line that stands in place of those with the same key.
    line: String,
    reason: String,
}

/// Where the files are.
pub(super) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sequences")
}

/// Every file, in order.
pub(super) fn files() -> Result<Vec<File>> {
    let listed = fs::read_dir(folder())?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    let mut paths: Vec<_> = listed.into_iter().filter(|path| path.extension().is_some_and(|it| it == "txt")).collect();
    paths.sort();
    paths.into_iter().map(|path| File::read(path.clone()).with_context(|| path.display().to_string())).collect()
}

impl File {
    fn read(path: PathBuf) -> Result<Self> {
        let text = fs::read_to_string(&path)?;
        let mut blocks = text.split("== ");
        let head = blocks.next().unwrap_or_default().to_owned();
        let sequences = blocks.map(Sequence::parse).collect::<Result<_>>()?;
        Ok(Self { path, head, sequences })
    }

    /// The file's text with other results, in the order of its sequences.
    pub(super) fn with(&self, results: &[Vec<Vec<String>>]) -> String {
        let mut text = self.head.clone();
        let blocks: Vec<_> = self.sequences.iter().zip(results).map(|(it, result)| it.transcript(result)).collect();
        text.push_str(&blocks.join("\n"));
        text
    }
}

impl Sequence {
    fn parse(block: &str) -> Result<Self> {
        let mut lines = block.lines();
        let name = lines.next().unwrap_or_default().to_owned();
        Self::parse_lines(&name, lines).with_context(|| format!("sequence {name}"))
    }

    fn parse_lines<'a>(name: &str, lines: impl Iterator<Item = &'a str>) -> Result<Self> {
        let is_of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        ensure!((1..=45).contains(&name.len()) && name.chars().all(is_of_name), "no name of a job of 45 characters");
        let (mut comments, mut written) = (Vec::new(), Vec::<(Vec<String>, Vec<String>, Vec<Difference>)>::new());
        for line in lines.filter(|line| !line.is_empty()) {
            let last = written.last_mut();
            match (line.strip_prefix("> "), line.strip_prefix("~ "), last) {
                (Some(more), _, Some((command, ..))) if more.starts_with("  ") => command.push(line.to_owned()),
                (Some(_), ..) => written.push((vec![line.to_owned()], vec![], vec![])),
                (_, Some(difference), Some((.., differences))) => {
                    let (line, reason) = difference.split_once(" because ").context("`~ LINE because REASON`")?;
                    differences.push(Difference { line: line.to_owned(), reason: reason.to_owned() });
                }
                (_, _, Some((_, said, _))) => said.push(line.to_owned()),
                (_, _, None) => comments.push(line.to_owned()),
            }
        }
        let row = comments.first().and_then(|first| first.strip_prefix("# 3.")).is_some();
        ensure!(row, "the first comment does not begin with the row that it is about: `# 3.4: ...`");
        ensure!(comments.iter().all(|line| line.starts_with("# ")), "something before the first command");
        let commands = written.into_iter().map(|(lines, said, differences)| {
            let text: Vec<_> = lines.iter().map(|line| line.trim_start_matches('>').trim()).collect();
            let step = text.join(" ").parse().with_context(|| text.join(" "))?;
            Ok(Command { lines, step, said, differences })
        });
        let commands = commands.collect::<Result<Vec<_>>>()?;
        if !matches!(commands.first().map(|it| &it.step), Some(Step::Job(_))) {
            bail!("it does not begin with a job");
        }
        let is_theirs_alone = comments.iter().any(|line| line.starts_with("# not IndexedJob: "));
        Ok(Self { name: name.to_owned(), comments, is_theirs_alone, commands })
    }

    /// Its text with other results.
    pub(super) fn transcript(&self, results: &[Vec<String>]) -> String {
        let mut text = format!("== {}\n", self.name);
        self.comments.iter().for_each(|line| writeln!(text, "{line}").expect("a String"));
        for (command, said) in self.commands.iter().zip(results) {
            command.lines.iter().chain(said).for_each(|line| writeln!(text, "{line}").expect("a String"));
            for Difference { line, reason } in &command.differences {
                writeln!(text, "~ {line} because {reason}").expect("a String");
            }
        }
        text
    }
}

impl Command {
    /// What IndexedJob has to say: the same, but for the differences that are named.
    pub(super) fn of_ours(&self) -> Vec<String> {
        let mut lines = self.said.clone();
        for Difference { line, .. } in &self.differences {
            let absent = line.strip_prefix("no ");
            lines.retain(|it| key(it) != key(absent.unwrap_or(line)));
            lines.extend(absent.is_none().then(|| line.clone()));
        }
        lines.sort_by_key(|line| rank(line));
        lines
    }
}

/// What a line is about: the text before the first `=`.
fn key(line: &str) -> &str {
    line.split('=').next().unwrap_or_default()
}

/// The place of a line in a result: conditions first, by type.
pub(super) fn rank(line: &str) -> (bool, String) {
    let is_condition = line.starts_with(|c: char| c.is_ascii_uppercase());
    let order = ["gone", "deleting", "active", "completedIndexes", "failedIndexes", "startTime", "completionTime"];
    let place = order.iter().position(|it| *it == key(line)).unwrap_or(order.len());
    (!is_condition, if is_condition { key(line).to_owned() } else { format!("{place:02}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second_command(differences: &str) -> Vec<String> {
        let text = format!(
            "a-job\n# 3.4: a\n> job {{}}\n> settle\nComplete=True A: b\nactive=0 ready=0\nlive=0\n{differences}"
        );
        Sequence::parse(&text).unwrap().commands[1].of_ours()
    }

    #[test]
    fn what_is_not_named_is_the_same() {
        assert_eq!(second_command(""), ["Complete=True A: b", "active=0 ready=0", "live=0"]);
    }

    #[test]
    fn a_difference_takes_the_place_of_its_line() {
        let ours =
            second_command("~ active=1 ready=0 because a\n~ no Complete because a\n~ Waiting=True B: c because a\n");
        assert_eq!(ours, ["Waiting=True B: c", "active=1 ready=0", "live=0"]);
    }

    #[test]
    fn a_difference_has_a_reason() {
        let text = "a-job\n# 3.4: a\n> job {}\n~ live=1\n";
        assert!(Sequence::parse(text).is_err());
    }
}

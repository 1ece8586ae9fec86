//! `troupe job list`: the jobs of all kinds, and why each waits.

use super::cluster::Cluster;
use decide::summary::{state, why};
use jiff::Timestamp;
use std::process::ExitCode;
use troupe::{
    clock::Clock,
    out::{self, OneLine},
};

pub(super) async fn list(cluster: &Cluster, all_namespaces: bool) -> anyhow::Result<ExitCode> {
    let jobs = cluster.jobs(all_namespaces).await?;
    if jobs.is_empty() {
        let place =
            if all_namespaces { "any namespace".to_owned() } else { format!("namespace {}", cluster.namespace) };
        out::diagnostic(format_args!("no jobs in {place}"));
        return Ok(ExitCode::SUCCESS);
    }
    let now = Clock::system().now();
    let rows = jobs.iter().map(|found| {
        let status = &found.job.status;
        let created = found.job.metadata.creation_timestamp.as_ref().map(|it| it.0);
        let mut row = vec![found.title(), state(status), age(now, created), why(status).unwrap_or_default()];
        if all_namespaces {
            row.insert(0, found.job.metadata.namespace.clone().unwrap_or_default());
        }
        row
    });
    let mut head = vec!["JOB", "STATE", "AGE", "WHY"];
    if all_namespaces {
        head.insert(0, "NAMESPACE");
    }
    let head = head.into_iter().map(str::to_owned).collect();
    out::text(table(&std::iter::once(head).chain(rows).collect::<Vec<_>>()));
    Ok(ExitCode::SUCCESS)
}

/// Returns the time since then as kubectl prints it, in its two largest units.
pub(super) fn age(now: Timestamp, since: Option<Timestamp>) -> String {
    let Some(since) = since else { return "-".into() };
    let seconds = now.duration_since(since).as_secs().max(0);
    match (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0, seconds) => format!("{seconds}s"),
        (0, 0, minutes, seconds) => format!("{minutes}m{seconds}s"),
        (0, hours, minutes, _) => format!("{hours}h{minutes}m"),
        (days, hours, ..) => format!("{days}d{hours}h"),
    }
}

/// Maximum width of a column, in characters. A tenant who can write a job's status chooses the length of its state, and
/// Rust formats no width above 65,535.
const WIDEST: usize = 120;

/// Returns the rows in columns, each cell in one line: it may be what a tenant says. Cells that are wider than a column are cut;
/// the last of a row is as long as it is.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, |row| row.len().saturating_sub(1));
    let shown = |row: &Vec<String>| row.iter().map(|cell| OneLine(cell).to_string()).collect::<Vec<_>>();
    let rows: Vec<_> = rows.iter().map(shown).collect();
    let rows: Vec<_> = rows
        .iter()
        .map(|row| (row[..columns].iter().map(|cell| cut(cell)).collect::<Vec<_>>(), &row[columns..]))
        .collect();
    let width = |column: usize| rows.iter().map(|(cells, _)| cells[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..columns).map(width).collect();
    let line = |(cells, last): &(Vec<String>, &[String])| {
        let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{}\n", cells.chain(last.iter().cloned()).collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

fn cut(cell: &str) -> String {
    if cell.chars().nth(WIDEST).is_none() {
        cell.to_owned()
    } else {
        cell.chars().take(WIDEST - 1).chain(['…']).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_as_wide_as_its_widest_cell() {
        let rows = [["JOB", "WHY"], ["echojob/hamlet", ""]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&rows), "JOB             WHY\nechojob/hamlet\n");
    }

    #[test]
    fn a_state_of_a_megabyte_is_cut_and_a_reason_is_not() {
        let (state, why) = ("x".repeat(1 << 20), "y".repeat(70_000));
        let table = table(&[
            ["a".to_owned(), state, why.clone()].to_vec(),
            ["b", "Running", "it waits"].map(str::to_owned).to_vec(),
        ]);
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines[0], format!("a  {}…  {why}", "x".repeat(WIDEST - 1)));
        assert_eq!(lines[1], format!("b  Running{}  it waits", " ".repeat(WIDEST - 7)));
    }

    #[test]
    fn what_a_tenant_says_makes_no_row_and_moves_no_cursor() {
        let said = "boom\nechojob/forged  Succeeded\u{1b}[2A\u{2028}\u{202e}";
        let rows = [["JOB", "WHY", "LAST"], ["echojob/hamlet", said, said]].map(|row| row.map(str::to_owned).to_vec());
        let table = table(&rows);
        assert_eq!(table.lines().count(), 2, "{table}");
        let words = r"boom echojob/forged  Succeeded\u{1b}[2A\u{2028}\u{202e}";
        assert_eq!(table.lines().last().unwrap(), format!("echojob/hamlet  {words}  {words}"));
    }

    #[test]
    fn an_age_has_its_two_largest_units() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let since = |seconds: i64| age(now, Some(Timestamp::from_second(1_000_000 - seconds).unwrap()));
        assert_eq!([since(5), since(65), since(7_260), since(90_000)], ["5s", "1m5s", "2h1m", "1d1h"]);
    }
}

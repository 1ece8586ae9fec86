//! `troupe job list`: the jobs of all kinds, and why each waits.

use super::cluster::Cluster;
use decide::summary::{state, why};
use jiff::Timestamp;
use std::process::ExitCode;
use troupe::{clock::Clock, out};

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

/// Returns the rows in columns. The last column is as long as it is.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
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
    fn an_age_has_its_two_largest_units() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let since = |seconds: i64| age(now, Some(Timestamp::from_second(1_000_000 - seconds).unwrap()));
        assert_eq!([since(5), since(65), since(7_260), since(90_000)], ["5s", "1m5s", "2h1m", "1d1h"]);
    }
}

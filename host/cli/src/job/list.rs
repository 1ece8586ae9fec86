//! `troupe job list`: the jobs of all kinds, and why each waits.

use super::cluster::Cluster;
use decide::{condition::Condition, status};
use jiff::Timestamp;
use serde_json::Value;
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
        let status = &found.job.data["status"];
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

/// Returns the job's state as one word.
pub(super) fn state(status: &Value) -> String {
    status::step(&status::of_framework(status)).unwrap_or("-").to_owned()
}

/// Returns what is in the job's way, or what has failed.
pub(super) fn why(status: &Value) -> Option<String> {
    let own = |kind: Condition| {
        let conditions = status["conditions"].as_array()?;
        let found = conditions.iter().find(|it| it["type"] == kind.as_str() && it["status"] == "True")?;
        found["message"].as_str()
    };
    let of_host = [Condition::Rejected, Condition::PluginFaulted, Condition::Contested].into_iter().find_map(own);
    let of_host = of_host.map(str::to_owned);
    of_host.or_else(|| own(Condition::Waiting).map(|message| format!("waits for {message}"))).or_else(|| failed(status))
}

/// Returns what failed first, in a sentence.
fn failed(status: &Value) -> Option<String> {
    let first = status.pointer("/troupe/firstFailure")?;
    let text = |field: &str| first[field].as_str().filter(|text| !text.is_empty());
    let container = text("container").map(|it| format!("container {it} of ")).unwrap_or_default();
    let code = first["exitCode"].as_i64().map(|it| format!(" with exit code {it}")).unwrap_or_default();
    let said: Vec<_> = ["reason", "message"].into_iter().filter_map(text).map(str::trim).collect();
    let said = if said.is_empty() { String::new() } else { format!(": {}", said.join(": ")) };
    Some(format!("{container}pod/{} failed first{code}{said}", text("pod").unwrap_or_default()))
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
    use serde_json::json;

    #[test]
    fn a_job_says_why_it_waits_is_refused_or_has_failed() {
        let condition = |kind: Condition, status: &str| json!({ "type": kind, "status": status, "message": "quota" });
        let of = |conditions: Value| why(&json!({ "conditions": conditions }));
        assert_eq!(of(json!([condition(Condition::Waiting, "True")])).as_deref(), Some("waits for quota"));
        assert_eq!(of(json!([condition(Condition::Waiting, "False")])), None);
        assert_eq!(
            of(json!([condition(Condition::Waiting, "True"), condition(Condition::Rejected, "True")])).as_deref(),
            Some("quota")
        );
        let first =
            json!({ "pod": "w-1", "container": "main", "exitCode": 3, "reason": "Error", "message": "no data\n" });
        assert_eq!(
            why(&json!({ "troupe": { "firstFailure": first } })).as_deref(),
            Some("container main of pod/w-1 failed first with exit code 3: Error: no data")
        );
        let evicted = json!({ "pod": "w-1", "reason": "Evicted" });
        let said = why(&json!({ "troupe": { "firstFailure": evicted } }));
        assert_eq!(said.as_deref(), Some("pod/w-1 failed first: Evicted"));
    }

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

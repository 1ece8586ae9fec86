//! Who asked the API server for what, read from its audit log.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

/// What the log holds: every finished request, without bodies. Long requests (watches) appear when they end.
pub(crate) const POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
";

/// The same, with what writes of pods, Jobs and jobs were answered.
pub(crate) const ANSWERS: &str = r#"apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
omitManagedFields: true
rules:
- level: RequestResponse
  verbs: [create, update, patch, delete]
  resources:
  - {group: "", resources: [pods, pods/status]}
  - {group: batch, resources: [jobs]}
  - {group: batch.paddlepaddle.org}
  - {group: kubeflow.org}
  - {group: openrhino.org}
- level: Metadata
"#;

/// One finished request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Who asked.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// The API group, empty for the core group and for paths that are no resource.
    pub group: String,
    /// The resource's plural, empty for paths that are no resource.
    pub resource: String,
    /// `status`, `binding`, ... or empty.
    pub subresource: String,
    /// Empty for what is cluster-wide.
    pub namespace: String,
    /// The object's name; empty for lists, and for a create, whose name is in its body.
    pub name: String,
    /// The HTTP status.
    pub code: u16,
    /// When the request came in, to the microsecond.
    pub at: Timestamp,
    /// What was answered, where the log holds it ([`Options::audits_answers`](crate::Options::audits_answers)), else null.
    pub object: Value,
}

impl Record {
    /// `pods`, or `pods/status` for a subresource.
    #[must_use]
    pub fn target(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }
}

/// The records of an audit log so far, in the order of the file; a last line that is still being written is not among them.
pub fn read(log: &Path) -> Result<Vec<Record>> {
    let text = fs::read_to_string(log).with_context(|| format!("failed to read {}", log.display()))?;
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    complete.lines().map(|line| parse(uncut(line))).collect()
}

/// How every record begins.
const BEGINNING: &str = r#"{"kind":"Event","apiVersion":"audit.k8s.io"#;

/// The line without what an API server that was killed in the middle of a record left before it.
fn uncut(line: &str) -> &str {
    line.rfind(BEGINNING).map_or(line, |start| &line[start..])
}

/// How often `user` asked, by verb and [`Record::target`], in `from..until`.
#[must_use]
pub fn count(records: &[Record], user: &str, from: Timestamp, until: Timestamp) -> BTreeMap<(String, String), usize> {
    let mut counts = BTreeMap::new();
    for record in records.iter().filter(|record| record.user == user && (from..until).contains(&record.at)) {
        *counts.entry((record.verb.clone(), record.target())).or_default() += 1;
    }
    counts
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    verb: String,
    user: User,
    #[serde(default)]
    object_ref: Object,
    #[serde(default)]
    response_status: Status,
    request_received_timestamp: Timestamp,
    #[serde(default)]
    response_object: Value,
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Object {
    api_group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    code: u16,
}

fn parse(line: &str) -> Result<Record> {
    let event: Event = serde_json::from_str(line).with_context(|| format!("not an audit event: {line}"))?;
    Ok(Record {
        user: event.user.username,
        verb: event.verb,
        group: event.object_ref.api_group,
        resource: event.object_ref.resource,
        subresource: event.object_ref.subresource,
        namespace: event.object_ref.namespace,
        name: event.object_ref.name,
        code: event.response_status.code,
        at: event.request_received_timestamp,
        object: event.response_object,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"a","stage":"ResponseComplete",
        "requestURI":"/api/v1/namespaces/default/pods/a/status","verb":"patch","user":{"username":"troupe","groups":["system:masters"]},
        "objectRef":{"resource":"pods","namespace":"default","name":"a","apiVersion":"v1","subresource":"status"},
        "responseStatus":{"metadata":{},"code":200},"requestReceivedTimestamp":"2026-01-02T03:04:05.000006Z",
        "stageTimestamp":"2026-01-02T03:04:05.001000Z"}"#;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_record_has_its_time_in_microseconds() {
        let record = parse(LINE).unwrap();
        assert_eq!(record.at, at("2026-01-02T03:04:05.000006Z"));
        assert_eq!((record.target().as_str(), record.code, record.user.as_str()), ("pods/status", 200, "troupe"));
    }

    #[test]
    fn half_a_record_before_another_is_passed_over() {
        let cut = format!("{}{LINE}", &LINE[..200]);
        assert_eq!(parse(uncut(&cut)).unwrap(), parse(LINE).unwrap());
    }

    #[test]
    fn only_requests_of_the_user_between_the_instants_are_counted() {
        let records = [parse(LINE).unwrap()];
        let first = "2026-01-02T03:04:05.000006Z";
        let counted =
            |user: &str, from: &str, until: &str| count(&records, user, at(from), at(until)).values().sum::<usize>();
        assert_eq!(counted("troupe", first, "2026-01-02T03:05:00Z"), 1);
        assert_eq!(counted("troupe", "2026-01-02T03:04:00Z", first), 0);
        assert_eq!(counted("user", first, "2026-01-02T03:05:00Z"), 0);
    }
}

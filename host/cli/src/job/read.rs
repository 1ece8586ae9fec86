//! Reads what the commands print of jobs. A job's spec is not read: a user may nest it deeper than serde_json reads.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use troupe::observe;

/// The part of a job that is printed.
#[derive(Debug, Deserialize)]
pub(super) struct Job {
    #[serde(default)]
    pub(super) metadata: Metadata,
    /// What is too deep in it is null.
    #[serde(default, deserialize_with = "observe::of_any_depth")]
    pub(super) status: Value,
}

/// Metadata without the managed fields, which are nested as deep as the spec.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Metadata {
    pub(super) name: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) uid: Option<String>,
    pub(super) creation_timestamp: Option<Time>,
}

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

/// Returns the job that this text is.
///
/// # Errors
/// If the text is no JSON, or its metadata is not that of an object.
pub(super) fn job(text: &str) -> serde_json::Result<Job> {
    serde_json::from_str(text)
}

/// Returns the jobs of a list, and the error of each that cannot be read.
///
/// # Errors
/// If the text is no list.
pub(super) fn jobs(text: &str) -> serde_json::Result<(Vec<Job>, Vec<serde_json::Error>)> {
    let list: List<'_> = serde_json::from_str(text)?;
    let (mut jobs, mut errors) = (vec![], vec![]);
    for item in list.items {
        match job(item.get()) {
            Ok(job) => jobs.push(job),
            Err(error) => errors.push(error),
        }
    }
    Ok((jobs, errors))
}

#[cfg(test)]
mod tests {
    use super::*;
    use decide::summary::state;

    /// Returns a value of 140 levels.
    fn deep() -> String {
        format!("{}1{}", "[".repeat(140), "]".repeat(140))
    }

    #[test]
    fn a_job_is_read_however_deep_its_spec_its_managed_fields_and_its_status_are() {
        let deep = deep();
        let metadata = format!(r#"{{ "name": "deep", "managedFields": [{{ "fieldsV1": {deep} }}] }}"#);
        let status = format!(r#"{{ "phase": "Running", "of": {deep} }}"#);
        let text = format!(r#"{{ "metadata": {metadata}, "spec": {deep}, "status": {status} }}"#);
        let job = job(&text).unwrap();
        assert_eq!((job.metadata.name.as_deref(), state(&job.status)), (Some("deep"), "Running".to_owned()));
    }

    #[test]
    fn a_job_that_cannot_be_read_hides_no_other() {
        let items =
            r#"[{ "metadata": { "name": "a" } }, { "metadata": { "name": 5 } }, { "metadata": { "name": "b" } }]"#;
        let (jobs, errors) = jobs(&format!(r#"{{ "kind": "EchoJobList", "items": {items} }}"#)).unwrap();
        let names: Vec<_> = jobs.iter().map(|job| job.metadata.name.as_deref().unwrap()).collect();
        assert_eq!((names, errors.len()), (vec!["a", "b"], 1));
    }
}

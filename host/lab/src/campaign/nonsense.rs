//! Jobs like those of a campaign, each with one value with which no job can be run: their plugins refuse them, and nothing is
//! made for them. The definitions of their kinds would refuse them before; an older one does not.

use super::{deeds::Deed, draw::Draw, hosts::is_host, jobs::Job};
use serde_json::{Value, json};
use sim::Write;
use std::time::Duration;

/// What their names begin with.
const NAME: &str = "nonsense-";

/// What a host could make for a job.
const MADE: [&str; 8] =
    ["Pod", "Job", "Service", "ConfigMap", "Secret", "PodGroup", "Workload", "HorizontalPodAutoscaler"];

/// Beside one of twenty jobs, submits one like it with such a value.
pub(super) fn drawn(draw: &mut Draw, jobs: &[Job]) -> Vec<(Duration, Deed)> {
    let mut deeds = vec![];
    for (number, job) in jobs.iter().enumerate() {
        let values = job.nonsense();
        if values.is_empty() || !draw.one_in(20) {
            continue;
        }
        let (pointer, value) = draw.of(&values).clone();
        let mut manifest = job.manifest.clone();
        manifest["metadata"]["name"] = json!(format!("{NAME}{number}"));
        let (parent, field) = pointer.rsplit_once('/').unwrap_or_default();
        let Some(Value::Object(fields)) = manifest["spec"].pointer_mut(parent) else { continue };
        fields.insert(field.to_owned(), value);
        deeds.push((draw.ms(0, 10_000), Deed::SubmitOdd("a value that means nothing", manifest)));
    }
    deeds
}

/// Nothing is made for a job that is not accepted.
pub(super) fn nothing_is_made(write: &Write) -> Option<String> {
    let made = write.after.as_ref().filter(|_| write.created() && is_host(&write.actor))?;
    let owners = made["metadata"]["ownerReferences"].as_array()?;
    let for_nonsense = |owner: &Value| owner["name"].as_str().is_some_and(|name| name.starts_with(NAME));
    let is_so = MADE.contains(&write.kind.as_str()) && owners.iter().any(for_nonsense);
    is_so.then(|| format!("S16: {} {} is made for a job that means nothing", write.kind, write.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_in_the_copy_alone_and_its_parent_is_there() {
        let manifest = json!({ "kind": "MPIJob", "metadata": { "name": "b-1" },
            "spec": { "runPolicy": {}, "mpiReplicaSpecs": { "Launcher": {}, "Worker": {} } } });
        let jobs = vec![
            Job {
                manifest: manifest.clone(),
                lives: vec![],
                outcome: "succeeded",
                is_restarted: false,
                suspend: None
            };
            400
        ];
        let deeds = drawn(&mut Draw::new(1, "nonsense"), &jobs);
        assert!((10..40).contains(&deeds.len()), "{}", deeds.len());
        for (_, deed) in deeds {
            let Deed::SubmitOdd(_, job) = deed else { panic!("another deed") };
            assert!(job["metadata"]["name"].as_str().unwrap().starts_with(NAME));
            assert_ne!(job["spec"], manifest["spec"]);
        }
    }
}

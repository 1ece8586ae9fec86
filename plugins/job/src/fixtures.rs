//! IndexedJobs that the tests share.

use crate::IndexedJob;
use crate::plan::ROLE;
use serde_json::{Value, json};
use troupe_plugin::testkit::{self, PodFixture};
use troupe_plugin::types::{Observation, PodRow, RoleFacts};

/// The spec with these fields and a template of one container `main` that is never started again in place.
pub(crate) fn spec(fields: &Value) -> Value {
    let mut spec = json!({
        "template": { "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "busybox" }] } },
    });
    spec.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    spec
}

/// The spec of a job of so many indexes at once.
pub(crate) fn indexed(completions: u32, fields: &Value) -> Value {
    let mut spec = spec(&json!({ "completions": completions, "parallelism": completions }));
    spec.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    spec
}

pub(crate) fn job(spec: &Value) -> IndexedJob {
    IndexedJob::parse(testkit::job("IndexedJob", "sums", spec)).unwrap()
}

/// A running pod of this index.
pub(crate) fn running(index: u32) -> PodRow {
    testkit::pod(ROLE, index, &format!("sums-{index}")).running()
}

/// An observation of these pods, with so many failures that the host counted.
pub(crate) fn seen(pods: Vec<PodRow>, failures: u32) -> Observation {
    let mut seen = testkit::seen(pods);
    let facts = RoleFacts { role: ROLE.into(), succeeded: vec![], lost: false, failures, given_up: vec![], attempt: 0 };
    seen.roles = vec![facts];
    seen
}

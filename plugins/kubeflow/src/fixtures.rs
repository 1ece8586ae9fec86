//! Jobs and pods that the tests share.

use crate::TrainingJob;
use crate::family::Family;
use crate::kind::Kind;
use crate::plan::plan;
use crate::rules;
use crate::valid::validate;
use serde_json::{Value, json};
use troupe_plugin::testkit::{self, PodFixture};
use troupe_plugin::types::{Piece, PodRow, Refusal};

/// Returns a job of this kind called `j`.
pub(crate) fn job(kind: &str, spec: &Value) -> TrainingJob {
    TrainingJob::parse(testkit::job(kind, "j", spec)).unwrap()
}

/// Returns replicas with a template whose container has the kind's name, and these ports.
pub(crate) fn replicas(kind: &str, count: u32, ports: &Value) -> Value {
    let container = Kind::of(kind).unwrap().container;
    let containers = json!([{ "name": container, "image": "i", "ports": ports }]);
    json!({ "replicas": count, "template": { "spec": { "containers": containers } } })
}

/// Returns the fields of a spec with so many replicas of each type, and other fields.
pub(crate) fn spec(kind: &str, types: &[(&str, u32)], others: &Value) -> Value {
    let mut spec = others.clone();
    for (name, count) in types {
        spec[Kind::of(kind).unwrap().field][name] = replicas(kind, *count, &json!([]));
    }
    spec
}

/// Returns the variables of a replica as `NAME=value` texts, as the host fills them in.
pub(crate) fn variables(kind: &str, spec: &Value, role: &str, index: u32) -> Vec<String> {
    of_job(&job(kind, spec), role, index)
}

/// Returns the variables of a replica of a job.
pub(crate) fn of_job(job: &TrainingJob, role: &str, index: u32) -> Vec<String> {
    let family = Family::of(job).unwrap();
    let valid = validate(&family, rules::errors(&family)).unwrap();
    let groups = family.groups();
    let group = groups.iter().find(|group| group.role == role).unwrap();
    let text = |variable: crate::env::Variable| match variable.value {
        crate::env::Value::Fixed(text) => format!("{}={text}", variable.name),
        crate::env::Value::UnlessSet(text) => format!("{}={text} unless set", variable.name),
        crate::env::Value::Field(path) => format!("{} from {path}", variable.name),
        crate::env::Value::PerReplica(pieces) => format!("{}={}", variable.name, filled(&pieces, index)),
    };
    rules::variables(&valid, group).into_iter().map(text).collect()
}

fn filled(pieces: &[Piece], index: u32) -> String {
    let fill = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Index(plus) => (i64::from(index) + i64::from(*plus)).to_string(),
        other => panic!("no variable has {other:?}"),
    };
    pieces.iter().map(fill).collect()
}

/// Returns what is wrong with a job: fields and messages.
pub(crate) fn errors(job: &TrainingJob) -> Vec<(String, String)> {
    match plan(job) {
        Err(Refusal::Invalid(errors)) => errors.into_iter().map(|error| (error.path, error.message)).collect(),
        Ok(_) => vec![],
        Err(other) => panic!("{other:?}"),
    }
}

/// Returns a pod of the job `j`. Its only container is that of the kind.
pub(crate) fn pod(kind: &str, role: &str, index: u32, is: impl Fn(PodRow) -> PodRow) -> PodRow {
    let mut pod = is(testkit::pod(role, index, &format!("j-{role}-{index}")).running());
    for container in &mut pod.containers {
        container.name = Kind::of(kind).unwrap().container.into();
    }
    pod
}

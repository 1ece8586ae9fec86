//! What fields of a job have to do with each other, for the test that breaks each.

use crate::kind::{Framework, KINDS, Kind};
use serde_json::{Value, json};
use troupe_plugin::crd::{Relation, relations};

/// Returns the relations of all kinds.
#[must_use]
pub fn all() -> Vec<Relation> {
    KINDS.iter().flat_map(|kind| [of_all(kind), own(kind)].concat()).collect()
}

fn resource(kind: &Kind) -> String {
    format!("{}.{}", kind.plural, crate::GROUP)
}

/// The spec with these types of replicas.
fn types(kind: &Kind, of: &Value) -> Value {
    json!({ "spec": { kind.field: of } })
}

fn of_all(kind: &Kind) -> Vec<Relation> {
    let gang = json!({ "spec": { "runPolicy": { "schedulingPolicy": { "minAvailable": 9 } } } });
    relations(
        &resource(kind),
        [
            ("minAvailable is no more than the pods", gang, "spec.runPolicy.schedulingPolicy.minAvailable"),
            ("the names of pods are labels", json!({ "metadata": { "name": "a".repeat(60) } }), "metadata.name"),
            ("the types of replicas are known", types(kind, &json!({ "Boss": {} })), kind.field),
        ],
    )
}

fn own(kind: &Kind) -> Vec<Relation> {
    let template = json!({ "spec": { "containers": [{ "name": kind.container, "image": "i" }] } });
    let another = |count: u32| json!({ "replicas": count, "template": template });
    let least_is_more = json!({ "spec": { "elasticPolicy": { "minReplicas": 3, "maxReplicas": 1 } } });
    match kind.framework {
        Framework::Tf => relations(
            &resource(kind),
            [
                ("there is one Chief", types(kind, &json!({ "Chief": { "replicas": 2 } })), "Chief"),
                ("a Chief has a pod", types(kind, &json!({ "Chief": { "replicas": 0 } })), "Chief"),
                ("Chief and Master exclude each other", types(kind, &json!({ "Master": another(1) })), "Chief"),
            ],
        ),
        Framework::PyTorch => relations(
            &resource(kind),
            [
                ("there is one Master", types(kind, &json!({ "Master": { "replicas": 2 } })), "Master"),
                ("the number of Masters is said", types(kind, &json!({ "Master": { "replicas": null } })), "Master"),
                ("minReplicas <= maxReplicas", least_is_more, "minReplicas"),
                (
                    "minReplicas <= replicas of Worker <= maxReplicas",
                    json!({ "spec": { "elasticPolicy": { "maxReplicas": 2 }, kind.field: { "Worker": { "replicas": 5 } } } }),
                    "maxReplicas",
                ),
                (
                    "elasticPolicy is about workers",
                    json!({ "spec": { "elasticPolicy": { "maxReplicas": 2 }, kind.field: { "Worker": null } } }),
                    "Worker",
                ),
                (
                    "processes of a pod are said once",
                    json!({ "spec": { "nprocPerNode": "2", "elasticPolicy": { "nProcPerNode": 2 } } }),
                    "nProcPerNode",
                ),
            ],
        ),
        Framework::XgBoost => relations(
            &resource(kind),
            [
                ("there is a Master", types(kind, &json!({ "Master": null })), "Master"),
                ("there is one Master", types(kind, &json!({ "Master": { "replicas": 2 } })), "Master"),
            ],
        ),
        Framework::Jax => relations(
            &resource(kind),
            [("there is a pod", types(kind, &json!({ "Worker": { "replicas": 0 } })), "replicas")],
        ),
        Framework::Paddle => relations(
            &resource(kind),
            [
                ("there is a pod", types(kind, &json!({ "Master": null, "Worker": { "replicas": 0 } })), "replicas"),
                ("a Master has a pod", types(kind, &json!({ "Master": another(0) })), "Master"),
                ("minReplicas <= maxReplicas", least_is_more, "minReplicas"),
            ],
        ),
    }
}

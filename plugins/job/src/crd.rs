//! The CRD of IndexedJob. The API server checks the numbers and names; the plugin checks what depends on other fields.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value, json};
use troupe_plugin::MAX_REPLICAS;
use troupe_plugin::crd::{self as shared, rule};

/// Returns the CRD to install.
///
/// # Panics
/// If what is generated is no CRD, which a test excludes.
#[must_use]
pub fn crd() -> CustomResourceDefinition {
    serde_json::from_value(definition()).expect("it is a CRD")
}

fn definition() -> Value {
    let schema = json!({
        "description": "IndexedJob runs pods to their end, as a batch/v1 Job does.",
        "type": "object",
        "properties": { "spec": spec(), "status": status() },
        "x-kubernetes-validations": [shared::name_rule(63 - "-0".len(), false)],
    });
    shared::document(&crate::kind(), &schema, &json!({ "status": {} }), &columns())
}

fn columns() -> Value {
    json!([
        { "name": "Status", "type": "string", "jsonPath": ".status.troupe.step" },
        { "name": "Completions", "type": "integer", "jsonPath": ".spec.completions" },
        { "name": "Succeeded", "type": "integer", "jsonPath": ".status.succeeded" },
        { "name": "Failed", "type": "integer", "jsonPath": ".status.failed" },
        { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
    ])
}

/// What a Job's API server refuses, of what can be said without the template, and what it refuses to change. A field that is
/// not there is as good as its default.
fn rules() -> Value {
    let same = |field: &str, default: &str| {
        let value = |of: &str| format!("(has({of}.{field}) ? {of}.{field} : {default})");
        rule(&format!("{} == {}", value("self"), value("oldSelf")), &format!("spec.{field} is immutable"))
    };
    let unchanged = |field: &str| {
        let same = format!(
            "has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"
        );
        rule(&same, &format!("spec.{field} is immutable"))
    };
    let elastic = "(has(self.completions) ? self.completions : -1) == (has(oldSelf.completions) ? oldSelf.completions : -1) \
        || (has(self.completions) && has(oldSelf.completions) && has(self.parallelism) && has(oldSelf.parallelism) \
        && self.completions == self.parallelism && oldSelf.completions == oldSelf.parallelism \
        && (!has(self.completionMode) || self.completionMode == 'Indexed'))";
    let indexed = "(!has(self.completionMode) || self.completionMode == 'Indexed')";
    let needs = |field: &str, what: &str, message: &str| {
        rule(&format!("!has(self.{field}) || {what}"), &format!("spec.{field} {message}"))
    };
    let fails_index = "self.podFailurePolicy.rules.all(rule, rule.action != 'FailIndex')";
    json!([
        rule(
            &format!("!{indexed} || has(self.completions) || !has(self.parallelism)"),
            "spec.completions is required with completionMode Indexed",
        ),
        needs("backoffLimitPerIndex", indexed, "needs completionMode Indexed"),
        needs("maxFailedIndexes", "has(self.backoffLimitPerIndex)", "needs backoffLimitPerIndex"),
        needs(
            "maxFailedIndexes",
            "!has(self.completions) || self.maxFailedIndexes <= self.completions",
            "must be no more than spec.completions",
        ),
        needs(
            "successPolicy",
            "!has(self.completions) || self.successPolicy.rules.all(it, !has(it.succeededCount) || it.succeededCount <= \
             self.completions)",
            "has a succeededCount that is more than spec.completions",
        ),
        needs("successPolicy", indexed, "needs completionMode Indexed"),
        needs(
            "podFailurePolicy",
            "!has(self.podReplacementPolicy) || self.podReplacementPolicy == 'Failed'",
            "needs podReplacementPolicy Failed",
        ),
        needs(
            "podFailurePolicy",
            &format!("has(self.backoffLimitPerIndex) || {fails_index}"),
            "needs backoffLimitPerIndex for the action FailIndex",
        ),
        same("completionMode", "'Indexed'"),
        same("backoffLimitPerIndex", "-1"),
        unchanged("podFailurePolicy"),
        unchanged("successPolicy"),
        same("managedBy", "''"),
        rule(
            elastic,
            "spec.completions may change only together with spec.parallelism, of an Indexed job in which both are equal"
        ),
    ])
}

fn spec() -> Value {
    let text = |description: &str, words: &[&str]| {
        let mut schema = json!({ "description": description, "type": "string" });
        if !words.is_empty() {
            schema["enum"] = json!(words);
        }
        schema
    };
    let mut schema = object(
        "The fields of a JobSpec of batch/v1.",
        [
            ("parallelism", number("How many pods run at once, at most. Defaults to 1.", 0, Some(MAX_REPLICAS))),
            (
                "completions",
                number(
                    "How many pods have to succeed. Without it the pods are a work queue: one success is enough, and the others end by themselves.",
                    0,
                    Some(MAX_REPLICAS),
                ),
            ),
            (
                "completionMode",
                text(
                    "Whether each completion has an index of its own. Defaults to Indexed.",
                    &["Indexed", "NonIndexed"],
                ),
            ),
            ("backoffLimit", number("How many pods may fail. Defaults to 6.", 0, None)),
            ("backoffLimitPerIndex", number("How many pods of an index may fail before it is given up.", 0, None)),
            ("maxFailedIndexes", number("How many indexes may be given up.", 0, None)),
            ("podFailurePolicy", failure_policy()),
            ("successPolicy", success_policy()),
            (
                "podReplacementPolicy",
                text(
                    "When a pod that is being deleted is replaced: at once (TerminatingOrFailed) or ended (Failed).",
                    &["TerminatingOrFailed", "Failed"],
                ),
            ),
            (
                "activeDeadlineSeconds",
                number("Seconds from the start, or the last resumption, to the latest end.", 1, None),
            ),
            ("ttlSecondsAfterFinished", number("Seconds from the end to the deletion of the job.", 0, None)),
            (
                "suspend",
                json!({ "description": "No pods for now. Defaults to false.", "type": "boolean", "nullable": true }),
            ),
            (
                "managedBy",
                json!({
                    "description": "Who manages the job. Without it, or with batch.troupe.dev/job-controller, Troupe does.",
                    "type": "string", "maxLength": 63, "pattern": "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/[^/\\s]+)?$",
                }),
            ),
            ("template", shared::of(shared::pod_template)),
        ],
    );
    schema["required"] = json!(["template"]);
    schema["x-kubernetes-validations"] = rules();
    schema
}

fn failure_policy() -> Value {
    let operator = "In: the exit code is one of values. NotIn: it is none of them.";
    let actions = ["FailJob", "FailIndex", "Ignore", "Count"];
    let action = "FailJob fails the job, FailIndex gives the index up, Ignore does not count the pod, Count does.";
    let mut codes = object(
        "The exit code of a container of the pod, other than 0.",
        [
            (
                "containerName",
                json!({
                    "description": "The container; without it any.", "type": "string", "maxLength": 63, "nullable": true,
                    "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
                }),
            ),
            ("operator", json!({ "description": operator, "type": "string", "enum": ["In", "NotIn"] })),
            (
                "values",
                json!({
                    "description": "The exit codes, in ascending order.", "type": "array", "minItems": 1, "maxItems": 255,
                    "items": { "type": "integer", "format": "int32" },
                }),
            ),
        ],
    );
    codes["required"] = json!(["operator", "values"]);
    codes["nullable"] = true.into();
    let not_0 = "self.operator != 'In' || !(0 in self.values)";
    codes["x-kubernetes-validations"] =
        json!([rule(not_0, "values must not have 0: a container that succeeded fails no pod")]);
    let mut condition = object(
        "A condition of the pod.",
        [
            (
                "type",
                json!({
                    "description": "The condition's type, such as DisruptionTarget.", "type": "string", "maxLength": 316,
                    "pattern": "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
                }),
            ),
            (
                "status",
                json!({ "description": "Its status. Defaults to True.", "type": "string", "enum": ["True", "False", "Unknown"] }),
            ),
        ],
    );
    condition["required"] = json!(["type"]);
    let mut one = object(
        "What a failed pod means that has one of these exit codes or conditions.",
        [
            ("action", json!({ "description": action, "type": "string", "enum": actions })),
            ("onExitCodes", codes),
            (
                "onPodConditions",
                json!({
                    "description": "The pod has one of these conditions.",
                    "type": "array", "nullable": true, "minItems": 1, "maxItems": 20,
                    "items": condition,
                }),
            ),
        ],
    );
    one["required"] = json!(["action"]);
    let either = "has(self.onExitCodes) != has(self.onPodConditions)";
    one["x-kubernetes-validations"] = json!([rule(either, "must have either onExitCodes or onPodConditions")]);
    let rules = json!({ "description": "The rules, in order.", "type": "array", "maxItems": 20, "items": one });
    let mut schema = object("What failed pods mean: the first rule that is about a pod counts.", [("rules", rules)]);
    schema["required"] = json!(["rules"]);
    schema["nullable"] = true.into();
    schema
}

fn success_policy() -> Value {
    let indexes = json!({ "description": "The indexes that count, as 1,3-5.", "type": "string", "maxLength": 65536, "nullable": true,
        "pattern": "^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$" });
    let mut one = object(
        "These indexes have succeeded, or so many of them.",
        [("succeededIndexes", indexes), ("succeededCount", number("How many are enough.", 0, None))],
    );
    let some = "has(self.succeededIndexes) || has(self.succeededCount)";
    one["x-kubernetes-validations"] = json!([rule(some, "must have succeededIndexes, succeededCount or both")]);
    let rules = json!({ "description": "The rules.", "type": "array", "minItems": 1, "maxItems": 20, "items": one });
    let mut schema = object("Which successes are enough: one rule has to be met.", [("rules", rules)]);
    schema["required"] = json!(["rules"]);
    schema["nullable"] = true.into();
    schema
}

fn status() -> Value {
    let time = |words: &str| json!({ "description": words, "type": "string", "format": "date-time" });
    let text = |description: &str| json!({ "description": description, "type": "string" });
    let mut conditions = shared::of(shared::conditions);
    conditions["items"]["properties"]["lastProbeTime"] = time("When the condition was looked at last.");
    object(
        "The fields of a JobStatus of batch/v1.",
        [
            ("active", number("Pods that have not ended and are not being deleted.", 0, None)),
            ("ready", number("Of those, the ready ones.", 0, None)),
            ("terminating", number("Pods that are being deleted and have not ended.", 0, None)),
            ("succeeded", number("Pods that succeeded.", 0, None)),
            ("failed", number("Pods that failed.", 0, None)),
            ("completedIndexes", text("The indexes that succeeded, as 1,3-5.")),
            ("failedIndexes", text("The indexes that are given up, as 1,3-5.")),
            ("startTime", time("When the job was first seen, or resumed.")),
            ("completionTime", time("When the job succeeded.")),
            ("conditions", conditions),
            ("troupe", shared::of(shared::ledger)),
        ],
    )
}

fn object<const N: usize>(description: &str, properties: [(&str, Value); N]) -> Value {
    let properties: Map<_, _> = properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    json!({ "description": description, "type": "object", "properties": properties })
}

fn number(description: &str, least: u32, most: Option<u32>) -> Value {
    let mut schema = json!({
        "description": description, "type": "integer", "format": "int32", "minimum": least, "nullable": true,
    });
    if let Some(most) = most {
        schema["maximum"] = most.into();
    }
    schema
}

/// Returns what fields of a job have to do with each other, for the test that breaks each.
#[must_use]
pub fn relations() -> Vec<shared::Relation> {
    let spec = |spec: Value| json!({ "spec": spec });
    let succeeded = |count: u32| json!({ "rules": [{ "succeededCount": count }] });
    let fails_index =
        json!({ "rules": [{ "action": "FailIndex", "onPodConditions": [{ "type": "DisruptionTarget" }] }] });
    let other = json!({ "rules": [{ "action": "Ignore", "onExitCodes": { "operator": "In", "values": [3, 2] } }] });
    shared::relations(
        "indexedjobs.batch.troupe.dev",
        [
            ("completions are said", spec(json!({ "completions": null })), "completions"),
            ("limits by index need indexes", spec(json!({ "completionMode": "NonIndexed" })), "backoffLimitPerIndex"),
            (
                "maxFailedIndexes needs backoffLimitPerIndex",
                spec(json!({ "backoffLimitPerIndex": null })),
                "backoffLimitPerIndex",
            ),
            ("maxFailedIndexes <= completions", spec(json!({ "maxFailedIndexes": 3 })), "maxFailedIndexes"),
            (
                "FailIndex needs backoffLimitPerIndex",
                spec(
                    json!({ "podFailurePolicy": fails_index, "backoffLimitPerIndex": null, "maxFailedIndexes": null }),
                ),
                "FailIndex",
            ),
            (
                "a failure policy replaces what has failed",
                spec(json!({ "podReplacementPolicy": "TerminatingOrFailed" })),
                "podReplacementPolicy",
            ),
            (
                "a failure policy needs pods that are not restarted",
                spec(json!({ "template": { "spec": { "restartPolicy": "OnFailure" } } })),
                "restartPolicy",
            ),
            ("exit codes are in order", spec(json!({ "podFailurePolicy": other })), "values"),
            ("succeededCount <= completions", spec(json!({ "successPolicy": succeeded(3) })), "succeededCount"),
            (
                "a pod that is restarted has a policy",
                spec(json!({ "template": { "spec": { "restartPolicy": "Always" } } })),
                "restartPolicy",
            ),
            ("the names of pods are labels", json!({ "metadata": { "name": "a".repeat(62) } }), "metadata.name"),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_those_of_a_job() {
        let crd = serde_json::to_value(crd()).unwrap();
        assert_eq!(crd["metadata"]["name"], "indexedjobs.batch.troupe.dev");
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
        assert_eq!(schema["spec"]["properties"].as_object().unwrap().len(), 14);
        assert_eq!(schema["spec"]["properties"]["parallelism"]["maximum"].as_f64(), Some(10_000.0));
        assert_eq!(schema["status"]["properties"]["troupe"]["x-kubernetes-preserve-unknown-fields"], json!(true));
        assert!(schema["status"]["properties"]["conditions"]["items"]["properties"]["lastProbeTime"].is_object());
    }
}

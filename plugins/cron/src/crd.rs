//! The CRD of CronJob. It accepts what the original's accepts, and the fields `timeZone` and `template`.

use crate::kinds::KINDS;
use crate::schedule::NAMED;
use crate::valid::MAX_NAME;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value, json};
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
        "description": "CronJob runs a job at the times of a schedule.",
        "type": "object",
        "properties": { "spec": spec(), "status": status() },
        "x-kubernetes-validations": [shared::name_rule(MAX_NAME, false)],
    });
    shared::document(&crate::kind(), &schema, &json!({ "status": {} }), &columns())
}

/// A column cannot count a list, so that Active says whether there are any.
fn columns() -> Value {
    let active = r#".status.conditions[?(@.type=="Progressing")].status"#;
    json!([
        { "name": "Schedule", "type": "string", "jsonPath": ".spec.schedule" },
        { "name": "Suspend", "type": "boolean", "jsonPath": ".spec.suspend" },
        { "name": "Active", "type": "string", "jsonPath": active },
        { "name": "Last Schedule", "type": "date", "jsonPath": ".status.lastScheduleTime" },
        { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
    ])
}

fn spec() -> Value {
    let schedule = "Minute, hour, day of month, month and day of week; or @hourly, @daily, @weekly, @monthly, @yearly, @every 1h30m.";
    let named = NAMED.map(|(name, _)| name).join("|");
    let form = format!(r"self.matches('^((CRON_)?TZ=\\S*\\s+)?\\s*({named}|@every \\S+|\\S+(\\s+\\S+){{4}})\\s*$')");
    let no_time = r"!self.matches('^((CRON_)?TZ=\\S*\\s+)?@every (-.*|[+]?([0.]+(ns|us|ms|s|m|h)?)+)$')";
    let zone = "The IANA name of the time zone of the schedule, such as Europe/Berlin. Defaults to UTC.";
    let policy = "A run that is due while another is active: Allow (the default) starts it, Forbid leaves it out, \
        Replace ends the other.";
    let mut schema = object(
        "When the CronJob runs, and what.",
        [
            (
                "schedule",
                json!({
                    "description": schedule, "type": "string", "maxLength": 1024,
                    "x-kubernetes-validations": [
                        rule(&form, "must have 5 fields (minute, hour, day of month, month, day of week), or be one such as @daily and @every 1h30m"),
                        rule(no_time, "must be at least @every 1s"),
                    ],
                }),
            ),
            (
                "timeZone",
                json!({ "description": zone, "type": "string", "nullable": true, "pattern": "^[A-Za-z][-A-Za-z0-9_+/]*$" }),
            ),
            (
                "startingDeadlineSeconds",
                count(
                    "Seconds late that a run may start; a later one is left out. Defaults to no limit.",
                    "int64",
                    None,
                ),
            ),
            (
                "concurrencyPolicy",
                json!({
                    "description": policy, "type": "string", "enum": ["Allow", "Forbid", "Replace"], "default": "Allow",
                }),
            ),
            (
                "suspend",
                json!({ "description": "Starts no more runs; active ones go on.", "type": "boolean", "default": false }),
            ),
            ("jobTemplate", job_template()),
            ("template", template()),
            ("successfulJobsHistoryLimit", count("Runs that succeeded and are kept. Defaults to 3.", "int32", Some(3))),
            ("failedJobsHistoryLimit", count("Runs that failed and are kept. Defaults to 1.", "int32", Some(1))),
        ],
    );
    schema["required"] = json!(["schedule"]);
    let one = rule("has(self.jobTemplate) != has(self.template)", "must have either jobTemplate or template");
    schema["x-kubernetes-validations"] = json!([one]);
    schema
}

fn job_template() -> Value {
    let mut schema = shared::of(shared::job_template);
    schema["description"] = "The template of a batch/v1 Job, which is made at each time of the schedule.".into();
    schema["required"] = json!(["spec"]);
    schema
}

fn template() -> Value {
    let kinds: Vec<_> = KINDS.iter().map(|kind| format!("{} {}", kind.api_version, kind.kind)).collect();
    let kinds = kinds.join(", ");
    let text = |words: &str| json!({ "description": words, "type": "string" });
    let mut job = shared::of(shared::opaque);
    job["description"] = "The spec of the job, as in an object of its kind.".into();
    let mut metadata = shared::of(shared::template_metadata);
    metadata["description"] = "Labels and annotations of the jobs.".into();
    let mut schema = object(
        &format!("The template of a job of another kind: {kinds}, or one of the plugin's setting `kinds`."),
        [
            ("apiVersion", text("Group and version of the kind.")),
            ("kind", text("The kind.")),
            ("metadata", metadata),
            ("spec", job),
        ],
    );
    schema["required"] = json!(["apiVersion", "kind", "spec"]);
    schema
}

fn status() -> Value {
    let text = |words: &str| json!({ "description": words, "type": "string" });
    let fields = [
        ("apiVersion", "Group and version of the job."),
        ("fieldPath", "Never written; the original's."),
        ("kind", "The kind of the job."),
        ("name", "The job's name."),
        ("namespace", "The job's namespace."),
        ("resourceVersion", "The version of the job that was seen."),
        ("uid", "The job's uid."),
    ];
    let mut reference = object("A run.", fields.map(|(field, words)| (field, text(words))));
    reference["x-kubernetes-map-type"] = "atomic".into();
    let active = json!({
        "description": "The newest active runs.",
        "type": "array",
        "minItems": 1,
        "maxItems": 10,
        "items": reference,
        "x-kubernetes-list-type": "atomic",
    });
    let last = json!({ "description": "The time that the last run is for.", "type": "string", "format": "date-time" });
    let observed = object(
        "The schedule that the CronJob has, and since when.",
        [
            ("schedule", text("spec.schedule.")),
            ("timeZone", text("spec.timeZone.")),
            (
                "since",
                json!({ "description": "When it was first seen: only later times are due.", "type": "string", "format": "date-time" }),
            ),
        ],
    );
    object(
        "What is known of the CronJob.",
        [
            ("active", active),
            ("lastScheduleTime", last),
            ("observedSchedule", observed),
            ("conditions", conditions()),
            ("troupe", shared::of(shared::ledger)),
        ],
    )
}

/// The conditions that every job has, and their generation, which those of `metav1` have as well.
fn conditions() -> Value {
    let mut schema = shared::of(shared::conditions);
    let words = "The generation of the spec that the condition is about.";
    schema["items"]["properties"]["observedGeneration"] =
        json!({ "description": words, "type": "integer", "format": "int64", "minimum": 0 });
    schema
}

fn object<const N: usize>(description: &str, properties: [(&str, Value); N]) -> Value {
    let properties: Map<_, _> = properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    json!({ "description": description, "type": "object", "properties": properties })
}

fn count(description: &str, format: &str, default: Option<u32>) -> Value {
    let mut schema = json!({ "description": description, "type": "integer", "format": format, "minimum": 0 });
    match default {
        Some(default) => schema["default"] = default.into(),
        None => schema["nullable"] = true.into(),
    }
    schema
}

/// Returns what fields of a CronJob have to do with each other, for the test that breaks each.
#[must_use]
pub fn relations() -> Vec<shared::Relation> {
    let spec = |spec: Value| json!({ "spec": spec });
    let other = json!({ "apiVersion": "v1", "kind": "Pod", "spec": {} });
    let mpi = json!({ "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "spec": {} });
    shared::relations(
        "cronjobs.batch.tutorial.kubebuilder.io",
        [
            ("there is a template", spec(json!({ "jobTemplate": null })), "template"),
            ("there is one template", spec(json!({ "template": mpi })), "template"),
            ("a template is of a known kind", spec(json!({ "jobTemplate": null, "template": other })), "template"),
            ("there is such a day", spec(json!({ "schedule": "0 0 30 2 *" })), "spec.schedule"),
            ("time passes between runs", spec(json!({ "schedule": "@every 0s" })), "spec.schedule"),
            ("time goes forward", spec(json!({ "schedule": "@every -5m" })), "spec.schedule"),
            ("runs are a second apart", spec(json!({ "schedule": "@every 10ms" })), "spec.schedule"),
            ("the time zone is said once", spec(json!({ "schedule": "TZ=UTC 0 2 1 1 *" })), "spec.schedule"),
            ("the fields of a schedule have values", spec(json!({ "schedule": "99 2 1 1 *" })), "spec.schedule"),
            ("the names of runs are labels", json!({ "metadata": { "name": "a".repeat(53) } }), "metadata.name"),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version() -> Value {
        serde_json::to_value(crd()).unwrap()["spec"]["versions"][0].clone()
    }

    fn schema(pointer: &str) -> Value {
        let at = format!("/schema/openAPIV3Schema/properties{pointer}");
        version().pointer(&at).cloned().unwrap_or_else(|| panic!("nothing at {at}"))
    }

    // C01
    #[test]
    fn the_names_are_the_originals() {
        let crd = serde_json::to_value(crd()).unwrap();
        assert_eq!(crd["metadata"]["name"], "cronjobs.batch.tutorial.kubebuilder.io");
        assert_eq!(
            (&crd["spec"]["scope"], &crd["spec"]["names"]["singular"]),
            (&json!("Namespaced"), &json!("cronjob"))
        );
        assert_eq!(version()["name"], "v1");
        assert!(crd.to_string().len() < 200 * 1024);
    }

    // C01
    #[test]
    fn the_defaults_and_limits_are_the_originals() {
        for (field, default) in [
            ("concurrencyPolicy", json!("Allow")),
            ("suspend", json!(false)),
            ("successfulJobsHistoryLimit", json!(3)),
            ("failedJobsHistoryLimit", json!(1)),
        ] {
            assert_eq!(schema(&format!("/spec/properties/{field}/default")), default, "{field}");
        }
        for field in ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
            assert_eq!(schema(&format!("/spec/properties/{field}/minimum")).as_f64(), Some(0.0), "{field}");
        }
        assert_eq!(schema("/spec/properties/concurrencyPolicy/enum"), json!(["Allow", "Forbid", "Replace"]));
        assert_eq!(schema("/spec/required"), json!(["schedule"]));
        assert_eq!(schema("/status/properties/active/maxItems"), 10);
    }

    // C03
    #[test]
    fn what_the_templates_of_any_kind_have_is_kept() {
        for at in ["/jobTemplate/properties/spec", "/jobTemplate/properties/metadata", "/template/properties/spec"] {
            let kept = schema(&format!("/spec/properties{at}"));
            assert_eq!(kept["x-kubernetes-preserve-unknown-fields"], json!(true), "{at}");
        }
        assert_eq!(schema("/spec/x-kubernetes-validations/0/rule"), "has(self.jobTemplate) != has(self.template)");
    }

    #[test]
    fn the_status_has_room_for_the_hosts_words_and_ledger() {
        assert_eq!(schema("/status/properties/troupe/x-kubernetes-preserve-unknown-fields"), json!(true));
        assert!(schema("/status/properties/conditions/items/properties/observedGeneration").is_object());
        assert_eq!(version()["subresources"], json!({ "status": {} }));
        assert!(version().pointer("/schema/openAPIV3Schema/required").is_none());
    }

    // C01
    #[test]
    fn kubectl_get_shows_schedule_and_state() {
        let columns = version()["additionalPrinterColumns"].clone();
        let names: Vec<_> =
            columns.as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap().to_owned()).collect();
        assert_eq!(names, ["Schedule", "Suspend", "Active", "Last Schedule", "Age"]);
    }
}

//! Why a value that seems to mean nothing does no harm.

use super::fields::UNKNOWN_KEY;
use serde_json::Value;

/// The end of a field's name, the values, and why they are harmless there.
pub(crate) struct Harmless {
    fields: &'static [&'static str],
    values: &'static [&'static str],
    pub(crate) why: &'static str,
}

const fn row(fields: &'static [&'static str], values: &'static [&'static str], why: &'static str) -> Harmless {
    Harmless { fields, values, why }
}

/// Each value of a field that is accepted without a word, as JSON; `[..]` is any list, `{}` an object without fields.
pub(crate) const HARMLESS: &[Harmless] = &[
    row(
        &[
            "cleanPodPolicy",
            "intranet",
            "restartPolicy",
            "launcherCreationPolicy",
            "sshAuthMountPath",
            "queue",
            "priorityClass",
            "successPolicy",
            "rdzvBackend",
            "rdzvHost",
            "nprocPerNode",
            "mpiImplementation",
            "indexedjobs.batch.troupe.dev spec.managedBy",
        ],
        &["\"\""],
        "an empty text counts as absent, as in the original",
    ),
    row(
        &[
            "runPolicy",
            "schedulingPolicy",
            "elasticPolicy",
            "minResources",
            "appArgs",
            "podFailurePolicy.rules",
            "rdzvConf",
        ],
        &["{}", "[]"],
        "says nothing, as if it were absent",
    ),
    row(&["withGloo"], &["-1", "0"], "gloo is off"),
    row(&["withGloo"], &["9223372036854775807"], "every number above 0 means that gloo is on"),
    row(&["ps.requests", "worker.requests", "heter.requests"], &["0"], "no least number of replicas"),
    row(&["limits"], &["9223372036854775807"], "no greatest number of replicas"),
    row(&["replicas"], &["0"], "the job has no pods of this role; one that has no pods at all is warned of"),
    row(&["minAvailable"], &["0"], "no pod waits for another"),
    row(&["scheduleTimeoutSeconds"], &["0"], "no pod waits for another"),
    row(&["scheduleTimeoutSeconds"], &["2147483647"], "pods wait as long as it takes, 68 years at most"),
    row(&["ttlSecondsAfterFinished"], &["0"], "the job is deleted when it has ended"),
    row(
        &["ttlSecondsAfterFinished", "rhinojobs.openrhino.org spec.ttl"],
        &["2147483647"],
        "the job is deleted after 68 years",
    ),
    row(&["rhinojobs.openrhino.org spec.ttl"], &["0"], "the job is not deleted, as in the original"),
    row(&["activeDeadlineSeconds"], &["2147483647", "9223372036854775807"], "no limit that a job could reach"),
    row(&["backoffLimit", "backoffLimitPerIndex"], &["0"], "the first failure counts"),
    row(&["backoffLimit", "backoffLimitPerIndex", "maxRestarts"], &["2147483647"], "no limit that a job could reach"),
    row(&["maxRestarts"], &["0"], "workers are not restarted"),
    row(&["maxFailedIndexes"], &["0"], "the first index that is given up fails the job"),
    row(&["parallelism"], &["0"], "the job pauses, as a Job of batch/v1 does; its status is Pending"),
    row(&["succeededCount"], &["0"], "as in a Job of batch/v1, whose pods run with it"),
    row(&["slotsPerWorker"], &["2147483647"], "mpirun starts as many ranks as its command says"),
    row(
        &["appArgs", "appArgs[*]"],
        &["[..]", "\"\"", "\" \"", "\"no such word\""],
        "an argument is the program's to read",
    ),
    row(&["appExec"], &["\"no such word\""], "the path of a program may have spaces"),
    row(&["memoryAllocationSize"], &["2147483647"], "only Alibaba's elastic containers read it"),
    row(
        &["podFailurePolicy.rules"],
        &["[..]"],
        "the first rule that is about a pod counts, so that the second never does",
    ),
    row(&["onPodConditions"], &["[..]"], "the pod has the condition, once or twice said"),
    row(&["onExitCodes.values[*]"], &["-1", "2147483647"], "programs of Windows end with such codes"),
    row(&["successfulJobsHistoryLimit", "failedJobsHistoryLimit"], &["0"], "no finished run is kept"),
    row(&["successfulJobsHistoryLimit", "failedJobsHistoryLimit"], &["2147483647"], "all finished runs are kept"),
    row(&["startingDeadlineSeconds"], &["9223372036854775807"], "a run may be as late as it is"),
    row(&["rdzvId"], &["\"\"", "\" \"", "\"no such word\""], "any text that the members share"),
    row(&["rdzvConf[*].value"], &["\"no such word\""], "a value is the backend's to read"),
    row(&["rdzvConf"], &["[..]"], "torchrun takes the last of two settings of one name"),
    row(&["elasticPolicy.metrics"], &["[]"], "the autoscaler's own default counts: 80 % of the cpu"),
    row(&["elasticPolicy.metrics"], &["[..]"], "the autoscaler looks at the metric, once or twice said"),
];

/// Returns which row says why this value of the field does no harm; `field` is the kind's plural and group, and the name.
pub(crate) fn row_of(field: &str, value: &Value) -> Option<usize> {
    let text = value.to_string();
    let listed = matches!(value, Value::Array(items) if !items.is_empty());
    HARMLESS.iter().position(|row| {
        let is_field = |end: &&str| {
            field.strip_suffix(*end).is_some_and(|before| before.is_empty() || before.ends_with(['.', ' ']))
        };
        let is_value = |known: &&str| *known == text || *known == "[..]" && listed;
        row.fields.iter().any(is_field) && row.values.iter().any(is_value)
    })
}

/// Returns a value as the page shows it: a list by its length, a map by its unknown key.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) if !items.is_empty() => format!("[{} entries]", items.len()),
        Value::Object(entries) if entries.contains_key(UNKNOWN_KEY) => format!("{{\"{UNKNOWN_KEY}\": ..}}"),
        value => value.to_string(),
    }
}

//! The spec of a RhinoJob and the plugin's config, as they stand in JSON.

use serde::{Deserialize, Serialize};
use serde_json::json;

#[cfg(all(feature = "crd", not(target_family = "wasm")))]
use crate::crd;

/// The cluster operator's settings for this plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Config {
    /// When `ttl` begins to count.
    pub ttl_counts_from: TtlFrom,
    /// Who reads `appExec` and `appArgs`.
    pub app_args: AppArgs,
}

/// When `ttl` begins to count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TtlFrom {
    /// When the job has finished.
    #[default]
    Finish,
    /// When the job was made, as in the original: one that still runs is deleted too.
    Creation,
}

/// Who reads `appExec` and `appArgs`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AppArgs {
    /// The program alone: each stays one argument, character for character.
    #[default]
    Verbatim,
    /// The container's shell, as in the original: it splits them at spaces and knows `$X`, quotes and `;`.
    Shell,
}

/// RhinoJob runs a program with MPICH: one launcher with mpirun, and one worker for each process.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(
    all(feature = "crd", not(target_family = "wasm")),
    derive(schemars::JsonSchema, kube::CustomResource),
    kube(
        group = "openrhino.org",
        version = "v1alpha2",
        kind = "RhinoJob",
        plural = "rhinojobs",
        singular = "rhinojob",
        namespaced,
        status = "crate::crd::RhinoJobStatus",
        doc = "RhinoJob runs a program with MPICH: one launcher with mpirun, and one worker for each process.",
        printcolumn(name = "Parallelism", type_ = "integer", json_path = ".spec.parallelism"),
        printcolumn(name = "Status", type_ = "string", json_path = ".status.jobStatus"),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
    )
)]
#[serde(rename_all = "camelCase")]
pub struct RhinoJobSpec {
    /// The image of launcher and workers.
    #[cfg_attr(all(feature = "crd", not(target_family = "wasm")), schemars(required, schema_with = "crd::image"))]
    pub image: Option<String>,
    /// The program: a path in the image.
    #[cfg_attr(all(feature = "crd", not(target_family = "wasm")), schemars(required, schema_with = "crd::app_exec"))]
    pub app_exec: Option<String>,
    /// The program's arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_args: Option<Vec<String>>,
    /// The number of MPI processes, each in a worker pod of its own. Defaults to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(all(feature = "crd", not(target_family = "wasm")), schemars(schema_with = "crd::parallelism"))]
    pub parallelism: Option<i64>,
    /// The job is deleted so many seconds after it has finished; 0 is never. Defaults to 600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(all(feature = "crd", not(target_family = "wasm")), schemars(schema_with = "crd::ttl"))]
    pub ttl: Option<i32>,
    /// The NFS server whose `dataPath` the workers have at /data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(all(feature = "crd", not(target_family = "wasm")), schemars(schema_with = "crd::data_server"))]
    pub data_server: Option<String>,
    /// The directory of `dataServer`. One without the other has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(all(feature = "crd", not(target_family = "wasm")), schemars(schema_with = "crd::data_path"))]
    pub data_path: Option<String>,
    /// FixedTotalMemory or FixedPerCoreMemory: whose `memoryAllocationSize` is. Defaults to FixedPerCoreMemory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(all(feature = "crd", not(target_family = "wasm")), schemars(schema_with = "crd::memory_mode"))]
    pub memory_allocation_mode: Option<String>,
    /// Memory in GiB, of the whole job or of each worker. Has an effect on Alibaba's elastic containers only. Defaults to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(all(feature = "crd", not(target_family = "wasm")), schemars(schema_with = "crd::memory_size"))]
    pub memory_allocation_size: Option<i32>,
}

pub(crate) fn config_schema() -> String {
    let ttl = "When `ttl` begins to count: `creation` deletes a job that still runs, as the original does.";
    let args = "Who reads appExec and appArgs: the program alone, or the container's shell, as in the original.";
    json!({
        "type": "object",
        "properties": {
            "ttl-counts-from": { "enum": ["finish", "creation"], "default": "finish", "description": ttl },
            "app-args": { "enum": ["verbatim", "shell"], "default": "verbatim", "description": args },
        },
        "additionalProperties": false,
    })
    .to_string()
}

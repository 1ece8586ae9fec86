//! A framework with a driver that makes executors by itself, as Spark's does, and workers that hold the driver's address.
//! It uses what the contract has for such frameworks: children of pods, contents that the job's user names, addresses that
//! change, replicas that are left out, criteria of success.

use serde::Deserialize;
use serde_json::json;
use troupe_plugin::{
    Framework, Job, UserTemplate, index, invalid, job_name, pods_are, text,
    types::{
        Bindings, ChildKind, Clean, Criterion, Descriptor, EnvEntry, JobPlan, KindInfo, Observation, OnNewAddress,
        Outcome, Outlook, OwnedBy, Piece, Policy, Queueing, Reached, Reference, ReferredKind, Refusal, Role, Success,
        Switches, Template, Verdict,
    },
};

/// The label of the pods that the plan makes, with the job's name.
const JOB: &str = "example.org/driver-job";

/// The label of the executors.
const EXECUTOR: &str = "example.org/executor";

/// The spec of a job.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// The ConfigMap whose key `mode` the driver runs in.
    pub settings: String,
    /// The Secret on whose change the driver is made with another variable.
    pub token: Option<String>,
    /// How many workers there are.
    pub workers: u32,
    /// Workers that are left out.
    #[serde(default)]
    pub left_out: Vec<(u32, u32)>,
    /// The template of all pods.
    pub template: UserTemplate,
}

/// The cluster operator's settings: none.
#[derive(Debug, Clone, Deserialize)]
pub struct Config {}

/// The plugin.
#[derive(Debug)]
pub struct Driver;

impl Framework for Driver {
    type Spec = Spec;
    type Config = Config;

    fn describe() -> Descriptor {
        let pods = |selector: &str, keep: &[&str], owned_by| ChildKind {
            api_version: "v1".into(),
            kind: "Pod".into(),
            plural: "pods".into(),
            selector: Some(selector.into()),
            keep: keep.iter().map(|pointer| (*pointer).into()).collect(),
            optional: false,
            owned_by,
        };
        Descriptor {
            name: "driver".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            kinds: vec![KindInfo {
                group: "example.org".into(),
                version: "v1".into(),
                kind: "DriverJob".into(),
                plural: "driverjobs".into(),
                switches: Switches { suspend: None, managed_by: None },
                own_manager: None,
                retired_finalizers: vec![],
                roles: vec!["driver".into(), "worker".into()],
                event_source: "driver".into(),
                queueing: Queueing::Elsewhere,
            }],
            children: vec![pods(JOB, &[], OwnedBy::Job), pods(EXECUTOR, &["/status/phase"], OwnedBy::Pod)],
            reads: vec![
                Reference { kind: ReferredKind::ConfigMap, at: "/settings".into() },
                Reference { kind: ReferredKind::Secret, at: "/token".into() },
            ],
            gangs: false,
            config_schema: "{}".into(),
            event_reasons: vec![],
            grants: r#"{"reads":["ConfigMap","Secret"]}"#.into(),
        }
    }

    fn plan(job: &Job<Spec, Config>) -> Result<JobPlan, Refusal> {
        let settings = content(job, "/settings").ok_or_else(|| {
            invalid("spec.settings", format!("there is no ConfigMap {} in the job's namespace", job.spec.settings))
        })?;
        let mode = value(&settings, "mode")
            .ok_or_else(|| invalid("spec.settings", "the ConfigMap must have the key mode".to_owned()))?;
        let token = content(job, "/token").and_then(|data| value(&data, "token")).unwrap_or_default();
        let variable = |name: &str, value: Vec<Piece>| EnvEntry { container: String::new(), name: name.into(), value };
        let named = |role: &str| vec![job_name(), text(format!("-{role}-")), index()];
        let template = || -> Result<Template, Refusal> {
            let mut template = troupe_plugin::PodTemplate::from_user(Some(&job.spec.template), "/template")?;
            template.label(JOB, job.name());
            Ok(template.into_template())
        };
        let driver = Role {
            env: vec![variable("MODE", vec![text(mode)]), variable("TOKEN_HASH", vec![text(token)])],
            ..Role::new("driver", 1, named("driver"), template()?)
        };
        let worker = Role {
            env: vec![variable("DRIVER", vec![Piece::PeerHost(("driver".into(), 0)), text(":7077")])],
            success: Success::Momentary,
            left_out: job.spec.left_out.clone(),
            on_new_address: OnNewAddress::Replace,
            after: vec![pods_are("driver", Reached::Ip)],
            ..Role::new("worker", job.spec.workers, named("worker"), template()?)
        };
        let driver_is_done = Criterion { role: "driver".into(), indices: vec![], at_least: None };
        Ok(JobPlan {
            roles: vec![driver, worker],
            objects: vec![],
            secrets: vec![],
            series: vec![],
            gang: None,
            success_criteria: vec![vec![driver_is_done]],
            host_ports: 0,
            policy: Policy {
                clean_on_success: Clean::Active,
                clean_on_failure: Clean::Active,
                clean_on_suspend: Clean::All,
                ttl: None,
            },
            warnings: vec![],
        })
    }

    fn bind(_: &Job<Spec, Config>, _: &Observation, _: &[String]) -> Result<Bindings, Refusal> {
        Ok(Bindings { bodies: vec![], runs: vec![], remove: vec![] })
    }

    fn judge(_: &Job<Spec, Config>, seen: &Observation, outlook: &Outlook) -> Result<Verdict, Refusal> {
        let executors: Vec<_> = seen.children.iter().filter(|child| child.pod.is_some()).collect();
        let running = executors.iter().filter(|child| child.fields.iter().any(|(_, phase)| phase == "\"Running\""));
        let drivers: Vec<_> = executors.iter().filter_map(|child| child.pod.as_deref()).collect();
        let (phase, outcome) = match outlook.criteria_met {
            Some(_) => ("Succeeded", Outcome::Succeeded),
            None => ("Running", Outcome::Open),
        };
        let status = json!({ "phase": phase, "executors": executors.len(), "running": running.count(), "of": drivers });
        Ok(Verdict::new(status.to_string(), phase, outcome))
    }
}

/// Returns the data of what the job names at this pointer, if there is such an object.
fn content(job: &Job<Spec, Config>, at: &str) -> Option<Vec<(String, String)>> {
    job.view.contents.iter().find(|content| content.at == at)?.data.clone()
}

fn value(data: &[(String, String)], key: &str) -> Option<String> {
    data.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone())
}

troupe_plugin::export!(Driver);

//! AcmeJob `acme.example.org/v1acme1` for Troupe: so many workers, each of which knows its index.
//!
//! Change `describe` for what the plugin serves, `plan` for its pods, and `judge` for its status. The same arguments must
//! give the same answer: there is no clock and no network, and the host may call any of them again.

mod spec;

pub use spec::{Config, Spec, Status, Worker};

use troupe_plugin::types::{
    Bindings, ChildKind, Clean, Descriptor, EnvEntry, FieldError, JobPlan, KindInfo, Observation,
    Outcome, Outlook, OwnedBy, PodPhase, Policy, Queueing, Refusal, Role, Switches, Verdict,
};
use troupe_plugin::{
    Framework, MAX_REPLICAS, ObservationExt, PodTemplate, index, job_name, json_text, rfc3339, text,
};

/// The one role: its pods are called `JOB-worker-INDEX`.
const WORKER: &str = "worker";

/// The label of all pods of these jobs. The host watches pods that have it.
const LABEL: &str = "acme.example.org/job-name";

type Job = troupe_plugin::Job<Spec, Config>;

/// The framework.
#[derive(Debug)]
pub struct AcmeJob;

troupe_plugin::export!(AcmeJob);

impl Framework for AcmeJob {
    type Spec = Spec;
    type Config = Config;

    fn describe() -> Descriptor {
        Descriptor {
            name: "acme".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            kinds: vec![kind()],
            children: vec![ChildKind {
                api_version: "v1".into(),
                kind: "Pod".into(),
                plural: "pods".into(),
                selector: Some(LABEL.into()),
                keep: vec![],
                optional: false,
                owned_by: OwnedBy::Job,
            }],
            gangs: false,
            config_schema: r#"{ "type": "object", "additionalProperties": false }"#.into(),
            reads: vec![],
            event_reasons: vec![],
            grants: "{}".into(),
        }
    }

    fn plan(job: &Job) -> Result<JobPlan, Refusal> {
        let mut template = checked(job)?;
        let worker = &job.spec.worker;
        template.label(LABEL, job.name());
        template.set("restartPolicy", "Never");
        let mut container = template.first_container();
        container.env("WORKER_COUNT", &worker.replicas.to_string());
        let pod_name = vec![job_name(), text("-worker-"), index()];
        let role = Role {
            // What differs from pod to pod: the host fills it in.
            env: vec![EnvEntry {
                container: "*".into(),
                name: "WORKER_INDEX".into(),
                value: vec![index()],
            }],
            ..Role::new(WORKER, worker.replicas, pod_name, template.into_template())
        };
        Ok(JobPlan {
            roles: vec![role],
            objects: vec![],
            secrets: vec![],
            series: vec![],
            gang: None,
            success_criteria: vec![],
            host_ports: 0,
            policy: Policy {
                clean_on_success: Clean::Keep,
                clean_on_failure: Clean::Active,
                clean_on_suspend: Clean::All,
                ttl: None,
            },
            warnings: vec![],
        })
    }

    /// The plan has no object whose body depends on what the pods are, so there is nothing to bind.
    fn bind(_: &Job, _: &Observation, _: &[String]) -> Result<Bindings, Refusal> {
        Ok(Bindings {
            bodies: vec![],
            runs: vec![],
            remove: vec![],
        })
    }

    fn judge(job: &Job, seen: &Observation, outlook: &Outlook) -> Result<Verdict, Refusal> {
        let count = |phase| seen.live(WORKER).filter(|pod| pod.phase == phase).count() as u32;
        let (running, failed) = (count(PodPhase::Running), count(PodPhase::Failed));
        let succeeded = count(PodPhase::Succeeded) + seen.succeeded_without_pod(WORKER);
        let (phase, outcome) = match outlook.suspended {
            true => ("Suspended", Outcome::Open),
            false if failed > 0 => ("Failed", Outcome::Failed),
            false if succeeded >= job.spec.worker.replicas => ("Succeeded", Outcome::Succeeded),
            false if running + succeeded > 0 => ("Running", Outcome::Open),
            false => ("Pending", Outcome::Open),
        };
        let completion_time = match outcome {
            Outcome::Open => None,
            _ => seen
                .previous::<Status>()
                .completion_time
                .or_else(|| Some(rfc3339(seen.now))),
        };
        let status = Status {
            phase: phase.into(),
            running,
            succeeded,
            failed,
            completion_time,
        };
        Ok(Verdict::new(json_text(&status), phase, outcome))
    }
}

/// Returns the template of the job's pods, or refuses what cannot work with every field that is wrong.
fn checked(job: &Job) -> Result<PodTemplate<'_>, Refusal> {
    let mut errors = vec![];
    let Worker {
        replicas,
        ref template,
    } = job.spec.worker;
    if !(1..=MAX_REPLICAS).contains(&replicas) {
        let message = format!("must be from 1 to {MAX_REPLICAS}, not {replicas}");
        errors.push(FieldError {
            path: "spec.worker.replicas".into(),
            message,
        });
    }
    match PodTemplate::from_user(Some(template), "/worker/template") {
        Ok(template) if errors.is_empty() => return Ok(template),
        Ok(_) => {}
        Err(Refusal::Invalid(more)) => errors.extend(more),
        Err(other) => return Err(other),
    }
    Err(Refusal::Invalid(errors))
}

fn kind() -> KindInfo {
    KindInfo {
        group: "acme.example.org".into(),
        version: "v1acme1".into(),
        kind: "AcmeJob".into(),
        plural: "acmejobs".into(),
        switches: Switches {
            suspend: Some("/suspend".into()),
            managed_by: None,
        },
        own_manager: None,
        retired_finalizers: vec![],
        roles: vec![WORKER.into()],
        event_source: "acme-plugin".into(),
        queueing: Queueing::Host,
    }
}

/// The CRD as YAML.
#[cfg(not(target_family = "wasm"))]
pub fn crd() -> String {
    troupe_plugin::crd::yaml::<Spec, Status>(&kind(), &[("Phase", ".status.phase")])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use troupe_plugin::testkit::{self, PodFixture};

    fn job(replicas: u32) -> (Job, Value) {
        let template = json!({ "spec": { "containers": [{ "name": "main", "image": "x" }] } });
        let spec = json!({ "worker": { "replicas": replicas, "template": template } });
        (
            Job::parse(testkit::job("AcmeJob", "pair", &spec)).unwrap(),
            spec,
        )
    }

    #[test]
    fn workers_know_how_many_they_are() {
        let (job, spec) = job(2);
        let plan = AcmeJob::plan(&job).unwrap();
        let template = testkit::template(&plan.roles[0].template, &spec);
        assert_eq!(
            template["spec"]["containers"][0]["env"][0],
            json!({ "name": "WORKER_COUNT", "value": "2" })
        );
        assert_eq!(template["metadata"]["labels"][LABEL], "pair");
    }

    #[test]
    fn a_job_has_succeeded_when_all_workers_have() {
        let (job, _) = job(2);
        let pod = |index: u32| testkit::pod(WORKER, index, &format!("pair-worker-{index}"));
        let judged = |pods| AcmeJob::judge(&job, &testkit::seen(pods), &testkit::calm()).unwrap();
        assert_eq!(
            judged(vec![pod(0).running(), pod(1).succeeded()]).headline,
            "Running"
        );
        let verdict = judged(vec![pod(0).succeeded(), pod(1).succeeded()]);
        assert_eq!(
            (verdict.headline.as_str(), verdict.outcome),
            ("Succeeded", Outcome::Succeeded)
        );
    }

    #[test]
    fn the_crd_is_that_of_the_types() {
        assert_eq!(
            include_str!("../crd.yaml"),
            crd(),
            "run: cargo run --quiet --example crd > crd.yaml"
        );
    }
}

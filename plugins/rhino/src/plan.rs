//! What should exist for a RhinoJob: the launcher's Job, and the workers' once the launcher can be called.

use crate::spec::TtlFrom;
use crate::validate::{Data, Valid, validate};
use crate::{Job, launcher, workers};
use serde_json::{Value, json};
use troupe_plugin::types::{Backing, Clean, Event, JobPlan, Piece, Policy, Reached, Refusal, Role, Template, Ttl};
use troupe_plugin::{pods_are, text};

/// The label with the job's uid, which every child carries.
pub(crate) const RHINO_ID: &str = "rhinoID";

/// Every role there is.
pub(crate) const ROLES: [&str; 2] = [launcher::ROLE, workers::ROLE];

/// The plan, or what is wrong with the job.
pub(crate) fn plan(job: &Job) -> Result<JobPlan, Refusal> {
    let valid = validate(job)?;
    Ok(JobPlan {
        roles: vec![launcher_role(job, &valid), workers_role(job, &valid)],
        objects: vec![],
        secrets: vec![],
        series: vec![],
        gang: None,
        success_criteria: vec![],
        host_ports: 0,
        policy: policy(job, &valid),
        warnings: half_a_volume(&valid).into_iter().collect(),
    })
}

/// The name of the Job behind a role.
pub(crate) fn name_of_job(job: &Job, role: &str) -> String {
    format!("{}{}", job.name(), suffix(job, role))
}

/// What follows the job's name: enough characters of its uid to differ from an earlier job of the name.
fn suffix(job: &Job, role: &str) -> String {
    let uid: String = job.view.uid.chars().take(5).collect();
    format!("-{uid}-{role}")
}

fn launcher_role(job: &Job, valid: &Valid<'_>) -> Role {
    let template = json!({
        "metadata": { "labels": labels(job, "launcher") },
        "spec": launcher::pod_spec(valid, job.config.app_args),
    });
    role(job, launcher::ROLE, &json!({}), &template)
}

fn workers_role(job: &Job, valid: &Valid<'_>) -> Role {
    let mut labels = labels(job, "worker");
    labels["alibabacloud.com/eci"] = json!("true");
    let template = json!({
        "metadata": {
            "labels": labels,
            "annotations": { "k8s.aliyun.com/eci-use-specs": workers::eci_specs(valid) },
        },
        "spec": workers::pod_spec(valid),
    });
    Role {
        fill: vec![(workers::CALL.to_owned(), workers::call())],
        // Better: the condition Ready, wherever in the list it stands.
        after: vec![pods_are(launcher::ROLE, Reached::Ready)],
        ..role(job, workers::ROLE, &workers::job_spec(valid), &template)
    }
}

/// A role whose pods a Job with this spec makes. The Job has the labels of its pods.
fn role(job: &Job, name: &str, spec: &Value, template: &Value) -> Role {
    let body = json!({ "metadata": { "labels": template["metadata"]["labels"] }, "spec": spec });
    let job_name = vec![Piece::JobName, text(suffix(job, name))];
    // One replica, the Job; how many pods it makes is the Job's business.
    let role = Role::new(name, 1, job_name, Template::Whole(template.to_string()));
    Role { backing: Backing::Job(body.to_string()), ..role }
}

fn labels(job: &Job, kind: &str) -> Value {
    json!({ "app": job.name(), "type": kind, RHINO_ID: job.view.uid })
}

/// Pods stay for their logs, until the job goes with everything that is its own.
fn policy(job: &Job, valid: &Valid<'_>) -> Policy {
    let counted = match job.config.ttl_counts_from {
        TtlFrom::Finish => Ttl::AfterFinished,
        TtlFrom::Creation => Ttl::AfterCreation,
    };
    Policy {
        clean_on_success: Clean::Keep,
        clean_on_failure: Clean::Keep,
        clean_on_suspend: Clean::Keep,
        ttl: (valid.ttl > 0).then(|| counted(valid.ttl)),
    }
}

/// Better: the original says nothing.
fn half_a_volume(valid: &Valid<'_>) -> Option<Event> {
    (valid.data == Data::Half).then(|| Event {
        warning: true,
        reason: "NoDataVolume".into(),
        message: "dataServer and dataPath have no effect without each other".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{job, parsed, sample, with_config};
    use troupe_plugin::testkit;
    use troupe_plugin::types::{Gate, PodsGate};

    const NAME: &str = "rhinojob-sample-v1alpha2";

    fn planned() -> JobPlan {
        plan(&job(NAME, &sample())).unwrap()
    }

    fn named(role: &Role) -> String {
        let said = role.pod_name.iter().map(|piece| match piece {
            Piece::Text(text) => text.as_str(),
            Piece::JobName => NAME,
            other => panic!("{other:?}"),
        });
        said.collect()
    }

    fn template(role: &Role) -> Value {
        testkit::template(&role.template, &sample())
    }

    fn body(role: &Role) -> Value {
        match &role.backing {
            Backing::Job(body) => parsed(body),
            Backing::Pods => panic!("not a Job"),
        }
    }

    fn ttl(config: &Value, ttl: &Value) -> Option<Ttl> {
        let mut spec = sample();
        spec["ttl"] = ttl.clone();
        plan(&with_config(config, &spec)).unwrap().policy.ttl
    }

    // R01
    #[test]
    fn the_launcher_comes_first_and_waits_for_nothing() {
        let plan = planned();
        let launcher = &plan.roles[0];
        assert_eq!((&*launcher.name, launcher.replicas), ("launcher", 1));
        assert_eq!(named(launcher), "rhinojob-sample-v1alpha2-abcde-launcher");
        assert!(launcher.after.is_empty() && launcher.fill.is_empty());
        let labels = json!({ "app": NAME, "type": "launcher", "rhinoID": "abcdef01-2345" });
        assert_eq!(body(launcher), json!({ "metadata": { "labels": labels }, "spec": {} }));
        assert_eq!(template(launcher)["metadata"], json!({ "labels": labels }));
        assert_eq!(template(launcher)["spec"]["restartPolicy"], "OnFailure");
        assert_eq!((plan.roles.len(), plan.objects.len(), plan.secrets.len()), (2, 0, 0));
    }

    // R02, and its Better: readiness by the condition's type
    #[test]
    fn the_workers_wait_for_a_launcher_that_is_ready_and_get_its_address() {
        let plan = planned();
        let workers = &plan.roles[1];
        assert_eq!(named(workers), "rhinojob-sample-v1alpha2-abcde-workers");
        assert_eq!(workers.after, [Gate::Pods(PodsGate { role: "launcher".into(), reached: Reached::Ready })]);
        assert_eq!(workers.fill, [("/spec/containers/0/args/1".to_owned(), workers::call())]);
        let labels = json!({
            "app": NAME, "type": "worker", "rhinoID": "abcdef01-2345", "alibabacloud.com/eci": "true",
        });
        let annotations = json!({ "k8s.aliyun.com/eci-use-specs": "1-2Gi" });
        let template = template(workers);
        assert_eq!(template["metadata"], json!({ "labels": labels, "annotations": annotations }));
        assert!(template.pointer("/spec/containers/0/args/1").is_some());
        assert_eq!(body(workers)["metadata"]["labels"], labels);
        assert_eq!((&body(workers)["spec"]["completions"], workers.replicas), (&json!(2), 1));
    }

    // R05: a Job that removes itself would look like one that was deleted, to be made again
    #[test]
    fn the_jobs_do_not_remove_themselves() {
        for role in planned().roles {
            assert!(body(&role)["spec"].get("ttlSecondsAfterFinished").is_none());
        }
    }

    // R05 with the Better as the default: a job that runs is not deleted
    #[test]
    fn the_time_to_live_counts_from_the_end_unless_it_is_to_count_from_the_beginning() {
        let creation = json!({ "ttl-counts-from": "creation" });
        assert_eq!(ttl(&json!({}), &json!(300)), Some(Ttl::AfterFinished(300)));
        assert_eq!(ttl(&json!({}), &json!(null)), Some(Ttl::AfterFinished(600)));
        assert_eq!(ttl(&creation, &json!(300)), Some(Ttl::AfterCreation(300)));
        for config in [json!({}), creation] {
            assert_eq!(ttl(&config, &json!(0)), None);
        }
    }

    #[test]
    fn pods_of_a_finished_job_stay_for_their_logs() {
        let policy = planned().policy;
        assert_eq!([policy.clean_on_success, policy.clean_on_failure], [Clean::Keep, Clean::Keep]);
    }

    // R03, Better: nothing else says why there is no volume
    #[test]
    fn a_path_without_a_server_is_reported() {
        let mut spec = sample();
        spec["dataPath"] = json!("/kfnmck56");
        let warnings = plan(&job(NAME, &spec)).unwrap().warnings;
        assert_eq!((warnings.len(), &*warnings[0].reason), (1, "NoDataVolume"));
        assert!(planned().warnings.is_empty());
    }
}

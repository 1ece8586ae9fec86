//! A plugin that does whatever it should not. The job's spec says what each function does: `{"plan": "trap"}`; a function
//! that the spec does not name behaves.

mod misdeeds;

use misdeeds::commit;
use serde_json::{Value, json};
use troupe_plugin::{
    Framework, Job, index, job_name, text,
    types::{
        Bindings, Body, ChildKind, Clean, Descriptor, Event, JobPlan, KindInfo, Object, Observation, Outcome, Outlook,
        OwnedBy, Policy, Queueing, Refusal, Role, Switches, Template, Upkeep, Verdict,
    },
};

/// It says that it is another plugin.
const POSES: bool = cfg!(feature = "poses-as-paddle");

/// What the job tells a function to do; an annotation says so where the kind of job is another plugin's.
fn told<'a>(job: &'a Job<Value, Value>, function: &str) -> &'a str {
    let annotated = || {
        let mut annotations = job.view.annotations.iter();
        annotations.find(|(name, _)| name.strip_prefix("hostile/") == Some(function)).map(|(_, told)| told.as_str())
    };
    let told = if POSES { annotated() } else { job.spec[function].as_str() };
    told.unwrap_or_default()
}

/// The plugin.
#[derive(Debug)]
pub struct Hostile;

impl Framework for Hostile {
    type Spec = Value;
    type Config = Value;

    fn describe() -> Descriptor {
        if cfg!(feature = "describe-traps") {
            commit("trap");
        }
        if cfg!(feature = "describe-loops") {
            commit("loop");
        }
        if cfg!(feature = "describe-exits") {
            commit("exit");
        }
        if cfg!(feature = "sockets") {
            commit("connect");
        }
        let child = |kind: &str, plural: &str| ChildKind {
            api_version: "v1".into(),
            kind: kind.into(),
            plural: plural.into(),
            selector: None,
            keep: vec!["/data".into()],
            optional: false,
            owned_by: OwnedBy::Job,
        };
        let (group, kind, plural) = if POSES {
            ("batch.paddlepaddle.org", "PaddleJob", "paddlejobs")
        } else {
            ("example.org", "HostileJob", "hostilejobs")
        };
        let name = if POSES { "paddle" } else { "hostile" };
        Descriptor {
            name: if cfg!(feature = "describe-unnamed") { "No Label".into() } else { name.into() },
            version: if cfg!(feature = "next") { "0.0.2".into() } else { "0.0.1".into() },
            kinds: vec![KindInfo {
                group: group.into(),
                version: "v1".into(),
                kind: kind.into(),
                plural: plural.into(),
                switches: Switches { suspend: None, managed_by: None },
                own_manager: None,
                retired_finalizers: vec![],
                roles: vec!["worker".into()],
                event_source: "hostile".into(),
                queueing: Queueing::Host,
            }],
            children: vec![
                child("Pod", "pods"),
                child("ConfigMap", if cfg!(feature = "describe-secrets") { "secrets" } else { "configmaps" }),
            ],
            gangs: false,
            config_schema: "{}".into(),
            reads: vec![],
            event_reasons: vec![],
            grants: if cfg!(feature = "describe-greedy") {
                r#"{"everything":true}"#.into()
            } else {
                r#"{"images":["one","two"]}"#.into()
            },
        }
    }

    fn plan(job: &Job<Value, Value>) -> Result<JobPlan, Refusal> {
        let misdeed = told(job, "plan");
        match misdeed {
            "invalid" => return Err(troupe_plugin::invalid("spec.plan", "be nice")),
            "unsupported" => return Err(troupe_plugin::unsupported("niceness")),
            "internal" => return Err(Refusal::Internal("out of ideas".into())),
            _ => {}
        }
        let made = commit(misdeed);
        let image = if cfg!(any(feature = "next", feature = "rebuilt")) { "two" } else { "one" };
        let container = json!({ "name": "c", "image": image });
        let template = misdeeds::edited(misdeed).unwrap_or_else(|| {
            Template::Whole(made.unwrap_or_else(|| json!({ "spec": { "containers": [container] } }).to_string()))
        });
        let replicas = if misdeed == "many replicas" { u32::MAX } else { 2 };
        let role = Role::new("worker", replicas, vec![job_name(), text("-worker-"), index()], template);
        let object = Object {
            key: "map".into(),
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            name: if misdeed == "foreign name" { vec![text("kube-root-ca")] } else { vec![job_name()] },
            per_pod_of: None,
            body: Body::Bound,
            upkeep: Upkeep::CreateOnly,
            after: vec![],
            remove_when: vec![],
        };
        let roles = match misdeed {
            "many roles" => vec![role; 20_000],
            "refer again and again" => vec![role; 1000],
            _ => vec![role],
        };
        let policy = Policy {
            clean_on_success: Clean::All,
            clean_on_failure: Clean::Keep,
            clean_on_suspend: Clean::All,
            ttl: None,
        };
        Ok(JobPlan {
            roles,
            objects: vec![object],
            secrets: vec![],
            series: vec![],
            gang: None,
            success_criteria: vec![],
            host_ports: 0,
            policy,
            warnings: vec![],
        })
    }

    fn bind(job: &Job<Value, Value>, _: &Observation, wanted: &[String]) -> Result<Bindings, Refusal> {
        let misdeed = told(job, "bind");
        let body = commit(misdeed).unwrap_or_else(|| json!({ "data": { "is": "bound" } }).to_string());
        let keys: Vec<String> = match misdeed {
            "another's key" => vec!["secret".into()],
            "twice" => vec!["map".into(), "map".into()],
            _ => wanted.to_vec(),
        };
        let bodies = keys.into_iter().map(|key| (key, body.clone())).collect();
        Ok(Bindings { bodies, runs: vec![], remove: vec![] })
    }

    fn judge(job: &Job<Value, Value>, seen: &Observation, _: &Outlook) -> Result<Verdict, Refusal> {
        let misdeed = told(job, "judge");
        let made = commit(misdeed);
        let status = made.unwrap_or_else(|| json!({ "pods": seen.pods.len() }).to_string());
        let running = if cfg!(feature = "next") { "Going" } else { "Running" };
        let headline = if misdeed == "escapes" { "\u{1b}[31mRunning\nx" } else { running };
        let event = Event { warning: false, reason: "R".into(), message: "m\u{7}".into() };
        let events = if misdeed == "escapes" { vec![event; 1000] } else { vec![] };
        let outcome = if misdeed == "fail" { Outcome::Failed } else { Outcome::Open };
        Ok(Verdict { events, ..Verdict::new(status, headline, outcome) })
    }
}

troupe_plugin::export!(Hostile);

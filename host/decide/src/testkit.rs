//! Fixtures of tests, here and in the packages that use this one: a job, a pod, an empty snapshot.

use crate::{
    Digest, Snapshot,
    ledger::Ledger,
    plan::{Backing, Clean, Deletion, JobKind, OnNewAddress, Piece, Plan, Policy, Queueing, Role, Success, Text},
    ranges::Ranges,
    snapshot::{Child, Job, Pod, PodPhase},
};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Returns a kind of job whose suspend switch is `spec.suspend`.
#[must_use]
pub fn kind() -> JobKind {
    JobKind {
        group: "example.com".into(),
        version: "v1".into(),
        kind: "Tale".into(),
        plural: "tales".into(),
        suspend: Some("/suspend".into()),
        managed_by: None,
        own_manager: None,
        retired_finalizers: vec![],
        roles: vec![],
        event_source: "tale-controller".into(),
        queueing: Queueing::Kueue,
    }
}

/// Returns a text of pieces: `JOB`, `POD` and `INDEX` are placeholders, anything else is literal.
#[must_use]
pub fn text(parts: &[&str]) -> Text {
    let piece = |part: &&str| match *part {
        "JOB" => Piece::JobName,
        "POD" => Piece::PodName,
        "INDEX" => Piece::Index(0),
        fixed => Piece::Fixed(fixed.to_owned()),
    };
    Text(parts.iter().map(piece).collect())
}

/// Returns a new job without a spec.
#[must_use]
pub fn job(name: &str, uid: &str) -> Job {
    Job {
        namespace: "ns".into(),
        name: name.into(),
        uid: uid.into(),
        resource_version: "7".into(),
        generation: 1,
        created: Timestamp::UNIX_EPOCH,
        deleting: false,
        finalizers: vec![],
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        spec: json!({}),
        status: json!({}),
    }
}

/// Returns a pod of the job with this uid, without node and address.
#[must_use]
pub fn pod(name: &str, owner_uid: &str, phase: PodPhase) -> Pod {
    Pod {
        conditions: vec![],
        name: name.into(),
        uid: format!("uid-of-{name}"),
        resource_version: "1".into(),
        owner_uid: owner_uid.into(),
        created: Timestamp::UNIX_EPOCH,
        terminating: false,
        stopped: false,
        phase,
        reason: String::new(),
        message: String::new(),
        ready: true,
        ips: vec![],
        node: String::new(),
        unscheduled: None,
        taken: None,
        node_lost: None,
        fields: BTreeMap::new(),
        template_hash: None,
        attempt: 0,
        addresses: None,
        containers: vec![],
    }
}

/// Returns a child with these fields: a Job of batch/v1, or of the core group.
#[must_use]
pub fn child(kind: &str, name: &str, fields: &[(&str, Value)]) -> Arc<Child> {
    Arc::new(Child {
        api_version: if kind == "Job" { "batch/v1".into() } else { "v1".into() },
        kind: kind.into(),
        name: name.into(),
        uid: format!("uid-of-{name}"),
        resource_version: "1".into(),
        terminating: false,
        fields: fields.iter().map(|(at, value)| ((*at).to_owned(), value.clone())).collect(),
    })
}

/// Returns the snapshot of a job without children.
#[must_use]
pub fn snapshot(job: Job) -> Snapshot {
    Snapshot {
        now: Timestamp::UNIX_EPOCH,
        kind: Arc::new(kind()),
        ledger: Ledger { uid: job.uid.clone(), ..Ledger::default() },
        job: Arc::new(job),
        unreadable: None,
        pods: vec![],
        children: vec![],
        dependents: vec![],
        reports: BTreeMap::new(),
        contents: vec![],
        taken: BTreeSet::new(),
        digest: Some(digest("d")),
        set_aside: None,
        no_ports: None,
        served_as: BTreeMap::new(),
        pruned: false,
        namespace_terminating: false,
        queue: None,
    }
}

/// Returns a role of pods whose success is final, without gates.
#[must_use]
pub fn role(name: &str, replicas: u32, pod_name: Text, template: Value) -> Role {
    Role {
        name: name.into(),
        replicas,
        backing: Backing::Pods,
        pod_name,
        hostname: None,
        subdomain: None,
        template,
        template_at: None,
        env: vec![],
        labels: vec![],
        fill: vec![],
        success: Success::Final,
        failures: vec![],
        deletion: Deletion::Uncounted,
        at_once: None,
        template_hash: String::new(),
        failures_per_replica: None,
        left_out: Ranges::default(),
        on_new_address: OnNewAddress::Keep,
        after: vec![],
    }
}

/// Returns a plan of these roles that keeps all pods.
#[must_use]
pub fn plan(roles: Vec<Role>) -> Plan {
    let keep = Clean::Keep;
    let policy = Policy { clean_on_success: keep, clean_on_failure: keep, clean_on_suspend: keep, ttl: None };
    Plan {
        roles,
        objects: vec![],
        secrets: vec![],
        series: vec![],
        success_criteria: vec![],
        host_ports: 0,
        policy,
        warnings: vec![],
    }
}

/// Returns a digest that differs for each name of at most 32 bytes.
#[must_use]
pub fn digest(name: &str) -> Digest {
    let mut bytes = [0; 32];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    bytes.into()
}

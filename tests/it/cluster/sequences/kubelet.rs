//! The kubelet that the driver plays: how it binds, ends and takes away pods.

use super::{
    super::objects::{PODS, at, text},
    player::SOON,
    step::Ended,
    view::{View, has_ended, is_held},
};
use anyhow::{Context, Result};
use jiff::{Timestamp, ToSpan};
use kube::{
    Client,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
};
use serde_json::{Value, json};
use std::cell::Cell;
use tokio::{sync::watch, time::timeout};

/// The node that all pods run on: no kubelet and no kwok knows it.
pub(super) const NODE: &str = "played";

/// The kubelet: it ends pods that were deleted, unless they are held.
pub(super) struct Kubelet<'a> {
    pub(super) client: Client,
    pub(super) namespace: &'a str,
    pub(super) view: watch::Receiver<View>,
}

impl Kubelet<'_> {
    /// Ends pods until something goes wrong, which is returned.
    pub(super) async fn run(mut self, holds: &Cell<bool>) -> anyhow::Error {
        loop {
            let pod = match self.view.wait_for(|view| !holds.get() && view.pods.values().any(is_held)).await {
                Ok(view) => view.pods.values().find(|pod| is_held(pod)).cloned().unwrap_or_default(),
                Err(error) => return error.into(),
            };
            let killed = Ended { codes: vec![("*".to_owned(), 143)], condition: None, ago: 0 };
            if let Err(error) = self.end(&pod, &end_of(&pod, "Failed", &killed)).await {
                return error;
            }
        }
    }

    /// Says how the pod has ended, if that was not said, and lets it go.
    pub(super) async fn end(&self, pod: &Value, status: &Value) -> Result<()> {
        if !has_ended(pod) {
            set_status(&self.client, self.namespace, pod, status).await?;
        }
        delete(&self.client, self.namespace, pod, Some(0)).await?;
        let uid = text(pod, "/metadata/uid");
        let mut view = self.view.clone();
        let gone = view.wait_for(|view| view.pods.get(uid).is_none_or(|pod| !is_held(pod)));
        timeout(SOON, gone).await.context("a pod that was ended is still there")??;
        Ok(())
    }
}

/// Sets the status of this very pod.
pub(super) async fn set_status(client: &Client, namespace: &str, pod: &Value, status: &Value) -> Result<Value> {
    let patch = Patch::Merge(json!({ "metadata": { "uid": pod["metadata"]["uid"] }, "status": status }));
    let name = text(pod, "/metadata/name");
    let request = PODS.requests(namespace).patch_subresource("status", name, &PatchParams::default(), &patch)?;
    match client.request(request).await {
        // It was taken away in the meantime: its end has been seen.
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(pod.clone()),
        other => Ok(other?),
    }
}

/// Deletes this very pod; that it is gone is fine.
pub(super) async fn delete(client: &Client, namespace: &str, pod: &Value, grace: Option<u32>) -> Result<()> {
    let only = Preconditions { uid: Some(text(pod, "/metadata/uid").to_owned()), resource_version: None };
    let params = DeleteParams { grace_period_seconds: grace, preconditions: Some(only), ..DeleteParams::default() };
    let request = PODS.requests(namespace).delete(text(pod, "/metadata/name"), &params)?;
    match client.request::<Value>(request).await {
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(()),
        other => Ok(other.map(drop)?),
    }
}

/// The status of a pod that has ended.
pub(super) fn end_of(pod: &Value, phase: &str, ended: &Ended) -> Value {
    let when = second(ago(ended.ago));
    let code = |name: &str| {
        let named =
            ended.codes.iter().find(|(it, _)| it == name).or_else(|| ended.codes.iter().find(|(it, _)| it == "*"));
        named.map(|(_, code)| *code)
    };
    let of = |pointer: &str| {
        let containers = at(pod, pointer).as_array().into_iter().flatten();
        let statuses = containers.filter_map(|it| {
            let name = text(it, "/name");
            let state = json!({ "terminated": { "exitCode": code(name)?, "startedAt": when, "finishedAt": when } });
            Some(json!({ "name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state }))
        });
        statuses.collect::<Vec<_>>()
    };
    let mut conditions = vec![json!({ "type": "Ready", "status": "False", "lastTransitionTime": when })];
    if let Some((kind, status)) = &ended.condition {
        conditions.push(json!({ "type": kind, "status": status, "reason": "Said", "lastTransitionTime": when }));
    }
    json!({
        "phase": phase,
        "startTime": when,
        "conditions": conditions,
        "containerStatuses": of("/spec/containers"),
        "initContainerStatuses": of("/spec/initContainers"),
    })
}

pub(super) fn ago(seconds: i64) -> Timestamp {
    #[expect(clippy::disallowed_methods, reason = "the controller reads the clock that the machine has")]
    let now = Timestamp::now();
    now - seconds.seconds()
}

pub(super) fn second(time: Timestamp) -> String {
    format!("{time:.0}")
}

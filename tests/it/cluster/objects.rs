//! The objects of one namespace, as JSON.

use anyhow::Result;
use decide::own_conditions;
use futures::StreamExt;
use harness::until;
use kube::{
    Client,
    api::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
    core::Request,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::{cell::RefCell, sync::Arc, time::Duration};
use tokio::sync::oneshot;

/// How long a test waits for anything.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// A kind of object by its place in the API: what is before the namespace, and its plural.
pub(crate) struct Kind(&'static str, &'static str);

pub(crate) const PODS: Kind = Kind("api/v1", "pods");
pub(crate) const SERVICES: Kind = Kind("api/v1", "services");
pub(crate) const CONFIG_MAPS: Kind = Kind("api/v1", "configmaps");
pub(crate) const SECRETS: Kind = Kind("api/v1", "secrets");
pub(crate) const EVENTS: Kind = Kind("api/v1", "events");
pub(crate) const BATCH_JOBS: Kind = Kind("apis/batch/v1", "jobs");
pub(crate) const DEPLOYMENTS: Kind = Kind("apis/apps/v1", "deployments");
pub(crate) const LEASES: Kind = Kind("apis/coordination.k8s.io/v1", "leases");
pub(crate) const PADDLE_JOBS: Kind = Kind("apis/batch.paddlepaddle.org/v1", "paddlejobs");
pub(crate) const RHINO_JOBS: Kind = Kind("apis/openrhino.org/v1alpha2", "rhinojobs");
pub(crate) const CRON_JOBS: Kind = Kind("apis/batch.tutorial.kubebuilder.io/v1", "cronjobs");
pub(crate) const MPI_JOBS: Kind = Kind("apis/kubeflow.org/v2beta1", "mpijobs");
pub(crate) const PYTORCH_JOBS: Kind = Kind("apis/kubeflow.org/v1", "pytorchjobs");
pub(crate) const INDEXED_JOBS: Kind = Kind("apis/batch.troupe.dev/v1alpha1", "indexedjobs");
pub(crate) const TF_JOBS: Kind = Kind("apis/kubeflow.org/v1", "tfjobs");
pub(crate) const XGBOOST_JOBS: Kind = Kind("apis/kubeflow.org/v1", "xgboostjobs");
pub(crate) const JAX_JOBS: Kind = Kind("apis/kubeflow.org/v1", "jaxjobs");
pub(crate) const KUBEFLOW_PADDLE_JOBS: Kind = Kind("apis/kubeflow.org/v1", "paddlejobs");

impl Kind {
    pub(crate) const fn new(before_namespace: &'static str, plural: &'static str) -> Self {
        Self(before_namespace, plural)
    }

    pub(crate) fn plural(&self) -> &'static str {
        self.1
    }

    /// Plural and group, as the name of its definition; for kinds that have a group.
    pub(crate) fn resource(&self) -> String {
        format!("{}.{}", self.1, self.0.split('/').nth(1).unwrap_or_default())
    }

    pub(crate) fn requests(&self, namespace: &str) -> Request {
        Request::new(format!("/{}/namespaces/{namespace}/{}", self.0, self.1))
    }
}

/// Versions of objects, in their order.
pub(crate) type Versions = Arc<Mutex<Vec<Value>>>;

/// A namespace, seen by one user.
pub(crate) struct Namespace {
    pub(crate) client: Client,
    pub(crate) name: String,
}

impl Namespace {
    /// Makes the namespace.
    pub(crate) async fn create_in(client: Client, name: &str) -> Self {
        Self::request(&client, name).await.unwrap();
        Self { client, name: name.to_owned() }
    }

    /// A namespace that several tests use, created by the first of them.
    pub(crate) async fn ensure_in(client: Client, name: &str) -> Self {
        match Self::request(&client, name).await {
            Err(kube::Error::Api(status)) if status.code == 409 => (),
            other => drop(other.unwrap()),
        }
        Self { client, name: name.to_owned() }
    }

    async fn request(client: &Client, name: &str) -> Result<Value, kube::Error> {
        let namespaces = Request::new("/api/v1/namespaces");
        let body = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        let request = namespaces.create(&PostParams::default(), serde_json::to_vec(&body).unwrap()).unwrap();
        client.request(request).await
    }

    pub(crate) async fn create(&self, kind: &Kind, object: &Value) -> Value {
        let body = serde_json::to_vec(object).unwrap();
        let request = kind.requests(&self.name).create(&PostParams::default(), body).unwrap();
        self.client.request(request).await.unwrap_or_else(|error| panic!("{}: {error}", kind.plural()))
    }

    /// Makes an object that is in no namespace.
    pub(crate) async fn create_in_cluster(&self, kind: &Kind, object: &Value) {
        let requests = Request::new(format!("/{}/{}", kind.0, kind.1));
        let request = requests.create(&PostParams::default(), serde_json::to_vec(object).unwrap()).unwrap();
        self.client.request::<Value>(request).await.unwrap();
    }

    pub(crate) async fn patch_in_cluster(&self, kind: &Kind, name: &str, patch: &Value) {
        let requests = Request::new(format!("/{}/{}", kind.0, kind.1));
        let request = requests.patch(name, &PatchParams::default(), &Patch::Merge(patch)).unwrap();
        self.client.request::<Value>(request).await.unwrap();
    }

    pub(crate) async fn delete_in_cluster(&self, kind: &Kind, name: &str) {
        let requests = Request::new(format!("/{}/{}", kind.0, kind.1));
        let request = requests.delete(name, &DeleteParams::default()).unwrap();
        self.client.request::<Value>(request).await.unwrap();
    }

    /// The object, or `null` if there is none.
    pub(crate) async fn get(&self, kind: &Kind, name: &str) -> Result<Value> {
        let request = kind.requests(&self.name).get(name, &GetParams::default())?;
        match self.client.request(request).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Value::Null),
            other => Ok(other?),
        }
    }

    pub(crate) async fn list(&self, kind: &Kind) -> Result<Vec<Value>> {
        let request = kind.requests(&self.name).list(&ListParams::default())?;
        let list: Value = self.client.request(request).await?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// The names of all objects of a kind, in order.
    pub(crate) async fn names(&self, kind: &Kind) -> Result<Vec<String>> {
        let list = self.list(kind).await?;
        Ok(list.iter().map(|object| text(object, "/metadata/name").to_owned()).collect())
    }

    pub(crate) async fn patch(&self, kind: &Kind, name: &str, patch: &Value) -> Value {
        let request = kind.requests(&self.name).patch(name, &PatchParams::default(), &Patch::Merge(patch)).unwrap();
        self.client.request(request).await.unwrap_or_else(|error| panic!("{}/{name}: {error}", kind.plural()))
    }

    /// Sets the status of an object once it is there.
    pub(crate) async fn set_status(&self, kind: &Kind, name: &str, status: &Value) -> Value {
        self.is(kind, name, "there", |_| true).await;
        let patch = json!({ "status": status });
        let requests = kind.requests(&self.name);
        let request =
            requests.patch_subresource("status", name, &PatchParams::default(), &Patch::Merge(&patch)).unwrap();
        self.client.request(request).await.unwrap_or_else(|error| panic!("{}/{name}: {error}", kind.plural()))
    }

    pub(crate) async fn delete(&self, kind: &Kind, name: &str) {
        let request = kind.requests(&self.name).delete(name, &DeleteParams::default()).unwrap();
        self.client.request::<Value>(request).await.unwrap();
    }

    /// From now on, every version of every object of a kind, as it comes.
    pub(crate) async fn follow(&self, kind: &Kind) -> Versions {
        let versions = Versions::default();
        let requests = kind.requests(&self.name);
        let (client, seen) = (self.client.clone(), versions.clone());
        let (opened, is_open) = oneshot::channel();
        tokio::spawn(async move {
            let mut opened = Some(opened);
            let mut version = "0".to_owned();
            // A server closes the watch of a client that is slow, and any after some minutes: it goes on where it ended.
            loop {
                let request = requests.watch(&WatchParams::default(), &version).unwrap();
                let Ok(events) = client.request_events::<Value>(request).await else { return };
                opened.take().into_iter().for_each(|opened| opened.send(()).unwrap());
                let mut events = std::pin::pin!(events);
                while let Some(Ok(event)) = events.next().await {
                    match event {
                        WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                            text(&object, "/metadata/resourceVersion").clone_into(&mut version);
                            seen.lock().push(object);
                        }
                        WatchEvent::Deleted(object) => {
                            text(&object, "/metadata/resourceVersion").clone_into(&mut version);
                        }
                        WatchEvent::Bookmark(mark) => version = mark.metadata.resource_version,
                        WatchEvent::Error(error) => panic!("events were lost: {error}"),
                    }
                }
            }
        });
        is_open.await.unwrap();
        versions
    }

    /// The object once it is there and as it should be.
    pub(crate) async fn is(&self, kind: &Kind, name: &str, what: &str, seen: impl Fn(&Value) -> bool) -> Value {
        let last = RefCell::new(Value::Null);
        let looked = until(SOON, format!("{}/{name} to be {what}", kind.plural()), || async {
            let object = self.get(kind, name).await?;
            last.replace(object.clone());
            Ok((!object.is_null() && seen(&object)).then_some(object))
        });
        match looked.await {
            Ok(object) => object,
            Err(error) => panic!("{error:#}\nlast seen: {:#}", last.take()),
        }
    }

    /// Returns when there is no such object.
    pub(crate) async fn is_gone(&self, kind: &Kind, name: &str) {
        let gone = || async { Ok(self.get(kind, name).await?.is_null().then_some(())) };
        until(SOON, format!("{}/{name} to be gone", kind.plural()), gone).await.unwrap();
    }

    /// Returns when exactly these objects of a kind are there.
    pub(crate) async fn are(&self, kind: &Kind, names: &[&str]) {
        let last = RefCell::new(vec![]);
        let looked = until(SOON, format!("{} to be {names:?}", kind.plural()), || async {
            let there = self.names(kind).await?;
            let these = there == names;
            last.replace(there);
            Ok(these.then_some(()))
        });
        if let Err(error) = looked.await {
            panic!("{error:#}\nlast seen: {:?}", last.take());
        }
    }

    /// The events about an object, as `Type Reason: message`, in order of their making.
    pub(crate) async fn events(&self, kind: &str, name: &str) -> Vec<String> {
        let mut events = self.list(&EVENTS).await.unwrap();
        events
            .retain(|event| text(event, "/involvedObject/kind") == kind && text(event, "/involvedObject/name") == name);
        events.sort_by_key(|event| text(event, "/metadata/resourceVersion").parse::<u64>().unwrap());
        let told =
            |event: &Value| format!("{} {}: {}", text(event, "/type"), text(event, "/reason"), text(event, "/message"));
        events.iter().map(told).collect()
    }
}

/// The text at a pointer, empty if there is none.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The value at a pointer, null if there is none.
pub(crate) fn at<'a>(object: &'a Value, pointer: &str) -> &'a Value {
    object.pointer(pointer).unwrap_or(&Value::Null)
}

/// The condition of this type, of the host's or of the framework's, true or not.
pub(crate) fn condition_of<'a>(job: &'a Value, condition: &str) -> Option<&'a Value> {
    own_conditions::all(at(job, "/status")).find(|one| text(one, "/type") == condition)
}

/// The environment of a container as `name=value`, in its order; a value from a field as `name<field`.
pub(crate) fn env(container: &Value) -> Vec<String> {
    let entries = container["env"].as_array().into_iter().flatten();
    entries
        .map(|entry| match entry.pointer("/valueFrom/fieldRef/fieldPath") {
            Some(field) => format!("{}<{}", text(entry, "/name"), field.as_str().unwrap()),
            None => format!("{}={}", text(entry, "/name"), text(entry, "/value")),
        })
        .collect()
}

/// The reference to its controller that every child of a job has.
pub(crate) fn owner(job: &Value) -> Value {
    json!([{
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "name": job["metadata"]["name"],
        "uid": job["metadata"]["uid"],
        "controller": true,
        "blockOwnerDeletion": true,
    }])
}

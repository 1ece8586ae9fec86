//! A control plane, a real node and the operator, for one test.

use crate::{
    cluster::deploy::documented,
    cluster::objects::{DEPLOYMENTS, Kind, Namespace, PODS, at, condition_of, text},
    operator::Operator,
};
use anyhow::Result;
use harness::{CommandLine, ControlPlane, Node, Options, Tool, images::Image, until};
use serde_json::Value;
use std::{
    cell::RefCell,
    ops::Deref,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Real pods start slower than played ones, and Kubernetes waits before it tries again.
const PATIENCE: Duration = Duration::from_secs(240);

const SERVICE_ACCOUNTS: Kind = Kind::new("api/v1", "serviceaccounts");

pub(super) struct World {
    node: Node,
    /// None where it runs on the node.
    operator: Option<Operator>,
    namespace: Namespace,
    begun: Instant,
    // Dropped last.
    plane: ControlPlane,
}

impl World {
    /// Everything, with these images on the node, and the settings of a plugin if there are any.
    pub(super) async fn start(images: Vec<Image>, settings: Option<(&str, Value)>) -> Self {
        let plane = ControlPlane::start(Options::default().scheduler().crds(install::crds::all())).await.unwrap();
        let node = Node::start(&plane).await.unwrap();
        for image in images {
            node.import_image(image.archive()).unwrap();
        }
        let arguments = settings.map(|(plugin, settings)| {
            let file = plane.dir().join(format!("{plugin}.json"));
            std::fs::write(&file, settings.to_string()).unwrap();
            ["--plugin-config".to_owned(), format!("{plugin}={}", file.display())]
        });
        let arguments: Vec<_> = arguments.iter().flatten().map(String::as_str).collect();
        let operator = Some(Operator::start(&plane, &arguments).await);
        let namespace = Namespace::create_in(plane.client("user").await.unwrap(), "real").await;
        Self { node, operator, namespace, begun: Instant::now(), plane }
    }

    /// Everything, with the operator installed by the chart, as an image in this archive. Pods may mount the folder of
    /// the [`gate`](Self::gate).
    pub(super) async fn installed(archive: &Path, images: Vec<Image>, values: &[&str]) -> Self {
        let plane =
            ControlPlane::start(Options::default().scheduler().service_accounts().audits_answers()).await.unwrap();
        let node = Node::start(&plane).await.unwrap();
        for archive in [archive].into_iter().chain(images.iter().map(Image::archive)) {
            node.import_image(archive).unwrap();
        }
        let (kubeconfig, folder) = (plane.kubeconfig("admin").unwrap(), node.dir().display().to_string());
        let mut values: Vec<_> = values.iter().map(|value| format!("--set={value}")).collect();
        values.push(format!("--set=policies.fence.users.hostPaths={{{folder}}}"));
        let install = move || {
            let values: Vec<_> = values.iter().map(String::as_str).collect();
            CommandLine::of(Tool::Helm, &kubeconfig)?.run_line(documented("helm install troupe"), &values)
        };
        tokio::task::spawn_blocking(install).await.unwrap().unwrap();
        let namespace = Namespace::create_in(plane.client("user").await.unwrap(), "real").await;
        let world = Self { node, operator: None, namespace, begun: Instant::now(), plane };
        world.host().await.is(&DEPLOYMENTS, "troupe", "ready", |it| at(it, "/status/readyReplicas") == 2).await;
        world.is(&SERVICE_ACCOUNTS, "default", "there", |_| true).await;
        world
    }

    /// The namespace of an installed operator, seen by an administrator.
    pub(super) async fn host(&self) -> Namespace {
        Namespace { client: self.plane.client("admin").await.unwrap(), name: "troupe-system".to_owned() }
    }

    /// The requests so far that made pods in this namespace: who made which.
    pub(super) fn made_pods(&self) -> Vec<(String, String)> {
        let mut records = self.plane.audit().unwrap();
        let pods = ("create", "pods", 201);
        records.retain(|one| {
            (one.verb.as_str(), one.target().as_str(), one.code) == pods && one.namespace == self.namespace.name
        });
        records.into_iter().map(|one| (one.user, text(&one.object, "/metadata/name").to_owned())).collect()
    }

    /// The operator that runs beside the node.
    pub(super) fn operator(&self) -> &Operator {
        self.operator.as_ref().unwrap()
    }

    /// The kubeconfig file of the user whose namespace it is.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.plane.kubeconfig("user").unwrap()
    }

    /// A file that is not there, in a folder that pods may mount.
    pub(super) fn gate(&self) -> PathBuf {
        let folder = self.node.dir().join("gate");
        std::fs::create_dir_all(&folder).unwrap();
        folder.join("open")
    }

    /// What is sought, once it is there; a failure tells what all pods have said.
    pub(super) async fn comes<T>(&self, what: &str, look: impl AsyncFn() -> Result<Option<T>>) -> T {
        match until(PATIENCE, what, || look()).await {
            Ok(found) => found,
            Err(error) => panic!("{error:#}\n{}", self.told().await),
        }
    }

    /// The object, once it is as it should be.
    pub(super) async fn becomes(&self, kind: &Kind, name: &str, what: &str, seen: impl Fn(&Value) -> bool) -> Value {
        let last = RefCell::new(Value::Null);
        let looked = until(PATIENCE, format!("{}/{name} to be {what}", kind.plural()), || async {
            let object = self.get(kind, name).await?;
            last.replace(object.clone());
            Ok(seen(&object).then_some(object))
        });
        match looked.await {
            Ok(object) => object,
            Err(error) => panic!("{error:#}\nlast seen: {:#}\n{}", last.take()["status"], self.told().await),
        }
    }

    /// The pods that have this label, the oldest first.
    pub(super) async fn pods(&self, label: &str, value: &str) -> Vec<Value> {
        let mut pods = self.list(&PODS).await.unwrap();
        pods.retain(|pod| at(pod, "/metadata/labels")[label] == value);
        // Within a second by name, which is as good as any.
        pods.sort_by_key(|pod| {
            (text(pod, "/metadata/creationTimestamp").to_owned(), text(pod, "/metadata/name").to_owned())
        });
        pods
    }

    /// What the only container of a pod has said, or why that cannot be known.
    pub(super) fn said(&self, pod: &Value) -> String {
        let container = text(pod, "/spec/containers/0/name");
        let pod = serde_json::from_value(pod.clone()).unwrap();
        self.node.logs(&pod, container).unwrap_or_else(|error| format!("{error:#}"))
    }

    /// Says how long the jobs took, and ends everything; nothing stays on the machine.
    pub(super) async fn stop(self, what: &str) {
        eprintln!("{what} took {:.1} s on a real node", self.begun.elapsed().as_secs_f64());
        if let Some(operator) = self.operator {
            operator.stop().await;
        }
        self.node.stop().await.unwrap();
    }

    async fn told(&self) -> String {
        let pods = self.list(&PODS).await.unwrap();
        let told = |pod| {
            let state = serde_json::json!([at(pod, "/status/phase"), at(pod, "/status/containerStatuses")]);
            format!("== {}: {state}\n{}", text(pod, "/metadata/name"), self.said(pod))
        };
        pods.iter().map(told).collect::<Vec<_>>().join("\n")
    }
}

impl Deref for World {
    type Target = Namespace;

    fn deref(&self) -> &Namespace {
        &self.namespace
    }
}

/// Where the two processes ran that each said which of them it is, and on which host; in order of their lines.
pub(super) fn hosts(log: &str) -> Vec<&str> {
    let on = log.lines().filter_map(|line| line.split_once(" of 2 on "));
    on.map(|(_, host)| host.split(':').next().unwrap_or_default().trim()).collect()
}

/// Whether a job has this condition.
pub(super) fn is(job: &Value, condition: &str) -> bool {
    condition_of(job, condition).is_some_and(|one| text(one, "/status") == "True")
}

/// An image, built on a thread that may wait.
pub(super) async fn built(image: impl FnOnce() -> Result<Image> + Send + 'static) -> Image {
    tokio::task::spawn_blocking(image).await.unwrap().unwrap()
}

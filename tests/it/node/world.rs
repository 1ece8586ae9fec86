//! A control plane, a real node and the operator, for one test.

use crate::{
    cluster::objects::{Kind, Namespace, PODS, at, text},
    operator::Operator,
};
use anyhow::Result;
use harness::{ControlPlane, Node, Options, images::Image, until};
use serde_json::Value;
use std::{
    cell::RefCell,
    ops::Deref,
    path::PathBuf,
    time::{Duration, Instant},
};

/// Real pods start slower than played ones, and Kubernetes waits before it tries again.
const PATIENCE: Duration = Duration::from_secs(240);

pub(super) struct World {
    node: Node,
    operator: Operator,
    namespace: Namespace,
    begun: Instant,
    // Dropped last.
    _plane: ControlPlane,
}

impl World {
    /// Everything, with these images on the node, and the settings of a plugin if there are any.
    pub(super) async fn start(images: Vec<Image>, settings: Option<(&str, Value)>) -> Self {
        let plane =
            ControlPlane::start(Options::default().scheduler().crds(troupe::install::crds::all())).await.unwrap();
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
        let operator = Operator::start(&plane, &arguments).await;
        let namespace = Namespace::create_in(plane.client("user").await.unwrap(), "real").await;
        Self { node, operator, namespace, begun: Instant::now(), _plane: plane }
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
        self.operator.stop().await;
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

/// An image, built on a thread that may wait.
pub(super) async fn built(image: impl FnOnce() -> Result<Image> + Send + 'static) -> Image {
    tokio::task::spawn_blocking(image).await.unwrap().unwrap()
}

//! The jobs of a cluster and their objects, as far as the user may see them.

use super::read::{self, Job};
use crate::args::job::JobName;
use anyhow::{Context, bail};
use futures::future::{join_all, try_join_all};
use install::crds;
use k8s_openapi::{
    api::{
        batch::v1::Job as BatchJob,
        core::v1::{Event, Pod},
    },
    apimachinery::pkg::apis::meta::v1::{APIGroup, APIResource, ObjectMeta},
};
use kube::{
    Api, Client, Config, Resource,
    api::{ApiResource, DynamicObject, GetParams, ListParams},
    client::ClientBuilder,
    config::{KubeConfigOptions, Kubeconfig},
    core::{NamespaceResourceScope, Request},
};
use serde::de::DeserializeOwned;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};
use troupe::{api::bounds::Bounds, out};

/// A cluster, by a user's kubeconfig or a service account.
pub(super) struct Cluster {
    pub(super) client: Client,
    pub(super) namespace: String,
}

/// A job with its kind.
pub(super) struct Found {
    pub(super) resource: ApiResource,
    pub(super) job: Job,
}

impl Found {
    /// Returns kind and name: `echojob/hamlet`.
    pub(super) fn title(&self) -> String {
        format!("{}/{}", self.resource.kind.to_lowercase(), self.name())
    }

    pub(super) fn name(&self) -> &str {
        self.job.metadata.name.as_deref().unwrap_or_default()
    }

    pub(super) fn uid(&self) -> &str {
        self.job.metadata.uid.as_deref().unwrap_or_default()
    }

    pub(super) fn identity(&self) -> Identity {
        identity(self.job.metadata.namespace.as_deref(), self.uid())
    }
}

/// The namespace and the uid of an object.
pub(super) type Identity = (String, String);

fn identity(namespace: Option<&str>, uid: &str) -> Identity {
    (namespace.unwrap_or_default().to_owned(), uid.to_owned())
}

impl Cluster {
    pub(super) async fn of_user(context: Option<String>, namespace: Option<String>) -> anyhow::Result<Self> {
        let config = match context {
            Some(context) => {
                let options = KubeConfigOptions { context: Some(context), ..KubeConfigOptions::default() };
                let file = Kubeconfig::read().context("the kubeconfig cannot be read")?;
                Config::from_custom_kubeconfig(file, &options).await.context("the kubeconfig cannot be used")?
            }
            None => Config::infer().await.context("no cluster: neither a kubeconfig nor a service account is there")?,
        };
        let namespace = namespace.unwrap_or_else(|| config.default_namespace.clone());
        let builder = ClientBuilder::try_from(config).context("the kubeconfig cannot be used")?;
        Ok(Self { client: builder.with_layer(&Bounds::of_command()).build(), namespace })
    }

    /// Returns the kinds of job that the cluster has: those of the category `troupe`, and those of the built-in plugins,
    /// whose definitions may be an original operator's.
    pub(super) async fn kinds(&self) -> anyhow::Result<Vec<ApiResource>> {
        let built_in: BTreeSet<_> = crds::all().into_iter().filter_map(|crd| crd.metadata.name).collect();
        let groups = self.client.list_api_groups().await.context("the API server does not tell its groups")?.groups;
        // The preferred version of a group comes first; a kind that it does not have is in another.
        let of_group = |group: APIGroup| group.preferred_version.into_iter().chain(group.versions);
        let mut versions: Vec<_> = groups.into_iter().flat_map(of_group).map(|it| it.group_version).collect();
        let mut seen = BTreeSet::new();
        versions.retain(|version| seen.insert(version.clone()));
        // A group whose server does not answer hides its own kinds only.
        let lists = join_all(versions.iter().map(|it| self.client.list_api_group_resources(it))).await;
        let mut kinds: Vec<ApiResource> = vec![];
        for list in lists.into_iter().flatten() {
            let (group, version) = list.group_version.split_once('/').unwrap_or(("", &list.group_version));
            let is_job = |it: &APIResource| {
                it.categories.iter().flatten().any(|category| category == "troupe")
                    || built_in.contains(&format!("{}.{group}", it.name))
            };
            let is_new = |it: &&APIResource| !kinds.iter().any(|kind| kind.group == group && kind.plural == it.name);
            let resources = list.resources.iter().filter(|it| it.namespaced && !it.name.contains('/') && is_job(it));
            let found = resources.filter(is_new).map(|it| ApiResource {
                group: group.to_owned(),
                version: version.to_owned(),
                api_version: list.group_version.clone(),
                kind: it.kind.clone(),
                plural: it.name.clone(),
            });
            let found: Vec<_> = found.collect();
            kinds.extend(found);
        }
        Ok(kinds)
    }

    /// Returns the jobs of all kinds in the namespace, or in all. Tells the user of each that cannot be read.
    pub(super) async fn jobs(&self, all_namespaces: bool) -> anyhow::Result<Vec<Found>> {
        let kinds = self.kinds().await?;
        let lists = try_join_all(kinds.iter().map(async |kind| {
            let namespace = (!all_namespaces).then_some(self.namespace.as_str());
            let (jobs, unreadable) = self.jobs_of(kind, namespace).await?;
            for error in unreadable {
                out::diagnostic(format_args!("one of the {} cannot be read: {error}", kind.plural));
            }
            let found = jobs.into_iter().map(|job| Found { resource: kind.clone(), job });
            anyhow::Ok(found.collect::<Vec<_>>())
        }));
        let mut jobs: Vec<_> = lists.await?.into_iter().flatten().collect();
        let place = |it: &Found| (it.job.metadata.namespace.clone(), it.resource.plural.clone(), it.name().to_owned());
        jobs.sort_by_key(place);
        Ok(jobs)
    }

    /// Returns the jobs of this kind in the namespace, or in all, and the error of each that cannot be read.
    async fn jobs_of(
        &self,
        kind: &ApiResource,
        namespace: Option<&str>,
    ) -> anyhow::Result<(Vec<Job>, Vec<serde_json::Error>)> {
        let wrong = || format!("{} cannot be listed", kind.plural);
        let path = DynamicObject::url_path(kind, namespace);
        let request = Request::new(path).list(&ListParams::default()).with_context(wrong)?;
        let text = self.client.request_text(request).await.with_context(wrong)?;
        read::jobs(&text).with_context(wrong)
    }

    /// Returns the job of this kind and name in the namespace, if there is one.
    async fn job_of(&self, kind: &ApiResource, name: &str) -> anyhow::Result<Option<Job>> {
        let wrong = || format!("{} cannot be read", kind.plural);
        let path = DynamicObject::url_path(kind, Some(&self.namespace));
        let request = Request::new(path).get(name, &GetParams::default()).with_context(wrong)?;
        match self.client.request_text(request).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
            text => Ok(Some(read::job(&text.with_context(wrong)?).with_context(wrong)?)),
        }
    }

    /// Returns the job of this name, of the kind that the name says, if it says one.
    pub(super) async fn job(&self, name: &JobName) -> anyhow::Result<Found> {
        let mut kinds = self.kinds().await?;
        if let Some(kind) = &name.kind {
            kinds.retain(|it| name.is_of(it));
            if kinds.is_empty() {
                bail!("the cluster has no kind of job called {kind}");
            }
        }
        let seen = try_join_all(kinds.iter().map(async |kind| {
            let got = self.job_of(kind, &name.name).await?;
            anyhow::Ok(got.map(|job| Found { resource: kind.clone(), job }))
        }));
        let mut found: Vec<_> = seen.await?.into_iter().flatten().collect();
        match (found.len(), found.pop()) {
            (1, Some(one)) => Ok(one),
            (0, _) => bail!("there is no job {name} in namespace {}", self.namespace),
            (_, last) => {
                let titles: Vec<_> = found.iter().chain(&last).map(Found::title).collect();
                bail!("there are several jobs of that name: {}; say which", titles.join(", "))
            }
        }
    }

    /// Returns the pods of the job, those of its batch/v1 Jobs among them, by name.
    pub(super) async fn pods(&self, found: &Found) -> anyhow::Result<Vec<Pod>> {
        let namespace = found.job.metadata.namespace.as_deref().unwrap_or(&self.namespace);
        Ok(self.pods_by_job(Some(namespace)).await?.remove(&found.identity()).unwrap_or_default())
    }

    /// Returns the pods of the namespace, or of all, each list by name, by the namespace and the uid of what controls them:
    /// of the controller of their batch/v1 Job, if that has one. An owner reference means nothing in another namespace.
    pub(super) async fn pods_by_job(&self, namespace: Option<&str>) -> anyhow::Result<BTreeMap<Identity, Vec<Pod>>> {
        let batch: Vec<BatchJob> = self.all(namespace).await.context("batch/v1 Jobs cannot be listed")?;
        let above = |it: BatchJob| {
            let here = |uid: &str| identity(it.metadata.namespace.as_deref(), uid);
            Some((here(it.metadata.uid.as_deref()?), here(controller(&it.metadata)?)))
        };
        let above: BTreeMap<_, _> = batch.into_iter().filter_map(above).collect();
        let pods: Vec<Pod> = self.all(namespace).await.context("pods cannot be listed")?;
        let mut by_job: BTreeMap<Identity, Vec<Pod>> = BTreeMap::new();
        for pod in pods {
            if let Some(owner) = controller(&pod.metadata) {
                let owner = identity(pod.metadata.namespace.as_deref(), owner);
                by_job.entry(above.get(&owner).cloned().unwrap_or(owner)).or_default().push(pod);
            }
        }
        by_job.values_mut().for_each(|pods| pods.sort_by_key(|pod| pod.metadata.name.clone()));
        Ok(by_job)
    }

    async fn all<K>(&self, namespace: Option<&str>) -> kube::Result<Vec<K>>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + fmt::Debug,
    {
        let api: Api<K> = match namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        };
        Ok(api.list(&ListParams::default()).await?.items)
    }

    /// Returns the latest events about objects of these uids, the oldest first.
    pub(super) async fn events(&self, found: &Found, uids: &BTreeSet<String>) -> anyhow::Result<Vec<Event>> {
        let namespace = found.job.metadata.namespace.as_deref().unwrap_or(&self.namespace);
        let events: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let mut events = events.list(&ListParams::default()).await.context("events cannot be listed")?.items;
        events.retain(|event| event.involved_object.uid.as_ref().is_some_and(|uid| uids.contains(uid)));
        events.sort_by_key(at);
        Ok(events)
    }
}

/// Returns when the event happened last.
pub(super) fn at(event: &Event) -> Option<jiff::Timestamp> {
    let last = event.last_timestamp.as_ref().map(|it| it.0);
    last.or(event.event_time.as_ref().map(|it| it.0)).or(event.metadata.creation_timestamp.as_ref().map(|it| it.0))
}

/// Returns the uid of the object's controller.
fn controller(metadata: &ObjectMeta) -> Option<&str> {
    let mut owners = metadata.owner_references.iter().flatten();
    owners.find(|owner| owner.controller == Some(true)).map(|owner| owner.uid.as_str())
}

//! Reads the cluster for `troupe preflight`. It changes nothing: an access review is a query in the form of a create.

use super::{Answered, Definition, Facts, Gangs, JobFacts, Originals, Read, ReadError, Right, gangs, rights};
use crate::crds;
use futures::{StreamExt, future::BoxFuture, stream};
use kube::{
    Client,
    api::{GetParams, ListParams, PostParams},
};
use sandbox::Plugins;
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};
use troupe::{
    api::{continued::Continued, resource::Resource},
    clock::Clock,
    control::operator::{self, Operator},
    observe::stores::Listed,
    write::apply::send,
};

/// The page size of lists.
const PAGE: u32 = 500;

/// The maximum number of concurrent access reviews.
const REVIEWS: usize = 16;

/// The deadline for the first lists; kinds not listed by then are reported.
const PATIENCE: Duration = Duration::from_secs(20);

/// What to check.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Check only jobs in this namespace; None for all.
    pub namespace: Option<String>,
    /// Namespace and name of the service account whose rights are checked; None for the current user.
    pub service_account: Option<(String, String)>,
}

/// Collects the facts from the API server and the plugins.
pub fn look<'a>(client: &'a Client, plugins: Arc<Plugins>, options: &'a Options) -> BoxFuture<'a, Facts> {
    Box::pin(facts(client, plugins, options))
}

async fn facts(client: &Client, plugins: Arc<Plugins>, options: &Options) -> Facts {
    let versions: Vec<_> = plugins.kinds().into_iter().map(|kind| (kind.crd(), kind.version)).collect();
    let rights = reviewed(client, options, &plugins).await;
    let (jobs, unlisted) = jobs(client, plugins, options).await;
    Facts {
        now: Clock::system().now(),
        originals: originals(client).await,
        definitions: definitions(client, &versions).await,
        jobs,
        unlisted,
        gangs: gangs(client).await,
        who: who(options),
        rights,
    }
}

/// Returns what there is of operators that Troupe replaces.
pub(crate) async fn originals(client: &Client) -> Originals {
    let known = builtin::originals();
    let lease = Resource::new("coordination.k8s.io/v1", "Lease", "leases");
    let webhook = "ValidatingWebhookConfiguration";
    let webhook = Resource::new("admissionregistration.k8s.io/v1", webhook, &format!("{}s", webhook.to_lowercase()));
    Originals {
        leases: named(client, &lease, known.iter().flat_map(|original| original.leases)).await,
        webhooks: named(client, &webhook, known.iter().flat_map(|original| original.webhooks)).await,
        deployments: list(client, &Resource::new("apps/v1", "Deployment", "deployments"), None).await,
        known,
    }
}

/// Returns which of the rights that the host needs with these plugins are given.
pub(crate) async fn reviewed(client: &Client, options: &Options, plugins: &Plugins) -> Vec<Answered> {
    let frameworks = plugins.frameworks();
    let children = frameworks.iter().flat_map(|(framework, _)| &framework.children);
    let optional = children.filter(|child| child.optional).map(Resource::from);
    let mut optional: BTreeSet<_> = optional.map(|resource| (resource.group, resource.plural)).collect();
    // A job may also be a child of another job.
    for kind in plugins.kinds() {
        optional.remove(&(kind.group, kind.plural));
    }
    let reviews = stream::iter(rights::needed(&optional)).map(|right| review(client, options, right));
    reviews.buffered(REVIEWS).collect().await
}

fn who(options: &Options) -> String {
    match &options.service_account {
        Some((namespace, name)) => format!("service account {namespace}/{name}"),
        None => "the user of this kubeconfig".into(),
    }
}

/// Returns the objects with these names, in any namespace.
pub(crate) async fn named(
    client: &Client,
    resource: &Resource,
    names: impl Iterator<Item = &&'static str>,
) -> Read<Vec<Value>> {
    let mut all = vec![];
    for name in names {
        all.extend(list(client, resource, Some(format!("metadata.name={name}"))).await?);
    }
    Ok(all)
}

/// Returns an object, or `None` if there is no such object.
pub(crate) async fn get(
    client: &Client,
    resource: &Resource,
    namespace: Option<&str>,
    name: &str,
) -> Read<Option<Value>> {
    let request = resource.requests(namespace).get(name, &GetParams::default());
    match send(client, request.map_err(|error| ReadError::new(&error))?).await {
        Err(error) if error.code() == Some(404) => Ok(None),
        found => found.map(Some).map_err(|error| ReadError::new(&error)),
    }
}

pub(crate) async fn list(client: &Client, resource: &Resource, field_selector: Option<String>) -> Read<Vec<Value>> {
    let mut params = ListParams { limit: Some(PAGE), field_selector, ..ListParams::default() };
    let (mut objects, mut pages) = (vec![], Continued::default());
    loop {
        let request = resource.requests(None).list(&params).map_err(|error| ReadError::new(&error))?;
        let mut page: Value = send(client, request).await.map_err(|error| ReadError::new(&error))?;
        let items = if let Value::Array(items) = page["items"].take() { items } else { vec![] };
        let more = page.pointer("/metadata/continue").and_then(Value::as_str).map(str::to_owned);
        params.continue_token = pages.next(items.len(), 0, more).map_err(|error| ReadError::new(&error))?;
        objects.extend(items);
        if params.continue_token.is_none() {
            return Ok(objects);
        }
    }
}

/// Returns the objects of gangs of Kubernetes 1.36.
async fn gangs(client: &Client) -> Gangs {
    match client.list_api_group_resources(gangs::API_VERSION).await {
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
        served => served.map_err(|error| ReadError::new(&error))?,
    };
    let mut all = Vec::new();
    for (kind, plural) in gangs::KINDS {
        let objects = list(client, &Resource::new(gangs::API_VERSION, kind, plural), None).await?;
        let place = |object: &Value| {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
            format!("{}/{}/{}", kind.to_lowercase(), text("namespace"), text("name"))
        };
        all.extend(objects.iter().map(place));
    }
    Ok(Some(all))
}

/// Returns the definitions of these kinds, given by name and version.
pub(crate) async fn definitions(client: &Client, kinds: &[(String, String)]) -> Vec<Definition> {
    let resource = Resource::new("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions");
    let mut definitions = vec![];
    for crd in crds::all() {
        let name = crd.metadata.name.as_deref().unwrap_or_default();
        let Some((_, version)) = kinds.iter().find(|(kind, _)| kind == name) else { continue };
        let there = get(client, &resource, None, name).await;
        let wanted = serde_json::to_value(&crd).unwrap_or_default();
        definitions.push(Definition { wanted, version: version.clone(), there });
    }
    definitions
}

/// Returns the jobs as the host would see them, and the kinds that could not be listed.
async fn jobs(client: &Client, plugins: Arc<Plugins>, options: &Options) -> (Vec<JobFacts>, Vec<String>) {
    let namespace = options.namespace.clone();
    let options = operator::Options { namespace, ..operator::Options::alone(Clock::system(), [0; 32]) };
    let operator = Operator::new(client.clone(), plugins, options);
    let context = operator.context();
    let _watches = operator.watches();
    let start = Instant::now();
    while !context.is_ready() && start.elapsed() < PATIENCE {
        sleep(Duration::from_millis(20)).await;
    }
    let unlisted = context
        .stores()
        .progress()
        .into_iter()
        .filter(|watch| matches!(watch.listed, Listed::NotYet | Listed::Forbidden));
    let unlisted: BTreeSet<_> = unlisted.map(|of| of.watch.resource.plural).collect();
    let mut jobs = vec![];
    for key in context.stores().jobs() {
        if let Some(rehearsal) = context.rehearse(&key).await {
            jobs.push(JobFacts::of(&rehearsal.pass));
        }
    }
    (jobs, unlisted.into_iter().collect())
}

async fn review(client: &Client, options: &Options, right: Right) -> Answered {
    let Right { group, resource, subresource, verb, .. } = &right;
    let of_jobs = options.namespace.as_ref().filter(|_| !right.is_of_cluster());
    let namespace = right.namespace.as_ref().or(of_jobs);
    let attributes = json!({
        "namespace": namespace,
        "verb": verb,
        "group": group,
        "resource": resource,
        "subresource": subresource,
    });
    let mut spec = json!({ "resourceAttributes": attributes });
    let mut kind = "SelfSubjectAccessReview";
    if let Some((namespace, name)) = &options.service_account {
        kind = "SubjectAccessReview";
        spec["user"] = format!("system:serviceaccount:{namespace}:{name}").into();
        let groups = ["system:serviceaccounts", &format!("system:serviceaccounts:{namespace}"), "system:authenticated"];
        spec["groups"] = json!(groups);
    }
    let reviews = Resource::new("authorization.k8s.io/v1", kind, &format!("{}s", kind.to_lowercase()));
    let body = json!({ "apiVersion": reviews.api_version(), "kind": kind, "spec": spec });
    let given = match reviews.requests(None).create(&PostParams::default(), body.to_string().into_bytes()) {
        Ok(request) => send::<Value>(client, request).await.map_err(|error| ReadError::new(&error)),
        Err(error) => Err(ReadError::new(&error)),
    };
    Answered { given: given.map(|review| review.pointer("/status/allowed") == Some(&Value::Bool(true))), right }
}

//! What the API server serves, for watches of kinds that it did not serve when they were listed: one look-up for all that
//! ask within some seconds, so that many such kinds cost no more requests than one.

use super::{
    names::{self, NamesError},
    resource::Resource,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kube::Client;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::Mutex, time::Instant};

/// An answer, or a failure, counts for this long.
const FRESH: Duration = Duration::from_secs(4);

/// The shared look-ups.
pub(crate) struct Discovery {
    client: Client,
    /// Locked while the API server is asked: who asks meanwhile gets that answer.
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The API versions of all groups but the core one.
    versions: Option<Found<BTreeSet<String>>>,
    /// The resources of API versions.
    resources: BTreeMap<String, Found<Vec<APIResource>>>,
}

struct Found<T> {
    at: Instant,
    answer: Result<Arc<T>, kube::Error>,
}

impl<T> Found<T> {
    fn of(answer: Result<T, kube::Error>) -> Self {
        Self { at: Instant::now(), answer: answer.map(Arc::new) }
    }

    fn is_fresh(&self) -> bool {
        self.at.elapsed() < FRESH
    }

    fn answer(&self) -> Result<Arc<T>, kube::Error> {
        self.answer.as_ref().map(Arc::clone).map_err(again)
    }
}

/// Returns the error for another who asked the same.
fn again(error: &kube::Error) -> kube::Error {
    match error {
        kube::Error::Api(status) => kube::Error::Api(status.clone()),
        other => kube::Error::Service(crate::error::chain(other).into()),
    }
}

impl Discovery {
    /// Returns look-ups through this client. Sends no request.
    pub(crate) fn new(client: Client) -> Self {
        Self { client, known: Mutex::default() }
    }

    /// Does as [`names::check`], with an answer of the last seconds if there is one.
    ///
    /// # Errors
    /// What is called otherwise, or why that cannot be found out.
    pub(crate) async fn check(&self, resource: &Resource) -> Result<bool, NamesError> {
        let mut known = self.known.lock().await;
        let api_version = resource.api_version();
        let failed = |source| NamesError::LookUp { api_version: api_version.clone(), source };
        if !resource.group.is_empty() {
            let versions = known.versions.take().filter(Found::is_fresh);
            let versions = known.versions.insert(match versions {
                Some(versions) => versions,
                None => Found::of(self.versions().await),
            });
            if !versions.answer().map_err(failed)?.contains(&api_version) {
                return Ok(false);
            }
        }
        known.resources.retain(|_, found| found.is_fresh());
        if !known.resources.contains_key(&api_version) {
            let found = Found::of(names::resources(&self.client, resource).await);
            known.resources.insert(api_version.clone(), found);
        }
        let resources = known.resources[&api_version].answer().map_err(failed)?;
        names::agree(&resources, resource)
    }

    async fn versions(&self) -> Result<BTreeSet<String>, kube::Error> {
        let groups = self.client.list_api_groups().await?.groups;
        Ok(groups.into_iter().flat_map(|group| group.versions).map(|version| version.group_version).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::names::Mismatch;
    use futures::future::join_all;
    use sim::{Kind, Options, Sim};

    const HOST: &str = "host";

    fn resource(number: usize) -> Resource {
        Resource::new(&format!("g{number}.example.com/v1"), "Tale", "tales")
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_within_some_seconds_gets_one_answer() {
        let sim = Sim::new(Options::default());
        let discovery = Discovery::new(sim.client(HOST));
        let all: Vec<_> = (0..600).map(resource).collect();
        let answers = join_all(all.iter().map(|resource| discovery.check(resource))).await;
        assert!(answers.into_iter().all(|is_served| !is_served.unwrap()));
        assert_eq!(sim.requests_of(HOST).len(), 1);

        sim.serve(Kind::custom("g7.example.com/v1", "Tale", "tales"));
        assert!(!discovery.check(&resource(7)).await.unwrap(), "the answer counts for some seconds");
        tokio::time::advance(FRESH).await;
        assert!(discovery.check(&resource(7)).await.unwrap());
        assert_eq!(sim.requests_of(HOST).len(), 3);
        let misnamed = discovery.check(&Resource::new("g7.example.com/v1", "Tale", "stories")).await;
        assert!(matches!(misnamed, Err(NamesError::Mismatch { other: Mismatch { .. }, .. })));
        assert_eq!(sim.requests_of(HOST).len(), 3);
    }
}

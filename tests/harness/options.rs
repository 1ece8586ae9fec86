//! What a control plane is started with.

use crate::binaries::Release;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// What a control plane is started with; the default is etcd, the API server and the controller manager, without scheduler and nodes.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub(crate) scheduler: bool,
    pub(crate) fake_nodes: usize,
    pub(crate) limited: Vec<String>,
    pub(crate) actors: Vec<String>,
    pub(crate) crds: Vec<CustomResourceDefinition>,
    pub(crate) api_server_flags: Vec<String>,
    pub(crate) audits_answers: bool,
    pub(crate) service_accounts: bool,
    pub(crate) gangs: bool,
    pub(crate) release: Release,
}

impl Options {
    /// With kube-scheduler, which a real node needs and fake nodes bring along.
    #[must_use]
    pub fn scheduler(mut self) -> Self {
        self.scheduler = true;
        self
    }

    /// With this many fake nodes, played by kwok: pods on them run and end by annotation, without any process
    /// (see [`RUN_FOR`](crate::RUN_FOR) and [`EXIT_CODE`](crate::EXIT_CODE)).
    #[must_use]
    pub fn fake_nodes(mut self, count: usize) -> Self {
        self.fake_nodes = count;
        self.scheduler |= count > 0;
        self
    }

    /// With one more user besides `admin`, `troupe` and `user`.
    #[must_use]
    pub fn actor(mut self, user: &str) -> Self {
        self.actors.push(user.to_owned());
        self
    }

    /// With this user having no right but what the test's own RBAC objects give it. All other users may do everything.
    #[must_use]
    pub fn limited(mut self, user: &str) -> Self {
        self.limited.push(user.to_owned());
        self
    }

    /// With these CRDs established before the controllers start, so that their objects are garbage-collected from the beginning.
    #[must_use]
    pub fn crds(mut self, crds: impl IntoIterator<Item = CustomResourceDefinition>) -> Self {
        self.crds.extend(crds);
        self
    }

    /// With an audit log that holds what writes of pods, Jobs and jobs were answered (see [`Record::object`](crate::audit::Record::object)).
    #[must_use]
    pub fn audits_answers(mut self) -> Self {
        self.audits_answers = true;
        self
    }

    /// With a service account for each pod, whose token and the API server's certificate are in its containers, as in every
    /// other cluster. A pod is refused until the controller has made its namespace's account.
    #[must_use]
    pub fn service_accounts(mut self) -> Self {
        self.service_accounts = true;
        self
    }

    /// With another release of Kubernetes than the usual.
    #[must_use]
    pub fn release(mut self, release: Release) -> Self {
        self.release = release;
        self
    }

    /// With Kubernetes' own gang scheduling (KEP-4671), which is off by default and which 1.30 does not have.
    #[must_use]
    pub fn gangs(mut self) -> Self {
        self.gangs = true;
        self
    }

    /// The feature gates of all programs. Kubernetes 1.37 has no gate `GangScheduling`; 1.30 has no gangs.
    pub(crate) fn feature_gates(&self) -> Option<&'static str> {
        match self.release {
            Release::Newest => self.gangs.then_some("--feature-gates=GenericWorkload=true"),
            Release::Previous => self.gangs.then_some("--feature-gates=GenericWorkload=true,GangScheduling=true"),
            Release::Oldest => None,
        }
    }

    /// The API version of gangs, which no release serves by default.
    pub(crate) fn runtime_config(&self) -> Option<&'static str> {
        match self.release {
            Release::Newest => self.gangs.then_some("--runtime-config=scheduling.k8s.io/v1beta1=true"),
            Release::Previous => self.gangs.then_some("--runtime-config=scheduling.k8s.io/v1alpha2=true"),
            Release::Oldest => None,
        }
    }

    /// With one more flag for kube-apiserver, such as `--goaway-chance=0.01`.
    #[must_use]
    pub fn api_server_flag(mut self, flag: &str) -> Self {
        self.api_server_flags.push(flag.to_owned());
        self
    }

    /// Every user that can log in.
    pub(crate) fn users(&self) -> impl Iterator<Item = &str> {
        ["admin", "troupe", "user"].into_iter().chain(self.actors.iter().map(String::as_str))
    }
}

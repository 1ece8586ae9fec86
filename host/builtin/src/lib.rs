//! The built-in plugins. In `host/`, only this file and `build.rs` contain their names.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use troupe_plugin::{crd::Relation, original::Original};

include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

/// The category of the kinds of job: `kubectl get troupe` lists the jobs of all of them.
pub const CATEGORY: &str = "troupe";

/// Returns the CRD of each kind that the plugins serve.
#[must_use]
pub fn crds() -> Vec<CustomResourceDefinition> {
    let crds = [cron::crd::crd(), job::crd::crd(), mpi::crd::crd(), paddle::crd::crd(), rhino::crd::crd()]
        .into_iter()
        .chain(kubeflow::crd::crds());
    let categorised = crds.map(|mut crd| {
        crd.spec.names.categories = Some(vec![CATEGORY.to_owned()]);
        crd
    });
    categorised.collect()
}

/// Returns what fields of the kinds of job have to do with each other, and how a job breaks it.
#[must_use]
pub fn relations() -> Vec<Relation> {
    let all = [cron::crd::relations(), job::crd::relations(), mpi::crd::relations(), paddle::crd::relations()];
    [all.concat(), rhino::crd::relations(), kubeflow::relations::all()].concat()
}

/// Returns how to recognise the original operators that the plugins replace.
#[must_use]
pub fn originals() -> Vec<Original> {
    vec![
        cron::original::ORIGINAL,
        kubeflow::original::ORIGINAL,
        mpi::original::ORIGINAL,
        paddle::original::ORIGINAL,
        rhino::original::ORIGINAL,
    ]
}

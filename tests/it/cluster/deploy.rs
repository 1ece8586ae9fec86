//! The files of `deploy/`, applied as an administrator would.

use super::objects::{SOON, at, text};
use harness::until;
use kube::{Client, api::PostParams, core::Request};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// The user that the host is in those files.
pub(crate) const HOST: &str = "system:serviceaccount:troupe-system:troupe";

/// The command of the README that begins so, without what is said of it.
pub(crate) fn documented(start: &str) -> &'static str {
    let readme = include_str!("../../../README.md");
    let line = readme.lines().find(|line| line.starts_with(start)).expect("the README has it");
    line.split('#').next().unwrap_or_default().trim()
}

/// The documents of a file.
pub(crate) fn documents(file: &str) -> Vec<Value> {
    let path = format!("{}/../deploy/{file}", env!("CARGO_MANIFEST_DIR"));
    parse(&std::fs::read_to_string(path).unwrap())
}

/// The documents of a text.
pub(crate) fn parse(text: &str) -> Vec<Value> {
    serde_norway::Deserializer::from_str(text).map(|document| Value::deserialize(document).unwrap()).collect()
}

/// Makes every object of a file.
pub(crate) async fn apply(client: &Client, file: &str) {
    for object in documents(file) {
        let body = serde_json::to_vec(&object).unwrap();
        let request = Request::new(place(&object)).create(&PostParams::default(), body).unwrap();
        client.request::<Value>(request).await.unwrap_or_else(|error| panic!("{object}: {error}"));
    }
}

/// Makes the host's rights, and returns once they have been added up.
pub(crate) async fn give_rights(client: &Client) {
    apply(client, "rbac.yaml").await;
    let roles = documents("rbac.yaml").into_iter().filter(|it| it["kind"] == "ClusterRole" && it["rules"].is_array());
    // The same rule in two roles is added once.
    let rules: BTreeSet<_> =
        roles.flat_map(|role| role["rules"].as_array().unwrap().clone()).map(|rule| rule.to_string()).collect();
    let whole = Request::new("/apis/rbac.authorization.k8s.io/v1/clusterroles");
    until(SOON, "the rights to be added up", || async {
        let role: Value = client.request(whole.get("troupe", &kube::api::GetParams::default())?).await?;
        let there = at(&role, "/rules").as_array().map_or(0, Vec::len);
        Ok((there >= rules.len()).then_some(()))
    })
    .await
    .unwrap();
}

fn place(object: &Value) -> String {
    let api_version = text(object, "/apiVersion");
    let root = if api_version.contains('/') { "apis" } else { "api" };
    let plural = match text(object, "/kind") {
        "ValidatingAdmissionPolicy" => "validatingadmissionpolicies".to_owned(),
        kind => format!("{}s", kind.to_lowercase()),
    };
    match at(object, "/metadata/namespace").as_str() {
        Some(namespace) => format!("/{root}/{api_version}/namespaces/{namespace}/{plural}"),
        None => format!("/{root}/{api_version}/{plural}"),
    }
}

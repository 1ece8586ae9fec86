//! A Plugin whose settings add a kind that the host then watches, creates and removes.

use super::{Stage, condition, host};
use crate::{
    author::block,
    cluster::{
        documented::Shell,
        objects::{CRON_JOBS, Kind, SOON, at, text},
    },
    operator,
};
use harness::until;
use kube::{Api, api::DeleteParams};
use serde_json::{Value, json};
use std::fs;
use troupe::plugin_resource::Plugin;

const PAGE: &str = include_str!("../../../../docs/jobs/cronjob.md");

const ECHO_JOBS: Kind = Kind::new("apis/example.org/v1", "echojobs");

/// The Plugin as the page has it.
fn documented() -> &'static str {
    let from = PAGE.find("apiVersion: troupe.dev").unwrap();
    PAGE[from..].split("```").next().unwrap()
}

fn every_second() -> Value {
    let pod = json!({ "spec": { "containers": [{ "name": "main", "image": "echo:1" }] } });
    let echo = json!({ "worker": { "replicas": 1, "template": pod } });
    let template = json!({ "apiVersion": "example.org/v1", "kind": "EchoJob", "spec": echo });
    json!({
        "apiVersion": "batch.tutorial.kubebuilder.io/v1",
        "kind": "CronJob",
        "metadata": { "name": "tick" },
        "spec": { "schedule": "@every 1s", "concurrencyPolicy": "Forbid", "successfulJobsHistoryLimit": 1,
            "template": template },
    })
}

// C03, C11, C12
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_cron_job_runs_a_kind_of_somebodys_plugin_once_the_settings_name_it() {
    let stage = Stage::of("cron-kinds").await;
    let world = &stage.world;
    let shell = Shell::of(world, "cron-kinds");
    // Who serves the kind does not matter to the CronJob: here the test does.
    shell.runs("troupe plugin new echo --lang c --kind example.org/v1/EchoJob && kubectl apply -f echo/crd.yaml");
    let plugins: Api<Plugin> = Api::all(world.client.clone());
    let serves = |generation: i64| {
        let plugins = plugins.clone();
        until(SOON, "the Plugin to serve".to_owned(), move || {
            let plugins = plugins.clone();
            async move {
                let status = plugins.get("cron").await?.status.unwrap_or_default();
                let is_current = status.observed_generation == Some(generation);
                Ok((is_current && condition(&status, "Serving").0 == "True").then_some(()))
            }
        })
    };
    let without_settings = documented().split("  config:").next().unwrap();
    fs::write(shell.folder.join("plain.yaml"), without_settings).unwrap();
    shell.runs("kubectl apply -f plain.yaml");
    serves(1).await.unwrap();
    world.create(&CRON_JOBS, &every_second()).await;
    let rejected = |job: &Value| at(job, "/status/troupe/conditions").to_string().contains("EchoJob is not one of");
    world.is(&CRON_JOBS, "tick", "refused by the kind of its template", rejected).await;

    fs::write(shell.folder.join("cron.yaml"), documented()).unwrap();
    for command in block(PAGE, "kubectl apply -f cron.yaml") {
        shell.runs(command);
    }
    let rights = shell.prints("kubectl get clusterrole troupe-plugin-cron -o yaml");
    assert!(rights.contains("- echojobs"), "{rights}");
    serves(2).await.unwrap();
    // What was refused is looked at again, and each run that has ended makes room for the next.
    let mut ended = vec![];
    for _ in 0..3 {
        let run = until(SOON, "a run of the kind".to_owned(), || async {
            let runs = world.names(&ECHO_JOBS).await?;
            Ok(runs.into_iter().find(|run| !ended.contains(run)))
        });
        let run = run.await.unwrap();
        world.set_status(&ECHO_JOBS, &run, &json!({ "phase": "Succeeded" })).await;
        ended.push(run);
    }
    let first = &ended[0];
    let kept = world.get(&ECHO_JOBS, &ended[1]).await.unwrap();
    assert!(kept.is_null() || text(&kept, "/metadata/ownerReferences/0/name") == "tick", "{kept:#}");
    until(SOON, format!("{first} to be removed by the history limit"), || async {
        Ok((!world.names(&ECHO_JOBS).await?.contains(first)).then_some(()))
    })
    .await
    .unwrap();

    // A host that starts again knows the kind from its Plugin, and goes on.
    let Stage { world, host: old, .. } = stage;
    let seen = world.follow(&CRON_JOBS).await;
    let new = host(&world, operator::binary()).await;
    old.kill();
    let last = until(SOON, "a run by the new host".to_owned(), || async {
        let runs = world.names(&ECHO_JOBS).await?;
        Ok(runs.into_iter().find(|run| !ended.contains(run)))
    });
    world.set_status(&ECHO_JOBS, &last.await.unwrap(), &json!({ "phase": "Succeeded" })).await;
    assert!(!seen.lock().iter().any(rejected), "it knew the settings before its first pass");

    // Kinds that no job may own stay out, and what serves goes on.
    shell.runs(
        "kubectl patch plugin/cron --type merge --patch \
         '{\"spec\":{\"config\":{\"kinds\":[{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"Role\",\"plural\":\"roles\"}]}}}'",
    );
    until(SOON, "the settings to be refused".to_owned(), || async {
        let status = plugins.get("cron").await?.status.unwrap_or_default();
        let (accepted, serving) = (condition(&status, "Accepted"), condition(&status, "Serving").0);
        Ok((accepted == ("False".into(), "InvalidConfig".into()) && serving == "True").then_some(()))
    })
    .await
    .unwrap();
    world.delete(&CRON_JOBS, "tick").await;
    plugins.delete("cron", &DeleteParams::default()).await.unwrap();
    shell.runs("kubectl delete crd/echojobs.example.org");
    new.stop().await;
}

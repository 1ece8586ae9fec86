//! The commands of scenarios.
//!
//! | command | meaning |
//! |---|---|
//! | `config <plugin> {json}` | the cluster operator's settings of a plugin, before any job |
//! | `job <plugin> [ns/]name ps=2 worker=2 field=json ...` | a user submits a job; fields of the spec by path |
//! | `job` and indented YAML lines | a user submits this manifest |
//! | `set spec.path json`, `set metadata.path json` | a user edits the job; null removes |
//! | `delete job`, `delete job foreground`, `recreate job` | a user deletes it; deletes and submits it again |
//! | `reconcile` | one pass of the host |
//! | `settle` | passes until one writes nothing; waits for deferred statuses |
//! | `pods <pattern> <state> ...` | what happens to pods, see [`pods::befall`]; names may omit the job's |
//! | `spawn <pod> from job/<name>` | the Job controller makes a pod |
//! | `child kind/name gone`, `child kind/name <path> json` | another client removes or changes an object |
//! | `foreign kind/name`, `foreign kind/name gone` | another user makes or removes an object |
//! | `queues` | the cluster has queues: it serves Kueue's kinds, and a host starts that finds them |
//! | `refuse <pattern> because <text>`, `admit` | an admission webhook refuses creates such as `pod/*-1`; admits all
//! again |
//! | `crd prunes`, `crd keeps` | the job's CRD drops `status.troupe`; keeps it again |
//! | `plugin traps`, `plugin recovers` | calls of the plugin have no fuel and trap; it answers again |
//! | `host stops`, `host starts` | the host's process ends, so that nothing is watched; it starts anew |
//! | `wait 1500ms` | time passes |
//! | `show ...` | prints, see [`show::show`] |

use super::{
    Shorthand, manifest, pass, pods, show, words,
    world::{World, text},
};
use anyhow::{Context, bail};
use serde_json::json;
use std::time::Duration;
use wildmatch::WildMatch;

/// Whether a manifest follows the command.
pub(super) fn takes_manifest(command: &str) -> bool {
    command.trim() == "job"
}

/// Runs a command until no more happens without time passing, and returns the lines that it prints.
pub(super) async fn run(
    world: &mut World,
    shorthand: &Shorthand,
    command: &str,
    manifest: &str,
) -> anyhow::Result<Vec<String>> {
    let words = words::split(command);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["config", plugin, config] => world.configure(plugin, &words::value(config))?,
        ["job"] => world.submit(manifest::yaml(manifest)?)?,
        ["job", plugin, name, fields @ ..] => job(world, shorthand, plugin, name, fields)?,
        ["set", path, value] => {
            world.set(&world.job().context("there is no job")?, path, words::value(value))?;
        }
        ["delete", "job"] => world.delete_job("Background")?,
        ["delete", "job", "foreground"] => world.delete_job("Foreground")?,
        ["recreate", "job"] => world.recreate()?,
        ["reconcile"] => return Ok(pass::reconcile(world).await?.lines),
        ["settle"] => return pass::settle(world).await,
        ["queues"] => world.serve_queues(),
        ["host", "stops"] => world.stop_host(),
        ["host", "starts"] => world.start_host(),
        ["pods", pattern, story @ ..] => befall(world, pattern, story)?,
        ["spawn", pod, "from", job] => spawn(world, pod, job)?,
        ["child", name, "gone"] | ["foreign", name, "gone"] => {
            world
                .delete(&world.object(name)?, &json!({ "propagationPolicy": "Background", "gracePeriodSeconds": 0 }))?;
        }
        ["child", name, path, value] => world.set(&world.object(name)?, path, words::value(value))?,
        ["foreign", name] => foreign(world, name)?,
        ["refuse", pattern, "because", why @ ..] => world.refuse(pattern, &why.join(" "))?,
        ["admit"] => world.admit(),
        ["crd", "prunes"] => world.prune(true),
        ["crd", "keeps"] => world.prune(false),
        ["plugin", "traps"] => world.starve(true),
        ["plugin", "recovers"] => world.starve(false),
        ["wait", time] => {
            let time: jiff::SignedDuration = time.parse().context("a time such as 1500ms")?;
            world.wait(Duration::try_from(time).context("time does not go back")?).await;
        }
        ["show", what, sections @ ..] => return show::show(world, what, sections),
        _ => bail!("there is no such command"),
    }
    world.come_to_rest().await?;
    Ok(vec![])
}

fn job(world: &mut World, shorthand: &Shorthand, plugin: &str, name: &str, fields: &[&str]) -> anyhow::Result<()> {
    let frameworks = world.plugins.frameworks();
    let found = frameworks.iter().find(|(descriptor, _)| descriptor.name == plugin);
    let kind = found.and_then(|(descriptor, _)| descriptor.kinds.first());
    let kind = kind.with_context(|| format!("there is no plugin {plugin} here"))?;
    world.submit(manifest::line(&shorthand.of(plugin), kind, name, fields)?)
}

fn befall(world: &World, pattern: &str, story: &[&str]) -> anyhow::Result<()> {
    let job = format!("{}-", world.submitted()?.key.name);
    let wanted = WildMatch::new(pattern);
    let meant = |name: &str| wanted.matches(name) || name.strip_prefix(&job).is_some_and(|rest| wanted.matches(rest));
    let mut pods = world.sim.list("v1", "Pod", "");
    pods.retain(|pod| meant(&text(pod, "/metadata/name")));
    anyhow::ensure!(!pods.is_empty(), "no pod is called {pattern}");
    for (place, pod) in pods.iter_mut().enumerate() {
        let before = pod.clone();
        match pods::befall(pod, story, u8::try_from(place)?, world.sim.now())? {
            pods::Fate::Stays => world.alter(&before, |stored| stored.clone_from(pod))?,
            pods::Fate::Goes => world.delete(pod, &json!({ "gracePeriodSeconds": 0 }))?,
        }
    }
    Ok(())
}

/// Creates a pod from the Job's template, as the Job controller does.
fn spawn(world: &World, pod: &str, job: &str) -> anyhow::Result<()> {
    let job = world.object(job)?;
    let mut made = job["spec"]["template"].clone();
    made["apiVersion"] = json!("v1");
    made["kind"] = json!("Pod");
    made["metadata"]["name"] = json!(pod);
    made["metadata"]["namespace"] = job["metadata"]["namespace"].clone();
    made["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "batch/v1", "kind": "Job", "controller": true, "blockOwnerDeletion": true,
        "name": job["metadata"]["name"], "uid": job["metadata"]["uid"],
    }]);
    world.make(made)
}

/// Creates a minimal object without an owner.
fn foreign(world: &World, name: &str) -> anyhow::Result<()> {
    let (kind, name) = world.named(name)?;
    let pod = json!({ "restartPolicy": "Never", "containers": [{ "name": "main", "image": "image" }] });
    let spec = match kind.kind.as_str() {
        "Pod" => pod,
        "Job" => json!({ "template": { "spec": pod } }),
        _ => json!({}),
    };
    let mut object = json!({ "apiVersion": kind.api_version(), "kind": kind.kind, "metadata": { "name": name } });
    if world.is_namespaced(&kind) {
        object["metadata"]["namespace"] = json!(world.namespace());
    }
    if !spec.as_object().is_none_or(serde_json::Map::is_empty) || kind.kind == "Service" {
        object["spec"] = spec;
    }
    world.make(object)
}

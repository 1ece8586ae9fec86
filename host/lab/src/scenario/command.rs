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
//! | `settle` | passes until one writes nothing; folded statuses are waited for |
//! | `pods <pattern> <state> ...` | what befalls pods, see [`pods::befall`]; names may leave out the job's |
//! | `spawn <pod> from job/<name>` | the Job controller makes a pod |
//! | `child kind/name gone`, `child kind/name <path> json` | somebody removes or changes an object |
//! | `foreign kind/name`, `foreign kind/name gone` | a stranger makes or removes an object |
//! | `refuse <pattern> because <text>`, `admit` | an admission refuses creates such as `pod/*-1`; admits all again |
//! | `crd prunes`, `crd keeps` | the job's CRD drops `status.troupe`; keeps it again |
//! | `plugin traps`, `plugin recovers` | the plugin fails instead of answering; answers again |
//! | `wait 1500ms` | time passes |
//! | `show ...` | prints, see [`show::show`] |

use super::{Shorthand, manifest, pass, pods, show, words, world::World};
use anyhow::{Context, bail};
use decide::plan::Fault;
use serde_json::{Value, json};

/// The command is followed by a manifest.
pub(super) fn takes_manifest(command: &str) -> bool {
    command.trim() == "job"
}

/// Runs a command and returns the lines it prints.
pub(super) fn run(
    world: &mut World,
    shorthand: &Shorthand,
    command: &str,
    manifest: &str,
) -> anyhow::Result<Vec<String>> {
    let words = words::split(command);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["config", plugin, config] => world.plugins.configure(plugin, &words::value(config))?,
        ["job"] => world.submit(manifest::yaml(manifest)?)?,
        ["job", plugin, name, fields @ ..] => job(world, shorthand, plugin, name, fields)?,
        ["set", path, value] => world.edit(path, words::value(value))?,
        ["delete", "job"] => world.delete_job(false)?,
        ["delete", "job", "foreground"] => world.delete_job(true)?,
        ["recreate", "job"] => world.recreate()?,
        ["reconcile"] => return Ok(pass::reconcile(world)?.lines),
        ["settle"] => return pass::settle(world),
        ["pods", pattern, story @ ..] => befall(world, pattern, story)?,
        ["spawn", pod, "from", job] => spawn(world, pod, job)?,
        ["child", name, "gone"] | ["foreign", name, "gone"] => gone(world, name)?,
        ["child", name, path, value] => change(world, name, path, words::value(value))?,
        ["foreign", name] => foreign(world, name)?,
        ["refuse", pattern, "because", why @ ..] => world.refused.push(((*pattern).to_owned(), why.join(" "))),
        ["admit"] => world.refused.clear(),
        ["crd", "prunes"] => world.prunes = true,
        ["crd", "keeps"] => world.prunes = false,
        ["plugin", "traps"] => world.fault = Some(trap(world)),
        ["plugin", "recovers"] => world.fault = None,
        ["wait", time] => world.pass_time(time.parse().context("a time such as 1500ms")?),
        ["show", what, sections @ ..] => return show::show(world, what, sections),
        _ => bail!("there is no such command"),
    }
    Ok(vec![])
}

fn job(world: &mut World, shorthand: &Shorthand, plugin: &str, name: &str, fields: &[&str]) -> anyhow::Result<()> {
    let frameworks = world.plugins.frameworks();
    let found = frameworks.iter().find(|(descriptor, _)| descriptor.name == plugin);
    let kind = found.and_then(|(descriptor, _)| descriptor.kinds.first());
    let kind = kind.with_context(|| format!("there is no plugin {plugin} here"))?;
    world.submit(manifest::line(&shorthand.of(plugin), kind, name, fields)?)
}

fn befall(world: &mut World, pattern: &str, story: &[&str]) -> anyhow::Result<()> {
    let story: Vec<String> = story.iter().map(ToString::to_string).collect();
    let (job, now) = (format!("{}-", world.job_name()), world.now);
    let meant = |name: &str| {
        words::matches(pattern, name) || name.strip_prefix(&job).is_some_and(|rest| words::matches(pattern, rest))
    };
    let keys: Vec<_> = world.objects.keys().filter(|key| key.0 == "Pod" && meant(&key.1)).cloned().collect();
    anyhow::ensure!(!keys.is_empty(), "no pod is called {pattern}");
    for (place, key) in keys.iter().enumerate() {
        let Some(pod) = world.objects.get_mut(key) else { continue };
        match pods::befall(pod, &story, u8::try_from(place)?, now)? {
            pods::Fate::Stays => world.touch(key),
            pods::Fate::Goes => world.remove(key),
        }
    }
    Ok(())
}

/// The Job controller makes a pod of the Job's template.
fn spawn(world: &mut World, pod: &str, job: &str) -> anyhow::Result<()> {
    let job = world.objects.get(&key(job)?).with_context(|| format!("there is no {job}"))?;
    let mut made = job["spec"]["template"].clone();
    made["metadata"]["name"] = json!(pod);
    made["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "batch/v1", "kind": "Job", "controller": true,
        "name": job["metadata"]["name"], "uid": job["metadata"]["uid"],
    }]);
    world.insert(("Pod".into(), pod.to_owned()), made);
    Ok(())
}

fn gone(world: &mut World, name: &str) -> anyhow::Result<()> {
    let key = key(name)?;
    anyhow::ensure!(world.objects.contains_key(&key), "there is no {name}");
    world.remove(&key);
    Ok(())
}

fn change(world: &mut World, name: &str, path: &str, value: Value) -> anyhow::Result<()> {
    let key = key(name)?;
    words::set(world.objects.get_mut(&key).with_context(|| format!("there is no {name}"))?, path, value)?;
    world.touch(&key);
    Ok(())
}

fn foreign(world: &mut World, name: &str) -> anyhow::Result<()> {
    let key = key(name)?;
    anyhow::ensure!(!world.objects.contains_key(&key), "there is a {name} already");
    let object = json!({ "kind": key.0, "metadata": { "name": key.1 }, "spec": {} });
    world.insert(key, object);
    Ok(())
}

fn trap(world: &World) -> Fault {
    let plugin = world.served.as_ref().map(|served| served.framework.name.clone()).unwrap_or_default();
    Fault::Trapped { plugin, function: "judge".into(), message: "wasm `unreachable` instruction executed".into() }
}

/// `service/x` as kind and name.
pub(super) fn key(name: &str) -> anyhow::Result<(String, String)> {
    let (kind, name) = name.split_once('/').with_context(|| format!("{name} is no kind/name"))?;
    let known = ["Pod", "Service", "ConfigMap", "Secret", "Job", "PodGroup"]
        .into_iter()
        .find(|known| known.eq_ignore_ascii_case(kind));
    Ok((known.with_context(|| format!("{kind} is no kind of object here"))?.to_owned(), name.to_owned()))
}

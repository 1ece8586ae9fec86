//! Whether an operator that Troupe replaces still runs: two operators over the same jobs undo each other's work.

use super::{Finding, Originals, ReadError};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use troupe_plugin::original::Original;

/// The duration of a Lease that sets none, as of Kubernetes' own Leases.
const USUAL_SECONDS: i64 = 15;

pub(crate) fn findings(now: Timestamp, originals: &Originals) -> Vec<Finding> {
    let Originals { known: originals, leases, deployments, webhooks } = originals;
    let mut findings = Vec::new();
    match deployments {
        Ok(all) => findings.extend(all.iter().filter_map(|deployment| of_deployment(originals, deployment))),
        Err(why) => findings.push(unread("deployments.apps", why)),
    }
    match leases {
        Ok(all) => findings.extend(all.iter().filter_map(|lease| of_lease(now, originals, lease))),
        Err(why) => findings.push(unread("leases.coordination.k8s.io", why)),
    }
    match webhooks {
        Ok(all) => findings.extend(all.iter().filter_map(|webhook| of_webhook(originals, webhook))),
        Err(why) => findings.push(unread("validatingwebhookconfigurations.admissionregistration.k8s.io", why)),
    }
    if findings.is_empty() {
        let names: Vec<_> = originals.iter().map(|original| original.name).collect();
        findings.push(Finding::fine(format!("none is there: no Deployment, Lease or webhook of {}", names.join(", "))));
    }
    findings
}

fn unread(what: &str, why: &ReadError) -> Finding {
    let to_do = format!("run this as somebody who may list {what} in all namespaces");
    Finding::in_the_way(format!("{what} cannot be read, so an original operator may run unseen: {why}"), to_do)
}

fn of_deployment(originals: &[Original], deployment: &Value) -> Option<Finding> {
    let (original, by) =
        originals.iter().find_map(|original| Some((original, recognized_by(original, deployment)?)))?;
    let (namespace, name) = place(deployment);
    let wanted = deployment.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1);
    let there = deployment.pointer("/status/replicas").and_then(Value::as_u64).unwrap_or(0);
    let what = format!("{} (recognised by its {by}): deployment {namespace}/{name}", original.name);
    Some(match (wanted, there) {
        (0, 0) => Finding::fine(format!("{what} is scaled to zero")),
        (0, _) => Finding::in_the_way(
            format!("{what} is on its way to zero, {there} pods are still there"),
            format!("kubectl --namespace {namespace} rollout status deployment {name}"),
        ),
        _ => Finding::in_the_way(
            format!("{what} runs: {wanted} pods wanted, {there} there"),
            format!("kubectl --namespace {namespace} scale deployment {name} --replicas 0"),
        ),
    })
}

fn of_lease(now: Timestamp, originals: &[Original], lease: &Value) -> Option<Finding> {
    let (namespace, name) = place(lease);
    let original = originals.iter().find(|original| original.leases.contains(&name))?;
    let text = |field: &str| lease["spec"][field].as_str().filter(|text| !text.is_empty());
    let (holder, renewed) = (text("holderIdentity")?, text("renewTime")?.parse::<Timestamp>().ok()?);
    let seconds = lease.pointer("/spec/leaseDurationSeconds").and_then(Value::as_i64).unwrap_or(USUAL_SECONDS);
    let age = now.duration_since(renewed);
    // Twice the duration, since the holder's clock and this one may differ.
    (age <= SignedDuration::from_secs(2 * seconds)).then(|| {
        let ago = age.as_secs().max(0);
        Finding::in_the_way(
            format!("{}: lease {namespace}/{name} was renewed {ago} s ago by {holder}", original.name),
            format!("stop the process that holds it, wait {} s, and look again", 2 * seconds),
        )
    })
}

fn of_webhook(originals: &[Original], webhook: &Value) -> Option<Finding> {
    let (_, name) = place(webhook);
    let original = originals.iter().find(|original| original.webhooks.contains(&name))?;
    Some(Finding::in_the_way(
        format!(
            "{}: validatingwebhookconfiguration {name} refuses jobs while that operator does not answer",
            original.name
        ),
        format!("kubectl delete validatingwebhookconfiguration {name}"),
    ))
}

/// Returns what identifies the Deployment as the original's: its name, its image or its flags.
fn recognized_by(original: &Original, deployment: &Value) -> Option<&'static str> {
    if original.deployments.contains(&place(deployment).1) {
        return Some("name");
    }
    let containers = deployment.pointer("/spec/template/spec/containers").and_then(Value::as_array)?;
    let has_image = |container: &Value| {
        let image = without_tag(container["image"].as_str().unwrap_or_default());
        original.images.iter().any(|name| image.strip_suffix(name).is_some_and(|r| r.is_empty() || r.ends_with('/')))
    };
    if containers.iter().any(has_image) {
        return Some("image");
    }
    let words = containers.iter().flat_map(|container| [&container["command"], &container["args"]]);
    let mut words = words.filter_map(Value::as_array).flatten().filter_map(Value::as_str);
    words.any(|word| flag(word).is_some_and(|name| original.flags.contains(&name))).then_some("flags")
}

fn without_tag(image: &str) -> &str {
    let image = image.split_once('@').map_or(image, |(image, _)| image);
    match image.rsplit_once(':') {
        // A colon before the last slash begins a port.
        Some((name, tag)) if !tag.contains('/') => name,
        _ => image,
    }
}

/// Returns the name of a flag: `scheduling` for `-scheduling=volcano` and for `--scheduling`.
fn flag(word: &str) -> Option<&str> {
    let name = word.strip_prefix('-')?;
    let name = name.strip_prefix('-').unwrap_or(name);
    Some(name.split_once('=').map_or(name, |(name, _)| name))
}

fn place(object: &Value) -> (&str, &str) {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    (text("namespace"), text("name"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preflight::Weight;
    use serde_json::json;

    const ECHO: Original = Original {
        name: "echo-operator",
        leases: &["lock.echo.dev"],
        deployments: &["echo-manager"],
        images: &["echo/controller"],
        webhooks: &["check.echo.dev"],
        flags: &["echoImage"],
        metrics: None,
    };

    fn deployment(name: &str, container: &Value, wanted: u32, there: u32) -> Value {
        json!({
            "metadata": { "namespace": "system", "name": name },
            "spec": { "replicas": wanted, "template": { "spec": { "containers": [container] } } },
            "status": { "replicas": there },
        })
    }

    fn found(leases: &[Value], deployments: &[Value]) -> Vec<Finding> {
        let now = "2026-01-01T00:01:00Z".parse().unwrap();
        let (leases, deployments) = (Ok(leases.to_vec()), Ok(deployments.to_vec()));
        findings(now, &Originals { known: vec![ECHO], leases, deployments, webhooks: Ok(vec![]) })
    }

    #[test]
    fn an_original_is_recognized_by_its_name_its_image_or_its_flags() {
        let recognized = |name: &str, container: Value| {
            let deployment = deployment(name, &container, 1, 1);
            recognized_by(&ECHO, &deployment)
        };
        assert_eq!(recognized("echo-manager", json!({ "image": "own:1" })), Some("name"));
        for image in ["echo/controller", "docker.io/echo/controller:v1", "mirror:5000/echo/controller@sha256:00"] {
            assert_eq!(recognized("other", json!({ "image": image })), Some("image"), "{image}");
        }
        for args in [json!(["-echoImage=x"]), json!(["--leader-elect", "--echoImage", "x"])] {
            assert_eq!(recognized("other", json!({ "image": "own", "args": args })), Some("flags"));
        }
        assert_eq!(recognized("other", json!({ "command": ["/manager", "--echoImage="] })), Some("flags"));
        let stranger = json!({ "image": "notecho/controller:1", "command": ["/manager"], "args": ["echoImage"] });
        assert_eq!(recognized("echo-manager-2", stranger), None);
    }

    #[test]
    fn only_an_original_without_pods_is_out_of_the_way() {
        let container = json!({ "image": "echo/controller:1" });
        let finding = |wanted, there| found(&[], &[deployment("x", &container, wanted, there)]).remove(0);
        let running = finding(1, 1);
        assert_eq!(
            running.what,
            "echo-operator (recognised by its image): deployment system/x runs: 1 pods wanted, 1 there"
        );
        assert_eq!(running.to_do.as_deref(), Some("kubectl --namespace system scale deployment x --replicas 0"));
        assert_eq!(
            [(2, 0), (0, 1), (0, 0)].map(|(wanted, there)| finding(wanted, there).weight),
            [Weight::InTheWay, Weight::InTheWay, Weight::Fine]
        );
        let mut without_replicas = deployment("x", &container, 0, 0);
        without_replicas["spec"]["replicas"] = Value::Null;
        assert_eq!(found(&[], &[without_replicas]).remove(0).weight, Weight::InTheWay);
    }

    #[test]
    fn a_lease_counts_while_it_is_held_and_renewed() {
        let lease = |name: &str, holder: &str, renewed: &str| {
            json!({
                "metadata": { "namespace": "system", "name": name },
                "spec": { "holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15 },
            })
        };
        let finding = found(&[lease("lock.echo.dev", "pod-1", "2026-01-01T00:00:40.123456Z")], &[]).remove(0);
        assert_eq!(finding.what, "echo-operator: lease system/lock.echo.dev was renewed 19 s ago by pod-1");
        assert_eq!(finding.weight, Weight::InTheWay);
        let of_another_clock = lease("lock.echo.dev", "pod-1", "2026-01-01T00:01:09Z");
        assert_eq!(found(&[of_another_clock], &[]).remove(0).weight, Weight::InTheWay);
        for gone in [
            lease("lock.echo.dev", "pod-1", "2026-01-01T00:00:29Z"),
            lease("lock.echo.dev", "", "2026-01-01T00:00:59Z"),
            lease("other", "pod-1", "2026-01-01T00:00:59Z"),
        ] {
            let found = found(&[gone], &[]);
            assert_eq!(found, [Finding::fine("none is there: no Deployment, Lease or webhook of echo-operator")]);
        }
    }

    #[test]
    fn a_webhook_that_an_original_left_behind_is_in_the_way() {
        let webhooks = ["check.echo.dev", "check.other.dev"].map(|name| json!({ "metadata": { "name": name } }));
        let webhooks = Ok(webhooks.to_vec());
        let there = Originals { known: vec![ECHO], leases: Ok(vec![]), deployments: Ok(vec![]), webhooks };
        let found = findings(Timestamp::UNIX_EPOCH, &there);
        let what = "echo-operator: validatingwebhookconfiguration check.echo.dev refuses jobs while that operator does not \
                    answer";
        let to_do = "kubectl delete validatingwebhookconfiguration check.echo.dev";
        assert_eq!(found, [Finding::in_the_way(what, to_do)]);
    }

    #[test]
    fn what_cannot_be_read_is_in_the_way() {
        let refused = || Err(ReadError("Forbidden".to_owned()));
        let known = vec![ECHO];
        let there = Originals { known, leases: refused(), deployments: refused(), webhooks: refused() };
        let found = findings(Timestamp::UNIX_EPOCH, &there);
        assert!(found.len() == 3 && found.iter().all(|finding| finding.weight == Weight::InTheWay), "{found:?}");
    }
}

//! Whether each Plugin resource serves.

use crate::preflight::{Finding, Read};
use serde_json::Value;

pub(super) fn findings(plugins: &Read<Vec<Value>>) -> Vec<Finding> {
    match plugins {
        Ok(plugins) if plugins.is_empty() => vec![Finding::fine("no Plugin: what comes with the host serves")],
        Ok(plugins) => plugins.iter().flat_map(of_plugin).collect(),
        Err(why) => {
            let to_do = "apply the definition that `troupe crds` prints, or run this as somebody who may list plugins.troupe.dev";
            vec![Finding::in_the_way(format!("the Plugins cannot be read: {why}"), to_do)]
        }
    }
}

fn of_plugin(plugin: &Value) -> Vec<Finding> {
    let name = plugin["metadata"]["name"].as_str().unwrap_or_default();
    let conditions = plugin["status"]["conditions"].as_array();
    let found = |kind: &str| conditions.into_iter().flatten().find(|condition| condition["type"] == kind);
    let words = |condition: &Value| {
        let [reason, message] = ["reason", "message"].map(|field| condition[field].as_str().unwrap_or_default());
        format!("{reason}: {message}")
    };
    let see = format!("kubectl describe plugin {name}; its message says what to change");
    let serving = match found("Serving") {
        Some(condition) if condition["status"] == "True" => Finding::fine(format!("plugin {name} serves")),
        Some(condition) => {
            Finding::in_the_way(format!("plugin {name} does not serve: {}", words(condition)), see.clone())
        }
        None => Finding::in_the_way(
            format!("plugin {name} does not serve: no host has looked at it"),
            "start a host, or look at the log of the one that has the lease",
        ),
    };
    let degraded = found("Degraded").filter(|condition| condition["status"] == "True");
    let degraded = degraded.map(|condition| {
        let what = format!("plugin {name} is degraded: {}", words(condition));
        Finding::in_the_way(what, see)
    });
    [serving].into_iter().chain(degraded).collect()
}

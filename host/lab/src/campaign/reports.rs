//! What hosts say of what is delivered, in the status of a Plugin.

use super::hosts::is_host;
use serde_json::Value;
use sim::Write;
use std::collections::BTreeSet;

/// With this write a host says something new of what is delivered to the Plugin of this name. How many jobs there are, and
/// how a candidate answers for them, is not of that.
pub(super) fn says_something_new(write: &Write, plugin: &str) -> bool {
    let is_of_it = write.kind == "Plugin" && write.name == plugin && is_host(&write.actor);
    let said = |object: &Value| {
        let (status, candidate) = (&object["status"], &object["status"]["candidate"]);
        let of_source = ["observedGeneration", "digest", "lastError"].map(|field| status[field].clone());
        (of_source, ["digest", "state"].map(|field| candidate[field].clone()))
    };
    let after = write.after.as_deref().filter(|_| is_of_it).map(said);
    after.is_some() && after != write.before.as_deref().map(said)
}

/// The conditions by which a host refuses, with this write, what a Plugin offers.
pub(super) fn refused_stages(write: &Write) -> Vec<String> {
    let Some(after) = write.after.as_ref().filter(|_| write.kind == "Plugin" && is_host(&write.actor)) else {
        return vec![];
    };
    let refused = |plugin: &Value| -> BTreeSet<String> {
        let conditions = plugin["status"]["conditions"].as_array().into_iter().flatten();
        let stages =
            conditions.filter(|of| ["Fetched", "Compiled", "Accepted"].iter().any(|stage| of["type"] == *stage));
        let words = |of: &Value| format!("delivery: a host refuses ({})", of["reason"].as_str().unwrap_or_default());
        stages.filter(|of| of["status"] == "False").map(words).collect()
    };
    let before = write.before.as_deref().map(refused).unwrap_or_default();
    refused(after).difference(&before).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::{super::HOST, *};
    use jiff::Timestamp;
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn a_host_that_counts_jobs_says_nothing_new_of_a_delivery() {
        let status = |digest: &str, jobs: u32| {
            let candidate = json!({ "digest": "b", "state": "Shadow", "live": { "passes": jobs } });
            Some(Arc::new(json!({ "status": { "digest": digest, "jobs": jobs, "candidate": candidate } })))
        };
        let write = |actor: &str, name: &str, digest: &str| Write {
            actor: actor.into(),
            group: "troupe.dev".into(),
            kind: "Plugin".into(),
            namespace: String::new(),
            name: name.into(),
            before: status("a", 1),
            after: status(digest, 2),
            sent: None,
            version: 1,
            at: Timestamp::UNIX_EPOCH,
        };
        let is_new = |write: Write| says_something_new(&write, "paddle");
        assert!(is_new(write(HOST, "paddle", "b")));
        assert!(!is_new(write(HOST, "paddle", "a")), "there are more jobs, and more passes were compared");
        assert!(!is_new(write(HOST, "mpi", "b")) && !is_new(write("user", "paddle", "b")));
    }
}

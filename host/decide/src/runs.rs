//! Series of objects that come and go by name: each is created when `bind` asks for it and deleted when `bind` says so.

use crate::{
    decision::{Action, Part},
    plan::{Run, Runs, Series},
    snapshot::Child,
    standing::Standing,
    waiting::Waiting,
};

/// Creates the runs that do not exist, unless the job is suspended, and deletes those that are not wanted any more.
/// Only objects of the plan's series are deleted.
pub(crate) fn runs(standing: &Standing<'_>, runs: &Runs) -> (Vec<Action>, Vec<Waiting>) {
    let Standing { snapshot, plan, .. } = standing;
    let is_removed = |child: &Child| {
        let series = plan.series_with(&child.api_version, &child.kind);
        series.is_some() && !child.terminating && runs.remove.contains(&child.uid)
    };
    let removed = snapshot.children.iter().filter(|child| is_removed(child));
    let mut actions: Vec<_> = removed.map(|child| Action::delete(child)).collect();
    let mut waiting = Vec::new();
    for (place, run) in runs.make.iter().enumerate().filter(|_| !snapshot.suspended()) {
        let Some(series) = plan.series_of(run) else { continue };
        match existing(standing, series, run) {
            // The next run of this name waits until this object is gone.
            Some(child) if child.terminating => waiting.push(terminating(series, run)),
            Some(_) => {}
            None if snapshot.taken.contains(&(series.kind.clone(), run.name.clone())) => {
                waiting.push(terminating(series, run));
            }
            None => {
                actions.push(Action::create(&series.api_version, &series.kind, &run.name, Part::Run { run: place }));
            }
        }
    }
    (actions, waiting)
}

fn existing<'a>(standing: &Standing<'a>, series: &Series, run: &Run) -> Option<&'a Child> {
    let of_series = |child: &&'a std::sync::Arc<Child>| series.has(&child.api_version, &child.kind);
    let mut children = standing.snapshot.children.iter().filter(of_series);
    children.find(|child| child.name == run.name).map(AsRef::as_ref)
}

fn terminating(series: &Series, run: &Run) -> Waiting {
    Waiting::Terminating { kind: series.kind.clone(), name: run.name.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Snapshot, build, decide,
        ownership::PLUGIN_DIGEST_ANNOTATION,
        plan::{Answer, Bindings, Outcome, Verdict},
        testkit,
    };
    use serde_json::{Value, json};
    use std::{collections::BTreeMap, sync::Arc};

    fn child(kind: &str, api_version: &str, name: &str) -> Child {
        Child {
            api_version: api_version.into(),
            kind: kind.into(),
            name: name.into(),
            uid: format!("uid-of-{name}"),
            resource_version: "1".into(),
            terminating: false,
            fields: BTreeMap::new(),
        }
    }

    fn snapshot(children: Vec<Child>) -> Snapshot {
        let template = json!({
            "metadata": {
                "name": "another",
                "labels": { "app": "report", "run-of": "another" },
                "annotations": { PLUGIN_DIGEST_ANNOTATION: "another" },
                "ownerReferences": [{ "name": "another" }],
            },
            "spec": { "parallelism": 2 },
        });
        let job = crate::snapshot::Job { spec: json!({ "template": template }), ..testkit::job("night", "uid") };
        let children = children.into_iter().map(Arc::new).collect();
        Snapshot { children, ..testkit::snapshot(job) }
    }

    fn answer(make: &[&str], remove: &[&str]) -> Answer {
        let series = Series {
            key: "runs".into(),
            api_version: "batch/v1".into(),
            kind: "Job".into(),
            template_at: "/template".into(),
            labels: BTreeMap::from([("run-of".into(), "night".into())]),
        };
        let run = |name: &&str| Run {
            series: "runs".into(),
            name: (*name).to_owned(),
            annotations: BTreeMap::from([("at".into(), "noon".into())]),
        };
        Answer::Judged {
            plan: Arc::new(crate::plan::Plan { series: vec![series], ..testkit::plan(vec![]) }),
            bindings: Bindings {
                runs: Runs {
                    make: make.iter().map(run).collect(),
                    remove: remove.iter().map(ToString::to_string).collect(),
                },
                ..Bindings::default()
            },
            verdict: Verdict::new(json!({}), "Active", Outcome::Open),
        }
    }

    fn actions(snapshot: &Snapshot, answer: &Answer) -> Vec<String> {
        decide(snapshot, answer).actions.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_run_is_made_once_and_removed_when_bind_says_so() {
        assert_eq!(actions(&snapshot(vec![]), &answer(&["night-1"], &[])), ["create job/night-1"]);
        let made = snapshot(vec![child("Job", "batch/v1", "night-1")]);
        assert!(actions(&made, &answer(&["night-1"], &[])).is_empty());
        assert!(actions(&made, &answer(&[], &[])).is_empty(), "what bind does not name stays");
        assert_eq!(actions(&made, &answer(&[], &["uid-of-night-1"])), ["delete job/night-1"]);
    }

    #[test]
    fn only_objects_of_a_series_are_removed() {
        let others = snapshot(vec![child("ConfigMap", "v1", "night-1"), child("Job", "other.example/v1", "night-2")]);
        assert!(actions(&others, &answer(&[], &["uid-of-night-1", "uid-of-night-2", "uid"])).is_empty());
    }

    #[test]
    fn a_run_waits_for_the_object_that_has_its_name() {
        let terminating = Child { terminating: true, ..child("Job", "batch/v1", "night-1") };
        let mut taken = snapshot(vec![]);
        taken.taken.insert(("Job".into(), "night-1".into()));
        for snapshot in [snapshot(vec![terminating]), taken] {
            let decision = decide(&snapshot, &answer(&["night-1"], &["uid-of-night-1"]));
            assert!(decision.actions.is_empty());
            assert_eq!(decision.waiting, [Waiting::Terminating { kind: "Job".into(), name: "night-1".into() }]);
        }
    }

    #[test]
    fn a_suspended_job_gets_no_run_and_keeps_those_that_there_are() {
        let mut suspended = snapshot(vec![child("Job", "batch/v1", "night-1")]);
        Arc::make_mut(&mut suspended.job).spec["suspend"] = json!(true);
        assert!(actions(&suspended, &answer(&["night-2"], &[])).is_empty());
    }

    // Whoever may write a job says what its runs are, but not who owns them or which plugin planned them.
    #[test]
    fn a_run_is_the_users_template_under_the_hosts_identity() {
        let (snapshot, answer) = (snapshot(vec![]), answer(&["night-1"], &[]));
        let body = build::body(&snapshot, &answer, Part::Run { run: 0 }).unwrap();
        assert_eq!(body["metadata"]["name"], "night-1");
        assert_eq!(body["metadata"]["namespace"], "ns");
        assert_eq!(body["metadata"]["ownerReferences"][0]["uid"], "uid");
        assert_eq!(body["metadata"]["labels"], json!({ "app": "report", "run-of": "night" }));
        let digest = testkit::digest("d");
        assert_eq!(body["metadata"]["annotations"], json!({ "at": "noon", PLUGIN_DIGEST_ANNOTATION: digest }));
        assert_eq!(body["spec"], json!({ "parallelism": 2 }));
        assert_eq!(body.get("status"), None::<&Value>);
        assert!(build::bytes(&snapshot, &answer, Part::Run { run: 0 }).unwrap() > 0);
        assert!(build::body(&snapshot, &answer, Part::Run { run: 1 }).is_none());
    }
}

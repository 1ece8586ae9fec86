//! What a job does when things happen to it: sequences of steps, played with the real Job controller, and with a kind of
//! job of ours that has the same spec and status.
//!
//! They are files `tests/sequences/*.txt`. A line with `>` is a command, what follows is what the real controller's job is
//! like after it; the commands are those of [`step::Step`]. `UPDATE_EXPECT=1` rewrites what the real controller says: read
//! the difference before it is kept. `~ LINE because REASON` says what ours says instead of the line with the same key
//! (the text before `=`); `~ no KEY because REASON`, that ours has no such line; the comment `# not IndexedJob: REASON`, that
//! ours cannot do the steps at all.
//!
//! There is no scheduler and no kubelet: the driver binds pods to a node, sets their status and ends them when they are
//! deleted. A pod has ended an hour ago unless the step says otherwise, so that nothing is held back but where a sequence
//! is about that.

mod kubelet;
mod player;
mod step;
mod text;
mod view;

use self::{
    kubelet::NODE,
    player::{Player, Side},
    text::{File, Sequence, files},
    view::{View, job_of},
};
use super::objects::{BATCH_JOBS, Kind, Namespace, PODS, text as at_text};
use crate::operator::Operator;
use futures::{StreamExt, future::join_all};
use harness::{ControlPlane, Options};
use kube::{
    Client,
    api::{WatchEvent, WatchParams},
};
use serde_json::{Value, json};
use similar::{Algorithm, udiff::unified_diff};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    rc::Rc,
};
use tokio::{sync::watch, task::LocalSet, time::Instant};

const NODES: Kind = Kind::new("api/v1", "nodes");
const INDEXED_JOBS: Kind = Kind::new("apis/batch.troupe.dev/v1alpha1", "indexedjobs");

const THEIRS: Side = Side {
    kind: &BATCH_JOBS,
    api_version: "batch/v1",
    name: "Job",
    expects: |command| command.said.clone(),
    is_ours: false,
};
const OURS: Side = Side {
    kind: &INDEXED_JOBS,
    api_version: "batch.troupe.dev/v1alpha1",
    name: "IndexedJob",
    expects: text::Command::of_ours,
    is_ours: true,
};

/// The views of all jobs of a namespace, by the job's name.
type Views = Rc<BTreeMap<String, watch::Sender<View>>>;

/// What was printed, for each command of each sequence of each file.
type Results = Vec<Vec<Vec<Vec<String>>>>;

/// Tells the views of every change of objects of a kind, for as long as it is polled.
async fn follow(client: Client, kind: &'static Kind, namespace: String, views: Views) {
    let mut version = "0".to_owned();
    loop {
        let request = kind.requests(&namespace).watch(&WatchParams::default(), &version).unwrap();
        let events = client.request_events::<Value>(request).await.unwrap();
        let mut events = std::pin::pin!(events);
        while let Some(Ok(event)) = events.next().await {
            let (object, is_there) = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, true),
                WatchEvent::Deleted(object) => (object, false),
                WatchEvent::Bookmark(mark) => {
                    version = mark.metadata.resource_version;
                    continue;
                }
                WatchEvent::Error(error) => panic!("events were lost: {error}"),
            };
            at_text(&object, "/metadata/resourceVersion").clone_into(&mut version);
            let is_pod = kind.plural() == PODS.plural();
            let Some(view) = views.get(if is_pod { job_of(&object) } else { at_text(&object, "/metadata/name") })
            else {
                continue;
            };
            view.send_modify(|view| {
                view.changed = Instant::now();
                let uid = at_text(&object, "/metadata/uid").to_owned();
                match (is_pod, is_there) {
                    (true, true) => drop(view.pods.insert(uid, object)),
                    (true, false) => drop(view.pods.remove(&uid)),
                    (false, true) => view.job = object,
                    (false, false) => view.job = Value::Null,
                }
            });
        }
    }
}

/// Creates the node that the driver plays.
async fn create_node(plane: &ControlPlane) {
    let namespace = Namespace::ensure_in(plane.client("user").await.unwrap(), "default").await;
    let node =
        json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": NODE }, "spec": { "unschedulable": true } });
    namespace.create_in_cluster(&NODES, &node).await;
}

/// Plays the sequences that are chosen, at once, in a new namespace. The others are said to go as expected.
async fn play(
    plane: &ControlPlane,
    side: &'static Side,
    files: &[File],
    namespace: &str,
    is_chosen: impl Fn(&Sequence) -> bool + Copy,
    blesses: bool,
) -> Results {
    let client = plane.client("user").await.unwrap();
    let namespace = Namespace::create_in(client.clone(), namespace).await;
    let sequences = || files.iter().flat_map(|file| &file.sequences);
    let views: Views = Rc::new(sequences().map(|it| (it.name.clone(), watch::channel(View::new()).0)).collect());
    let local = LocalSet::new();
    for kind in [side.kind, &PODS] {
        local.spawn_local(follow(client.clone(), kind, namespace.name.clone(), views.clone()));
    }
    local
        .run_until(join_all(files.iter().map(|file| {
            join_all(file.sequences.iter().map(async |sequence| {
                if !is_chosen(sequence) || (side.is_ours && sequence.is_theirs_alone) {
                    return sequence.commands.iter().map(side.expects).collect();
                }
                let view = views[&sequence.name].subscribe();
                Player::new(client.clone(), &namespace.name, side, sequence, view, blesses).play().await
            }))
        })))
        .await
}

/// The differences of all files, and how many sequences have one.
fn differences(files: &[File], side: &Side, results: &Results) -> (String, Vec<String>) {
    let (mut differences, mut names) = (String::new(), vec![]);
    for (sequence, result) in files.iter().zip(results).flat_map(|(file, of)| file.sequences.iter().zip(of)) {
        let expected: Vec<_> = sequence.commands.iter().map(side.expects).collect();
        let [says, goes] = [&expected, result].map(|it| sequence.transcript(it));
        if says != goes {
            differences.push_str(&format!(
                "--- {}\n{}",
                sequence.name,
                unified_diff(Algorithm::Myers, &says, &goes, 9, None)
            ));
            names.push(sequence.name.clone());
        }
    }
    (differences, names)
}

fn assert_same(files: &[File], side: &Side, results: &Results) {
    let (differences, names) = differences(files, side, results);
    eprintln!("{differences}");
    assert!(names.is_empty(), "{} sequences went otherwise: {}", names.len(), names.join(", "));
}

/// Whether `SEQUENCES`, a comma list of parts of names, has a part of this name; if there is no list, whether or not.
fn is_named(sequence: &Sequence) -> bool {
    std::env::var("SEQUENCES").is_ok_and(|parts| parts.split(',').any(|part| sequence.name.contains(part)))
        || std::env::var_os("SEQUENCES").is_none()
}

#[test]
fn every_sequence_has_a_name_of_its_own_and_ends_with_a_result() {
    let files = files().unwrap();
    let sequences: Vec<_> = files.iter().flat_map(|file| &file.sequences).collect();
    let names: BTreeSet<_> = sequences.iter().map(|it| &it.name).collect();
    assert_eq!(names.len(), sequences.len());
    let open =
        sequences.iter().filter(|it| !matches!(it.commands.last().map(|it| &it.step), Some(step::Step::Settle(_))));
    assert_eq!(open.map(|it| it.name.as_str()).collect::<Vec<_>>(), [""; 0]);
    for file in &files {
        let said: Vec<_> =
            file.sequences.iter().map(|it| it.commands.iter().map(|it| it.said.clone()).collect()).collect();
        assert_eq!(file.with(&said), fs::read_to_string(&file.path).unwrap(), "{}", file.path.display());
    }
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn the_real_controller_does_what_each_sequence_says() {
    let blesses = std::env::var_os("UPDATE_EXPECT").is_some();
    let files = files().unwrap();
    let plane = ControlPlane::start(Options::default()).await.unwrap();
    create_node(&plane).await;
    let results = play(&plane, &THEIRS, &files, "sequences", is_named, blesses).await;
    if blesses {
        for (file, results) in files.iter().zip(&results) {
            fs::write(&file.path, file.with(results)).unwrap();
        }
        return;
    }
    let (seen, names) = differences(&files, &THEIRS, &results);
    if names.is_empty() {
        return;
    }
    // The real controller is no part of what is tested, and deadlines pass by the clock: on a machine that is busy, beside
    // all the others, a pod may be made after its job's deadline.
    eprintln!("{seen}{} sequences went otherwise beside the others, and are played again alone", names.len());
    let is_again = |sequence: &Sequence| names.contains(&sequence.name);
    let results = play(&plane, &THEIRS, &files, "sequences-again", is_again, blesses).await;
    assert_same(&files, &THEIRS, &results);
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn an_indexed_job_does_what_a_job_does() {
    let files = files().unwrap();
    let plane = ControlPlane::start(Options::default().crds(install::crds::all())).await.unwrap();
    let operator = Operator::start(&plane, &["--namespace", "sequences"]).await;
    create_node(&plane).await;
    let results = play(&plane, &OURS, &files, "sequences", is_named, false).await;
    assert_same(&files, &OURS, &results);
    operator.stop().await;
}

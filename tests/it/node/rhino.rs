//! Real MPICH, whose workers call the launcher.

use super::world::{World, built, hosts};
use crate::cluster::objects::{RHINO_JOBS, at, text};
use harness::images::Image;
use serde_json::{Value, json};
use std::collections::BTreeSet;

// R01, R02, R04 with nothing played.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(lacks_frameworks, ignore = "TROUPE_REQUIRE does not name frameworks")]
async fn a_rhino_job_runs_real_mpich_on_two_hosts() {
    let image = built(Image::mpich).await;
    let world = World::start(vec![image.clone()], None).await;
    let job = json!({
        "apiVersion": "openrhino.org/v1alpha2",
        "kind": "RhinoJob",
        "metadata": { "name": "pi" },
        "spec": { "image": image.name(), "appExec": "/usr/local/bin/pi", "parallelism": 2 },
    });
    world.create(&RHINO_JOBS, &job).await;
    let ended = |job: &Value| ["Completed", "Failed"].contains(&text(job, "/status/jobStatus"));
    let job = world.becomes(&RHINO_JOBS, "pi", "at its end", ended).await;

    let (launchers, workers) = (world.pods("type", "launcher").await, world.pods("type", "worker").await);
    let log: String = launchers.iter().chain(&workers).map(|pod| world.said(pod)).collect();
    assert_eq!(at(&job, "/status/jobStatus"), "Completed", "{log}");
    assert_eq!((launchers.len(), workers.len()), (1, 2));
    let log = world.said(&launchers[0]);
    let of_workers: BTreeSet<_> = workers.iter().map(|pod| text(pod, "/spec/hostname")).collect();
    assert_eq!(hosts(&log).into_iter().collect::<BTreeSet<_>>(), of_workers, "{log}");
    for line in ["rank 0 of 2 on ", "rank 1 of 2 on ", "pi is approximately 3.14"] {
        assert!(log.contains(line), "{log}");
    }
    world.stop("a RhinoJob of two processes").await;
}

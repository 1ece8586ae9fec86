//! What the rules about values in the definitions cost: the time that an API server takes to create a job of each kind, as a
//! multiple of the time with the same definitions without these rules, or with those of a folder.
//!
//! `cargo bench --workspace --bench creations` needs Go and openssl and takes two minutes; `-- FOLDER` compares with the
//! definitions there, such as those of an earlier commit. Two control planes are asked in turns for the same jobs, which they
//! do not store (`dryRun`). The goal: at most 1.1 over all kinds against the definitions before the rules.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on says so by its panic")]

#[path = "../it/values/crds.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod crds;
#[path = "../it/values/samples.rs"]
mod samples;

#[path = "../it/cluster/objects.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
pub(crate) mod objects;
/// Where the samples find it.
mod cluster {
    pub(crate) use crate::objects;
}

use harness::{ControlPlane, Options};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PostParams;
use objects::{Kind, Namespace};
use serde_json::{Value, json};
use std::{
    fs,
    time::{Duration, Instant},
};

/// Creations in a row, and how often each control plane has its turn.
const JOBS: u32 = 20;
const ROUNDS: usize = 15;

#[tokio::main]
async fn main() {
    // What `cargo test --benches` runs is no measurement.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let all = install::crds::all();
    let with = ControlPlane::start(Options::default().crds(all.clone())).await.unwrap();
    let earlier = match std::env::args().skip(1).find(|argument| !argument.starts_with("--")) {
        Some(folder) => of_folder(&folder),
        None => all.iter().map(crds::lenient).collect(),
    };
    let without = ControlPlane::start(Options::default().crds(earlier)).await.unwrap();
    let namespaces = [&without, &with]
        .map(|plane| async { Namespace::create_in(plane.client("user").await.unwrap(), "creations").await });
    let [without, with] = futures::future::join_all(namespaces).await.try_into().unwrap_or_else(|_| unreachable!());
    println!("kind                                     earlier     today   ratio");
    let mut sums = [Duration::ZERO; 2];
    for of in samples::samples() {
        let mut job = of.jobs[0].job.clone();
        job["metadata"]["name"] = json!("measured");
        let (mut of_without, mut of_with) = (vec![], vec![]);
        for round in 0..=ROUNDS {
            let pair = (creations(&without, &of.kind, &job).await, creations(&with, &of.kind, &job).await);
            // The first round of each warms its caches.
            if round > 0 {
                of_without.push(pair.0);
                of_with.push(pair.1);
            }
        }
        let medians = [median(of_without), median(of_with)];
        sums = [sums[0] + medians[0], sums[1] + medians[1]];
        line(&of.kind.resource(), medians);
    }
    line("all", sums);
}

/// The definitions of a folder.
fn of_folder(folder: &str) -> Vec<CustomResourceDefinition> {
    let files = fs::read_dir(folder).unwrap().map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    files.map(|text| serde_norway::from_str(&text).unwrap()).collect()
}

/// The time that one creation takes, of some in a row.
async fn creations(namespace: &Namespace, kind: &Kind, job: &Value) -> Duration {
    let begun = Instant::now();
    for _ in 0..JOBS {
        let parameters = PostParams { dry_run: true, ..PostParams::default() };
        let request = kind.requests(&namespace.name).create(&parameters, serde_json::to_vec(job).unwrap()).unwrap();
        namespace.client.request::<Value>(request).await.unwrap();
    }
    begun.elapsed() / JOBS
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn line(name: &str, [without, with]: [Duration; 2]) {
    let ratio = with.as_secs_f64() / without.as_secs_f64();
    println!("{name:<40} {without:>8.2?} {with:>9.2?} {ratio:>7.3}");
}

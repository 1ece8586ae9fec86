//! The simulator answers as the real API server does: each sequence of requests is put to both, each side in a namespace
//! of its own, and the two transcripts are compared.
//!
//! # What is compared
//!
//! - The HTTP code and the body of every answer, and the events of every watch, bookmarks left out.
//! - Uids and resource versions are named in the order of their appearance, so that it is compared which are the same.
//!   Generated suffixes, times of the servers, addresses, continue tokens and the versions of lists are masked;
//!   managed fields are left out.
//! - Exactly: metadata, refusals (`Status`), custom resources, and the built-in kinds without many defaults.
//! - Pods, Services and Jobs get fields in spec and status that the simulator leaves out: only those that it shows are
//!   compared.
//! - The simulator knows no schemas: the custom resources sent are valid and have every default spelled out, and the
//!   definitions have no rules about values.
//!
//! A difference is a bug of `host/sim`. What it leaves out on purpose is in [`KNOWN`].

mod compare;
mod creations;
mod deletes;
mod every_kind;
mod life;
mod normal;
mod patches;
mod reads;
mod refusals;
mod run;
mod step;

use std::collections::BTreeSet;

use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};
use harness::{ControlPlane, Options};
use similar::{Algorithm, udiff::unified_diff};

use self::run::{Answer, run};
use self::step::{MPI_JOBS, PADDLE_JOBS, Sequence};
use crate::values::crds::lenient;

/// (sequence, steps, why the simulator answers otherwise). Nothing that the host relies on is here.
const KNOWN: &[(&str, &[usize], &str)] = &[
    ("a body that is no object", &[0, 1], "the real server words the errors of Go's JSON parser"),
    (
        "a Job without labels of its own",
        &[2, 3, 4],
        "its first write moves the version even if it changes nothing; the Jobs that the operator makes have labels",
    ),
];

/// Sequences under way at once.
const AT_ONCE: usize = 16;

fn sequences() -> Vec<Sequence> {
    [
        life::sequences(),
        every_kind::sequences(),
        creations::sequences(),
        refusals::sequences(),
        patches::sequences(),
        deletes::sequences(),
        reads::sequences(),
    ]
    .concat()
}

fn namespace(index: usize) -> String {
    format!("conformance-{index}")
}

/// Every sequence put to a simulator of its own, in virtual time.
fn simulated(sequences: &[Sequence]) -> Result<Vec<Vec<Answer>>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    let kinds = [PADDLE_JOBS, MPI_JOBS].map(|kind| sim::Kind::custom(kind.api_version, kind.kind, kind.plural));
    runtime.block_on(async {
        let mut all = Vec::new();
        for (index, sequence) in sequences.iter().enumerate() {
            let sim = sim::Sim::new(sim::Options {
                kinds: kinds.to_vec(),
                life: sim::Life::quick(),
                ..sim::Options::default()
            });
            let _running = sequence.alive.then(|| sim.start());
            all.push(run(&sim.client("user"), sequence, &namespace(index), |_| None).await?);
        }
        Ok(all)
    })
}

/// Every sequence put to the real API server; a watch ends when it has brought as many events as the simulated one.
async fn real(sequences: &[Sequence], simulated: &[Vec<Answer>]) -> Result<Vec<Vec<Answer>>> {
    let crds = install::crds::all();
    let options = Options::default().crds(crds.iter().map(lenient)).fake_nodes(1);
    let control_plane = ControlPlane::start(options).await?;
    let client = control_plane.client("user").await?;
    let runs = sequences.iter().zip(simulated).enumerate().map(|(index, (sequence, simulated))| {
        let client = client.clone();
        let events = |step: usize| simulated[step].body.as_array().map(Vec::len);
        async move { run(&client, sequence, &namespace(index), events).await }
    });
    stream::iter(runs).buffered(AT_ONCE).try_collect().await
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn the_simulator_answers_as_the_real_api_server() {
    let sequences = sequences();
    let names: BTreeSet<&str> = sequences.iter().map(|sequence| sequence.name.as_str()).collect();
    assert!(
        names.len() == sequences.len() && names.len() >= 100,
        "{} names, {} sequences",
        names.len(),
        sequences.len()
    );
    let simulated = std::thread::scope(|scope| scope.spawn(|| simulated(&sequences)).join()).unwrap().unwrap();
    let real = real(&sequences, &simulated).await.unwrap();
    for (sequence, simulated) in sequences.iter().zip(&simulated) {
        for (step, answer) in simulated.iter().enumerate() {
            let empty = answer.body.as_array().is_some_and(Vec::is_empty);
            assert!(!empty, "{}, step {step}: a watch without an event compares nothing", sequence.name);
        }
    }
    let (mut different, mut known) = (Vec::new(), BTreeSet::new());
    for ((sequence, simulated), real) in sequences.iter().zip(&simulated).zip(&real) {
        let (simulated, real) = (normal::normal(simulated), normal::normal(real));
        for (step, real, simulated) in compare::differences(sequence, &simulated, &real) {
            if KNOWN.iter().any(|(name, steps, _)| *name == sequence.name && steps.contains(&step)) {
                known.insert((sequence.name.as_str(), step));
                continue;
            }
            eprintln!(
                "--- {}, step {step} (- the real API server, + the simulator)\n{}",
                sequence.name,
                unified_diff(Algorithm::Myers, &real, &simulated, 3, None)
            );
            different.push(format!("{}, step {step}", sequence.name));
        }
    }
    assert!(different.is_empty(), "{} answers differ:\n{}", different.len(), different.join("\n"));
    let listed: usize = KNOWN.iter().map(|(_, steps, _)| steps.len()).sum();
    assert_eq!(known.len(), listed, "an entry of KNOWN differs no longer; these do: {known:?}");
    let count = |of: fn(&Answer) -> usize| real.iter().flatten().map(of).sum::<usize>();
    let events = count(|answer| answer.body.as_array().map_or(0, Vec::len));
    eprintln!("{} sequences, {} requests, {events} events of watches", sequences.len(), count(|_| 1));
}

//! Passes recorded on the simulator and asked again: in this process, by the admin port, and by the built binary.

pub(crate) mod commands;
pub(crate) mod documented;

use crate::built_in;
use admin::Access;
use decide::plan::Answer;
use futures::FutureExt;
use lab::campaign::{self, HOST};
use sandbox::Plugins;
use serde_json::{Value, json};
use sim::{Life, Sim};
use std::{
    collections::BTreeSet,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};
use tokio::runtime::Runtime;
use troupe::{
    clock::Clock,
    control::{
        operator::{Operator, Options},
        reconcile::Context,
    },
    measure::requests::Requests,
    record::{passes::Pass, replay},
};

/// A host that has served a job of two pods from submit to its end, with these settings of its plugin.
pub(crate) fn served(settings: &Value) -> Arc<Context> {
    last_of(1, settings, "700ms")
}

/// The last of so many hosts, one after another, of a job whose two pods run for so long.
fn last_of(hosts: usize, settings: &Value, run_for: &str) -> Arc<Context> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let plugins = built_in::plugins();
        plugins.configure("paddle", settings).unwrap();
        let plugins = Arc::new(plugins);
        let kinds = campaign::kinds(&plugins);
        let life = Life::default().rule("*", "run-for", run_for);
        let sim = Sim::new(sim::Options { seed: 1, kinds, life, ..sim::Options::default() });
        let _running = sim.start();
        let containers = json!([{ "name": "main", "image": "x" }]);
        let role = json!({ "replicas": 1, "template": { "spec": { "containers": containers } } });
        sim.create(json!({
            "apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob",
            "metadata": { "name": "wide", "namespace": "default" },
            "spec": { "cleanPodPolicy": "Never", "ps": role, "worker": role },
        }));
        let mut last = None;
        for _ in 0..hosts {
            let options = Options::alone(Clock::starting_at(sim.now()), [1; 32]);
            let mut operator = Operator::new(sim.client(HOST), Arc::clone(&plugins), options);
            last = Some(operator.context());
            let task = tokio::spawn(async move { operator.run(std::future::pending()).await });
            tokio::time::sleep(Duration::from_secs(30)).await;
            task.abort();
        }
        last.unwrap()
    })
}

/// The passes of that host as lines of JSON.
pub(crate) fn lines(settings: &Value) -> String {
    let passes: Vec<_> = served(settings).passes().latest().collect();
    assert!(passes.len() > 3, "{} passes", passes.len());
    passes.into_iter().map(|pass| serde_json::to_string(&pass.decided()).unwrap() + "\n").collect()
}

#[test]
fn every_pass_of_a_campaign_replays_to_the_same_bytes() {
    let plugins = built_in::of_campaigns();
    let again = |name| replay::Replayer::load(name, Plugins::built_in(name).unwrap()).unwrap();
    let mut again = ["paddle", "mpi", "rhino", "kubeflow", "cron", "job"].map(again);
    let (mut frameworks, mut count) = (BTreeSet::new(), 0);
    for seed in 0..12 {
        let run = campaign::run(seed, &plugins).unwrap();
        for noted in run.passes.into_iter().flatten() {
            let text = serde_json::to_vec(&noted.decided()).unwrap();
            let pass: Pass = serde_json::from_slice(&text).unwrap();
            let answer = again.iter_mut().find(|plugin| plugin.serves(&pass)).unwrap().answer(&pass).unwrap();
            let bytes = |value: &_| String::from_utf8(serde_json::to_vec(value).unwrap()).unwrap();
            assert_eq!(bytes(&answer), bytes(&pass.answer), "seed {seed}, {}", pass.snapshot.job.name);
            assert_eq!(decide::decide(&pass.snapshot, &answer), pass.decision);
            frameworks.insert(pass.plugin);
            count += 1;
        }
    }
    eprintln!("{count} passes of {frameworks:?}");
    assert!(count > 100 && frameworks.len() > 1, "{count} passes of {frameworks:?}");
}

#[test]
fn a_pass_is_asked_again_with_the_settings_that_it_was_recorded_with() {
    let passes = replay::read(&lines(&json!({ "lean": true }))).unwrap();
    let mut plugin = replay::Replayer::load("it", Plugins::built_in("paddle").unwrap()).unwrap();
    for mut pass in passes {
        assert_eq!(plugin.answer(&pass).unwrap(), pass.answer);
        pass.config = "{}".to_owned();
        assert_ne!(plugin.answer(&pass).unwrap(), pass.answer, "lean jobs have no Services");
        pass.config = json!({ "lean": 7 }).to_string();
        let refused = plugin.answer(&pass).unwrap_err().to_string();
        assert!(refused.starts_with("plugin paddle does not allow these settings: /lean"), "{refused}");
    }
}

/// Where the admin port of the host is, for as long as the runtime lives.
pub(crate) fn admin_port(host: Arc<Context>) -> (Runtime, SocketAddr) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(admin::serve(listener, host, Requests::default(), Access::Loopback));
    (runtime, address)
}

/// What the admin port answers.
pub(crate) fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    // A client that does not know chunks gets none.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(" 200 "), "{head}");
    body.to_owned()
}

#[test]
fn the_admin_port_gives_the_latest_passes_a_line_each_of_one_plugin_if_asked() {
    let host = served(&json!({}));
    let expected = host.passes().latest().count();
    let (_runtime, address) = admin_port(host);
    let get = |path| get(address, path);
    let all = get("/recording");
    assert_eq!(all.lines().count(), expected);
    let passes = replay::read(&all).unwrap();
    assert!(passes.iter().all(|pass| pass.plugin == "paddle" && pass.snapshot.digest.is_some()));
    assert_eq!(get("/recording?plugin=paddle"), all);
    assert_eq!(get("/recording?plugin=another"), "");
}

// A host that has just started has looked at every job, and nothing came of it.
#[test]
fn a_job_of_which_nothing_was_to_write_is_in_the_recording_as_its_pass_would_run_now() {
    let host = last_of(2, &json!({}), "1h");
    assert_eq!((host.stores().jobs().len(), host.passes().latest().count()), (1, 0));
    let expected = host.rehearse(&host.stores().jobs()[0]).now_or_never().flatten().unwrap().pass;
    let (_runtime, address) = admin_port(host);
    let get = |path| get(address, path);
    let passes = replay::read(&get("/recording?env=true")).unwrap();
    let [pass] = &passes[..] else { panic!("{} passes", passes.len()) };
    assert!(matches!(pass.answer, Answer::Judged { .. }) && pass.decision.actions.is_empty(), "{pass:?}");
    assert_eq!((&pass.answer, &pass.decision), (&expected.answer, &expected.decision));
    assert_eq!(get("/recording?env=true&plugin=paddle").lines().count(), 1);
    assert_eq!(get("/recording?plugin=another"), "");
}

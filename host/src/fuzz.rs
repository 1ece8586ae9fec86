//! Fuzz targets: the places where the host reads what others wrote. Each takes any bytes, returns nothing, and panics
//! if a guarantee does not hold. `tests/fuzz` has the fuzzers and their corpus.

use crate::{
    api::resource::Resource,
    delivery,
    observe::{
        layout::{Purpose, WatchSpec},
        places::Places,
        watch,
        wire::{self, Held},
    },
    plugin_resource::PluginSpec,
    record::replay,
};
use decide::{
    Digest, Outlook, Standing, Triage, decide,
    ledger::HostPorts,
    plan::{Answer, JobKind, Plan},
    snapshot::Job,
    template::{Edit, edited},
    testkit, triage,
    vet::vet,
};
use futures::executor::block_on;
use k8s_openapi::api::core::v1::ConfigMap;
use sandbox::{Executor, Options, Plugins, source};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};

/// A fuzz target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The name of the target and of the folder of its corpus.
    pub name: &'static str,
    /// Runs the target on any bytes.
    pub run: fn(&[u8]),
}

/// All fuzz targets.
pub const TARGETS: [Target; 8] = [
    Target { name: "manifest", run: manifest },
    Target { name: "plan", run: plan },
    Target { name: "template", run: template },
    Target { name: "watch", run: watch },
    Target { name: "recording", run: recording },
    Target { name: "artifact", run: artifact },
    Target { name: "component", run: component },
    Target { name: "wasi", run: wasi },
];

/// Size limit of a component or an artifact here, in bytes.
const MOST_BYTES: usize = 1 << 20;

static PLUGINS: LazyLock<Plugins> =
    LazyLock::new(|| Plugins::builtin(Executor::Inline).expect("the built-in plugins load"));

/// A job's manifest is planned, judged and decided, or is its user's error; it never counts against its plugin.
pub fn manifest(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Some((kind, digest)) = kind_of(text) else { return };
    let spec = jobs_of(&kind);
    let Ok(object) = wire::object(text, &spec) else { return };
    let Held::Job(packed) = &object.held else { return };
    let mut snapshot = testkit::snapshot(packed.unpacked());
    (snapshot.kind, snapshot.digest, snapshot.unreadable) = (Arc::new(kind), Some(digest), object.unreadable);
    if triage(&snapshot) != Triage::NeedsPlan {
        return;
    }
    let ports = |count| Ok(HostPorts { first: 36_000, count });
    let answer = block_on(PLUGINS.ask(&mut snapshot, ports)).answer;
    assert!(!matches!(answer, Answer::Faulted(_)), "what a user wrote counts against the plugin: {answer:?}");
    drop(decide(&snapshot, &answer));
}

/// Any plan of a plugin is refused, or can be judged and decided.
pub fn plan(bytes: &[u8]) {
    drop(decided(bytes));
}

/// Returns the number of actions for a plan of the first plugin, for a job called `wide` with images called `x`.
///
/// # Errors
/// Why it is no plan, or is refused.
pub fn decided(bytes: &[u8]) -> Result<usize, Box<dyn std::error::Error>> {
    let plan = serde_json::from_slice::<Plan>(bytes)?;
    let (descriptor, digest) = PLUGINS.frameworks().swap_remove(0);
    let job = Job { spec: json!({ "image": "x" }), ..testkit::job("wide", "uid") };
    let grants = PLUGINS.grants(&digest).unwrap_or_default();
    vet(&descriptor, &job, &grants, &plan)?;
    let mut snapshot = testkit::snapshot(job);
    (snapshot.kind, snapshot.digest) = (Arc::new(descriptor.kinds[0].clone()), Some(digest));
    let plan = Arc::new(plan);
    let standing = Standing::of(&snapshot, &plan);
    let answer = block_on(PLUGINS.judge(&snapshot, &plan, &[], Outlook::of(&standing)));
    let actions = standing.decide(&answer).actions;
    Ok(actions.iter().filter(|action| !action.to_string().is_empty()).count())
}

/// Edits of a template are applied, or are refused with a reason.
pub fn template(bytes: &[u8]) {
    #[derive(Deserialize)]
    struct Edits {
        spec: Value,
        at: String,
        edits: Vec<(String, Value)>,
    }
    let Ok(Edits { spec, at, edits }) = serde_json::from_slice(bytes) else { return };
    let edit = |(at, value)| match value {
        Value::Array(items) => Edit::Append(at, items),
        value => Edit::Set(at, value),
    };
    match edited(&spec, &at, edits.into_iter().map(edit).collect()) {
        Ok(template) => assert!(template.is_object(), "a template is an object"),
        Err(refused) => assert!(!refused.to_string().is_empty(), "a refusal has a reason"),
    }
}

/// A line of a watch is decoded, whatever object it shows, in one scan as section by section, and the kept part of a job can
/// be decoded again.
pub fn watch(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(object) = watch::object_of_line(text) else { return };
    let pods = WatchSpec {
        resource: Resource::new("v1", "Pod", "pods"),
        selector: None,
        purpose: Purpose::Pods(["/metadata/annotations"].into_iter().collect()),
        optional: false,
    };
    let kept = ["/data", "/status/conditions", "/spec", "/spec/~1x"].into_iter().collect();
    let children = WatchSpec { purpose: Purpose::Children(kept), ..pods.clone() };
    let jobs = kind_of(object).map(|(kind, _)| jobs_of(&kind));
    let no_fields = [Purpose::Pods(Places::default()), Purpose::Children(Places::default())];
    let no_fields = no_fields.map(|purpose| Some(WatchSpec { purpose, ..pods.clone() }));
    for spec in [Some(pods), Some(children), jobs].into_iter().chain(no_fields).flatten() {
        assert!(wire::scan_agrees(object, &spec), "one scan and the sections decode {object:?} differently");
        if let Ok(wire::Object { held: Held::Job(packed), .. }) = wire::object(object, &spec) {
            packed.unpacked();
        }
    }
}

/// A recording is read or refused; a pass of it can be decided again.
pub fn recording(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for pass in replay::read(text).unwrap_or_default() {
        drop(decide(&pass.snapshot, &pass.answer));
    }
}

/// A Plugin, a ConfigMap, the manifest of an artifact, a reference to one, and compressed bytes are read or refused.
pub fn artifact(bytes: &[u8]) {
    is_kept(bytes);
    drop(serde_json::from_slice::<PluginSpec>(bytes));
    drop(registry::component_of(bytes, MOST_BYTES as u64));
    if let Ok(text) = std::str::from_utf8(bytes) {
        drop(registry::Reference::parse(text));
        drop(registry::DockerConfig::parse(bytes));
    }
    drop(source::decompress(bytes, MOST_BYTES));
}

/// Reads the bytes as a ConfigMap: as the source of a component, and as what is kept of a plugin. Returns whether it is that:
/// it has the host's mark, and a part of the component or where that is.
pub fn is_kept(bytes: &[u8]) -> bool {
    serde_json::from_slice::<ConfigMap>(bytes).is_ok_and(|map| delivery::fuzz::read(&map, MOST_BYTES))
}

/// Any bytes are loaded as a plugin or refused.
pub fn component(bytes: &[u8]) {
    let plugins = Plugins::empty(Options::new(Executor::Inline)).expect("an engine");
    drop(plugins.load("fuzz", bytes));
}

/// Any calls of a plugin to the host, in any order and with any arguments, are answered or trap.
pub fn wasi(bytes: &[u8]) {
    sandbox::calls_of_stubs(bytes);
}

/// Returns the kind of job that the text names, and the digest that plans it.
fn kind_of(text: &str) -> Option<(JobKind, Digest)> {
    #[derive(Deserialize)]
    struct Said {
        kind: String,
    }
    let said: Said = serde_json::from_str(text).ok()?;
    PLUGINS.frameworks().into_iter().find_map(|(descriptor, digest)| {
        let kind = descriptor.kinds.iter().find(|kind| kind.kind == said.kind)?;
        Some((kind.clone(), digest))
    })
}

fn jobs_of(kind: &JobKind) -> WatchSpec {
    WatchSpec { resource: kind.into(), selector: None, purpose: Purpose::Jobs(kind.into()), optional: false }
}

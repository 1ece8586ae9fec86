//! The commands of plugins' authors, run as the built binary.

use super::lines;
use crate::{
    hostile::{guest, job_of},
    operator::binary,
};
use decide::{
    decide,
    plan::Answer,
    ports::NoPorts,
    snapshot::{Pod, PodPhase},
    testkit,
};
use futures::executor::block_on;
use sandbox::{Executor, Options, PassAnswer, Plugins, source};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};
use troupe::record::passes::Pass;

/// Exit code 0, and what was printed; or what was told on standard error after it.
pub(crate) fn troupe(arguments: &[&str]) -> (bool, String) {
    troupe_in(Path::new("."), arguments)
}

/// The same, run in a folder.
pub(crate) fn troupe_in(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(binary()).current_dir(folder).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout) + &text(output.stderr))
}

/// The path of a file of this test run, with this content.
pub(crate) fn file(name: &str, content: impl AsRef<[u8]>) -> String {
    let path: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A pass over a job of the hostile plugin, with a running pod or without any.
fn hostile_pass(name: &str, running: bool) -> Pass {
    let plugins = Plugins::empty(Options::new(Executor::Inline)).unwrap();
    plugins.load("hostile", &guest("")).unwrap();
    let mut snapshot = job_of(&plugins, "hostile", json!({}));
    let job = Arc::make_mut(&mut snapshot.job);
    (job.name, job.uid) = (name.to_owned(), format!("uid-of-{name}"));
    let name = format!("{name}-worker-0");
    let pod = Pod { uid: "uid-of-pod".into(), ..testkit::pod(&name, &job.uid, PodPhase::Running) };
    snapshot.pods.extend(running.then(|| Arc::new(pod)));
    let PassAnswer { answer, outlook } = block_on(plugins.ask(&mut snapshot, |_| Err(NoPorts::NoneFree)));
    let decision = decide(&snapshot, &answer);
    Pass { plugin: "hostile".into(), config: "{}".into(), snapshot, outlook, answer, decision }
}

fn recording(passes: &[Pass]) -> String {
    passes.iter().map(|pass| serde_json::to_string(pass).unwrap() + "\n").collect()
}

#[test]
fn a_plugin_that_answers_as_it_did_passes_its_test_and_another_answer_fails_it_by_job_and_field() {
    let recorded = lines(&json!({ "lean": true }));
    let (well, text) = troupe(&["plugin", "test", "paddle", "--recording", &file("same.jsonl", &recorded)]);
    assert!(well && text.trim_end().ends_with("over 1 job: no difference"), "{text}");

    let mut passes = troupe::record::replay::read(&recorded).unwrap();
    let last = passes.last_mut().unwrap();
    let Answer::Judged { verdict, .. } = &mut last.answer else { panic!("{:?}", last.answer) };
    verdict.headline = "Somehow".to_owned();
    let other = file("other.jsonl", recording(&passes));
    let (well, text) = troupe(&["plugin", "test", "paddle", "--recording", &other]);
    assert!(!well && text.contains("PaddleJob default/wide\n  verdict /headline: Somehow -> "), "{text}");
    assert!(text.trim_end().ends_with("1 differ, none dangerously"), "{text}");
}

#[test]
fn a_new_version_is_dangerous_where_it_changes_what_runs() {
    let (old, new) = (file("old.wasm", guest("")), file("new.wasm", guest("next")));
    let image = r#"role worker /template/spec/containers/0/image: "one" -> "two""#;
    let headline = "verdict /headline: Running -> Going, in 1 of 1 pass";

    let idle = file("idle.jsonl", recording(&[hostile_pass("idle", false)]));
    let (well, text) = troupe(&["plugin", "diff", &old, &new, "--recording", &idle]);
    assert!(well && text.contains(&format!("  {image}, in 1 of 1 pass\n  {headline}\n")), "{text}");
    assert!(text.trim_end().ends_with("1 pass over 1 job: 1 differ, none dangerously"), "{text}");

    let both = [hostile_pass("idle", false), hostile_pass("busy", true)];
    let both = file("both.jsonl", recording(&both));
    let (well, text) = troupe(&["plugin", "diff", &old, &new, "--recording", &both]);
    assert!(!well && text.contains(&format!("HostileJob ns/busy\n  {image} (dangerous), in 1 of 1 pass\n")), "{text}");
    assert!(text.trim_end().ends_with("2 passes over 2 jobs: 2 differ, some dangerously"), "{text}");

    let (well, text) = troupe(&["plugin", "diff", &old, &new, "--recording", &both, "--json"]);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert!(!well && report["dangerous"] == true && report["differing"] == 2, "{report:#}");
    assert_eq!((&report["old"]["version"], &report["new"]["version"]), (&json!("0.0.1"), &json!("0.0.2")));
    assert_eq!(report["jobs"][1]["name"], "busy");
    let first = &report["jobs"][1]["differences"][0];
    assert_eq!((&first["danger"], &first["field"]), (&json!("dangerous"), &json!("/template/spec/containers/0/image")));

    let note = "both say that they are of one version";
    assert!(report["note"].is_null(), "{report:#}");
    let rebuilt = file("rebuilt.wasm", guest("rebuilt"));
    let (well, text) = troupe(&["plugin", "diff", &old, &rebuilt, "--recording", &both]);
    assert!(!well && text.contains(&format!("{image} (dangerous)")) && text.contains(note), "{text}");
    let (_, text) = troupe(&["plugin", "diff", &old, &rebuilt, "--recording", &both, "--json"]);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert!(report["note"].as_str().unwrap().starts_with(note), "{report:#}");

    let (well, text) = troupe(&["plugin", "diff", &old, "paddle", "--recording", &both]);
    assert!(!well && text.contains("paddle does not serve HostileJob, which "), "{text}");

    let (well, text) = troupe(&["plugin", "diff", &old, &old, "--recording", &both]);
    assert!(well && text.trim_end().ends_with("2 passes over 2 jobs: no difference"), "{text}");
}

/// The fuel of one call of `describe` of this built-in plugin, which loading it makes twice.
fn of_one_describe(plugin: &str) -> u64 {
    let plugins = Plugins::empty(Options::new(Executor::Inline)).unwrap();
    plugins.load(plugin, Plugins::built_in(plugin).unwrap()).unwrap();
    let calls = plugins.calls();
    let (_, _, describe) = calls.iter().find(|(_, function, _)| function == "describe").unwrap();
    assert_eq!(describe.count, 2);
    describe.fuel / 2
}

#[test]
fn inspecting_a_component_reports_what_it_is_and_what_it_takes() {
    let wasm = Plugins::built_in("paddle").unwrap();
    let (well, text) = troupe(&["plugin", "inspect", &file("inspected.wasm", wasm), "--json"]);
    let facts: Value = serde_json::from_str(&text).unwrap();
    assert!(well, "{text}");
    assert_eq!((&facts["name"], &facts["size"]), (&json!("paddle"), &json!(wasm.len())));
    assert_eq!(facts["digest"], source::digest(wasm).as_str());
    assert_eq!(facts["compressed"], source::compress(wasm, source::Ratio::Small).unwrap().len());
    assert_eq!(facts["fitsConfigMap"], true);
    assert_eq!(facts["contract"], "0.1.0");
    assert_eq!(facts["kinds"][0]["kind"], "PaddleJob");
    assert_eq!(facts["kinds"][0]["roles"], json!(["ps", "worker", "heter"]));
    let names = |list: &Value| -> Vec<String> { serde_json::from_value(list.clone()).unwrap() };
    assert!(names(&facts["imports"]).iter().any(|name| name.starts_with("wasi:")), "{text}");
    assert!(names(&facts["asksFor"]["kinds"]).contains(&"PodGroup.scheduling.volcano.sh".to_owned()), "{text}");
    assert!(names(&facts["settings"]).contains(&"lean".to_owned()), "{text}");
    assert_eq!(facts["fuelOfDescribe"], of_one_describe("paddle"), "{text}");

    let (well, text) = troupe(&["plugin", "inspect", "paddle"]);
    assert!(well && text.starts_with("plugin     paddle "), "{text}");
    assert!(
        text.contains("serves     PaddleJob (batch.paddlepaddle.org/v1, paddlejobs)\nroles      ps, worker, heter\n"),
        "{text}"
    );
    // Whoever installs it sees that a kind and its plural belong together.
    assert!(text.contains("owns       ConfigMap (v1, configmaps) with paddle-res-name\n"), "{text}");
}

#[test]
fn a_component_that_the_host_would_refuse_is_reported_with_the_reason() {
    let (well, text) = troupe(&["plugin", "inspect", &file("sockets.wasm", guest("sockets"))]);
    assert!(!well && text.contains("plugins/README.md says what a plugin may import"), "{text}");
    assert!(text.contains("the component imports wasi:sockets/"), "{text}");
    assert!(text.contains("a plugin has no network: leave out what opens connections"), "{text}");
    let (well, text) = troupe(&["plugin", "inspect", &file("no.wasm", "#!/bin/sh\n")]);
    assert!(
        !well
            && text.contains(
                "no.wasm is no WebAssembly at all, not a WebAssembly component; build the plugin for wasm32-wasip2"
            ),
        "{text}"
    );
    let (well, text) = troupe(&["plugin", "inspect", "nowhere"]);
    assert!(!well && text.contains("nowhere cannot be read"), "{text}");
}

#[test]
fn what_is_no_recording_or_none_of_the_plugins_jobs_is_reported_with_what_to_do() {
    let no = file("no.jsonl", "{\n\"not\": \"a pass\"}\n");
    let (well, text) = troupe(&["plugin", "test", "paddle", "--recording", &no]);
    assert!(!well && text.contains("is no recording; take one from a host's admin port: curl http"), "{text}");
    assert!(text.contains("line 1 is no pass"), "{text}");
    let strange = file("strange.jsonl", recording(&[hostile_pass("idle", false)]));
    let (well, text) = troupe(&["plugin", "test", "paddle", "--recording", &strange]);
    assert!(!well && text.contains("none of the 1 passes in "), "{text}");
    assert!(text.contains("over a job that the plugin serves (PaddleJob); let the host run such a job"), "{text}");
}

#[test]
fn explain_says_who_answered_and_asks_a_plugin_again() {
    let pass = hostile_pass("busy", true);
    let digest = source::digest(&guest(""));
    let recorded = file("pass.json", serde_json::to_string_pretty(&pass).unwrap());
    let (well, text) = troupe(&["explain", &recorded]);
    assert!(well && text.contains(&format!("answered by: plugin hostile, digest {digest}\n")), "{text}");
    let (well, text) = troupe(&["explain", &recorded, "--plugin", &file("again.wasm", guest(""))]);
    assert!(well && text.ends_with("  it answers the same\n"), "{text}");
    let (well, text) = troupe(&["explain", &recorded, "--plugin", &file("next.wasm", guest("next"))]);
    assert!(!well && text.contains("(dangerous)\n  verdict /headline: Running -> Going\n"), "{text}");
    let (well, text) = troupe(&["explain", &recorded, "--plugin", "paddle"]);
    assert!(!well && text.contains("the plugin in paddle does not serve HostileJob; name one that does"), "{text}");
}

//! One plugin in every language that `troupe plugin new` knows: the same scenarios, the same job in a real cluster, and what
//! each costs. The commands are those of the new projects' READMEs.

use crate::{
    author::{block, read},
    cluster::{documented::Shell, world::World},
    operator::Operator,
};
use harness::{Guests, Registry, languages};
use serde_json::Value;
use std::{
    fmt::Write as _,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

/// The languages, and where the component of the project is.
const LANGUAGES: [(&str, &str); 5] = [
    ("rust", "target/wasm32-wasip2/release/echo.wasm"),
    ("c", "target/plugin.wasm"),
    ("go", "target/plugin.wasm"),
    ("javascript", "target/plugin.wasm"),
    ("python", "target/plugin.wasm"),
];

/// The registry that a README names, where its component does not fit into a ConfigMap.
const REGISTRY: &str = "registry.example.org";

/// What a language costs.
struct Cost {
    language: &'static str,
    facts: Value,
    /// What `troupe plugin bench` prints.
    bench: String,
}

impl Cost {
    /// The row of a table: bytes, milliseconds, and microseconds of each call.
    fn row(&self) -> String {
        let loaded = self.bench.split("loaded in ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
        let mut row = format!(
            "| {} | {} | {} | {loaded} ms |",
            self.language,
            self.facts["size"].as_u64().unwrap(),
            self.facts["compressed"].as_u64().unwrap()
        );
        for function in ["instantiate", "plan", "bind", "judge"] {
            let line = self.bench.lines().find(|line| line.starts_with(function)).unwrap();
            let words: Vec<_> = line.split_whitespace().collect();
            let (median, fuel, faults) = (words[2], words[4], words[5]);
            assert_eq!(faults, "0", "{}: {line}", self.language);
            write!(row, " {median} us, {fuel} |").unwrap();
        }
        row
    }
}

/// A project that is built and tested by the commands of its README.
fn project(shell: &Shell, language: &'static str) -> PathBuf {
    let folder = shell.folder.join(language);
    fs::create_dir_all(&folder).unwrap();
    let there = folder.display();
    shell.runs(&format!("cd {there} && troupe plugin new echo --lang {language} --kind example.org/v1/EchoJob"));
    let project = folder.join("echo");
    if language == "rust" {
        // The versions of this workspace, which this machine has, and what an earlier run has built.
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        fs::copy(root.join("Cargo.lock"), project.join("Cargo.lock")).unwrap();
        let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("author");
        fs::create_dir_all(&built).unwrap();
        symlink(built, project.join("target")).unwrap();
    }
    let readme = read(&project.join("README.md"));
    let offline = if language == "rust" { "export CARGO_NET_OFFLINE=true && " } else { "" };
    for command in block(&readme, "troupe plugin test") {
        shell.runs(&format!("cd {} && {offline}{command}", project.display()));
    }
    project
}

/// Asks the plugin of JavaScript about a job with times as either engine has them: as numbers, and as BigInts.
const BOTH_NUMBERS: &str = r#"
import { framework } from "./job.js";
for (const now of [1767225600123, 1767225600123n]) {
  const template = { spec: { containers: [{ name: "main" }] } };
  framework.bind({ spec: JSON.stringify({ worker: { replicas: 1, template } }) }, {
    now, roles: [], previousStatus: "{}", pods: [{ role: "worker", phase: "succeeded", terminating: false }],
  });
  console.log(JSON.parse(framework.judge({ suspended: false }).status).completionTime);
}"#;

/// Installs the plugin as its README says, and has a job run to its end.
async fn served(shell: &Shell, project: &Path, registry: &Registry) {
    let readme = read(&project.join("README.md"));
    let address = registry.address().to_string();
    let manifest = read(&project.join("plugin.yaml"));
    if manifest.contains(REGISTRY) {
        // A registry on this machine speaks plain HTTP.
        let oci = format!("oci:\n      insecure: true\n      reference: {address}");
        let here = manifest.replace(&format!("oci:\n      reference: {REGISTRY}"), &oci);
        fs::write(project.join("plugin.yaml"), here).unwrap();
    }
    let run = |command: &str| shell.runs(&format!("cd {} && {command}", project.display()));
    for command in block(&readme, "kubectl apply -f crd.yaml") {
        run(&command.replace(REGISTRY, &format!("--insecure {address}")));
    }
    let phase = |phase: &str| {
        run(&format!("kubectl wait --for=jsonpath='{{.status.phase}}'={phase} echojob/example --timeout=60s"));
    };
    phase("Running");
    run("kubectl annotate pods --selector example.org/job-name=example troupe.dev/run-for=0s");
    phase("Succeeded");
    run("kubectl delete echojob/example --wait");
    run("kubectl delete plugin/echo crd/echojobs.example.org --wait");
    run("kubectl delete configmap/echo --namespace troupe-system --ignore-not-found");
}

#[tokio::test]
#[cfg_attr(lacks_languages, ignore = "installs the tools of other languages: TROUPE_REQUIRE=languages")]
async fn a_plugin_of_any_language_does_the_same_and_serves_a_cluster() {
    tokio::task::spawn_blocking(languages).await.unwrap().unwrap();
    let world = World::alone("languages").await;
    let shell = Shell::of(&world, "languages");
    let registry = Registry::start(Guests::All).await.unwrap();
    shell.runs("kubectl create namespace troupe-system --dry-run=client -o yaml | kubectl apply -f -");
    let arguments = ["--namespace", "default", "--plugin-namespace", "troupe-system", "--max-plugin-bytes", "25000000"];
    let host = Operator::start(&world.plane, &arguments).await;
    let mut table = "| language | bytes | with zstd | load | instantiate | plan | bind | judge |\n".to_owned();
    for (language, component) in LANGUAGES {
        let project = project(&shell, language);
        let file = project.join(component);
        if language == "javascript" {
            fs::write(project.join("both.mjs"), BOTH_NUMBERS).unwrap();
            let times = shell.prints(&format!("cd {} && node both.mjs", project.display()));
            assert_eq!(times, "2026-01-01T00:00:00Z\n2026-01-01T00:00:00Z\n");
        }
        // One text of what should happen for all of them, whatever a project of its own has.
        let scenarios = shell.folder.join("rust/echo/scenarios");
        let (file, scenarios) = (file.display(), scenarios.display());
        shell.runs(&format!("troupe plugin test {file} --scenarios {scenarios}"));
        let facts = shell.prints(&format!("troupe plugin inspect {file} --json"));
        let bench = shell.prints(&format!("troupe plugin bench {file} --scenarios {scenarios} --rounds 5"));
        let cost = Cost { language, facts: serde_json::from_str(&facts).unwrap(), bench };
        assert_eq!(cost.facts["fitsConfigMap"], language != "python", "{language}");
        writeln!(table, "{}", cost.row()).unwrap();
        served(&shell, &project, &registry).await;
    }
    eprintln!("{table}");
    host.stop().await;
}

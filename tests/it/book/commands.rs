//! Every command of README, the book and the guides of plugins is run by a test: by `walk`, literally, unless this table
//! names another test.

use super::{Block, blocks, listed, page, read, root};
use std::{collections::BTreeSet, fs, path::Path};

/// What runs a command that `walk` does not.
#[derive(Clone, Copy, Debug)]
pub(super) enum By {
    /// The test function of this name.
    Test(&'static str),
    /// The check that every change has to pass, by a line that contains this.
    Check(&'static str),
}
use By::{Check, Test};

const AUTHOR: By = Test("a_new_crate_is_built_tested_and_served_by_the_commands_of_its_guides");
const CARGO_COMPONENT: By = Test("cargo_component_makes_the_same_of_a_new_crate_as_plain_cargo");
const IMAGE: By = Test("jobs_run_to_their_end_through_the_image_that_the_documented_command_writes");
const FOLLOWS: By = Test("a_job_says_what_is_in_the_way_of_its_pod_and_keeps_what_failed_first");
const OUTSIDE: By = Test("the_operator_waits_for_a_missing_crd_and_installs_them_when_asked");

/// Command, what runs it, and why `walk` does not.
pub(super) const ELSEWHERE: &[(&str, By, &str)] = &[
    ("cargo test --workspace", Check("cargo test --workspace"), "it is what runs this"),
    (
        "sudo apt-get install git gcc libc6-dev ca-certificates openssl",
        Test("both_commands_of_the_readme_pass_on_a_new_machine_as_root"),
        "changes the machine; the test makes one of these packages",
    ),
    ("cargo build --release", IMAGE, "minutes of building"),
    ("cargo run -p image", IMAGE, "minutes of building"),
    (
        "cargo run -p image -- --name registry.example.org/team/troupe:0.1.0",
        IMAGE,
        "minutes of building; the name is the default's",
    ),
    ("ctr -n k8s.io images import target/image/troupe-0.1.0-amd64.tar", IMAGE, "needs containerd"),
    (
        "kubectl apply -f deploy/operator.yaml",
        Test("the_manifests_bring_what_the_chart_does_and_their_pods_pass_pod_security"),
        "needs a cluster without the chart",
    ),
    ("./target/release/troupe operator --install-crds", OUTSIDE, "runs until it is interrupted"),
    (
        "kubectl --namespace troupe-system port-forward \"pod/$pod\" 8443",
        Test("a_viewer_pastes_a_token_and_sees_his_jobs"),
        "forwarding needs a kubelet and runs until it is interrupted; the test looks at the page itself",
    ),
    (
        "kubectl apply -f deploy/monitoring/alerts.yaml",
        Test("promtool_sees_every_alert_fire_and_be_silent_and_reads_every_query"),
        "needs the Prometheus operator's definitions",
    ),
    ("troupe plugin new echo --kind example.org/v1/EchoJob", AUTHOR, "a block of that test"),
    ("cd echo", AUTHOR, "a block of that test"),
    ("troupe plugin build", AUTHOR, "minutes of building"),
    ("troupe plugin test", AUTHOR, "minutes of building"),
    ("troupe demo --plugin target/wasm32-wasip2/release/echo.wasm example.yaml", AUTHOR, "minutes of building"),
    ("cargo component build --release", CARGO_COMPONENT, "minutes of building"),
    ("troupe plugin test target/wasm32-wasip1/release/echo.wasm", CARGO_COMPONENT, "needs the component"),
    ("troupe sim --plugin target/wasm32-wasip2/release/echo.wasm example.yaml", AUTHOR, "minutes of building"),
    ("kubectl troupe logs pytorchjob/resnet", FOLLOWS, "needs a kubelet"),
    ("kubectl troupe top pytorchjob/resnet", FOLLOWS, "needs the metrics API"),
    ("kubectl troupe wait pytorchjob/resnet", FOLLOWS, "needs a job that ends"),
    ("kubectl wait pytorchjob/mnist --for=condition=Running --timeout=10m", FOLLOWS, "a line of that test"),
    (
        "kubectl wait pytorchjob/mnist --for=jsonpath='{.status.troupe.conditions[?(@.type==\"Waiting\")].status}'=False --timeout=10m",
        FOLLOWS,
        "a line of that test",
    ),
    ("kubectl get pytorchjob/mnist -o jsonpath='{.status.troupe.firstFailure}'", FOLLOWS, "a line of that test"),
    ("kubectl troupe explain mnist", FOLLOWS, "a line of that test"),
    ("kubectl troupe events mnist", FOLLOWS, "a line of that test"),
    ("kubectl troupe logs mnist", FOLLOWS, "a line of that test"),
    ("kubectl troupe top mnist", FOLLOWS, "a line of that test"),
    ("kubectl troupe wait mnist", FOLLOWS, "a line of that test"),
];

/// README and the pages of the book, in the order in which they are read, with the pages that they include. Decisions and
/// specifications have no commands for readers.
pub(super) fn pages() -> Vec<(String, String)> {
    let mut pages = vec![("README.md".to_owned(), read(&root().join("README.md")))];
    let of_book = listed().into_iter().filter(|path| !path.starts_with("adr/") && !path.starts_with("specs/"));
    let there = of_book.map(|path| (path.clone(), root().join("docs").join(path))).filter(|(_, file)| file.exists());
    pages.extend(there.map(|(path, file)| (path, page(&file))));
    pages.extend(readmes(&root().join("deploy")).into_iter().map(|path| (path.clone(), read(Path::new(&path)))));
    pages
}

fn readmes(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: std::path::PathBuf| match path.is_dir() {
        true => readmes(&path),
        false => path.to_str().filter(|it| it.ends_with("/README.md")).map(str::to_owned).into_iter().collect(),
    };
    entries.flat_map(below).collect()
}

/// The commands of a block: lines that go on are one, and what is said of them is left out.
pub(super) fn commands(block: &Block) -> Vec<String> {
    let whole = block.lines.join("\n").replace("\\\n", " ");
    let said = |line: &str| line.split(" #").next().unwrap_or_default().trim().to_owned();
    let lines = whole.lines().filter(|line| !line.starts_with('#')).map(said).filter(|line| !line.is_empty());
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// What runs a command that `walk` does not.
pub(super) fn elsewhere(command: &str) -> Option<By> {
    ELSEWHERE.iter().find(|(it, ..)| *it == command).map(|(_, by, _)| *by)
}

fn sources(folder: &Path) -> String {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let text = |path: std::path::PathBuf| match path.is_dir() {
        true => sources(&path),
        false if path.extension().is_some_and(|it| it == "rs") => read(&path),
        false => String::new(),
    };
    entries.map(text).collect()
}

#[test]
fn every_command_of_readme_and_book_is_run_by_a_test() {
    const LANGUAGES: [&str; 5] = ["sh", "text", "yaml", "json", "toml"];
    let mut there = BTreeSet::new();
    for (name, text) in pages() {
        for block in blocks(&text) {
            let language = block.language.as_str();
            assert!(LANGUAGES.contains(&language), "{name}: a block of {language:?}: commands are `sh`: {block:?}");
            let starts =
                |line: &String| ["kubectl ", "troupe ", "helm ", "cargo "].iter().any(|it| line.starts_with(it));
            let hidden: Vec<_> = block.lines.iter().filter(|line| language != "sh" && starts(line)).collect();
            assert!(hidden.is_empty(), "{name}: commands in a block of {language}, which nothing runs: {hidden:?}");
            if language == "sh" {
                there.extend(commands(&block));
            }
        }
    }
    assert!(there.len() > 60, "there are {} commands", there.len());
    let stale: Vec<_> = ELSEWHERE.iter().filter(|(command, ..)| !there.contains(*command)).collect();
    assert!(stale.is_empty(), "no page has these commands: {stale:#?}");
    let walked = there.iter().filter(|command| elsewhere(command).is_none()).count();
    assert!(walked * 3 > there.len() * 2, "only {walked} of {} commands are run as they stand", there.len());

    let tests = sources(&root().join("tests/it"));
    let check = read(&root().join(".ci/run"));
    for (command, by, _) in ELSEWHERE {
        let is_run = match by {
            Test(name) => tests.contains(&format!("fn {name}(")),
            Check(line) => check.contains(line),
        };
        assert!(is_run, "{command}: there is no {by:?}");
    }
}

#[test]
fn a_command_is_distinguished_from_what_is_said_of_it() {
    let lines = ["# first", "a \\", "  --b     # why", "", "c '#d'"].map(str::to_owned).to_vec();
    let block = Block { language: "sh".to_owned(), lines };
    assert_eq!(commands(&block), ["a --b", "c '#d'"]);
}

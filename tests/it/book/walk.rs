//! README and the book, page by page: their commands as they stand there, in one real control plane, with the real kubectl
//! and helm. Pods are played, and the host is a process that is nobody but its service account.

use super::{
    blocks,
    commands::{commands, elsewhere, pages},
    root,
};
use crate::{
    cluster::deploy::HOST,
    operator::{self, Operator},
};
use harness::{Binaries, ControlPlane, Options, Tool};
use sandbox::Plugins;
use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

/// `cargo run --release --` builds the program and runs it. It is built already, so the rest is left.
const CARGO: &str = "#!/bin/sh\n[ \"$1 $2 $3\" = \"run --release --\" ] || exit 64\nshift 3\nexec troupe \"$@\"\n";

/// The page after which nothing is installed any more.
const LAST: &str = "run/upgrade.md";

/// What makes the original operator that the page scales to zero.
fn before(page: &str) -> &'static [&'static str] {
    match page {
        "migrate/steps.md" => &[
            "kubectl create namespace paddle-system",
            "kubectl --namespace paddle-system create deployment paddle-controller-manager --image example.org/original",
        ],
        _ => &[],
    }
}

/// A reader's home, with the programs of this build in the `PATH` and the checkout's files in the folder.
struct Reader {
    folder: PathBuf,
    kubeconfig: PathBuf,
}

impl Reader {
    fn new(plane: &ControlPlane) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("book");
        let _absent = fs::remove_dir_all(&folder);
        let bin = folder.join("bin");
        fs::create_dir_all(&bin).unwrap();
        let binaries = Binaries::of(&[Tool::Kubectl, Tool::Helm]).unwrap();
        for (tool, name) in [(Tool::Kubectl, "kubectl"), (Tool::Helm, "helm")] {
            symlink(binaries.path(tool).unwrap(), bin.join(name)).unwrap();
        }
        symlink(operator::binary(), bin.join("troupe")).unwrap();
        fs::write(bin.join("cargo"), CARGO).unwrap();
        fs::set_permissions(bin.join("cargo"), fs::Permissions::from_mode(0o755)).unwrap();
        let checkout = root().canonicalize().unwrap();
        symlink(checkout.join("deploy"), folder.join("deploy")).unwrap();
        // A copy, since `--update` writes there.
        fs::create_dir(folder.join("tests")).unwrap();
        let copied =
            Command::new("cp").arg("-r").arg(checkout.join("tests/scenarios")).arg(folder.join("tests")).status();
        assert!(copied.unwrap().success());
        // Another digest of the same plugin: an empty custom section of the name `x`.
        let mut wasm = Plugins::built_in("paddle").unwrap().to_vec();
        wasm.extend([0, 2, 1, b'x']);
        for file in ["paddle.wasm", "plugin.wasm"] {
            fs::write(folder.join(file), &wasm).unwrap();
        }
        Self { folder, kubeconfig: plane.kubeconfig("admin").unwrap() }
    }

    /// `localhost:8080`, where pages have the admin port of a host, is at this one.
    fn meets(&self, operator: &Operator) {
        let at = format!(
            "connect-to = \"localhost:8080:{}\"\nnoproxy = \"*\"\nfail\nsilent\nshow-error\n",
            operator.admin_address()
        );
        fs::write(self.folder.join(".curlrc"), at).unwrap();
    }

    /// Runs commands in one shell, which ends with the first that fails.
    fn runs(&self, page: &str, commands: &[String]) {
        let path = format!("{0}/bin:{0}/.local/bin:{1}", self.folder.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("timeout");
        shell.args(["300", "bash", "-c", &format!("set -euxo pipefail\n{}", commands.join("\n"))]);
        shell.current_dir(&self.folder).env("PATH", path).env("HOME", &self.folder).env("CURL_HOME", &self.folder);
        let output = shell.env("KUBECONFIG", &self.kubeconfig).output().unwrap();
        let [printed, told] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it).into_owned());
        assert!(output.status.success(), "{page}: {}\n{told}\n{printed}", output.status);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(lacks_book, ignore = "runs commands for minutes: TROUPE_REQUIRE=book")]
async fn the_commands_of_the_book() {
    let plane = ControlPlane::start(Options::default().fake_nodes(2).actor(HOST).limited(HOST)).await.unwrap();
    let reader = tokio::task::block_in_place(|| Reader::new(&plane));
    let mut host = None;
    let mut pages = pages();
    let last = pages.iter().position(|(name, _)| name == LAST).expect("there is such a page");
    let last = pages.remove(last);
    pages.push(last);
    let mut done = BTreeSet::new();
    for (name, text) in pages {
        reader.runs(&name, &before(&name).iter().map(|&it| it.to_owned()).collect::<Vec<_>>());
        for block in blocks(&text) {
            // A file that the page has its reader write.
            let file = block.lines.first().and_then(|line| line.strip_prefix("# ")).filter(|it| it.ends_with(".yaml"));
            if let ("yaml", Some(file)) = (block.language.as_str(), file) {
                fs::write(reader.folder.join(file), block.lines.join("\n")).unwrap();
            }
            if block.language != "sh" {
                continue;
            }
            let mut commands = commands(&block);
            // What another page has had its reader do already is not done again.
            commands.retain(|command| elsewhere(command).is_none() && done.insert(command.clone()));
            if commands.is_empty() {
                continue;
            }
            reader.runs(&name, &commands);
            let has_run = |command: &str| done.iter().any(|it| it.starts_with(command));
            if has_run("helm uninstall troupe") {
                // As a node ends it, before its lease has expired that it has no right to any more.
                if let Some(operator) = host.take() {
                    Operator::stop(operator).await;
                }
            } else if host.is_none() && has_run("helm install troupe") {
                let flags =
                    ["--leader-elect", "--lease-namespace", "troupe-system", "--plugin-namespace", "troupe-system"];
                let operator = Operator::start_as(&plane, HOST, &flags).await;
                reader.meets(&operator);
                host = Some(operator);
            }
        }
    }
    let is_run = |command: &str| done.iter().any(|it| it.starts_with(command));
    assert!(is_run("helm install troupe") && is_run("helm uninstall troupe"), "{done:?}");
    assert!(host.is_none());
}

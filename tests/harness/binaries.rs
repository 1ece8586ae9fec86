//! Builds the programs of a cluster from Go modules, once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::run_dir::{locked, programs_dir, workspace};

/// The module of a cluster's programs.
const CLUSTER: &str = "cluster";

/// A release of Kubernetes: etcd and the programs of its control plane and nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Release {
    /// 1.37, with the beta of gangs. All tests run on it that name no other.
    #[default]
    Newest,
    /// 1.36, the last with the alpha of gangs.
    Previous,
    /// 1.30, the oldest that the chart installs on.
    Oldest,
}

impl Release {
    /// The folder of its module. That of the newest has all programs of a cluster, so that what they share compiles once.
    fn module(self) -> &'static str {
        match self {
            Release::Newest => CLUSTER,
            Release::Previous => "kubernetes-1.36",
            Release::Oldest => "kubernetes-1.30",
        }
    }

    /// The version that its programs say, as a Go module's.
    #[must_use]
    pub fn version(self) -> &'static str {
        match self {
            Release::Newest => "v1.37.2",
            Release::Previous => "v1.36.3",
            Release::Oldest => "v1.30.14",
        }
    }
}

/// A program of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// The store.
    Etcd,
    /// The API server.
    ApiServer,
    /// Garbage collection, Jobs, EndpointSlices, namespaces and the rest.
    ControllerManager,
    /// The default scheduler.
    Scheduler,
    /// Fake nodes.
    Kwok,
    /// A real node's agent.
    Kubelet,
    /// The cluster's name server.
    CoreDns,
    /// The command line.
    Kubectl,
    /// A registry of artifacts.
    Registry,
    /// What installs charts.
    Helm,
    /// Prometheus' checks of rules and queries.
    Promtool,
    /// What signs and verifies images.
    Cosign,
}

impl Tool {
    /// The program's own name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.source().1
    }

    /// Module folder, binary name, package; one that begins with `./` is our own around a library.
    fn source(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Tool::Etcd => (CLUSTER, "etcd", "go.etcd.io/etcd/server/v3"),
            Tool::ApiServer => (CLUSTER, "kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
            Tool::ControllerManager => {
                (CLUSTER, "kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager")
            }
            Tool::Scheduler => (CLUSTER, "kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
            Tool::Kubelet => (CLUSTER, "kubelet", "k8s.io/kubernetes/cmd/kubelet"),
            Tool::Kubectl => (CLUSTER, "kubectl", "k8s.io/kubernetes/cmd/kubectl"),
            Tool::Kwok => (CLUSTER, "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
            Tool::CoreDns => (CLUSTER, "coredns", "./coredns"),
            Tool::Registry => (CLUSTER, "registry", "./registry"),
            Tool::Helm => (CLUSTER, "helm", "helm.sh/helm/v3/cmd/helm"),
            Tool::Promtool => (CLUSTER, "promtool", "github.com/prometheus/prometheus/cmd/promtool"),
            Tool::Cosign => ("cosign", "cosign", "github.com/sigstore/cosign/v3/cmd/cosign"),
        }
    }

    /// Whether it is a part of Kubernetes, and another program in another release.
    fn is_of_release(self) -> bool {
        use Tool::{ApiServer, ControllerManager, Etcd, Kubectl, Kubelet, Scheduler};
        matches!(self, Etcd | ApiServer | ControllerManager | Scheduler | Kubelet | Kubectl)
    }

    /// Build tags.
    fn tags(self) -> &'static str {
        match self {
            // Nothing is discovered: no SDK of a cloud is built.
            Tool::Promtool => "remove_all_sd",
            _ => "",
        }
    }
}

/// Programs that are built and stay so.
#[derive(Clone, Debug)]
pub struct Binaries {
    built: Vec<(Tool, PathBuf)>,
}

impl Binaries {
    /// All programs.
    pub fn build() -> Result<Binaries> {
        use Tool::{ApiServer, ControllerManager, CoreDns, Etcd, Helm, Kubectl, Kubelet, Kwok, Registry, Scheduler};
        Self::of(&[Etcd, ApiServer, ControllerManager, Scheduler, Kwok, Kubelet, CoreDns, Kubectl, Registry, Helm])
    }

    /// What a control plane with fake nodes needs.
    pub fn control_plane() -> Result<Binaries> {
        Self::of(&[Tool::Etcd, Tool::ApiServer, Tool::ControllerManager, Tool::Scheduler, Tool::Kwok])
    }

    /// What a real node needs.
    pub fn node() -> Result<Binaries> {
        Self::of(&[Tool::Kubelet, Tool::CoreDns])
    }

    /// These programs, built now if the user's caches lack them as their `go.mod` and `go.sum` say.
    /// Of processes that want to build at the same time one does, and the others wait for it.
    pub fn of(tools: &[Tool]) -> Result<Binaries> {
        Self::of_release(Release::default(), tools)
    }

    /// Does the same with Kubernetes' programs in this release.
    pub fn of_release(release: Release, tools: &[Tool]) -> Result<Binaries> {
        let bin = programs_dir();
        let wanted = tools.iter().map(|tool| Ok((*tool, place(&bin, &Source::of(*tool, release))?)));
        let wanted = wanted.collect::<Result<Vec<_>>>()?;
        let lacking = |(_, path): &&(Tool, PathBuf)| !path.exists();
        if wanted.iter().any(|one| lacking(&one)) {
            let _lock = locked(&bin.join(".lock"))?;
            let lacking: Vec<_> = wanted.iter().filter(lacking).collect();
            for (done, (tool, path)) in lacking.iter().enumerate() {
                eprintln!(
                    "cluster: building {} ({} of {}), which takes up to some minutes the first time",
                    tool.name(),
                    done + 1,
                    lacking.len()
                );
                go_build(&Source::of(*tool, release), path)?;
            }
        }
        Ok(Binaries { built: wanted })
    }

    /// The file of a program that was asked for.
    pub fn path(&self, tool: Tool) -> Result<&Path> {
        let found = self.built.iter().find(|(built, _)| *built == tool);
        found
            .map(|(_, path)| path.as_path())
            .with_context(|| format!("{} was not built: it was not asked for", tool.name()))
    }
}

/// What a program is built from.
struct Source {
    /// The folder of its Go module.
    folder: PathBuf,
    name: &'static str,
    package: &'static str,
    tags: &'static str,
    flags: String,
}

impl Source {
    fn of(tool: Tool, release: Release) -> Self {
        let (module, name, package) = tool.source();
        // What is no part of Kubernetes is the same beside each release.
        let (module, release) =
            if tool.is_of_release() { (release.module(), release) } else { (module, Release::default()) };
        Self {
            folder: workspace().join("tests/harness").join(module),
            name,
            package,
            tags: tool.tags(),
            flags: flags(release.version()),
        }
    }
}

/// `<bin>/<module>-<hash>/<name>`: another module file, another folder.
fn place(bin: &Path, source: &Source) -> Result<PathBuf> {
    let mut hash = Sha256::new();
    for file in ["go.mod", "go.sum"] {
        let path = source.folder.join(file);
        hash.update(fs::read(&path).with_context(|| format!("failed to read {}", path.display()))?);
    }
    // Only a program that is not taken as it is has one.
    hash.update(fs::read(source.folder.join(source.package).join("main.go")).unwrap_or_default());
    hash.update(&source.flags);
    hash.update(source.tags);
    let module = source.folder.file_name().unwrap_or_default().to_string_lossy();
    Ok(bin.join(format!("{module}-{:.12x}", hash.finalize())).join(source.name))
}

fn flags(version: &str) -> String {
    let (at, minor) = ("k8s.io/component-base/version", version.split('.').nth(1).unwrap_or_default());
    format!("-s -w -X {at}.gitVersion={version} -X {at}.gitMajor=1 -X {at}.gitMinor={minor}")
}

fn go_build(source: &Source, path: &Path) -> Result<()> {
    let Source { folder, name, package, tags, flags } = source;
    let begun = Instant::now();
    let part = path.with_extension("part");
    fs::create_dir_all(path.parent().context("a binary is in a folder")?)?;
    let status = Command::new("go")
        .args(["build", "-trimpath", "-buildvcs=false", "-tags", tags, "-ldflags", flags, "-o"])
        .arg(&part)
        .arg(package)
        .current_dir(folder)
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .status()
        .context("failed to start go")?;
    if !status.success() {
        bail!("failed to build {name}: go build {package} ended with {status}");
    }
    fs::rename(&part, path).with_context(|| format!("failed to put {name} in its place"))?;
    let megabytes = fs::metadata(path)?.len() / 1_000_000;
    eprintln!("cluster: built {name}, {megabytes} MB, in {:.0?}", begun.elapsed());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_one_module_share_a_folder_named_by_its_content() {
        let folder =
            |tool, release| place(Path::new("bin"), &Source::of(tool, release)).unwrap().parent().unwrap().to_owned();
        let etcd = folder(Tool::Etcd, Release::Newest);
        assert_eq!(etcd, folder(Tool::Kubelet, Release::Newest));
        assert_ne!(etcd, folder(Tool::Cosign, Release::Newest));
        assert_ne!(etcd, folder(Tool::Etcd, Release::Previous));
        assert_eq!(folder(Tool::Kwok, Release::Newest), folder(Tool::Kwok, Release::Previous));
    }

    #[test]
    fn a_program_that_was_not_asked_for_has_no_path() {
        let none = Binaries { built: vec![] };
        assert_eq!(none.path(Tool::Kwok).unwrap_err().to_string(), "kwok was not built: it was not asked for");
    }
}

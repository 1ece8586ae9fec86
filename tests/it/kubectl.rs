//! The real kubectl of a job's user, which finds the binary by its other name.

use crate::operator::binary;
use anyhow::Result;
use harness::{CommandLine, Tool};
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

/// kubectl with the rights of one user in one namespace.
pub(crate) struct Kubectl {
    kubectl: CommandLine,
    namespace: String,
}

impl Kubectl {
    pub(crate) async fn of(kubeconfig: PathBuf, namespace: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kubectl").join(namespace);
        fs::create_dir_all(&folder).unwrap();
        let _absent = fs::remove_file(folder.join("kubectl-troupe"));
        symlink(binary(), folder.join("kubectl-troupe")).unwrap();
        let built = tokio::task::spawn_blocking(move || CommandLine::of(Tool::Kubectl, &kubeconfig));
        let kubectl = built.await.unwrap().unwrap().with_plugins(&folder);
        Self { kubectl, namespace: namespace.to_owned() }
    }

    pub(crate) fn troupe(&self, arguments: &[&str]) -> Result<String> {
        self.run(&[&["troupe"], arguments].concat())
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Result<String> {
        self.kubectl.run(&[arguments, &["--namespace", self.namespace.as_str()]].concat())
    }

    /// Runs a line of a page, of this job instead of the page's.
    pub(crate) fn run_line(&self, line: &str, job: &str) -> Result<String> {
        let line = line.split(" #").next().unwrap_or(line).replace("mnist", job).replace('\'', "");
        self.kubectl.run_line(&line, &["--namespace", &self.namespace])
    }
}

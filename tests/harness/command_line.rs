//! Command lines of administrators: Helm and kubectl.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::binaries::{Binaries, Tool};
use crate::process::output;
use crate::run_dir::{cluster_dir, workspace};

/// A program that talks to a cluster, or to none.
#[derive(Clone, Debug)]
pub struct CommandLine {
    program: PathBuf,
    kubeconfig: PathBuf,
    /// The folder of kubectl's plugins.
    plugins: Option<PathBuf>,
}

impl CommandLine {
    /// This program with the cluster and the user of a kubeconfig. Built now if it is not there yet, which takes some minutes.
    pub fn of(tool: Tool, kubeconfig: &Path) -> Result<CommandLine> {
        let program = Binaries::of(&[tool])?.path(tool)?.to_owned();
        Ok(CommandLine { program, kubeconfig: kubeconfig.to_owned(), plugins: None })
    }

    /// Helm without a cluster: it can render and check charts.
    pub fn helm_alone() -> Result<CommandLine> {
        CommandLine::of(Tool::Helm, Path::new("/dev/null"))
    }

    /// The same with the programs of a folder, and with no others, as plugins of kubectl.
    pub fn with_plugins(self, folder: &Path) -> CommandLine {
        CommandLine { plugins: Some(folder.to_owned()), ..self }
    }

    /// What a command prints, which runs in the workspace's folder and ends well; otherwise an error with what it printed.
    pub fn run(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(workspace()).env("KUBECONFIG", &self.kubeconfig);
        for folder in ["CACHE", "CONFIG", "DATA"] {
            command.env(format!("HELM_{folder}_HOME"), cluster_dir().join("helm").join(folder));
        }
        if let Some(folder) = &self.plugins {
            command.env("PATH", folder);
        }
        output(&mut command)
    }

    /// The same of a line of a page, which begins with the program's name and has no quotes.
    pub fn run_line(&self, line: &str, more: &[&str]) -> Result<String> {
        let mut words = line.split_whitespace();
        let name = self.program.file_name().and_then(|name| name.to_str());
        anyhow::ensure!(words.next() == name, "{line} is no command of {name:?}");
        self.run(&words.chain(more.iter().copied()).collect::<Vec<_>>()).with_context(|| line.to_owned())
    }
}

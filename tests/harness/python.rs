//! Packages of PyPI for programs that tests run on this machine, kept as virtual environments under `target/tools`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::packages;
use crate::process::output;
use crate::run_dir::{locked, workspace};

/// A Python with packages of PyPI.
#[derive(Clone, Debug)]
pub struct Python {
    folder: PathBuf,
}

impl Python {
    /// With the SDK of Kubeflow's training jobs as it is published: `kubeflow-training`.
    pub fn kubeflow_training() -> Result<Python> {
        Python::with("kubeflow-training", include_str!("python/kubeflow-training.txt"))
    }

    /// With the schemas of bills of materials, as CycloneDX publishes them: `cyclonedx-python-lib`.
    pub fn cyclonedx() -> Result<Python> {
        Python::with("cyclonedx", include_str!("python/cyclonedx.txt"))
    }

    /// With these packages, all of which `requirements` pins; made now if there is none for them and this machine's Python yet.
    fn with(name: &str, requirements: &str) -> Result<Python> {
        packages::have(packages::VENV)?;
        let version = output(Command::new("python3").arg("--version"))?;
        let tools = workspace().join("target/tools");
        let key = format!("{:.12x}", Sha256::digest(version + requirements));
        let folder = tools.join(format!("{name}-{key}"));
        let _lock = locked(&tools.join(format!(".{name}.lock")))?;
        if !folder.exists() {
            eprintln!("cluster: installing {name} of PyPI");
            let part = tools.join(format!(".{name}.part"));
            fill(&part, requirements).with_context(|| format!("failed to install {name}"))?;
            fs::rename(part, &folder)?;
        }
        Ok(Python { folder })
    }

    /// What the program prints, which ends well.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        output(python(&self.folder).args(["-c", program]).args(arguments))
    }
}

fn fill(folder: &Path, requirements: &str) -> Result<()> {
    output(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
    let file = folder.join("requirements.txt");
    fs::write(&file, requirements)?;
    // What is not pinned is missing.
    output(python(folder).args(["-m", "pip", "install", "--quiet", "--no-deps", "--requirement"]).arg(file))?;
    output(python(folder).args(["-m", "pip", "check"]))?;
    Ok(())
}

fn python(folder: &Path) -> Command {
    Command::new(folder.join("bin/python"))
}

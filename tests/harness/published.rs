//! Programs of other projects, built from their Go modules as these are published: with the module's own requirements, so that
//! they have the dependencies that they were tested with.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::process::output;
use crate::run_dir::{cluster_dir, locked};

/// A Go module and the commands in it that are wanted.
#[derive(Debug)]
pub(crate) struct Published {
    /// Its path: `sigs.k8s.io/kueue`.
    pub(crate) module: &'static str,
    pub(crate) version: &'static str,
    /// Folders below `cmd`, which are the names of the programs.
    pub(crate) commands: &'static [&'static str],
    /// Modules that its `go.mod` replaces by a folder that is not published, and the version of each that is.
    pub(crate) replaced: &'static [(&'static str, &'static str)],
}

/// Where the module and its programs are.
#[derive(Debug)]
pub(crate) struct Built {
    /// The module's folder: its CRDs are read from there.
    pub(crate) module: PathBuf,
    programs: PathBuf,
}

impl Built {
    pub(crate) fn program(&self, command: &str) -> PathBuf {
        self.programs.join(command)
    }
}

impl Published {
    /// Builds the programs that `target/cluster/bin` lacks.
    pub(crate) fn build(&self) -> Result<Built> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Download {
            dir: PathBuf,
        }
        let Published { module, version, commands, .. } = self;
        let source = format!("{module}@{version}");
        let told = output(Command::new("go").args(["mod", "download", "-json", &source]).env("GOWORK", "off"))?;
        let Download { dir } = serde_json::from_str(&told)?;
        let name = module.rsplit('/').next().unwrap_or(module);
        let folder = cluster_dir().join(format!("bin/{name}-{version}"));
        let _lock = locked(&folder.join(".lock"))?;
        let built = Built { module: dir, programs: folder.clone() };
        if commands.iter().all(|command| built.program(command).exists()) {
            return Ok(built);
        }
        eprintln!("cluster: building {source}, which takes up to ten minutes the first time");
        fs::write(folder.join("go.mod"), self.requirements(&built.module)?)?;
        fs::write(folder.join("go.sum"), fs::read(built.module.join("go.sum"))?)?;
        let parts = folder.join("parts");
        fs::create_dir_all(&parts)?;
        let status = Command::new("go")
            .args(["build", "-mod=mod", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o"])
            .arg(&parts)
            .args(commands.iter().map(|command| format!("{module}/cmd/{command}")))
            .current_dir(&folder)
            .env("CGO_ENABLED", "0")
            .env("GOWORK", "off")
            .status()
            .context("failed to start go")?;
        ensure!(status.success(), "failed to build {source}: go build ended with {status}");
        for command in *commands {
            fs::rename(parts.join(command), built.program(command))?;
        }
        Ok(built)
    }

    fn requirements(&self, module: &Path) -> Result<String> {
        let own = fs::read_to_string(module.join("go.mod"))?;
        let rest = own.split_once('\n').context("a go.mod has lines")?.1;
        let is_replaced =
            |line: &&str| self.replaced.iter().any(|(name, _)| line.trim().starts_with(&format!("{name} => .")));
        let kept: Vec<_> = rest.lines().filter(|line| !is_replaced(line)).collect();
        let replaced = self.replaced.iter().map(|(name, version)| format!("replace {name} => {name} {version}\n"));
        let (kept, replaced) = (kept.join("\n"), replaced.collect::<String>());
        Ok(format!("module scratch\n{kept}\nrequire {} {}\n{replaced}", self.module, self.version))
    }
}

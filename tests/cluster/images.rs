//! Images made without a container runtime, kept as OCI archives under `target/cluster/images`.
//!
//! They are never pulled: import one into a [`Node`](crate::Node) and use its [`Image::name`] with `imagePullPolicy: Never`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

pub use crate::oci::Defaults;
use crate::oci::{hex, write};
use crate::packages;
use crate::process::output;
use crate::run_dir::{cluster_dir, locked};

const PAUSE: &str = include_str!("images/pause.c");
const PI: &str = include_str!("images/pi.c");
const OPENMPI: &str = include_str!("images/openmpi.sh");
const BUSYBOX: &str = "/bin/busybox";

/// An image that is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    name: String,
    archive: PathBuf,
}

impl Image {
    /// What a pod's sandbox runs. A node imports it by itself.
    pub fn pause() -> Result<Image> {
        let entrypoint = Defaults { entrypoint: &["/pause"], env: &[] };
        Image::build("pause", PAUSE, entrypoint, |rootfs| {
            let source = rootfs.with_extension("c");
            fs::write(&source, PAUSE)?;
            output(Command::new("gcc").args(["-Os", "-static", "-s", "-o"]).arg(rootfs.join("pause")).arg(source))?;
            Ok(())
        })
    }

    /// A shell and the usual commands in one static binary.
    pub fn busybox() -> Result<Image> {
        Image::build("busybox", BUSYBOX, Defaults { entrypoint: &["/bin/sh"], env: &[] }, |rootfs| {
            let bin = rootfs.join("bin");
            for folder in ["bin", "etc", "root", "tmp"] {
                fs::create_dir(rootfs.join(folder))?;
            }
            fs::copy(BUSYBOX, bin.join("busybox")).context("failed to copy busybox")?;
            for name in output(Command::new(BUSYBOX).arg("--list"))?.lines().filter(|name| *name != "busybox") {
                std::os::unix::fs::symlink("busybox", bin.join(name))?;
            }
            Ok(())
        })
    }

    /// Open MPI with ssh, whose worker command is `/usr/sbin/sshd -De`, and the MPI program `pi`:
    /// each rank prints `rank R of N on HOST`, and rank 0 `pi is approximately 3.1416`.
    pub fn openmpi() -> Result<Image> {
        let env = ["OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"];
        let defaults = Defaults { entrypoint: &[], env: &env };
        Image::build("openmpi", &format!("{OPENMPI}{PI}"), defaults, |rootfs| {
            let (script, program) = (rootfs.with_extension("sh"), rootfs.with_extension("c"));
            fs::write(&script, OPENMPI)?;
            fs::write(&program, PI)?;
            output(Command::new("sh").arg(script).arg(rootfs).arg(program))?;
            Ok(())
        })
    }

    /// The image `docker.io/local/<short>:1` of the root file system that `fill` puts into an empty folder.
    /// `fill` runs only if there is no archive of this `recipe` (any text that changes when the content should) and these defaults yet.
    pub fn build(
        short: &str,
        recipe: &str,
        defaults: Defaults<'_>,
        fill: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<Image> {
        let images = cluster_dir().join("images");
        let name = format!("docker.io/local/{short}:1");
        let key = hex(&Sha256::digest(format!("{name}\n{recipe}\n{defaults:?}"))[..6]);
        let archive = images.join(format!("{short}-{key}.tar"));
        if !archive.exists() {
            let _lock = locked(&images.join(format!(".{short}.lock")))?;
            if !archive.exists() {
                let begun = Instant::now();
                eprintln!("cluster: building image {short}");
                packages::install(packages::IMAGES)?;
                let work = images.join(format!(".{short}.part"));
                pack(&name, defaults, fill, &work, &archive)
                    .with_context(|| format!("failed to build image {short}"))?;
                let megabytes = fs::metadata(&archive)?.len() / 1_000_000;
                eprintln!("cluster: built image {short}, {megabytes} MB, in {:.0?}", begun.elapsed());
            }
        }
        Ok(Image { name, archive })
    }

    /// The reference to use in a pod.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The OCI archive.
    #[must_use]
    pub fn archive(&self) -> &Path {
        &self.archive
    }
}

fn pack(
    name: &str,
    defaults: Defaults<'_>,
    fill: impl FnOnce(&Path) -> Result<()>,
    work: &Path,
    archive: &Path,
) -> Result<()> {
    if work.exists() {
        fs::remove_dir_all(work).context("failed to remove what an earlier attempt left")?;
    }
    let rootfs = work.join("rootfs");
    fs::create_dir_all(&rootfs)?;
    fill(&rootfs)?;
    let part = work.join("archive.tar");
    write(name, &rootfs, defaults, work, &part)?;
    fs::rename(part, archive)?;
    fs::remove_dir_all(work)?;
    Ok(())
}

//! Images made without a container runtime, kept as OCI archives under `target/cluster/images`.
//!
//! They are never pulled: import one into a [`Node`](crate::Node) and use its [`Image::name`] with `imagePullPolicy: Never`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use image::{
    oci::{self, Layer},
    program,
};

use crate::packages;
use crate::process::output;
use crate::run_dir::{cluster_dir, locked};

const PAUSE: &str = include_str!("images/pause.c");
const PI: Source<'_> = ("pi.c", include_str!("images/pi.c"));
const OPENMPI: &str = include_str!("images/openmpi.sh");
const MPICH: &str = include_str!("images/mpich.sh");
const PYTORCH: &str = include_str!("images/pytorch.sh");
const PYPI: &str = include_str!("images/pypi.sh");
const COLLECTIVE: Source<'_> = ("collective.py", include_str!("images/collective.py"));
const SERVERS: Source<'_> = ("servers.py", include_str!("images/servers.py"));
const DDP: Source<'_> = ("ddp.py", include_str!("images/ddp.py"));
const JAX_SUM: Source<'_> = ("jax_sum.py", include_str!("images/jax_sum.py"));
const RABIT: Source<'_> = ("rabit.py", include_str!("images/rabit.py"));
const MIRRORED: Source<'_> = ("mirrored.py", include_str!("images/mirrored.py"));
const BUSYBOX: &str = "/bin/busybox";

/// A program by the name of its file.
type Source<'a> = (&'a str, &'a str);

/// What the image runs when the pod does not say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Defaults<'a> {
    /// The program and its arguments.
    pub entrypoint: &'a [&'a str],
    /// `NAME=value` each; a `PATH` is always there.
    pub env: &'a [&'a str],
}

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
    /// With the name of a file it goes on until that is there, and rank 0 says before that it is `computing`.
    pub fn openmpi() -> Result<Image> {
        let env = ["OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"];
        Image::script("openmpi", OPENMPI, PI, &env, &[])
    }

    /// MPICH with the same program `pi`. Its `mpirun` can be called at port 20000. Its processes talk by TCP alone: pods of one
    /// node that are told so by their kernel would try the memory that they do not share, and never end.
    pub fn mpich() -> Result<Image> {
        Image::script("mpich", MPICH, PI, &["MPICH_PORT_RANGE=20000:20100", "UCX_TLS=tcp,self"], &[])
    }

    /// PaddlePaddle, and the program `/srv/train.py`: each process prints `rank R of N on HOST: sum S`.
    pub fn paddle_collective() -> Result<Image> {
        let packages = ["paddlepaddle==3.3.1", "numpy==2.4.6", "protobuf==7.36.2", "setuptools==75.8.0"];
        Image::pypi("paddle-collective", COLLECTIVE, "paddle.distributed.fleet", &packages)
    }

    /// The last PaddlePaddle on PyPI that has parameter servers, and the program `/srv/train.py`:
    /// each trainer prints `trainer R of N on HOST: loss A to B`, each server `server R of N is done`.
    pub fn paddle_servers() -> Result<Image> {
        let packages = ["paddlepaddle==2.6.2", "numpy==1.26.4", "protobuf==4.25.3", "setuptools==75.8.0"];
        Image::pypi("paddle-servers", SERVERS, "paddle.distributed.fleet", &packages)
    }

    /// Debian's PyTorch, since PyPI's is built for GPUs, and the program `/srv/train.py`:
    /// each process prints `rank R of N on HOST: sum S gradient G`.
    pub fn pytorch() -> Result<Image> {
        Image::script("pytorch", PYTORCH, DDP, &[], &[])
    }

    /// JAX for CPUs, and the program `/srv/train.py`: each process prints `rank R of N on HOST: sum S`.
    pub fn jax() -> Result<Image> {
        Image::pypi("jax", JAX_SUM, "jax", &["jax==0.10.2", "jaxlib==0.10.2", "numpy==2.4.6"])
    }

    /// XGBoost for CPUs, and the program `/srv/train.py`: each process prints `rank R of N on HOST: sum S model DIGEST`.
    pub fn xgboost() -> Result<Image> {
        Image::pypi("xgboost", RABIT, "xgboost", &["xgboost-cpu==3.2.0", "numpy==2.4.6"])
    }

    /// TensorFlow for CPUs, and the program `/srv/train.py`: each process prints `rank R of N on HOST: sum S`.
    pub fn tensorflow() -> Result<Image> {
        Image::pypi("tensorflow", MIRRORED, "tensorflow", &["tensorflow-cpu==2.21.0"])
    }

    /// Packages of PyPI that have this module.
    fn pypi(short: &str, program: Source<'_>, module: &str, requirements: &[&str]) -> Result<Image> {
        packages::have(packages::PIP)?;
        Image::script(short, PYPI, program, &[], &[&[module], requirements].concat())
    }

    /// What a shell script makes of a folder, the file of a program, and more arguments.
    fn script(short: &str, script: &str, program: Source<'_>, env: &[&str], arguments: &[&str]) -> Result<Image> {
        let (file, source) = program;
        let recipe = [&[script, source], arguments].concat().join("\n");
        Image::build(short, &recipe, Defaults { entrypoint: &[], env }, |rootfs| {
            let (script_file, file) = (rootfs.with_extension("sh"), rootfs.with_file_name(file));
            fs::write(&script_file, script)?;
            fs::write(&file, source)?;
            output(Command::new("sh").arg(script_file).arg(rootfs).arg(file).args(arguments))?;
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
        let key = format!("{:.12x}", Sha256::digest(format!("{name}\n{recipe}\n{defaults:?}")));
        let archive = images.join(format!("{short}-{key}.tar"));
        if !archive.exists() {
            let _lock = locked(&images.join(format!(".{short}.lock")))?;
            if !archive.exists() {
                let begun = Instant::now();
                eprintln!("cluster: building image {short}");
                packages::have(packages::IMAGES)?;
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
    let Defaults { entrypoint, env } = defaults;
    let image = oci::Image { name, entrypoint, env, ..oci::Image::default() };
    let platform = oci::Platform { architecture: program::architecture(), rootfs: &rootfs };
    oci::write(image, &[platform], Layer::AsItIs, work, &part)?;
    fs::rename(part, archive)?;
    fs::remove_dir_all(work)?;
    Ok(())
}

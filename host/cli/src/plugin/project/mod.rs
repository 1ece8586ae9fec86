//! The project of a plugin in a folder, and its component: built by the tools of its language and checked as a host would.

#[cfg(feature = "lab")]
mod c;
#[cfg(feature = "lab")]
mod go;
mod javascript;
#[cfg(feature = "lab")]
mod module;
mod python;
mod rust;

use super::{inspect, recording::replayer};
use crate::{args::BuildArgs, input};
use anyhow::{Context, bail, ensure};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

/// The scenarios of a project.
#[cfg(feature = "lab")]
pub(super) const SCENARIOS: &str = "scenarios";

/// The CRD of a project.
const CRD: &str = "crd.yaml";

/// The contract, where a language makes its bindings of it.
const WIT: &str = "wit";

/// Where the component is, but for a crate's.
const COMPONENT: &str = "target/plugin.wasm";

pub(super) fn build(args: &BuildArgs) -> anyhow::Result<ExitCode> {
    let file = component(&args.folder)?;
    let wasm = input::component(&file)?;
    let plugin = replayer(&file, &wasm)?;
    troupe::out::line(format_args!("{}", file.display()));
    troupe::out::line(inspect::facts_of(&plugin, &wasm)?);
    let crd = if args.folder == Path::new(".") { PathBuf::from(CRD) } else { args.folder.join(CRD) };
    if crd.is_file() {
        super::crd::check(&crd, plugin.descriptor())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the component that is named, else builds that of the project in the current folder.
pub(super) fn named_or_built(file: Option<&Path>) -> anyhow::Result<PathBuf> {
    file.map_or_else(|| component(Path::new(".")), |file| Ok(file.to_owned()))
}

/// Builds the component of the project in this folder, and returns its file, relative to the current folder where it is
/// below it.
pub(super) fn component(folder: &Path) -> anyhow::Result<PathBuf> {
    let has = |file: &str| folder.join(file).is_file();
    let file = if has(rust::MANIFEST) {
        rust::component(folder)?
    } else {
        let file = folder.join(COMPONENT);
        let target = file.parent().unwrap_or(folder);
        fs::create_dir_all(target).with_context(|| format!("{} cannot be made", target.display()))?;
        if has(javascript::SOURCE) {
            javascript::build(folder)?;
        } else if has(python::SOURCE) {
            python::build(folder)?;
        } else if has(C_SOURCE) || has(GO_SOURCE) {
            #[cfg(feature = "lab")]
            (if has(GO_SOURCE) { go::build } else { c::build })(folder)?;
            #[cfg(not(feature = "lab"))]
            bail!("this program was built without the feature `lab`, which has what builds components of C and Go");
        } else {
            bail!(
                "{} has none of {}, {C_SOURCE}, {GO_SOURCE}, {} and {}; `troupe plugin new` makes a plugin's project",
                folder.display(),
                rust::MANIFEST,
                javascript::SOURCE,
                python::SOURCE
            );
        }
        file.canonicalize().with_context(|| format!("{} was not built", file.display()))?
    };
    let here = std::env::current_dir().and_then(|here| here.canonicalize()).unwrap_or_default();
    Ok(file.strip_prefix(here).map_or(file.clone(), Path::to_owned))
}

/// What says that a folder is a project of C.
const C_SOURCE: &str = "job.c";

/// What says that a folder is a project of Go.
const GO_SOURCE: &str = "job.go";

/// Runs a tool in the folder of a project. What it prints goes to standard error.
fn run(folder: &Path, tool: &mut Command, to_install: &str) -> anyhow::Result<()> {
    let (name, place) = (tool.get_program().display().to_string(), folder.display());
    let ended = tool.current_dir(folder).stdout(std::io::stderr()).status();
    let ended = ended.with_context(|| format!("{name} does not start; {to_install}, in {place}"))?;
    ensure!(ended.success(), "{name} ended with {ended}");
    Ok(())
}

/// Returns the path of a tool of the project, which is installed first unless it is there, and was installed in this folder
/// from this list of packages.
fn installed(
    folder: &Path,
    tool: &str,
    packages: &str,
    install: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<PathBuf> {
    let path = std::path::absolute(folder.join(tool)).with_context(|| tool.to_owned())?;
    let list = fs::read_to_string(folder.join(packages)).with_context(|| format!("{packages} cannot be read"))?;
    // A tool may have the path of its folder in it.
    let wanted = format!("{}\n{list}", path.display());
    let last = folder.join("target").join(packages);
    if !path.is_file() || fs::read_to_string(&last).ok().as_ref() != Some(&wanted) {
        troupe::out::diagnostic(format_args!("installing what {packages} names"));
        install()?;
        ensure!(path.is_file(), "{tool} is not there: {packages} has to name its package");
        fs::write(&last, wanted).with_context(|| format!("{} cannot be written", last.display()))?;
    }
    Ok(path)
}

//! The credentials of `troupe plugin push` and `pull`.

use crate::args::RegistryArgs;
use anyhow::Context;
use registry::DockerConfig;
use std::path::PathBuf;
use troupe::files;

/// The largest file of credentials, in bytes.
const LARGEST: usize = 1 << 20;

/// Returns the credentials in the file that the flag names, else those of `docker login`, else none.
pub(super) fn credentials(args: &RegistryArgs) -> anyhow::Result<DockerConfig> {
    let Some(file) = args.docker_config.clone().or_else(of_docker) else { return Ok(DockerConfig::default()) };
    match files::bytes(&file, LARGEST) {
        Ok(json) => DockerConfig::parse(&json).with_context(|| format!("{} holds no credentials", file.display())),
        Err(error) if error.is_not_found() && args.docker_config.is_none() => Ok(DockerConfig::default()),
        Err(error) => Err(error.into()),
    }
}

fn of_docker() -> Option<PathBuf> {
    let folder = std::env::var_os("DOCKER_CONFIG").map(PathBuf::from);
    Some(folder.or_else(|| Some(std::env::home_dir()?.join(".docker")))?.join("config.json"))
}

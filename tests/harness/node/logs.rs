//! Reads what containers print, from the files the container runtime writes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

/// What the container printed, first attempt first.
pub(super) fn read(pods: &Path, pod: &Pod, container: &str) -> Result<String> {
    let name = pod.name_any();
    let namespace = pod.namespace().with_context(|| format!("pod/{name} has no namespace"))?;
    let uid = pod.uid().with_context(|| format!("pod/{name} has no uid"))?;
    let folder = pods.join(format!("{namespace}_{name}_{uid}")).join(container);
    let entries = fs::read_dir(&folder)
        .with_context(|| format!("pod/{name} has no logs of {container} in {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    // Their names are numbers.
    files.sort_by_key(|file| (file.as_os_str().len(), file.clone()));
    let texts = files.iter().map(fs::read_to_string).collect::<Result<Vec<_>, _>>()?;
    Ok(texts.concat().split_inclusive('\n').map(printed).collect())
}

/// The text of a line in the container runtime's format: time, stream, whether it is complete, text.
fn printed(line: &str) -> &str {
    let text = line.splitn(4, ' ').nth(3).unwrap_or_default();
    if line.split(' ').nth(2) == Some("P") { text.trim_end_matches('\n') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_the_runtime_split_is_printed_as_one() {
        let split = ["2026-01-02T03:04:05.6Z stdout P one \n", "2026-01-02T03:04:05.7Z stdout F line"];
        assert_eq!(split.map(|line| printed(line).to_owned()).concat(), "one line");
    }
}

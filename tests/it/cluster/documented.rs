//! The commands by which the guides have a component installed, run as they stand there with the real kubectl.

use super::{objects::Namespace, world::World};
use crate::operator;
use harness::{Binaries, Tool};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt};
use sandbox::{Plugins, source};
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Output},
};

const GUIDES: [&str; 2] = [include_str!("../../../README.md"), include_str!("../../../plugins/LIFE.md")];

/// The component is at most this in a ConfigMap.
const LIMIT: usize = 16 << 20;

/// The lines of the guides that begin so, each once.
fn lines(start: &str) -> Vec<&'static str> {
    let mut lines: Vec<_> =
        GUIDES.iter().flat_map(|text| text.lines()).filter(|line| line.starts_with(start)).collect();
    lines.sort_unstable();
    lines.dedup();
    assert!(!lines.is_empty(), "no guide has a line {start}");
    lines
}

/// A folder in which `troupe` and `kubectl` are the built ones, and kubectl's cluster is this one.
pub(crate) struct Shell {
    pub(crate) folder: PathBuf,
    bin: PathBuf,
    kubeconfig: PathBuf,
}

impl Shell {
    pub(crate) fn of(world: &World, name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shell").join(name);
        let _ = fs::remove_dir_all(&folder);
        let bin = folder.join("bin");
        fs::create_dir_all(&bin).unwrap();
        let kubectl = Binaries::of(&[Tool::Kubectl]).unwrap();
        symlink(kubectl.path(Tool::Kubectl).unwrap(), bin.join("kubectl")).unwrap();
        symlink(operator::binary(), bin.join("troupe")).unwrap();
        Self { folder, bin, kubeconfig: world.plane.kubeconfig("admin").unwrap() }
    }

    /// The same in another folder.
    pub(crate) fn at(self, folder: PathBuf) -> Self {
        Self { folder, ..self }
    }

    /// Runs a command of a guide, and returns what it told on standard error.
    pub(crate) fn runs(&self, command: &str) -> String {
        let (output, told) = self.output(command);
        assert!(output.status.success(), "{command}: {told}");
        told
    }

    /// The same, of a command that may fail.
    pub(crate) fn tries(&self, command: &str) -> Result<String, String> {
        let (output, told) = self.output(command);
        if output.status.success() { Ok(told) } else { Err(told) }
    }

    /// Runs a command, and returns what it printed on standard output.
    pub(crate) fn prints(&self, command: &str) -> String {
        let (output, told) = self.output(command);
        assert!(output.status.success(), "{command}: {told}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn output(&self, command: &str) -> (Output, String) {
        let path = format!("{}:{}", self.bin.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("bash");
        shell.args(["-o", "pipefail", "-c", command]).current_dir(&self.folder);
        let output = shell.env("PATH", path).env("KUBECONFIG", &self.kubeconfig).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        (output, told)
    }
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn every_plugin_that_comes_with_the_host_is_installed_by_the_commands_of_the_guides() {
    let world = World::shared("documented").await;
    let shell = Shell::of(&world, "documented");
    Namespace::ensure_in(world.client.clone(), "troupe-system").await;
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), "troupe-system");
    let compressed = lines("troupe plugin configmap paddle.wasm");
    let plain = lines("kubectl create configmap paddle");
    for name in ["paddle", "mpi", "rhino", "kubeflow"] {
        let wasm = Plugins::built_in(name).unwrap();
        for file in ["paddle.wasm", "plugin.wasm"] {
            fs::write(shell.folder.join(file), wasm).unwrap();
        }
        for command in compressed.iter().chain(&plain) {
            shell.runs(command);
            let mut data = maps.get("paddle").await.unwrap().binary_data.unwrap();
            let (key, bytes) = data.pop_first().unwrap();
            let whole = match key.as_str() {
                source::COMPRESSED_KEY => source::decompress(&bytes.0, LIMIT).unwrap(),
                _ => bytes.0,
            };
            assert!(whole == wasm && data.is_empty(), "{name}: {command}");
        }
        // With the digest in its name, and immutable.
        shell.runs(&format!("troupe plugin configmap {name} | kubectl apply --server-side -f -"));
        let map = maps.get(&format!("{name}-{}", source::digest(wasm).short())).await.unwrap();
        assert_eq!(map.immutable, Some(true));
        let annotated = map.annotations().get(source::DIGEST_ANNOTATION).map(String::as_str);
        assert_eq!(annotated, Some(source::digest(wasm).as_str()));
    }
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_configmap_that_only_a_server_side_apply_takes_is_printed_with_a_word_about_it() {
    let world = World::shared("client-side").await;
    let shell = Shell::of(&world, "client-side");
    // A custom section of what hardly compresses: its length as LEB128, a name of no letters, then noise.
    let mut wasm = Plugins::built_in("rhino").unwrap().to_vec();
    let noise: String = (0..10_000_u32).map(|at| source::digest(&at.to_le_bytes()).to_string()).collect();
    wasm.push(0);
    let mut length = noise.len() + 1;
    while length > 0x7f {
        wasm.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    wasm.push(length as u8);
    wasm.push(0);
    wasm.extend(noise.bytes());
    fs::write(shell.folder.join("large.wasm"), wasm).unwrap();
    Namespace::ensure_in(world.client.clone(), "troupe-system").await;
    let told = shell.runs("troupe plugin configmap large.wasm > large.yaml");
    assert!(told.contains("`kubectl apply --server-side -f -`"), "{told}");
    let told = shell.runs("! kubectl apply --dry-run=server -f large.yaml");
    assert!(told.contains("Too long"), "{told}");
}

//! The bill of materials of an image, in CycloneDX 1.6: every crate in the program and in the plugins that it carries,
//! as cargo resolves them for this target and these features. It is written here because cargo-cyclonedx describes
//! packages, not a program that carries components of another target, and puts the time into what it writes.

use crate::{oci, run::output};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::Path,
    process::Command,
};

/// The package of the program, and the one whose dependencies in this workspace are the plugins.
const PROGRAM: &str = "troupe-cli";
const BUILTIN: &str = "builtin";
const SDK: &str = "troupe-plugin";
const PLUGIN_TARGET: &str = "wasm32-wasip2";

/// A crate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Crate {
    name: String,
    version: String,
    /// Of this workspace, and in no registry.
    is_local: bool,
    licence: String,
    repository: String,
}

/// Crates by name and version, and which of them each uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Graph {
    crates: BTreeMap<String, Crate>,
    uses: BTreeMap<String, BTreeSet<String>>,
    roots: BTreeSet<String>,
}

/// What a bill is about.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The image's reference.
    pub name: &'a str,
    /// The digest of its manifest for this architecture.
    pub digest: &'a str,
    /// Go's name of the architecture.
    pub architecture: &'a str,
    /// The program in it.
    pub program: &'a Path,
    /// Other files in it, by their paths there.
    pub files: &'a [(&'a str, &'a Path)],
}

/// Returns the bill of an image whose program was built of the workspace at `root` for this target of Rust. The same
/// workspace, compiler and image give the same bytes.
///
/// # Errors
/// cargo or rustc does not answer, or a file cannot be read.
pub fn bill(root: &Path, target: &str, subject: Subject<'_>) -> Result<String> {
    let mut graph = Graph::read(&tree(root, target, &[PROGRAM], &["--no-default-features"])?)?;
    let plugins = graph.plugins();
    ensure!(!plugins.is_empty(), "cargo tree shows no plugin in the program");
    let names: Vec<_> = plugins.iter().map(|plugin| graph.crates[plugin].name.clone()).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    graph.add(Graph::read(&tree(root, PLUGIN_TARGET, &names, &[])?)?);
    let lock = fs::read_to_string(root.join("Cargo.lock")).context("failed to read Cargo.lock")?;
    let rustc = output(Command::new("rustc").current_dir(root).arg("--version"))?;
    let rustc = rustc.split_whitespace().nth(1).context("rustc says no version")?.to_owned();
    document(&graph, &checksums(&lock), &rustc, subject)
}

/// Returns what `cargo tree` prints of what is linked into these packages: depth, package, licence and repository.
fn tree(root: &Path, target: &str, packages: &[&str], features: &[&str]) -> Result<String> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root).args(["tree", "--locked", "--color", "never", "--charset", "ascii"]);
    cargo.args(["--edges", "normal,no-proc-macro", "--prefix", "depth", "--format", " {p}|{l}|{r}"]);
    cargo.args(["--target", target]).args(features);
    for package in packages {
        cargo.args(["--package", package]);
    }
    output(&mut cargo)
}

impl Graph {
    fn read(tree: &str) -> Result<Self> {
        let mut graph = Self::default();
        let mut path: Vec<String> = Vec::new();
        for line in tree.lines().filter(|line| !line.is_empty()) {
            let read = || {
                let (depth, rest) = line.split_once(' ')?;
                let mut fields = rest.strip_suffix(" (*)").unwrap_or(rest).splitn(3, '|');
                let mut package = fields.next()?.split(' ');
                let (name, version) = (package.next()?.to_owned(), package.next()?.strip_prefix('v')?.to_owned());
                let is_local = package.next().is_some_and(|place| place.starts_with("(/"));
                // The separator of old manifests.
                let licence = fields.next()?.replace('/', " OR ");
                let repository = fields.next()?.trim().to_owned();
                Some((depth.parse::<usize>().ok()?, Crate { name, version, is_local, licence, repository }))
            };
            let (depth, found) = read().with_context(|| format!("cargo tree prints {line:?}"))?;
            let key = format!("{}@{}", found.name, found.version);
            path.truncate(depth);
            match path.last() {
                Some(user) => drop(graph.uses.entry(user.clone()).or_default().insert(key.clone())),
                None => drop(graph.roots.insert(key.clone())),
            }
            graph.crates.insert(key.clone(), found);
            path.push(key);
        }
        Ok(graph)
    }

    fn add(&mut self, other: Self) {
        self.crates.extend(other.crates);
        self.roots.extend(other.roots);
        for (user, used) in other.uses {
            self.uses.entry(user).or_default().extend(used);
        }
    }

    /// The crates of the plugins that the program carries.
    fn plugins(&self) -> Vec<String> {
        let builtin = self.crates.iter().filter(|(_, it)| it.is_local && it.name == BUILTIN);
        let used = builtin.filter_map(|(key, _)| self.uses.get(key)).flatten();
        used.filter(|key| self.crates.get(*key).is_some_and(|it| it.is_local && it.name != SDK)).cloned().collect()
    }
}

/// Returns the SHA-256 of every crate of a registry by name and version. cargo writes one key a line.
fn checksums(lock: &str) -> BTreeMap<String, String> {
    let of = |package: &str| {
        let value = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
            line.and_then(|value| value.strip_suffix('"')).map(str::to_owned)
        };
        Some((format!("{}@{}", value("name")?, value("version")?), value("checksum")?))
    };
    lock.split("[[package]]").filter_map(of).collect()
}

fn document(graph: &Graph, checksums: &BTreeMap<String, String>, rustc: &str, subject: Subject<'_>) -> Result<String> {
    let Subject { name, digest, architecture, program, files } = subject;
    let repository = name.rsplit_once(':').map_or(name, |(repository, _)| repository);
    let last = repository.rsplit('/').next().unwrap_or(repository);
    let hex = digest.strip_prefix("sha256:").context("a digest begins with sha256:")?;
    let hash = |hex: &str| json!([{ "alg": "SHA-256", "content": hex }]);
    let image =
        format!("pkg:oci/{last}@sha256%3A{hex}?arch={architecture}&repository_url={}", repository.replace('/', "%2F"));
    let version = env!("CARGO_PKG_VERSION");

    let (binary, std) = (format!("file:{}", crate::troupe::PROGRAM), format!("rust-std@{rustc}"));
    let mut components = vec![
        json!({ "type": "application", "bom-ref": binary, "name": crate::troupe::PROGRAM, "version": version,
            "hashes": hash(&oci::sha256(program)?) }),
        json!({ "type": "library", "bom-ref": std, "name": "rust-std", "version": rustc,
            "description": "The standard library of Rust, with the musl libc that comes with it",
            "licenses": [{ "expression": "MIT OR Apache-2.0" }] }),
    ];
    let mut in_image = vec![binary.clone()];
    for (place, file) in files {
        let reference = format!("file:{place}");
        components
            .push(json!({ "type": "file", "bom-ref": reference, "name": place, "hashes": hash(&oci::sha256(file)?) }));
        in_image.push(reference);
    }
    components.extend(graph.crates.iter().map(|(key, it)| component(key, it, checksums.get(key))));

    let in_binary: Vec<_> = graph.roots.iter().map(|root| reference(root, graph)).chain([std]).collect();
    let mut dependencies =
        vec![json!({ "ref": image, "dependsOn": in_image }), json!({ "ref": binary, "dependsOn": in_binary })];
    dependencies.extend(graph.uses.iter().map(|(user, used)| {
        let used: Vec<_> = used.iter().map(|key| reference(key, graph)).collect();
        json!({ "ref": reference(user, graph), "dependsOn": used })
    }));

    let mut document = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": { "type": "container", "bom-ref": image, "name": repository, "version": version, "purl": image,
                "hashes": hash(hex) },
        },
        "components": components,
        "dependencies": dependencies,
    });
    document["serialNumber"] = json!(serial_number(&document.to_string()));
    Ok(format!("{document:#}\n"))
}

/// A UUID of its own kind (RFC 9562, version 8), of what the document says instead of a time or a random number.
fn serial_number(text: &str) -> String {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&Sha256::digest(text)[..16]);
    (bytes[6], bytes[8]) = (bytes[6] & 0x0f | 0x80, bytes[8] & 0x3f | 0x80);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("urn:uuid:{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// The name of a crate in the document: its address in the registry if it is from there.
fn reference(key: &str, graph: &Graph) -> String {
    let is_local = graph.crates.get(key).is_some_and(|it| it.is_local);
    if is_local { format!("workspace:{key}") } else { format!("pkg:cargo/{}", key.replace('+', "%2B")) }
}

fn component(key: &str, it: &Crate, checksum: Option<&String>) -> Value {
    let mut component = json!({ "type": "library", "name": it.name, "version": it.version });
    if !it.licence.is_empty() {
        component["licenses"] = json!([{ "expression": it.licence }]);
    }
    if it.is_local {
        component["bom-ref"] = json!(format!("workspace:{key}"));
        return component;
    }
    let address = format!("pkg:cargo/{}", key.replace('+', "%2B"));
    (component["bom-ref"], component["purl"]) = (json!(address), json!(address));
    if let Some(checksum) = checksum {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    if it.repository.starts_with("https://") {
        component["externalReferences"] = json!([{ "type": "vcs", "url": it.repository }]);
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "\
0 troupe-cli v0.1.0 (/a/host/cli)|Apache-2.0|
1 zstd-sys v2.0.16+zstd.1.5.7|MIT/Apache-2.0|https://github.com/gyscos/zstd-rs
2 libc v0.2.1|MIT|
1 builtin v0.1.0 (/a/host/builtin)|Apache-2.0|
2 tale v0.1.0 (/a/plugins/tale)|Apache-2.0|
3 troupe-plugin v0.1.0 (/a/plugins/sdk)|Apache-2.0|
4 libc v0.2.1|MIT|
2 troupe-plugin v0.1.0 (/a/plugins/sdk)|Apache-2.0| (*)
";

    #[test]
    fn the_graph_is_what_cargo_tree_prints() {
        let graph = Graph::read(TREE).unwrap();
        assert_eq!(graph.crates.len(), 6);
        assert_eq!(graph.crates["zstd-sys@2.0.16+zstd.1.5.7"].licence, "MIT OR Apache-2.0");
        assert_eq!(graph.plugins(), ["tale@0.1.0"]);
        assert_eq!(graph.roots, BTreeSet::from(["troupe-cli@0.1.0".to_owned()]));
        let used = &graph.uses["builtin@0.1.0"];
        assert_eq!(used.iter().collect::<Vec<_>>(), ["tale@0.1.0", "troupe-plugin@0.1.0"]);
        assert_eq!(graph.uses["troupe-plugin@0.1.0"], BTreeSet::from(["libc@0.2.1".to_owned()]));
        let told = Graph::read("nothing of the kind").unwrap_err().to_string();
        assert!(told.contains("cargo tree prints \"nothing of the kind\""), "{told}");
    }

    #[test]
    fn a_crate_of_a_registry_has_its_checksum_and_one_of_the_workspace_has_no_address() {
        let lock = "version = 4\n\n[[package]]\nname = \"libc\"\nversion = \"0.2.1\"\nchecksum = \"0a\"\n\n\
                    [[package]]\nname = \"tale\"\nversion = \"0.1.0\"\ndependencies = [\n \"libc\",\n]\n";
        let checksums = checksums(lock);
        assert_eq!(checksums, BTreeMap::from([("libc@0.2.1".to_owned(), "0a".to_owned())]));
        let graph = Graph::read(TREE).unwrap();
        let of = |key: &str| component(key, &graph.crates[key], checksums.get(key));
        assert_eq!(of("libc@0.2.1")["hashes"][0]["content"], "0a");
        assert_eq!(of("zstd-sys@2.0.16+zstd.1.5.7")["purl"], "pkg:cargo/zstd-sys@2.0.16%2Bzstd.1.5.7");
        assert!(of("tale@0.1.0")["purl"].is_null());
    }
}

//! What is in the image of Troupe: the program, the built-in plugins' compiled code, certificates of public authorities, a
//! user without rights, the licence.

use crate::oci::{self, Digests, Image, Layer, Platform};
use anyhow::{Context, Result, ensure};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// The reference that `deploy/operator.yaml` and the chart name where nobody names another. No registry has it, so that
/// a node which was not given the image says so, instead of running somebody else's.
pub const NAME: &str = concat!("localhost/troupe:", env!("CARGO_PKG_VERSION"));

/// The program's path in the image.
pub const PROGRAM: &str = "/usr/local/bin/troupe";
/// The path of the certificates of public authorities in the image.
pub const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// The user and group of the process: as in the images of other operators, a number that no system account has.
const USER: &str = "65532:65532";

/// The variable of the process that names the folder of the built-in plugins' compiled code.
pub const PRECOMPILED: (&str, &str) = ("TROUPE_PRECOMPILED", "/usr/local/lib/troupe");

/// The other variables of the process. The allocator returns free memory to the system after ten milliseconds, and not when
/// something else is freed a second later: a host at rest holds a fifth less. At once would take a twentieth more processor
/// time at its start.
pub const ENV: &[(&str, &str)] = &[("MIMALLOC_PURGE_DELAY", "10")];

const PASSWD: &str = "root:x:0:0:root:/:/sbin/nologin\ntroupe:x:65532:65532:troupe:/:/sbin/nologin\n";
const GROUP: &str = "root:x:0:\ntroupe:x:65532:\n";

/// Certificates of authorities by Debian's package ca-certificates; Fedora has them elsewhere.
const AUTHORITIES: [&str; 2] = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

const LICENSE: &str = include_str!("../../../LICENSE");

/// The program of an image for one architecture.
#[derive(Debug, Clone)]
pub struct Program {
    /// Go's name of the architecture.
    pub architecture: String,
    /// The file.
    pub file: PathBuf,
    /// Files that it needs beside itself, such as compiled code and shared libraries, each as its path in the image and
    /// the file.
    pub others: Vec<(PathBuf, PathBuf)>,
}

/// Writes the image with these programs, one for each architecture, to `archive`. Returns its digests.
///
/// # Errors
/// A file cannot be read or written, or this machine has no certificates of public authorities.
pub fn write(programs: &[Program], name: &str, archive: &Path) -> Result<Digests> {
    let work = archive.with_extension("part");
    if work.exists() {
        fs::remove_dir_all(&work).with_context(|| format!("failed to remove {}", work.display()))?;
    }
    let rootfs = |program: &Program| work.join("rootfs").join(&program.architecture);
    programs.iter().try_for_each(|program| fill(&rootfs(program), program))?;
    let labels = [
        ("org.opencontainers.image.title", "troupe"),
        ("org.opencontainers.image.version", env!("CARGO_PKG_VERSION")),
        ("org.opencontainers.image.licenses", env!("CARGO_PKG_LICENSE")),
    ];
    let env: Vec<_> = ENV.iter().chain([&PRECOMPILED]).map(|(name, value)| format!("{name}={value}")).collect();
    let env: Vec<_> = env.iter().map(String::as_str).collect();
    let image = Image { name, entrypoint: &[PROGRAM], user: USER, env: &env, labels: &labels };
    let part = work.join("archive.tar");
    let folders: Vec<_> = programs.iter().map(rootfs).collect();
    let platforms = programs.iter().zip(&folders);
    let platforms = platforms.map(|(it, rootfs)| Platform { architecture: &it.architecture, rootfs });
    let digests = oci::write(image, &platforms.collect::<Vec<_>>(), Layer::Reproducible, &work, &part)?;
    fs::rename(part, archive).with_context(|| format!("failed to write {}", archive.display()))?;
    fs::remove_dir_all(&work)?;
    Ok(digests)
}

/// Makes the root file system with this program.
fn fill(rootfs: &Path, program: &Program) -> Result<()> {
    put(rootfs, PROGRAM, &read(&program.file)?, 0o755)?;
    put(rootfs, CERTIFICATES, &read(authorities()?)?, 0o644)?;
    put(rootfs, "/etc/passwd", PASSWD.as_bytes(), 0o644)?;
    put(rootfs, "/etc/group", GROUP.as_bytes(), 0o644)?;
    put(rootfs, "/usr/share/doc/troupe/LICENSE", LICENSE.as_bytes(), 0o644)?;
    for (place, file) in &program.others {
        put(rootfs, place.to_str().context("a path in an image is UTF-8")?, &read(file)?, 0o755)?;
    }
    Ok(())
}

/// Returns this machine's file of certificates of public authorities, which goes into the image.
///
/// # Errors
/// There is none.
pub fn authorities() -> Result<&'static Path> {
    let authorities = AUTHORITIES.iter().map(Path::new).find(|path| path.exists());
    authorities.context("this machine has no certificates of authorities: install ca-certificates")
}

/// Returns an error unless `name` is a reference that a container runtime takes as it is: host, path and tag.
///
/// # Errors
/// What is missing, with an example.
pub fn check(name: &str) -> Result<()> {
    let (host, path) = name.split_once('/').unwrap_or_default();
    let (path, tag) = path.rsplit_once(':').unwrap_or_default();
    let is_host = host == "localhost" || host.contains(['.', ':']);
    let is_lower = |text: &str| !text.is_empty() && !text.contains(|c: char| c.is_uppercase() || c.is_whitespace());
    ensure!(
        is_host && is_lower(host) && is_lower(path) && !tag.is_empty() && !tag.contains(['/', '@', ' ']),
        "{name:?} is no name of an image with host, path and tag, such as registry.example.org/team/troupe:1.0"
    );
    Ok(())
}

fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("failed to read {}", file.display()))
}

/// Writes a file and its folders with modes that do not depend on whoever packs them.
fn put(rootfs: &Path, place: &str, bytes: &[u8], mode: u32) -> Result<()> {
    let path = rootfs.join(place.trim_start_matches('/'));
    let folder = path.parent().unwrap_or(rootfs);
    fs::create_dir_all(folder)?;
    for folder in folder.ancestors().take_while(|folder| folder.starts_with(rootfs)) {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    }
    fs::write(&path, bytes).with_context(|| format!("failed to write {}", path.display()))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::output;
    use serde_json::Value;
    use std::{env, process::Command};

    fn folder(name: &str) -> PathBuf {
        let folder = env::temp_dir().join(format!("troupe-image-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn program(architecture: &str, file: &Path) -> Program {
        Program { architecture: architecture.into(), file: file.into(), others: vec![] }
    }

    /// The archive's index.
    fn unpacked(archive: &Path, folder: &Path) -> Value {
        output(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(folder)).unwrap();
        serde_json::from_slice(&fs::read(folder.join("index.json")).unwrap()).unwrap()
    }

    fn blob(folder: &Path, descriptor: &Value) -> PathBuf {
        let digest = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        let file = folder.join("blobs/sha256").join(digest);
        assert_eq!(oci::sha256(&file).unwrap(), digest);
        assert_eq!(descriptor["size"], fs::metadata(&file).unwrap().len());
        file
    }

    fn document(folder: &Path, descriptor: &Value) -> Value {
        serde_json::from_slice(&fs::read(blob(folder, descriptor)).unwrap()).unwrap()
    }

    /// What `tar` prints of the layer of a manifest.
    fn listed(folder: &Path, manifest: &Value) -> String {
        let layer = blob(folder, &document(folder, manifest)["layers"][0]);
        output(Command::new("tar").args(["--numeric-owner", "--full-time", "-tzvf"]).arg(layer).env("TZ", "UTC"))
            .unwrap()
    }

    #[test]
    fn the_same_program_gives_the_same_bytes_whenever_it_was_built() {
        let folder = folder("bytes");
        let file = folder.join("program");
        let [one, two] = ["one.tar", "two.tar"].map(|name| folder.join(name));
        let write = |archive: &Path| write(&[program("amd64", &file)], NAME, archive).unwrap();
        fs::write(&file, "a program").unwrap();
        let first = write(&one);
        output(Command::new("touch").args(["--date", "2001-02-03", file.to_str().unwrap()])).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o700)).unwrap();
        let second = write(&two);
        assert_eq!(first, second);
        assert!(fs::read(&one).unwrap() == fs::read(&two).unwrap(), "the archives differ");

        fs::write(&file, "another program").unwrap();
        assert_ne!(write(&two), first);
        let index = unpacked(&one, &folder);
        assert_eq!(index["manifests"][0]["digest"], first.image.as_str());
        assert_eq!(first.manifests, std::slice::from_ref(&first.image));
        let listed = listed(&folder, &index["manifests"][0]);
        assert!(
            listed.lines().all(|line| line.contains(" 0/0 ") && line.contains(" 1970-01-01 00:00:00 ")),
            "{listed}"
        );
        assert!(listed.lines().any(|line| line.starts_with("-rwxr-xr-x") && line.ends_with("bin/troupe")), "{listed}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn an_image_for_two_architectures_is_one_index_with_the_program_of_each() {
        let folder = folder("index");
        let programs = ["arm64", "amd64"].map(|architecture| {
            let file = folder.join(architecture);
            fs::write(&file, format!("a program for {architecture}")).unwrap();
            program(architecture, &file)
        });
        let [one, two] = ["one.tar", "two.tar"].map(|name| folder.join(name));
        let digests = write(&programs, NAME, &one).unwrap();
        assert_eq!(write(&programs, NAME, &two).unwrap(), digests);
        assert!(fs::read(&one).unwrap() == fs::read(&two).unwrap(), "the archives differ");

        let layout = unpacked(&one, &folder);
        let [entry] = &layout["manifests"].as_array().unwrap()[..] else { panic!("{layout}") };
        assert_eq!(entry["digest"], digests.image.as_str());
        assert_eq!(entry["annotations"]["io.containerd.image.name"], NAME);
        assert!(entry["platform"].is_null(), "it is for no one platform: {entry}");
        let index = document(&folder, entry);
        assert_eq!((&index["mediaType"], &entry["mediaType"]), (&entry["mediaType"], &index["mediaType"]));
        assert_eq!(index["mediaType"], "application/vnd.oci.image.index.v1+json");
        let manifests = index["manifests"].as_array().unwrap();
        assert_eq!((manifests.len(), digests.manifests.len()), (2, 2));
        for ((manifest, digest), program) in manifests.iter().zip(&digests.manifests).zip(&programs) {
            assert_eq!(manifest["digest"], digest.as_str());
            let architecture = program.architecture.as_str();
            assert_eq!(manifest["platform"], serde_json::json!({ "architecture": architecture, "os": "linux" }));
            let content = document(&folder, manifest);
            assert_eq!(document(&folder, &content["config"])["architecture"], architecture);
            let layer = blob(&folder, &content["layers"][0]);
            let program = Command::new("tar").arg("-xzOf").arg(layer).arg("./usr/local/bin/troupe").output().unwrap();
            assert_eq!(String::from_utf8(program.stdout).unwrap(), format!("a program for {architecture}"));
        }
        let twice = [programs[0].clone(), programs[0].clone()];
        assert!(write(&twice, NAME, &two).unwrap_err().to_string().contains("two programs for one architecture"));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_name_that_a_container_runtime_would_take_for_another_is_refused() {
        for name in ["troupe", "troupe:1", "library/troupe:1", "ghcr.io/troupe", "ghcr.io/Team/troupe:1", "a.b/c:1/d"] {
            let refused = check(name).unwrap_err().to_string();
            assert!(refused.contains("registry.example.org/team/troupe:1.0"), "{name}: {refused}");
        }
        for name in [NAME, "ghcr.io/team/troupe:1.0", "10.0.0.1:5000/troupe:latest"] {
            check(name).unwrap();
        }
    }
}

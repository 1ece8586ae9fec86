//! What is in the image of Troupe: the program, certificates of public authorities, a user without rights, the licence.

use crate::oci::{self, Image, Layer};
use anyhow::{Context, Result, ensure};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// The reference that `deploy/operator.yaml` and the chart name where nobody names another. No registry has it, so that
/// a node which was not given the image says so, instead of running somebody else's.
pub const NAME: &str = concat!("localhost/troupe:", env!("CARGO_PKG_VERSION"));

/// The user and group of the process: as in the images of other operators, a number that no system account has.
const USER: &str = "65532:65532";

const PASSWD: &str = "root:x:0:0:root:/:/sbin/nologin\ntroupe:x:65532:65532:troupe:/:/sbin/nologin\n";
const GROUP: &str = "root:x:0:\ntroupe:x:65532:\n";

/// Certificates of authorities by Debian's package ca-certificates; Fedora has them elsewhere.
const AUTHORITIES: [&str; 2] = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

const LICENSE: &str = include_str!("../../../LICENSE");

/// Writes the image with this program to `archive`. `others` are files that the program needs beside itself, such as
/// shared libraries, each with its path in the image. Returns the digest of the manifest.
///
/// # Errors
/// A file cannot be read or written, or this machine has no certificates of public authorities.
pub fn write(program: &Path, others: &[(PathBuf, PathBuf)], name: &str, archive: &Path) -> Result<String> {
    let work = archive.with_extension("part");
    if work.exists() {
        fs::remove_dir_all(&work).with_context(|| format!("failed to remove {}", work.display()))?;
    }
    let rootfs = work.join("rootfs");
    put(&rootfs, "usr/local/bin/troupe", &read(program)?, 0o755)?;
    let authorities = AUTHORITIES.iter().map(Path::new).find(|path| path.exists());
    let authorities =
        authorities.context("this machine has no certificates of authorities: install ca-certificates")?;
    put(&rootfs, "etc/ssl/certs/ca-certificates.crt", &read(authorities)?, 0o644)?;
    put(&rootfs, "etc/passwd", PASSWD.as_bytes(), 0o644)?;
    put(&rootfs, "etc/group", GROUP.as_bytes(), 0o644)?;
    put(&rootfs, "usr/share/doc/troupe/LICENSE", LICENSE.as_bytes(), 0o644)?;
    for (place, file) in others {
        let place = place.strip_prefix("/").unwrap_or(place).to_str().context("a path in an image is UTF-8")?;
        put(&rootfs, place, &read(file)?, 0o755)?;
    }
    let labels = [
        ("org.opencontainers.image.title", "troupe"),
        ("org.opencontainers.image.version", env!("CARGO_PKG_VERSION")),
        ("org.opencontainers.image.licenses", env!("CARGO_PKG_LICENSE")),
    ];
    let image = Image { name, entrypoint: &["/usr/local/bin/troupe"], user: USER, labels: &labels, ..Image::default() };
    let part = work.join("archive.tar");
    let digest = oci::write(image, &rootfs, Layer::Reproducible, &work, &part)?;
    fs::rename(part, archive).with_context(|| format!("failed to write {}", archive.display()))?;
    fs::remove_dir_all(&work)?;
    Ok(digest)
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
    let path = rootfs.join(place);
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
    use std::{env, process::Command};

    fn folder(name: &str) -> PathBuf {
        let folder = env::temp_dir().join(format!("troupe-image-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// What `tar` prints of an archive's content, the layer's by its path.
    fn listed(archive: &Path, folder: &Path) -> String {
        output(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(folder)).unwrap();
        let index: serde_json::Value = serde_json::from_slice(&fs::read(folder.join("index.json")).unwrap()).unwrap();
        let blob = |digest: &serde_json::Value| {
            let digest = digest.as_str().unwrap().strip_prefix("sha256:").unwrap();
            folder.join("blobs/sha256").join(digest)
        };
        let manifest = fs::read(blob(&index["manifests"][0]["digest"])).unwrap();
        let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
        let layer = blob(&manifest["layers"][0]["digest"]);
        output(Command::new("tar").args(["--numeric-owner", "--full-time", "-tzvf"]).arg(layer).env("TZ", "UTC"))
            .unwrap()
    }

    #[test]
    fn the_same_program_gives_the_same_bytes_whenever_it_was_built() {
        let folder = folder("bytes");
        let program = folder.join("program");
        let [one, two] = ["one.tar", "two.tar"].map(|name| folder.join(name));
        fs::write(&program, "a program").unwrap();
        let first = write(&program, &[], NAME, &one).unwrap();
        output(Command::new("touch").args(["--date", "2001-02-03", program.to_str().unwrap()])).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        let second = write(&program, &[], NAME, &two).unwrap();
        assert_eq!(first, second);
        assert!(fs::read(&one).unwrap() == fs::read(&two).unwrap(), "the archives differ");

        fs::write(&program, "another program").unwrap();
        assert_ne!(write(&program, &[], NAME, &two).unwrap(), first);
        let listed = listed(&one, &folder);
        assert!(
            listed.lines().all(|line| line.contains(" 0/0 ") && line.contains(" 1970-01-01 00:00:00 ")),
            "{listed}"
        );
        assert!(listed.lines().any(|line| line.starts_with("-rwxr-xr-x") && line.ends_with("bin/troupe")), "{listed}");
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

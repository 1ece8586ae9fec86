//! A real registry and the built binary: what is pushed comes back, whatever becomes of its tag.

use super::{
    command::{does, refuses},
    failure, options, pull_with, told,
};
use harness::{Binaries, Guests, Registry, Tool, USER};
use image::sign::Key;
use p256::pkcs8::{EncodePrivateKey, EncodePublicKey, LineEnding};
use registry::{Digest, RegistryError};
use sandbox::Plugins;
use serde_json::{Value, json};
use std::{fs, process::Command};

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_plugin_that_is_pushed_comes_back_byte_for_byte_whatever_becomes_of_its_tag() {
    let registry = Registry::start(Guests::All).await.unwrap();
    let folder = registry.dir();
    let (first, second) = (Plugins::built_in("paddle").unwrap(), Plugins::built_in("mpi").unwrap());
    fs::write(folder.join("first.wasm"), first).unwrap();
    fs::write(folder.join("second.wasm"), second).unwrap();
    let tag = format!("{}/team/plugins/paddle:1.0", registry.address());

    let resolved = does(folder, &["push", "first.wasm", &tag, "--insecure"]).await;
    assert_eq!(does(folder, &["pull", &tag, "--insecure"]).await, resolved);
    assert_eq!(fs::read(folder.join("paddle.wasm")).unwrap(), first, "it is named as its repository is");
    assert_eq!(does(folder, &["push", "first.wasm", &tag, "--insecure"]).await, resolved, "it is the same artifact");

    let moved = does(folder, &["push", "second.wasm", &tag, "--insecure"]).await;
    assert_ne!(moved, resolved);
    assert_eq!(does(folder, &["pull", &tag, "-o", "now.wasm", "--insecure"]).await, moved);
    assert_eq!(fs::read(folder.join("now.wasm")).unwrap(), second);
    assert_eq!(does(folder, &["pull", &resolved, "-o", "then.wasm", "--insecure"]).await, resolved);
    assert_eq!(fs::read(folder.join("then.wasm")).unwrap(), first);
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn the_artifact_says_what_it_is_as_the_wasm_layout_has_it() {
    let registry = Registry::start(Guests::All).await.unwrap();
    let folder = registry.dir();
    fs::write(folder.join("plugin.wasm"), Plugins::built_in("paddle").unwrap()).unwrap();
    let resolved =
        does(folder, &["push", "plugin.wasm", &format!("{}/paddle:1", registry.address()), "--insecure"]).await;
    let digest = resolved.rsplit_once("sha256:").unwrap().1;
    let manifest: Value = serde_json::from_slice(&registry.blob(digest).unwrap()).unwrap();
    assert_eq!(manifest["config"]["mediaType"], "application/vnd.wasm.config.v0+json");
    assert_eq!(manifest["layers"][0]["mediaType"], "application/wasm");
    assert_eq!(manifest["annotations"]["org.opencontainers.image.title"], "paddle");
    assert_eq!(manifest["annotations"]["dev.troupe.plugin.serves"], "batch.paddlepaddle.org/v1 PaddleJob");
    let config = manifest["config"]["digest"].as_str().unwrap().trim_start_matches("sha256:");
    let config: Value = serde_json::from_slice(&registry.blob(config).unwrap()).unwrap();
    assert_eq!(config["os"], "wasip2");
    assert_eq!(config["layerDigests"][0], manifest["layers"][0]["digest"]);
    assert_eq!(config["component"]["exports"], json!(["troupe:framework/framework@0.1.0"]));
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_registry_that_asks_gets_the_password_of_docker_login() {
    let registry = Registry::start(Guests::Known).await.unwrap();
    let folder = registry.dir();
    fs::write(folder.join("plugin.wasm"), Plugins::built_in("paddle").unwrap()).unwrap();
    let tag = format!("{}/paddle:1", registry.address());
    let push = ["push", "plugin.wasm", &tag, "--insecure"];
    let nobody = refuses(folder, &push).await;
    assert!(nobody.contains("asks for credentials: ") && nobody.contains("docker login"), "{nobody}");

    let (username, password) = USER;
    let auths = json!({ "auths": { registry.address().to_string(): { "username": username, "password": password } } });
    fs::write(folder.join("other.json"), auths.to_string()).unwrap();
    let resolved = does(folder, &[&push[..], &["--docker-config", "other.json"]].concat()).await;
    // Where `docker login` would have written it.
    fs::rename(folder.join("other.json"), folder.join("config.json")).unwrap();
    assert_eq!(does(folder, &["pull", &tag, "--insecure"]).await, resolved);

    fs::write(folder.join("config.json"), auths.to_string().replace(password, "looking-glass")).unwrap();
    let wrong = refuses(folder, &["pull", &tag, "--insecure"]).await;
    assert!(wrong.contains("refuses those that it got") && !wrong.contains("looking-glass"), "{wrong}");
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn what_was_changed_inside_a_registry_is_refused() {
    let registry = Registry::start(Guests::All).await.unwrap();
    let folder = registry.dir();
    let wasm = Plugins::built_in("paddle").unwrap();
    fs::write(folder.join("plugin.wasm"), wasm).unwrap();
    let tag = format!("{}/paddle:1", registry.address());
    does(folder, &["push", "plugin.wasm", &tag, "--insecure"]).await;
    assert!(pull_with(&tag, &options()).await.is_ok());

    let mut changed = wasm.to_vec();
    *changed.last_mut().unwrap() ^= 1;
    registry.corrupt(Digest::of(wasm).hex().as_str(), &changed).unwrap();
    let error = failure(&tag, &options()).await;
    assert!(matches!(error, RegistryError::Mismatch { .. }), "{}", told(&error));
}

#[tokio::test]
async fn what_the_host_would_not_serve_is_not_pushed() {
    let folder = tempfolder("not-pushed");
    fs::write(folder.join("core.wasm"), b"\0asm\x01\0\0\0").unwrap();
    let core = refuses(&folder, &["push", "core.wasm", "localhost:1/p:1", "--insecure"]).await;
    assert!(
        core.contains("core.wasm is a core module, not a WebAssembly component; build the plugin for wasm32-wasip2"),
        "{core}"
    );
    fs::write(folder.join("paddle.wasm"), Plugins::built_in("paddle").unwrap()).unwrap();
    let pinned = format!("localhost:1/p@{}", Digest::of(b""));
    let digest = refuses(&folder, &["push", "paddle.wasm", &pinned, "--insecure"]).await;
    assert!(digest.contains("name a tag"), "{digest}");
    let nobody = refuses(&folder, &["push", "paddle.wasm", "localhost:1/p:1", "--insecure"]).await;
    assert!(nobody.contains("failed to push localhost:1/p:1: failed to reach http://localhost:1/v2/p/"), "{nobody}");
}

/// A folder of a test that needs no registry.
fn tempfolder(name: &str) -> std::path::PathBuf {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("registry").join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[tokio::test]
#[cfg_attr(lacks_image, ignore = "TROUPE_REQUIRE does not name image")]
async fn cosign_attaches_the_signature_and_verifies_it_with_its_key_only() {
    let registry = Registry::start(Guests::All).await.unwrap();
    let binaries = tokio::task::spawn_blocking(|| Binaries::of(&[Tool::Cosign])).await.unwrap().unwrap();
    let name = format!("{}/team/troupe:1", registry.address());
    let folder = registry.dir();
    fs::write(folder.join("first.wasm"), Plugins::built_in("paddle").unwrap()).unwrap();
    let resolved = does(folder, &["push", "first.wasm", &name, "--insecure"]).await;
    let pushed = format!("sha256:{}", resolved.rsplit_once("sha256:").unwrap().1.trim());
    let secret = p256::SecretKey::from_slice(&[3; 32]).unwrap();
    let signed = Key::parse(&secret.to_pkcs8_pem(LineEnding::LF).unwrap()).unwrap().sign(&name, &pushed);
    let public = |secret: &p256::SecretKey| secret.public_key().to_public_key_pem(LineEnding::LF).unwrap();
    for (file, text) in [
        ("payload.json", &signed.payload),
        ("sig", &signed.signature),
        ("own.pub", &public(&secret)),
        ("other.pub", &public(&p256::SecretKey::from_slice(&[4; 32]).unwrap())),
    ] {
        fs::write(folder.join(file), text).unwrap();
    }
    let image = format!("{}@{pushed}", name.trim_end_matches(":1"));
    let cosign = |arguments: &[&str]| {
        let mut cosign = Command::new(binaries.path(Tool::Cosign).unwrap());
        let done = cosign.current_dir(folder).env("HOME", folder).args(arguments).arg(&image).output().unwrap();
        let told = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
        (done.status.success(), told)
    };
    let verify = |key: &str| cosign(&["verify", "--key", key, "--insecure-ignore-tlog"]);
    let (is_valid, told) = verify("own.pub");
    assert!(!is_valid, "nothing is signed yet: {told}");
    let (is_done, told) = cosign(&["attach", "signature", "--signature", "sig", "--payload", "payload.json"]);
    assert!(is_done, "{told}");
    let (is_valid, told) = verify("own.pub");
    assert!(is_valid && told.contains(&pushed), "{told}");
    let (is_valid, told) = verify("other.pub");
    assert!(!is_valid, "{told}");
}

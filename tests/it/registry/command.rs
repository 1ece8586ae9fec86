//! The built binary's `troupe plugin push` and `pull`, as a person types them.

use crate::operator::binary;
use std::{path::Path, process::Stdio};
use tokio::process::Command;

/// What a command came to.
pub(super) struct Done {
    pub(super) ok: bool,
    /// Its last line on standard output.
    pub(super) out: String,
    /// All of its standard error.
    pub(super) err: String,
}

/// `troupe plugin` with these words, in this folder and with no docker config and certificate authority but what is there.
pub(super) async fn plugin(folder: &Path, words: &[&str]) -> Done {
    let binary = tokio::task::spawn_blocking(binary).await.unwrap();
    let mut command = Command::new(binary);
    command.arg("plugin").args(words).current_dir(folder).stdin(Stdio::null()).kill_on_drop(true);
    command.env("DOCKER_CONFIG", folder).env_remove("SSL_CERT_DIR").env("SSL_CERT_FILE", folder.join("ca.crt"));
    let done = command.output().await.unwrap();
    let out = String::from_utf8_lossy(&done.stdout);
    Done {
        ok: done.status.success(),
        out: out.lines().next_back().unwrap_or_default().to_owned(),
        err: String::from_utf8_lossy(&done.stderr).into_owned(),
    }
}

/// As [`plugin`]; what it printed.
pub(super) async fn does(folder: &Path, words: &[&str]) -> String {
    let done = plugin(folder, words).await;
    assert!(done.ok, "troupe plugin {words:?}: {}", done.err);
    done.out
}

/// As [`plugin`]; why it refused.
pub(super) async fn refuses(folder: &Path, words: &[&str]) -> String {
    let done = plugin(folder, words).await;
    assert!(!done.ok, "troupe plugin {words:?}: {}", done.out);
    assert!(done.err.starts_with("troupe: "), "{}", done.err);
    done.err
}

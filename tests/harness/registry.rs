//! A real registry of artifacts: CNCF Distribution on this machine, as one process.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::slice;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::binaries::{Binaries, Tool};
use crate::ports::free_port;
use crate::process::{Process, until_alive};
use crate::run_dir::RunDir;

const START: Duration = Duration::from_secs(30);

/// Who may come in where a registry asks, and with which password.
pub const USER: (&str, &str) = ("alice", "wonderland");

/// `USER` as htpasswd writes it; the registry reads bcrypt only.
const HTPASSWD: &str = "alice:$2b$05$abcdefghijklmnopqrstuuA0vov2GDneHB3.8.cv9UF9g.RdvScIW\n";

/// Who may use a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guests {
    /// Everybody.
    All,
    /// Only [`USER`].
    Known,
}

/// A running registry that speaks plain HTTP, ended with the value.
#[derive(Debug)]
pub struct Registry {
    address: SocketAddr,
    _process: Process,
    dir: RunDir,
}

impl Registry {
    /// Starts one that is empty; returns when it answers.
    pub async fn start(guests: Guests) -> Result<Registry> {
        let binaries = tokio::task::spawn_blocking(|| Binaries::of(&[Tool::Registry])).await??;
        let dir = RunDir::create("registry")?;
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        let mut config = json!({
            "version": 0.1,
            "log": { "level": "warn" },
            "storage": { "filesystem": { "rootdirectory": dir.join("data") } },
            "http": { "addr": address.to_string() },
        });
        if guests == Guests::Known {
            let path = dir.write("htpasswd", HTPASSWD)?;
            config["auth"] = json!({ "htpasswd": { "realm": "test", "path": path } });
        }
        // JSON is YAML.
        let config = dir.write("config.yaml", &config.to_string())?;
        let mut command = Command::new(binaries.path(Tool::Registry)?);
        command.arg("serve").arg(config).env("OTEL_TRACES_EXPORTER", "none");
        let mut process = Process::start("registry", dir.path(), command)?;
        until_alive(slice::from_mut(&mut process), START, "the registry to answer", || async move {
            let status = status(address).await?;
            ensure!(["200", "401"].contains(&status.as_str()), "it answers {status}");
            Ok(Some(()))
        })
        .await?;
        Ok(Registry { address, _process: process, dir })
    }

    /// Its host and port, as a reference begins.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A folder that ends with it.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The stored bytes of this SHA-256, in hex.
    pub fn blob(&self, digest: &str) -> Result<Vec<u8>> {
        let file = self.file(digest);
        fs::read(&file).with_context(|| format!("no blob is at {}", file.display()))
    }

    /// Replaces the stored bytes of this SHA-256, in hex, by others, as a broken disk or an intruder does.
    pub fn corrupt(&self, digest: &str, bytes: &[u8]) -> Result<()> {
        self.blob(digest)?;
        Ok(fs::write(self.file(digest), bytes)?)
    }

    fn file(&self, digest: &str) -> PathBuf {
        let blobs = self.dir.join("data/docker/registry/v2/blobs/sha256");
        blobs.join(&digest[..2]).join(digest).join("data")
    }
}

/// The status code of its front door.
async fn status(address: SocketAddr) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(format!("GET /v2/ HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text.split(' ').nth(1).unwrap_or_default().to_owned())
}

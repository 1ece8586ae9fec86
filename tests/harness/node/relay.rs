//! The API server as pods know it: at the first address of the cluster's Services. A node has no kube-proxy, so a relay is
//! there.

use std::{io::ErrorKind, process::Command, time::Duration};

use anyhow::{Context, Result};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::machine::BRIDGE;
use crate::{process::output, until};

/// The Service `kubernetes`, by the API server's range of addresses.
const SERVICE: &str = "10.96.0.1";

/// Patience with another node's relay.
const FREED: Duration = Duration::from_secs(10);

/// Answers pods until it is dropped.
pub(super) struct Relay(JoinHandle<()>);

impl Relay {
    /// Starts it on the node's bridge, which goes with the node. `server` is the API server's address without `https://`.
    pub(super) async fn start(server: &str) -> Result<Relay> {
        output(Command::new("ip").args(["address", "add", &format!("{SERVICE}/32"), "dev", BRIDGE]))?;
        // The relay of the last node may still be on its way out.
        let listener = until(FREED, "the relay of another node to be gone", || async {
            match TcpListener::bind((SERVICE, 443)).await {
                Err(error) if error.kind() == ErrorKind::AddrInUse => Ok(None),
                bound => Ok(Some(bound.context("failed to listen for pods")?)),
            }
        });
        let listener = listener.await?;
        let server = server.to_owned();
        Ok(Relay(tokio::spawn(async move {
            while let Ok((mut pod, _)) = listener.accept().await {
                let server = server.clone();
                tokio::spawn(async move {
                    // Whoever is cut off tries again.
                    if let Ok(mut server) = TcpStream::connect(server).await {
                        let _ = copy_bidirectional(&mut pod, &mut server).await;
                    }
                });
            }
        })))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.0.abort();
    }
}

//! Connections to the admin port: limits on their number and duration, and TLS unless the address is loopback.

use super::access::Access;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use parking_lot::Mutex;
use std::{collections::BTreeMap, net::IpAddr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};
use tracing::{debug, warn};

/// The time limit for a TLS handshake and for the head of each request. A connection that is idle for longer is closed.
const HEAD: Duration = Duration::from_secs(10);

/// The maximum lifetime of a connection, busy or not.
const LIFE: Duration = Duration::from_secs(300);

/// The maximum size of a request's head: a long token fits.
const HEAD_BYTES: usize = 64 << 10;

/// The maximum number of connections, in total and per address, so that no client blocks the kubelet's probes.
const MOST: usize = 256;
const MOST_OF_ONE: usize = 16;

/// How long to wait after a failed accept (too many open files).
const AGAIN: Duration = Duration::from_millis(100);

/// Accepts and serves connections for as long as the future is polled.
pub(super) async fn serve(listener: TcpListener, access: &Arc<Access>, routes: &Router) {
    let open = Arc::new(Open::default());
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                warn!(%error, "failed to accept a connection to the admin port");
                sleep(AGAIN).await;
                continue;
            }
        };
        let Some(permit) = Open::admit(&open, peer.ip()) else { continue };
        let (access, routes) = (Arc::clone(access), routes.clone());
        tokio::spawn(async move {
            let _permit = permit;
            if timeout(LIFE, answer(stream, &access, routes)).await.is_err() {
                debug!(%peer, "a connection to the admin port took too long");
            }
        });
    }
}

async fn answer(stream: TcpStream, access: &Access, routes: Router) {
    match access {
        Access::Loopback => http(stream, routes).await,
        Access::Reviewed(_, tls) => match timeout(HEAD, tls.acceptor().accept(stream)).await {
            Ok(Ok(stream)) => http(stream, routes).await,
            Ok(Err(error)) => debug!(%error, "the TLS handshake failed"),
            Err(_) => debug!("the TLS handshake took too long"),
        },
    }
}

async fn http(stream: impl AsyncRead + AsyncWrite + Unpin, routes: Router) {
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES);
    if let Err(error) = server.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes)).await {
        debug!(%error, "a connection to the admin port ended early");
    }
}

/// The number of open connections by address.
#[derive(Default)]
struct Open(Mutex<BTreeMap<IpAddr, usize>>);

/// The permit of one open connection; released when dropped.
struct ConnectionPermit {
    open: Arc<Open>,
    address: IpAddr,
}

impl Open {
    fn admit(open: &Arc<Self>, address: IpAddr) -> Option<ConnectionPermit> {
        let mut by_address = open.0.lock();
        let (all, of_one) = (by_address.values().sum::<usize>(), by_address.get(&address).copied().unwrap_or_default());
        if all >= MOST || of_one >= MOST_OF_ONE {
            return None;
        }
        by_address.insert(address, of_one + 1);
        Some(ConnectionPermit { open: Arc::clone(open), address })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut by_address = self.open.0.lock();
        if let Some(of_one) = by_address.get_mut(&self.address) {
            *of_one -= 1;
            if *of_one == 0 {
                by_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::{io::AsyncWriteExt, time::Instant};

    /// Serves what a client sends that keeps its connection; returns after how long the connection was closed.
    async fn closed_after(sent: &[u8]) -> Duration {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        client.write_all(sent).await.unwrap();
        let began = Instant::now();
        timeout(LIFE, http(server, Router::new())).await.expect("the connection is closed");
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_closed_whose_head_does_not_come() {
        assert_eq!(closed_after(b"GET /healthz HTTP/1.1\r\n").await.as_secs(), HEAD.as_secs());
        // After an answer the next head is waited for.
        assert_eq!(closed_after(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.as_secs(), HEAD.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_closed_whose_head_is_too_large() {
        let head = format!("GET /healthz HTTP/1.1\r\nx: {}\r\n", "x".repeat(2 * HEAD_BYTES));
        assert_eq!(closed_after(head.as_bytes()).await, Duration::ZERO);
    }

    #[test]
    fn one_address_cannot_take_the_places_of_all() {
        let open = Arc::new(Open::default());
        let (greedy, probe) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let taken: Vec<_> = (0..100).filter_map(|_| Open::admit(&open, greedy)).collect();
        assert_eq!(taken.len(), MOST_OF_ONE);
        assert!(Open::admit(&open, probe).is_some());
        drop(taken);
        assert!(open.0.lock().is_empty());
    }

    #[test]
    fn all_addresses_together_have_so_many_places() {
        let open = Arc::new(Open::default());
        let address = |number: u32| IpAddr::from(number.to_be_bytes());
        let taken: Vec<_> = (0..1000).filter_map(|number| Open::admit(&open, address(number))).collect();
        assert_eq!(taken.len(), MOST);
    }
}

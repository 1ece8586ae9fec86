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
    sync::Notify,
    time::{sleep, timeout},
};
use tracing::{debug, warn};

/// The time limit for a TLS handshake and for the head of each request. A connection that is idle for longer is closed.
const HEAD: Duration = Duration::from_secs(10);

/// The maximum lifetime of a connection, busy or not.
const LIFE: Duration = Duration::from_secs(300);

/// The maximum size of a request's head: a long token fits.
const HEAD_BYTES: usize = 64 << 10;

/// The maximum number of connections, in total and per address. If there are as many in total, a connection of the address
/// with the most is closed for one of an address with fewer: neither one client nor many together block the kubelet's probes.
const MOST: usize = 256;
const MOST_OF_ONE: usize = 16;

/// How long to wait after a failed accept (too many open files).
const AGAIN: Duration = Duration::from_millis(100);

/// Accepts and serves connections for as long as the future is polled.
pub(super) async fn serve(listener: &TcpListener, access: &Arc<Access>, routes: &Router) {
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
            tokio::select! {
                ended = timeout(LIFE, answer(stream, &access, routes)) => if ended.is_err() {
                    debug!(%peer, "a connection to the admin port took too long");
                },
                () = permit.revoked.notified() => debug!(%peer, "a connection to the admin port gave its place to another"),
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

/// The open connections of each address, the oldest first.
#[derive(Default)]
struct Open(Mutex<BTreeMap<IpAddr, Vec<Arc<Notify>>>>);

/// The permit of one open connection; released when dropped.
struct ConnectionPermit {
    open: Arc<Open>,
    address: IpAddr,
    /// Notified when the connection has to end, since another one has its place.
    revoked: Arc<Notify>,
}

impl Open {
    fn admit(open: &Arc<Self>, address: IpAddr) -> Option<ConnectionPermit> {
        let mut by_address = open.0.lock();
        let of_one = by_address.get(&address).map_or(0, Vec::len);
        if of_one >= MOST_OF_ONE {
            return None;
        }
        if by_address.values().map(Vec::len).sum::<usize>() >= MOST {
            let most = by_address.values_mut().max_by_key(|of_address| of_address.len());
            most.filter(|most| most.len() > of_one)?.remove(0).notify_one();
            by_address.retain(|_, of_address| !of_address.is_empty());
        }
        let revoked = Arc::new(Notify::new());
        by_address.entry(address).or_default().push(Arc::clone(&revoked));
        Some(ConnectionPermit { open: Arc::clone(open), address, revoked })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut by_address = self.open.0.lock();
        if let Some(of_address) = by_address.get_mut(&self.address) {
            of_address.retain(|other| !Arc::ptr_eq(other, &self.revoked));
            if of_address.is_empty() {
                by_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
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

    fn address(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    #[tokio::test]
    async fn a_probe_gets_a_place_whoever_has_taken_all() {
        for greedy in [MOST / MOST_OF_ONE, MOST] {
            let open = Arc::new(Open::default());
            let addresses = (0..MOST).map(|number| address(u32::try_from(number % greedy).unwrap()));
            let taken: Vec<_> = addresses.map(|address| Open::admit(&open, address).unwrap()).collect();
            let probe = Open::admit(&open, address(u32::MAX)).unwrap();
            assert_eq!(open.0.lock().values().map(Vec::len).sum::<usize>(), MOST);
            let revoked = taken.iter().filter(|permit| permit.revoked.notified().now_or_never().is_some());
            assert_eq!(revoked.count(), 1, "one of {greedy} addresses gave a place");
            assert!(probe.revoked.notified().now_or_never().is_none());
            drop((taken, probe));
            assert!(open.0.lock().is_empty());
        }
    }

    // Else two clients that connect again and again would close each other's connections.
    #[test]
    fn an_address_takes_no_place_of_one_that_has_as_few() {
        let open = Arc::new(Open::default());
        let taken: Vec<_> = (0..1000).filter_map(|number| Open::admit(&open, address(number % 256))).collect();
        assert_eq!(taken.len(), MOST);
    }
}

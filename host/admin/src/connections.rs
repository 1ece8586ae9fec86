//! Connections to the admin port: limits on their number and duration, and TLS unless the address is loopback.

use super::{
    access::Access,
    reader::Peer,
    seats::{Seat, Seats},
};
use axum::{
    Router,
    body::{Body, Bytes},
};
use hyper::{
    Request,
    body::{Frame, Incoming, SizeHint},
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use std::{
    convert::Infallible,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
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

/// The maximum number of connections, in total and of one address. The oldest of an address on which nothing is asked is
/// closed for its next one; if there are as many in total, one of the address with the most for an address with fewer.
const MOST: usize = 256;
const MOST_OF_ONE: usize = 16;

/// The same of connections beside these that answer probes alone. The kubelet has the address of its node, as all pods of the
/// node's network and what comes through its ports: whatever these do, its probes are answered.
const MOST_PROBES: usize = 64;
const MOST_PROBES_OF_ONE: usize = 4;

/// How long to wait after a failed accept (too many open files).
const AGAIN: Duration = Duration::from_millis(100);

/// What is answered on a connection.
#[derive(Clone)]
pub(super) struct Routes {
    /// Everything.
    pub(super) all: Router,
    /// Probes, and to anything else that the address has too many connections.
    pub(super) probes: Router,
}

/// Accepts and serves connections for as long as the future is polled.
pub(super) async fn serve(listener: &TcpListener, access: &Arc<Access>, routes: &Routes) {
    let open = Open::default();
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                warn!(%error, "failed to accept a connection to the admin port");
                sleep(AGAIN).await;
                continue;
            }
        };
        let Some(admitted) = open.admit(peer.ip()) else { continue };
        let (access, routes) = (Arc::clone(access), routes.clone());
        tokio::spawn(async move {
            let (seat, routes) = match admitted {
                Admitted::ToAll(seat) => (seat, routes.all),
                Admitted::ToProbes(seat) => (seat, routes.probes),
            };
            let revoked = seat.revoked();
            tokio::select! {
                ended = timeout(LIFE, answer(stream, &access, routes, seat)) => if ended.is_err() {
                    debug!(%peer, "a connection to the admin port took too long");
                },
                () = revoked => debug!(%peer, "a connection to the admin port gave its place to another"),
            }
        });
    }
}

async fn answer(stream: TcpStream, access: &Access, routes: Router, seat: Seat<IpAddr>) {
    match access {
        Access::Loopback => http(stream, routes, seat).await,
        Access::Reviewed(_, tls) => match timeout(HEAD, tls.acceptor().accept(stream)).await {
            Ok(Ok(stream)) => http(stream, routes, seat).await,
            Ok(Err(error)) => debug!(%error, "the TLS handshake failed"),
            Err(_) => debug!("the TLS handshake took too long"),
        },
    }
}

async fn http(stream: impl AsyncRead + AsyncWrite + Unpin, routes: Router, seat: Seat<IpAddr>) {
    let (seat, routes) = (Arc::new(seat), TowerToHyperService::new(routes));
    let answered = service_fn(move |mut request: Request<Incoming>| {
        let in_use = InUse::of(&seat);
        request.extensions_mut().insert(Peer(*seat.holder()));
        let answered = routes.call(request);
        async move { Ok::<_, Infallible>(answered.await?.map(|body| Answer { body, _in_use: in_use })) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES);
    if let Err(error) = server.serve_connection(TokioIo::new(stream), answered).await {
        debug!(%error, "a connection to the admin port ended early");
    }
}

/// The body of an answer. Its connection is in use until it is dropped.
struct Answer {
    body: Body,
    _in_use: InUse,
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection on which something is asked; it is idle again when this is dropped.
struct InUse(Arc<Seat<IpAddr>>);

impl InUse {
    fn of(seat: &Arc<Seat<IpAddr>>) -> Self {
        seat.set_in_use(true);
        Self(Arc::clone(seat))
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.set_in_use(false);
    }
}

/// The places of open connections, by address.
struct Open {
    all: Arc<Seats<IpAddr>>,
    probes: Arc<Seats<IpAddr>>,
}

/// The place of an open connection, by what it may ask for.
enum Admitted {
    ToAll(Seat<IpAddr>),
    ToProbes(Seat<IpAddr>),
}

impl Default for Open {
    fn default() -> Self {
        let (all, probes) = (Seats::new(MOST, MOST_OF_ONE), Seats::new(MOST_PROBES, MOST_PROBES_OF_ONE));
        Self { all, probes }
    }
}

impl Open {
    fn admit(&self, address: IpAddr) -> Option<Admitted> {
        let admitted = match self.all.take(address) {
            Ok(seat) => Admitted::ToAll(seat),
            Err(_) => Admitted::ToProbes(self.probes.take(address).ok()?),
        };
        let (Admitted::ToAll(seat) | Admitted::ToProbes(seat)) = &admitted;
        seat.set_in_use(false);
        Some(admitted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use tokio::{io::AsyncWriteExt, time::Instant};

    fn seat() -> Seat<IpAddr> {
        Seats::new(1, 1).take(address(0)).unwrap()
    }

    /// Serves what a client sends that keeps its connection; returns after how long the connection was closed.
    async fn closed_after(sent: &[u8]) -> Duration {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        client.write_all(sent).await.unwrap();
        let began = Instant::now();
        timeout(LIFE, http(server, Router::new(), seat())).await.expect("the connection is closed");
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

    fn address(number: usize) -> IpAddr {
        IpAddr::from(u32::try_from(number).unwrap().to_be_bytes())
    }

    fn is_revoked(admitted: &Admitted) -> bool {
        let (Admitted::ToAll(seat) | Admitted::ToProbes(seat)) = admitted;
        seat.revoked().now_or_never().is_some()
    }

    #[test]
    fn one_address_with_idle_connections_has_a_place_for_the_next_and_takes_none_of_others() {
        let open = Open::default();
        let other = open.admit(address(2)).unwrap();
        let mut taken: Vec<_> = (0..MOST_OF_ONE).map(|_| open.admit(address(1)).unwrap()).collect();
        let probe = open.admit(address(1)).unwrap();
        assert!(matches!(probe, Admitted::ToAll(_)));
        assert!(is_revoked(&taken.remove(0)), "the oldest gave its place");
        assert!(!taken.iter().chain([&other, &probe]).any(is_revoked));
    }

    #[test]
    fn an_address_that_uses_all_of_its_connections_has_its_probes_answered() {
        let open = Open::default();
        let taken: Vec<_> = (0..MOST_OF_ONE).map(|_| open.admit(address(1)).unwrap()).collect();
        for admitted in &taken {
            let Admitted::ToAll(seat) = admitted else { panic!("there was a place") };
            seat.set_in_use(true);
        }
        // More than there are places for probes: idle ones go first.
        let probes: Vec<_> = (0..2 * MOST_PROBES_OF_ONE).map(|_| open.admit(address(1)).unwrap()).collect();
        assert!(probes.iter().all(|probe| matches!(probe, Admitted::ToProbes(_))));
        assert_eq!(probes.iter().filter(|probe| is_revoked(probe)).count(), MOST_PROBES_OF_ONE);
        assert!(!taken.iter().any(is_revoked), "what is in use goes on");
        drop(taken);
        assert!(matches!(open.admit(address(1)), Some(Admitted::ToAll(_))));
    }

    #[test]
    fn a_probe_gets_a_place_where_all_are_taken() {
        for greedy in [MOST / MOST_OF_ONE, MOST] {
            let open = Open::default();
            let taken: Vec<_> = (0..MOST).map(|number| open.admit(address(number % greedy)).unwrap()).collect();
            let probe = open.admit(address(MOST)).unwrap();
            assert!(matches!(probe, Admitted::ToAll(_)) && !is_revoked(&probe));
            assert_eq!(open.all.count(), MOST);
            assert_eq!(taken.iter().filter(|admitted| is_revoked(admitted)).count(), 1, "one of {greedy} gave a place");
        }
    }
}

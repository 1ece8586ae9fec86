//! An admission webhook that refuses whatever it is asked about, served by TLS on this machine.

use axum::{Json, Router, routing::post, serve::Listener};
use base64::{Engine, engine::general_purpose::STANDARD};
use harness::tls;
use serde_json::{Value, json};
use std::{fs, io, net::SocketAddr, path::Path};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// The webhook. It ends with the value.
pub(super) struct Guard {
    /// Where the API server asks it, as `clientConfig` of a webhook.
    pub(super) client_config: Value,
    task: JoinHandle<()>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Guard {
    /// Serves refusals with this message.
    pub(super) async fn refusing(message: &'static str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guard");
        fs::create_dir_all(&folder).unwrap();
        let secure =
            Secure { acceptor: tls(&folder).unwrap(), listener: TcpListener::bind("127.0.0.1:0").await.unwrap() };
        let port = secure.listener.local_addr().unwrap().port();
        let authority = STANDARD.encode(fs::read(folder.join("server.crt")).unwrap());
        let client_config = json!({ "url": format!("https://127.0.0.1:{port}/"), "caBundle": authority });
        let answer = move |Json(review): Json<Value>| async move {
            let response = json!({
                "uid": review["request"]["uid"], "allowed": false, "status": { "code": 403, "message": message },
            });
            Json(json!({ "apiVersion": review["apiVersion"], "kind": review["kind"], "response": response }))
        };
        let task = tokio::spawn(async move {
            axum::serve(secure, Router::new().route("/", post(answer))).await.unwrap();
        });
        Self { client_config, task }
    }
}

struct Secure {
    acceptor: TlsAcceptor,
    listener: TcpListener,
}

impl Listener for Secure {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = Listener::accept(&mut self.listener).await;
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

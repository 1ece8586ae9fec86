//! A registry that speaks TLS, and the built binary, which believes only certificates that this machine does.

use super::{
    command::{does, refuses},
    server::{ReceivedRequest, Reply, converse},
    stock::Stock,
};
use harness::tls;
use parking_lot::Mutex;
use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::{net::TcpListener, task::JoinHandle};

/// A folder with `ca.crt`, and a server with that certificate on `localhost`.
struct Secure {
    folder: PathBuf,
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Secure {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(name: &str, answer: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> Secure {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("registry").join(name);
    fs::create_dir_all(&folder).unwrap();
    let acceptor = tls(&folder).unwrap();
    fs::copy(folder.join("server.crt"), folder.join("ca.crt")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    let task = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, answer) = (acceptor.clone(), Arc::clone(&answer));
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    converse(stream, &*answer, &Mutex::default()).await;
                }
            });
        }
    });
    Secure { folder, address, task }
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_registry_with_a_certificate_that_the_machine_believes_is_asked_by_tls() {
    let stock = Stock::new();
    let (wasm, digest) = (stock.wasm.clone(), stock.digest());
    let registry = serve("believed", move |asked| stock.answer(asked)).await;
    let tag = format!("localhost:{}/owner/plugin:1", registry.address.port());
    let resolved = does(&registry.folder, &["pull", &tag]).await;
    assert!(resolved.ends_with(&digest), "{resolved}");
    assert_eq!(fs::read(registry.folder.join("plugin.wasm")).unwrap(), wasm);
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_registry_with_another_certificate_is_not_believed() {
    let registry = serve("stranger", |_| Reply::status("404 Not Found")).await;
    let other = serve("another", |_| Reply::status("404 Not Found")).await;
    let error =
        refuses(&other.folder, &["pull", &format!("localhost:{}/owner/plugin:1", registry.address.port())]).await;
    assert!(error.contains("invalid peer certificate"), "{error}");
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_redirect_from_tls_to_plain_http_is_not_followed() {
    let stock = Stock::new();
    let wasm = stock.wasm.clone();
    let plain = super::server::Server::start(move |_| Reply::ok(wasm.clone())).await;
    let blob = stock.blob();
    let stock = stock.and(blob, Reply::to(format!("http://{}/blob", plain.address)));
    let registry = serve("downgraded", move |asked| stock.answer(asked)).await;
    let error =
        refuses(&registry.folder, &["pull", &format!("localhost:{}/owner/plugin:1", registry.address.port())]).await;
    assert!(error.contains("it leads from TLS to plain HTTP, where anybody could answer"), "{error}");
    assert!(plain.asked().is_empty());
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_registry_without_tls_is_asked_by_plain_http_only_when_that_is_said() {
    let stock = Stock::new();
    let plain = super::server::Server::start(move |asked| stock.answer(asked)).await;
    let secure = serve("plain", |_| Reply::status("404 Not Found")).await;
    let tag = format!("localhost:{}/owner/plugin:1", plain.address.port());
    let error = refuses(&secure.folder, &["pull", &tag]).await;
    assert!(error.contains("does not speak TLS") && error.contains("--insecure"), "{error}");
    does(&secure.folder, &["pull", &tag, "--insecure"]).await;
}

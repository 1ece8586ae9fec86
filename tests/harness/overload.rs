//! A way to the API server on which some requests are answered as an API server does that is overloaded.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use http_body_util::BodyExt;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::task::JoinHandle;

/// A server in front of the API server, of which the `n`-th request is refused or not by its number and a seed. It ends with the value.
#[derive(Debug)]
pub struct Overload {
    address: SocketAddr,
    way: Arc<Way>,
    server: JoinHandle<()>,
}

struct Way {
    client: Client,
    seed: u64,
    percent: u64,
    passed: AtomicU64,
    refused: AtomicU64,
}

impl std::fmt::Debug for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Way").field("percent", &self.percent).finish_non_exhaustive()
    }
}

impl Overload {
    /// Opens a way on which so many of a hundred requests are answered 429; the others are made as the user of the kubeconfig.
    pub async fn start(kubeconfig: &Path, percent: u64, seed: u64) -> Result<Overload> {
        let file = Kubeconfig::read_from(kubeconfig)?;
        let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        (config.default_retry, config.read_timeout) = (false, None);
        let (passed, refused) = Default::default();
        let way = Arc::new(Way { client: Client::try_from(config)?, seed, percent, passed, refused });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let router = Router::new().fallback(pass).with_state(Arc::clone(&way));
        let server = tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        Ok(Overload { address, way, server })
    }

    /// Writes a kubeconfig of this way into a folder; returns its path.
    pub fn kubeconfig(&self, dir: &Path) -> Result<PathBuf> {
        let path = dir.join("overload.kubeconfig");
        let text = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": {"server": format!("http://{}", self.address)}}],
            "users": [{"name": "test", "user": {}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "current-context": "test",
        });
        std::fs::write(&path, text.to_string())?;
        Ok(path)
    }

    /// How many requests were passed on, and how many were refused.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.way.passed.load(Ordering::Relaxed), self.way.refused.load(Ordering::Relaxed))
    }
}

impl Drop for Overload {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Way {
    fn refuses(&self) -> bool {
        let number = self.passed.load(Ordering::Relaxed) + self.refused.load(Ordering::Relaxed);
        let digest = Sha256::digest([self.seed.to_le_bytes(), number.to_le_bytes()].concat());
        let refuses = u64::from(digest[0]) * 100 / 256 < self.percent;
        let counter = if refuses { &self.refused } else { &self.passed };
        counter.fetch_add(1, Ordering::Relaxed);
        refuses
    }
}

async fn pass(State(way): State<Arc<Way>>, request: Request) -> Response {
    if way.refuses() {
        // In the words of priority and fairness, which has no Status in its answer.
        let again = [(header::RETRY_AFTER, "1")];
        return (StatusCode::TOO_MANY_REQUESTS, again, "Too many requests, please try again later.\n").into_response();
    }
    match forward(&way.client, request).await {
        Ok(answer) => answer,
        Err(error) => (StatusCode::BAD_GATEWAY, format!("{error:#}\n")).into_response(),
    }
}

async fn forward(client: &Client, request: Request) -> Result<Response> {
    let (mut parts, body) = request.into_parts();
    for own in [header::HOST, header::AUTHORIZATION] {
        parts.headers.remove(own);
    }
    let body = to_bytes(body, usize::MAX).await?;
    let answer = client.send(http::Request::from_parts(parts, body.to_vec().into())).await?;
    Ok(answer.map(|body| Body::new(body.map_err(axum::Error::new))))
}

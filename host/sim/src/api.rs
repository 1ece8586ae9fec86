//! The tower service under a client: applies each request with its faults, and records it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::Sim;
use crate::api_request::ApiRequest;
use crate::fate::{About, Fate};
use crate::faults::{Crash, When};
use crate::record::RequestRecord;
use crate::serve::Reply;
use crate::store::{key, text};
use crate::watch;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The tower service under one client: one connection of an actor to the simulated API server.
#[derive(Clone)]
pub struct Server {
    pub(crate) sim: Sim,
    pub(crate) actor: Arc<str>,
    pub(crate) client: u64,
}

impl tower::Service<Request<kube::client::Body>> for Server {
    type Response = Response<Answer>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move { server.answer(request).await })
    }
}

/// A response body: complete, or the stream of a watch.
pub enum Answer {
    /// The complete body.
    Whole(Option<Bytes>),
    /// Watch events as they come.
    Watch(mpsc::UnboundedReceiver<Result<Bytes, std::io::Error>>),
}

impl Body for Answer {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        match &mut *self {
            Answer::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Answer::Watch(lines) => lines.poll_recv(context).map(|line| line.map(|line| line.map(Frame::data))),
        }
    }
}

impl Server {
    async fn answer(self, request: Request<kube::client::Body>) -> Result<Response<Answer>, BoxError> {
        let sent = self.sim.now();
        let (parts, body) = request.into_parts();
        let request = ApiRequest::new(&parts, body.collect_bytes().await?);
        let actor = self.actor.to_string();
        if self.sim.world().faults.is_dead(self.client) {
            return std::future::pending().await;
        }
        let name = self.meant(&request);
        let fate = self.sim.world().fate(&About {
            actor: &actor,
            verb: request.verb,
            resource: &request.resource,
            subresource: &request.subresource,
            namespace: &request.namespace,
            name: &name,
        });
        if !fate.wait.is_zero() {
            tokio::time::sleep(fate.wait).await;
        }
        self.sim.thawed(&actor).await;
        if self.sim.world().faults.is_dead(self.client) {
            return std::future::pending().await;
        }
        if fate.crash == Some(When::Before) {
            self.crash(&request, When::Before);
            return std::future::pending().await;
        }
        if fate.is_slow() {
            self.sim.world().trouble("slow answer");
        }
        if fate.broken {
            self.sim.world().trouble("connection refused");
            return Err(broken("connection refused before the request was sent"));
        }
        let reply = self.serve(&request, &name, &fate, sent);
        if fate.crash == Some(When::After) {
            self.crash(&request, When::After);
            return std::future::pending().await;
        }
        if !fate.wait_after.is_zero() {
            tokio::time::sleep(fate.wait_after).await;
        }
        if fate.lost {
            self.sim.world().trouble("answer lost");
            return Err(broken("connection reset by peer"));
        }
        Ok(reply)
    }

    /// Returns the name of the object; a create has it in its body.
    fn meant(&self, request: &ApiRequest) -> String {
        if request.verb != "create" || !request.name.is_empty() {
            return request.name.clone();
        }
        request.json().map(|body| text(&body["metadata"]["name"]).to_owned()).unwrap_or_default()
    }

    fn crash(&self, request: &ApiRequest, when: When) {
        let name = key(&request.namespace, &request.name);
        let request = format!("{} {}/{name}", request.verb, request.resource);
        let side = if when == When::Before { "before" } else { "after" };
        self.sim.world().trouble(&format!("crash {side} a request"));
        self.sim.world().kill(&Crash { actor: self.actor.to_string(), request, when });
    }

    /// Applies a request and records it in one step; nothing else happens in between.
    fn serve(&self, request: &ApiRequest, name: &str, fate: &Fate, sent: Timestamp) -> Response<Answer> {
        let mut world = self.sim.world();
        let reply = match &fate.error {
            Some(error) => {
                world.trouble(&format!("refused with {}", error.code));
                Err(error.clone())
            }
            None => world.serve(&self.actor, request, fate),
        };
        let (code, mut made) = match &reply {
            Ok(Reply::Json(code, body)) => (*code, text(&body["metadata"]["name"]).to_owned()),
            Ok(Reply::Created(body, _)) => (201, text(&body["metadata"]["name"]).to_owned()),
            Ok(Reply::Text(code, _)) => (*code, String::new()),
            Ok(Reply::Watch(_)) => (200, String::new()),
            Err(error) => (error.code, String::new()),
        };
        if !name.is_empty() || request.verb != "create" {
            made = name.to_owned();
        }
        let answered = fate.crash.is_none();
        let record = RequestRecord {
            actor: self.actor.to_string(),
            verb: request.verb.to_owned(),
            group: request.group.clone(),
            resource: if request.resource.is_empty() { request.path.clone() } else { request.resource.clone() },
            subresource: request.subresource.clone(),
            namespace: request.namespace.clone(),
            name: made,
            code: if answered { code } else { 0 },
            reply_lost: fate.lost,
            waited: fate.wait + fate.wait_after,
            bytes: request.body.len(),
            sent,
            at: world.now(),
        };
        world.record(record);
        match reply {
            Ok(Reply::Json(code, body)) => whole(code, &body),
            Ok(Reply::Created(body, warnings)) => warned(whole(201, &body), &warnings),
            Ok(Reply::Text(code, text)) => respond(code, "text/plain; charset=utf-8", Answer::Whole(Some(text.into()))),
            Ok(Reply::Watch(plan)) => {
                let lines = watch::open(&self.sim, &mut world, &self.actor, plan);
                respond(200, "application/json", Answer::Watch(lines))
            }
            Err(error) => {
                let mut response = whole(error.code, &error.body());
                if error.code == 429 {
                    response.headers_mut().insert(http::header::RETRY_AFTER, http::HeaderValue::from_static("1"));
                }
                response
            }
        }
    }
}

fn broken(why: &str) -> BoxError {
    std::io::Error::new(std::io::ErrorKind::ConnectionReset, why).into()
}

fn whole(code: u16, body: &Value) -> Response<Answer> {
    respond(code, "application/json", Answer::Whole(Some(body.to_string().into())))
}

/// Adds a warning header for each warning.
fn warned(mut response: Response<Answer>, warnings: &[String]) -> Response<Answer> {
    for warning in warnings {
        if let Ok(value) = http::HeaderValue::from_str(&format!("299 - {warning:?}")) {
            response.headers_mut().append(http::header::WARNING, value);
        }
    }
    response
}

fn respond(code: u16, content_type: &'static str, body: Answer) -> Response<Answer> {
    let mut response = Response::new(body);
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    response
}

//! One sequence run through a client, whichever server answers.

use std::time::Duration;

use anyhow::{Context, Result};
use harness::until;
use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::step::{How, Sequence, Step};

/// The longest that an answer, an event or a wanted state may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// An answer as it came, or code 0 with what went wrong; the body of a watch is the list of its events.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) body: Value,
}

/// Runs the steps. `events` tells of a step how many events its watch has, if that is known; all until its end otherwise.
pub(super) async fn run(
    client: &Client,
    sequence: &Sequence,
    namespace: &str,
    events: impl Fn(usize) -> Option<usize>,
) -> Result<Vec<Answer>> {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    let made = Request::post("/api/v1/namespaces").header("content-type", "application/json");
    send(client, made.body(object.to_string().into_bytes().into())?).await?;
    let mut answers = Vec::new();
    for (index, step) in sequence.steps.iter().enumerate() {
        let request = || request(step, namespace, &answers);
        let answer = match step.how {
            How::Once => send(client, request()?).await,
            How::Watch => follow(client, request()?, events(index)).await,
            How::Until(wanted) => {
                let answer = || async {
                    let answer = send(client, request()?).await?;
                    Ok(wanted(answer.code, &answer.body).then_some(answer))
                };
                until(PATIENCE, "the wanted state", answer).await
            }
        };
        // The sequence ends here, and differs.
        let failed = answer.is_err();
        answers.push(answer.unwrap_or_else(|error| Answer { code: 0, body: json!(format!("{error:#}")) }));
        if failed {
            break;
        }
    }
    Ok(answers)
}

fn request(step: &Step, namespace: &str, answers: &[Answer]) -> Result<Request<Body>> {
    let filled = |text: &str| fill(text, namespace, answers);
    let prefix = if step.kind.api_version.contains('/') { "/apis" } else { "/api" };
    let mut path = format!("{prefix}/{}", step.kind.api_version);
    let namespace = filled(step.namespace);
    if !namespace.is_empty() {
        path.push_str(&format!("/namespaces/{namespace}"));
    }
    for piece in [step.kind.plural, &filled(&step.name), step.sub] {
        if !piece.is_empty() {
            path.push_str(&format!("/{piece}"));
        }
    }
    let watch = if matches!(step.how, How::Watch) { "watch=true&timeoutSeconds=60&" } else { "" };
    let query = format!("{watch}{}", step.query);
    let query: Vec<String> = query.split('&').map(|pair| encode(&filled(pair))).collect();
    let mut body = step.body.clone();
    if let Some(onto) = step.onto {
        let patch = std::mem::replace(&mut body, answers[onto].body.clone());
        merge(&mut body, patch);
    }
    let body = match body {
        Value::Null => Vec::new(),
        // Text is a body that is meant to be no JSON.
        Value::String(text) => text.into_bytes(),
        body => filled(&body.to_string()).into_bytes(),
    };
    let request = Request::builder()
        .method(step.method.clone())
        .uri(format!("{path}?{}", query.join("&")))
        .header("accept", step.accept)
        .header("content-type", step.content_type);
    Ok(request.body(body.into())?)
}

/// A merge patch, so that a sequence can remove what the answer has.
fn merge(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    target.remove(&key);
                } else {
                    merge(target.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (target, patch) => *target = patch,
    }
}

/// Replaces the references to earlier answers.
fn fill(text: &str, namespace: &str, answers: &[Answer]) -> String {
    let mut filled = text.replace("{{namespace}}", namespace);
    for (index, answer) in answers.iter().enumerate() {
        for (word, field) in
            [("uid", "uid"), ("version", "resourceVersion"), ("name", "name"), ("continue", "continue")]
        {
            let reference = format!("{{{{{index}.{word}}}}}");
            if filled.contains(&reference) {
                filled = filled.replace(&reference, answer.body["metadata"][field].as_str().unwrap_or("nothing"));
            }
        }
    }
    assert!(!filled.contains("{{"), "no such answer: {filled}");
    filled
}

/// Percent-encodes the value of `key=value`.
fn encode(pair: &str) -> String {
    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
    let mut encoded = format!("{key}=");
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// JSON, or the text that is none.
fn decode(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|_| json!(String::from_utf8_lossy(bytes)))
}

async fn send(client: &Client, request: Request<Body>) -> Result<Answer> {
    let answer = async {
        let (parts, body) = client.send(request).await?.into_parts();
        let bytes = body.collect_bytes().await?;
        Ok(Answer { code: parts.status.as_u16(), body: decode(&bytes) })
    };
    tokio::time::timeout(PATIENCE, answer).await.context("no answer")?
}

/// The events of a watch, without its bookmarks but the one that ends the initial events.
async fn follow(client: &Client, request: Request<Body>, count: Option<usize>) -> Result<Answer> {
    let (parts, mut body) = client.send(request).await?.into_parts();
    let (mut bytes, mut events) = (Vec::new(), Vec::new());
    let code = parts.status.as_u16();
    while count.is_none_or(|count| events.len() < count || code != 200) {
        // What does not come is a difference to be shown, no reason to give up.
        let patience = if count.is_some() { PATIENCE / 3 } else { 3 * PATIENCE };
        let Ok(Some(frame)) = tokio::time::timeout(patience, body.frame()).await else { break };
        bytes.extend_from_slice(&frame?.into_data().unwrap_or_default());
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n').filter(|_| code == 200) {
            let line: Vec<u8> = bytes.drain(..=end).collect();
            let event: Value = serde_json::from_slice(&line)?;
            let annotations = &event["object"]["metadata"]["annotations"];
            if event["type"] != "BOOKMARK" || annotations["k8s.io/initial-events-end"] == "true" {
                events.push(event);
            }
        }
    }
    if code != 200 {
        return Ok(Answer { code, body: decode(&bytes) });
    }
    Ok(Answer { code, body: Value::Array(events) })
}

//! TEMPORARY: replays a list of requests against the simulator and prints the answers.
use serde_json::{Value, json};
#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args: Vec<String> = std::env::args().collect();
    let list: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(&args[1]).unwrap()).unwrap();
    let sim = sim::Sim::new(sim::Options { life: sim::Life::manual(), ..Default::default() });
    let client = sim.client("me");
    let mut answers: Vec<Value> = Vec::new();
    for request in list {
        let mut text = request.to_string();
        while let Some(at) = text.find("{{") {
            let end = text[at..].find("}}").unwrap() + at;
            let (index, pointer) = text[at + 2..end].split_once(' ').unwrap();
            let value = answers[index.parse::<usize>().unwrap()]["body"].pointer(pointer).cloned().unwrap_or(json!("MISSING"));
            let value = value.as_str().map(str::to_owned).unwrap_or(value.to_string());
            text.replace_range(at..end + 2, &value);
        }
        let request: Value = serde_json::from_str(&text).unwrap();
        let mut builder = http::Request::builder().method(request["method"].as_str().unwrap()).uri(request["path"].as_str().unwrap());
        if let Some(content) = request["type"].as_str() { builder = builder.header("content-type", content); }
        if let Some(accept) = request["accept"].as_str() { builder = builder.header("accept", accept); }
        let body = if request["body"].is_null() { Vec::new() } else { request["body"].to_string().into_bytes() };
        let response = client.send(builder.body(kube::client::Body::from(body)).unwrap()).await.unwrap();
        let code = response.status().as_u16();
        let bytes = response.into_body().collect_bytes().await.unwrap();
        let body: Value = serde_json::from_slice(&bytes).unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes)));
        answers.push(json!({ "code": code, "body": body }));
    }
    println!("{}", Value::Array(answers));
}

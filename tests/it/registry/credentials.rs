//! Who is told who asks: the registry, and who makes its tokens; nobody else.

use super::{
    failure, options, pull_with,
    server::{ReceivedRequest, Reply, Server},
    stock::Stock,
    told,
};
use registry::{DockerConfig, PullOptions, RegistryError};
use serde_json::json;
use std::net::SocketAddr;

/// `alice:wonderland`.
const BASIC: &str = "Basic YWxpY2U6d29uZGVybGFuZA==";

/// Pulls with `alice`'s password for the registry at this address.
fn known_to(registry: &str) -> PullOptions {
    let auths = json!({ "auths": { registry: { "username": "alice", "password": "wonderland" } } });
    PullOptions { credentials: DockerConfig::parse(auths.to_string().as_bytes()).unwrap(), ..options() }
}

/// A registry that serves whoever says this, and asks all others for it.
async fn asking(authorization: &'static str, challenge: String, stock: Stock) -> Server {
    Server::start(move |asked| {
        if asked.authorization.as_deref() == Some(authorization) {
            return stock.answer(asked);
        }
        Reply::status("401 Unauthorized").header("WWW-Authenticate", challenge.clone())
    })
    .await
}

fn bearer(tokens: SocketAddr) -> String {
    format!("Bearer realm=\"http://{tokens}/token\",service=\"registry\",scope=\"repository:owner/plugin:pull\"")
}

fn tag(server: &Server) -> String {
    format!("{}/owner/plugin:1", server.address)
}

#[tokio::test]
async fn a_password_is_sent_to_a_registry_that_asks_for_one() {
    let registry = asking(BASIC, "Basic realm=\"it\"".to_owned(), Stock::new()).await;
    assert!(pull_with(&tag(&registry), &known_to(&registry.address.to_string())).await.is_ok());
    assert_eq!(registry.told(), ["nothing", BASIC, BASIC], "it is not told before it asks, and asked once");
}

#[tokio::test]
async fn a_token_is_fetched_once_and_sent_to_the_registry_only() {
    let wasm = Stock::new().wasm;
    let storage = Server::start(move |_| Reply::ok(wasm.clone())).await;
    let tokens = Server::start(|_| Reply::ok(r#"{"token":"t0ken"}"#)).await;
    let stock = Stock::new();
    let blob = stock.blob();
    let stock = stock.and(blob, Reply::to(format!("http://{}/blob", storage.address)));
    let registry = asking("Bearer t0ken", bearer(tokens.address), stock).await;

    assert!(pull_with(&tag(&registry), &known_to(&registry.address.to_string())).await.is_ok());
    assert_eq!(registry.told(), ["nothing", "Bearer t0ken", "Bearer t0ken"]);
    assert_eq!(tokens.told(), [BASIC]);
    assert_eq!(tokens.asked()[0].line, "GET /token?service=registry&scope=repository%3Aowner%2Fplugin%3Apull");
    assert_eq!(storage.told(), ["nothing"]);
}

#[tokio::test]
async fn a_token_is_fetched_without_credentials_too() {
    let tokens = Server::start(|_| Reply::ok(r#"{"access_token":"t0ken"}"#)).await;
    let registry = asking("Bearer t0ken", bearer(tokens.address), Stock::new()).await;
    assert!(pull_with(&tag(&registry), &options()).await.is_ok());
    assert_eq!(tokens.told(), ["nothing"]);
}

/// A challenge whose token server has this address under another name.
fn elsewhere(tokens: SocketAddr) -> String {
    format!("Bearer realm=\"http://localhost:{}/token\",service=\"registry\"", tokens.port())
}

#[tokio::test]
async fn a_token_server_on_another_host_is_asked_without_the_registrys_credentials_and_the_error_says_so() {
    for (status, private) in [("401 Unauthorized", "asks"), ("403 Forbidden", "forbids")] {
        let tokens = Server::start(move |_| Reply::status(status)).await;
        let registry = asking("Bearer t0ken", elsewhere(tokens.address), Stock::new()).await;
        let error = failure(&tag(&registry), &known_to(&registry.address.to_string())).await;
        let server = format!("localhost:{}", tokens.address.port());
        assert!(
            matches!(&error, RegistryError::Withheld { server: it, .. } if *it == server),
            "{private}: {}",
            told(&error)
        );
        assert!(told(&error).contains(&format!("give {server} an entry with the same ones")), "{}", told(&error));
        assert_eq!((tokens.told(), registry.told()), (vec!["nothing".to_owned()], vec!["nothing".to_owned()]));
    }
    let tokens = Server::start(|_| Reply::ok(r#"{"token":"t0ken"}"#)).await;
    let registry = asking("Bearer t0ken", elsewhere(tokens.address), Stock::new()).await;
    assert!(pull_with(&tag(&registry), &known_to(&registry.address.to_string())).await.is_ok(), "it is for everybody");
    assert_eq!(tokens.told(), ["nothing"]);
}

#[tokio::test]
async fn a_token_server_on_another_host_gets_the_credentials_that_are_configured_for_both() {
    let tokens = Server::start(|_| Reply::ok(r#"{"token":"t0ken"}"#)).await;
    let registry = asking("Bearer t0ken", elsewhere(tokens.address), Stock::new()).await;
    let known = |password: &str| {
        let (here, there) = (registry.address.to_string(), format!("localhost:{}", tokens.address.port()));
        let auths = json!({ "auths": {
            here: { "username": "alice", "password": "wonderland" },
            there: { "username": "alice", "password": password },
        } });
        PullOptions { credentials: DockerConfig::parse(auths.to_string().as_bytes()).unwrap(), ..options() }
    };
    assert!(pull_with(&tag(&registry), &known("wonderland")).await.is_ok());
    assert!(pull_with(&tag(&registry), &known("another")).await.is_ok());
    assert_eq!(tokens.told(), [BASIC, "nothing"], "with others the registry would be sent a token of theirs");
}

#[tokio::test]
async fn an_identity_token_is_exchanged_for_one_of_the_registry() {
    let tokens = Server::start(|_| Reply::ok(r#"{"access_token":"t0ken"}"#)).await;
    let registry = asking("Bearer t0ken", bearer(tokens.address), Stock::new()).await;
    let auths = json!({ "auths": { registry.address.to_string(): { "identitytoken": "re fresh" } } });
    let credentials = DockerConfig::parse(auths.to_string().as_bytes()).unwrap();
    assert!(pull_with(&tag(&registry), &PullOptions { credentials, ..options() }).await.is_ok());
    let ReceivedRequest { line, body, .. } = &tokens.asked()[0];
    assert_eq!(line, "POST /token");
    assert!(body.contains("grant_type=refresh_token") && body.contains("refresh_token=re+fresh"), "{body}");
}

#[tokio::test]
async fn no_credentials_are_sent_to_where_a_registry_redirects_even_if_it_asks() {
    let thief = asking(BASIC, "Basic realm=\"it\"".to_owned(), Stock::new()).await;
    let stock = Stock::new();
    let blob = stock.blob();
    let stock = stock.and(blob, Reply::to(format!("http://{}/blob", thief.address)));
    let registry = asking(BASIC, "Basic realm=\"it\"".to_owned(), stock).await;
    let error = failure(&tag(&registry), &known_to(&registry.address.to_string())).await;
    assert!(matches!(error, RegistryError::Unauthorized { .. }), "{}", told(&error));
    assert_eq!(thief.told(), ["nothing"]);
}

#[tokio::test]
async fn credentials_of_another_registry_are_not_sent() {
    let registry = asking(BASIC, "Basic realm=\"it\"".to_owned(), Stock::new()).await;
    for other in ["ghcr.io", "127.0.0.1", "127.0.0.1:1"] {
        let error = failure(&tag(&registry), &known_to(other)).await;
        assert!(matches!(error, RegistryError::Unauthorized { sent: false, .. }), "{}", told(&error));
        let advice = "name a Secret of type kubernetes.io/dockerconfigjson with some for this registry in `pullSecret`";
        assert!(told(&error).contains(advice), "{}", told(&error));
    }
    assert!(registry.told().iter().all(|told| told == "nothing"));
}

#[tokio::test]
async fn credentials_that_are_refused_are_reported_once() {
    let registry = asking("Basic other", "Basic realm=\"it\"".to_owned(), Stock::new()).await;
    let error = failure(&tag(&registry), &known_to(&registry.address.to_string())).await;
    assert!(matches!(error, RegistryError::Unauthorized { sent: true, .. }), "{}", told(&error));
    assert!(!told(&error).contains("wonderland") && !told(&error).contains("YWxpY2U"), "{}", told(&error));
    assert_eq!(registry.told(), ["nothing", BASIC]);
}

#[tokio::test]
async fn a_token_is_fetched_from_no_address_where_no_registry_is() {
    let challenge = "Bearer realm=\"http://169.254.169.254/token\"".to_owned();
    let registry = asking("Bearer t0ken", challenge, Stock::new()).await;
    let error = failure(&tag(&registry), &known_to(&registry.address.to_string())).await;
    assert!(matches!(error, RegistryError::Forbidden { .. }), "{}", told(&error));
}

#[tokio::test]
async fn what_is_asked_in_an_unknown_way_is_reported() {
    for (challenge, answer) in [("Negotiate", ""), ("TOKEN", "not JSON"), ("TOKEN", "{\"token\":\"a\\nb\"}")] {
        let tokens = Server::start(move |_| Reply::ok(answer)).await;
        let challenge = if challenge == "TOKEN" { bearer(tokens.address) } else { challenge.to_owned() };
        let registry = asking("Bearer t0ken", challenge, Stock::new()).await;
        let error = failure(&tag(&registry), &known_to(&registry.address.to_string())).await;
        assert!(matches!(error, RegistryError::Challenge { .. }), "{}", told(&error));
    }
}

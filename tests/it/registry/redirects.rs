//! Where a registry sends on to, and where nobody follows it.

use super::{
    failure, options, pull_with,
    server::{Reply, Server},
    stock::Stock,
    told,
};
use registry::RegistryError;

/// A registry whose blob is somewhere else.
async fn sending_to(location: String) -> Server {
    let stock = Stock::new();
    let blob = stock.blob();
    let stock = stock.and(blob, Reply::to(location));
    Server::start(move |asked| stock.answer(asked)).await
}

fn tag(server: &Server) -> String {
    format!("{}/owner/plugin:1", server.address)
}

#[tokio::test]
async fn a_blob_may_lie_on_another_host() {
    let stock = Stock::new();
    let wasm = stock.wasm.clone();
    let storage = Server::start(move |_| Reply::ok(wasm.clone())).await;
    let registry = sending_to(format!("http://{}/bucket/blob?signature=s", storage.address)).await;
    assert_eq!(pull_with(&tag(&registry), &options()).await.unwrap().wasm, stock.wasm);
    assert_eq!(storage.asked()[0].line, "GET /bucket/blob?signature=s");
}

#[tokio::test]
async fn a_redirect_to_a_metadata_service_is_not_followed() {
    // By address, and by names that resolve to one: that is how a resolver reads a lone number.
    for host in
        ["169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]", "100.100.100.200", "2852039166", "0xa9fea9fe"]
    {
        let registry = sending_to(format!("http://{host}/latest/meta-data/?key=secret")).await;
        let error = failure(&tag(&registry), &options()).await;
        let RegistryError::Forbidden { source, .. } = &error else { panic!("{host}: {}", told(&error)) };
        assert_eq!(source.what, "where machines are told secrets", "{host}");
        assert!(!told(&error).contains("key=secret"), "{}", told(&error));
    }
}

#[tokio::test]
async fn a_registry_at_such_an_address_is_not_asked() {
    let error = failure("169.254.169.254/owner/plugin:1", &options()).await;
    assert!(matches!(error, RegistryError::Forbidden { .. }), "{}", told(&error));
}

#[tokio::test]
async fn this_machine_is_asked_only_where_it_is_named() {
    let stock = Stock::new();
    let server = Server::start(move |asked| stock.answer(asked)).await;
    let port = server.address.port();
    assert!(pull_with(&format!("localhost:{port}/owner/plugin:1"), &options()).await.is_ok());
    // 127.0.0.1 as a lone number, which is a name as far as anybody can tell before it is resolved.
    let error = failure(&format!("2130706433:{port}/owner/plugin:1"), &options()).await;
    let RegistryError::Forbidden { source, .. } = &error else { panic!("{}", told(&error)) };
    assert_eq!(source.what, "this machine itself");
    assert!(told(&error).contains("as localhost:5000/plugin:1 does"), "{}", told(&error));
}

#[tokio::test]
async fn only_a_few_redirects_are_followed() {
    let around = Server::start(|_| Reply::to("/v2/owner/plugin/manifests/1")).await;
    let error = failure(&tag(&around), &options()).await;
    assert!(told(&error).ends_with("these were too many redirects"), "{}", told(&error));
    assert_eq!(around.asked().len(), 4);
}

#[tokio::test]
async fn a_redirect_that_leads_nowhere_is_reported() {
    for location in ["", "elsewhere", "file:///etc/passwd", "ftp://127.0.0.1/x", "http://", "http://user@127.0.0.1/x"] {
        let registry = sending_to(location.to_owned()).await;
        let error = failure(&tag(&registry), &options()).await;
        assert!(matches!(error, RegistryError::Redirect { .. }), "{location}: {}", told(&error));
    }
}

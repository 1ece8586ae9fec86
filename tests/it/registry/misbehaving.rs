//! Content that is not what it should be: refused, with words that say what it is.

use super::{
    failure, options, pull_with,
    server::{Length, Reply, Server},
    stock::{INDEX, Stock, digest},
    told,
};
use registry::{PullError, PullOptions, RegistryError};
use serde_json::json;
use std::time::Duration;

async fn serve(stock: Stock) -> Server {
    Server::start(move |asked| stock.answer(asked)).await
}

fn tag(server: &Server) -> String {
    format!("{}/owner/plugin:1", server.address)
}

/// Why the artifact is refused, without anything of it being fetched.
async fn refused(stock: Stock) -> String {
    let server = serve(stock).await;
    let error = pull_with(&tag(&server), &PullOptions { limit: 1 << 20, ..options() }).await.unwrap_err();
    assert!(matches!(error, PullError::Manifest { .. }), "{}", told(&error));
    assert!(!server.was_asked("blobs"), "something was fetched: {:?}", server.asked());
    told(&error)
}

#[tokio::test]
async fn a_component_is_pulled_by_tag_and_by_digest() {
    let stock = Stock::new();
    let server = serve(stock.clone()).await;
    let by_tag = pull_with(&tag(&server), &options()).await.unwrap();
    assert_eq!(by_tag.wasm, stock.wasm);
    assert_eq!(format!("sha256:{}", by_tag.digest), digest(&stock.wasm));
    assert_eq!(by_tag.resolved, format!("{}/owner/plugin@{}", server.address, stock.digest()));
    assert_eq!(pull_with(&by_tag.resolved, &options()).await.unwrap(), by_tag);
}

#[tokio::test]
async fn a_manifest_that_is_not_the_one_of_the_digest_is_refused() {
    // What a pinned digest is for: the registry answers with what the tag has become.
    let (first, second) = (Stock::new(), Stock::new().with("/schemaVersion", json!(3)));
    let moved = Reply::ok(second.manifest.to_string()).header("Content-Type", second.media_type);
    let server = serve(first.clone().and(format!("manifests/{}", first.digest()), moved)).await;
    let pinned = format!("{}/owner/plugin@{}", server.address, first.digest());
    let error = failure(&pinned, &options()).await;
    let RegistryError::Mismatch { wanted, found, .. } = &error else { panic!("{}", told(&error)) };
    assert_eq!((wanted.to_string(), found.to_string()), (first.digest(), second.digest()));
}

#[tokio::test]
async fn a_manifest_that_is_not_what_the_registry_says_is_refused() {
    let stock = Stock::new();
    let reply = Reply::ok(stock.manifest.to_string()).header("Content-Type", stock.media_type);
    let server = serve(stock.and("manifests/1", reply.header("Docker-Content-Digest", digest(b"another")))).await;
    let error = failure(&tag(&server), &options()).await;
    assert!(matches!(error, RegistryError::Mismatch { .. }), "{}", told(&error));
}

#[tokio::test]
async fn a_layer_of_another_digest_is_refused() {
    let stock = Stock::new();
    let mut other = stock.wasm.clone();
    other[5000] ^= 1;
    let server = serve(stock.clone().and(stock.blob(), Reply::ok(other))).await;
    let error = failure(&tag(&server), &options()).await;
    assert!(matches!(error, RegistryError::Mismatch { .. }), "{}", told(&error));
    assert!(told(&error).contains("it was changed on its way or in the registry"), "{}", told(&error));
}

#[tokio::test]
async fn a_layer_that_is_larger_than_declared_is_refused() {
    let stock = Stock::new();
    let more = [&stock.wasm[..], b"more"].concat();
    let chunked = [&b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n"[..], &vec![7; 0xf_ffff]].concat();
    for larger in [Reply::ok(more.clone()), Reply::ok(more).length(Length::Unsaid), Reply::Raw(chunked)] {
        let server = serve(stock.clone().and(stock.blob(), larger)).await;
        let error = failure(&tag(&server), &options()).await;
        assert!(matches!(error, RegistryError::Larger { .. }), "{}", told(&error));
    }
}

#[tokio::test]
async fn a_layer_that_is_cut_off_is_refused() {
    let stock = Stock::new();
    let half = Reply::ok(&stock.wasm[..stock.wasm.len() / 2]);
    let unsaid = serve(stock.clone().and(stock.blob(), half.clone().length(Length::Unsaid))).await;
    let error = failure(&tag(&unsaid), &options()).await;
    assert!(matches!(error, RegistryError::Short { got: 50_004, declared: 100_008, .. }), "{}", told(&error));
    let said = serve(stock.clone().and(stock.blob(), half.length(Length::Said(stock.wasm.len())))).await;
    let error = failure(&tag(&said), &options()).await;
    assert!(matches!(error, RegistryError::Broken { .. }), "{}", told(&error));
}

#[tokio::test]
async fn a_layer_that_is_declared_too_large_is_not_fetched() {
    let message = refused(Stock::new().with("/layers/0/size", json!(1_u64 << 40))).await;
    assert!(message.contains("its component has 1099511627776 bytes, more than 1048576"), "{message}");
}

#[tokio::test]
async fn a_manifest_that_is_too_large_is_refused() {
    let large = vec![b' '; 300 << 10];
    for reply in [Reply::ok(large.clone()), Reply::ok(large).length(Length::Unsaid)] {
        let server = serve(Stock::new().and("manifests/1", reply)).await;
        let error = failure(&tag(&server), &options()).await;
        assert!(matches!(error, RegistryError::Larger { limit: 262_144, .. }), "{}", told(&error));
    }
}

#[tokio::test]
async fn what_is_no_artifact_of_a_plugin_is_refused_before_anything_is_fetched() {
    let layer = Stock::new().manifest["layers"][0].clone();
    let two = refused(Stock::new().with("/layers", json!([layer, layer]))).await;
    assert!(two.contains("it has 2 layers"), "{two}");
    let image =
        refused(Stock::new().with("/config/mediaType", json!("application/vnd.oci.image.config.v1+json"))).await;
    assert!(image.contains("its config has media type"), "{image}");
    let tar = refused(Stock::new().with("/layers/0/mediaType", json!("application/vnd.oci.image.layer.v1.tar"))).await;
    assert!(tar.contains("its layer has media type") && tar.contains("troupe plugin push"), "{tar}");
    let index = Stock { manifest: json!({ "schemaVersion": 2, "manifests": [] }), media_type: INDEX, ..Stock::new() };
    assert!(refused(index).await.contains("it is an index of several artifacts"));
    let page = refused(Stock { media_type: "text/html", ..Stock::new() }).await;
    assert!(page.contains("its media type is \"text/html\""), "{page}");
}

#[tokio::test]
async fn a_layer_that_is_no_component_is_refused() {
    let module = b"\0asm\x01\0\0\0".to_vec();
    let stock =
        Stock::new().with("/layers/0/digest", json!(digest(&module))).with("/layers/0/size", json!(module.len()));
    let server = serve(Stock { wasm: module, ..stock }).await;
    let error = told(&pull_with(&tag(&server), &options()).await.unwrap_err());
    assert!(error.contains("its layer is a core module, not a WebAssembly component; build"), "{error}");
}

#[tokio::test]
async fn a_registry_that_does_not_go_on_is_given_up() {
    let stock = Stock::new();
    let stalled = Reply::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100008\r\n\r\n\0asm".to_vec());
    let never = stock.clone().and("manifests/1", Reply::Silence);
    for (stock, late) in [(never, "manifests/1"), (stock.clone().and(stock.blob(), Reply::Silence), "blobs")] {
        let server = serve(stock).await;
        let patience = Duration::from_millis(300);
        let error = failure(&tag(&server), &PullOptions { patience, ..options() }).await;
        assert!(matches!(error, RegistryError::Slow(time) if time == patience), "{}", told(&error));
        assert!(server.was_asked(late));
    }
    let server = serve(stock.clone().and(stock.blob(), stalled)).await;
    let error = failure(&tag(&server), &options()).await;
    assert!(matches!(error, RegistryError::Broken { .. }), "{}", told(&error));
}

#[tokio::test]
async fn an_answer_that_is_no_http_is_an_error_like_any_other() {
    for noise in [&b"SSH-2.0-OpenSSH_9.2\r\n"[..], b"", b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", &[0; 4096]] {
        let server = serve(Stock::new().and("manifests/1", Reply::Raw(noise.to_vec()))).await;
        let error = failure(&tag(&server), &options()).await;
        assert!(matches!(error, RegistryError::Unreachable { .. }), "{}", told(&error));
    }
    let nobody = failure("127.0.0.1:1/owner/plugin:1", &options()).await;
    assert!(told(&nobody).starts_with("failed to reach http://127.0.0.1:1/v2/owner/plugin/manifests/1: "), "{nobody}");
}

#[tokio::test]
async fn a_refusal_is_reported_in_the_registrys_words_without_their_control_characters() {
    let body = json!({ "errors": [{ "code": "DENIED", "message": "quota\u{1b}[31m\nexceeded" }] }).to_string();
    let reply = Reply::Http { status: "403 Forbidden", headers: vec![], length: Length::True, body: body.into() };
    let server = serve(Stock::new().and("manifests/1", reply)).await;
    let message = told(&failure(&tag(&server), &options()).await);
    assert!(message.ends_with("answered 403 Forbidden: DENIED quota [31m exceeded"), "{message}");
    let gone = told(&failure(&format!("{}/owner/plugin:2", server.address), &options()).await);
    assert!(gone.contains("/manifests/2 is not there: look at the repository's name and the tag"), "{gone}");
}

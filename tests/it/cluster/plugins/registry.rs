//! Plugins that come from a registry: by a tag, signed or not, and large ones, which stay there.

use super::{Stage, condition, digest_of, version};
use crate::cluster::objects::{PADDLE_JOBS, condition_of, text};
use harness::{Guests, Registry};
use kube::api::ListParams;
use serde_json::{Value, json};
use troupe::plugin_resource::PluginStatus;

/// Somebody's public key, who has signed nothing.
const KEY: &str = "-----BEGIN PUBLIC KEY-----\n\
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEooK6FVT+HbPVtYi3E22nXH8fKd2a\n\
gqyft92/8yk1WgzMaOJYmKC3LhmKWMC/JKSHT6Pcl3v2qddZZmCDY5gt9A==\n\
-----END PUBLIC KEY-----\n";

impl Stage {
    /// Pushes the component as `plugins/paddle:1.0`, has the Plugin come from there, and returns what it is for ever.
    async fn push(&self, registry: &Registry, wasm: &[u8]) -> String {
        let file = registry.dir().join("plugin.wasm");
        std::fs::write(&file, wasm).unwrap();
        let reference = format!("{}/plugins/paddle:1.0", registry.address());
        let pushed = super::troupe(&self.world, &["plugin", "push", file.to_str().unwrap(), &reference, "--insecure"]);
        let source = json!({ "configMap": null, "oci": { "reference": reference, "insecure": true } });
        self.patch(json!({ "spec": { "source": source } })).await;
        pushed.lines().last().unwrap().trim().to_owned()
    }
}

/// A version whose bytes are too many to be kept.
fn large() -> Vec<u8> {
    const MANY: usize = 9 << 20;
    let mut wasm = version("large");
    // A custom section: its length as LEB128, and zeros, the first of which is the length of its name.
    wasm.push(0);
    let mut length = MANY;
    while length > 0x7f {
        wasm.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    wasm.push(length as u8);
    wasm.resize(wasm.len() + MANY, 0);
    wasm
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_plugin_comes_from_a_registry_by_tag_and_must_be_signed_where_a_key_is_given() {
    let stage = Stage::of("registry").await;
    let registry = Registry::start(Guests::All).await.unwrap();
    let one = version("one");
    stage.create(json!({})).await;
    let pushed = stage.push(&registry, &one).await;
    let status = stage.serves(&one).await;
    assert_eq!(status.resolved, Some(pushed));

    stage.patch(json!({ "spec": { "publicKey": KEY } })).await;
    let unsigned = |status: &PluginStatus| condition(status, "Fetched") == ("False".into(), "SignatureInvalid".into());
    let status = stage.is("refused", unsigned).await;
    assert_eq!(status.digest, Some(digest_of(&one)), "what served goes on");
    stage.end().await;
}

// Decision 7: what is too large to be kept in the API server is pinned where it is.
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_large_plugin_stays_with_its_registry_and_comes_back_from_there_as_it_was_or_not_at_all() {
    let mut stage = Stage::of("large").await;
    let registry = Registry::start(Guests::All).await.unwrap();
    let (large, two) = (large(), version("two"));
    let digest = digest_of(&large);
    stage.create(json!({})).await;
    let pushed = stage.push(&registry, &large).await;
    stage.serves(&large).await;
    stage.submit("old").await;
    stage.running(1).await;
    let maps = stage.maps.list(&ListParams::default().labels("troupe.dev/kept=plugin")).await.unwrap().items;
    let name = |number: u32| format!("troupe-plugin-{}-{number}", &digest[..12]);
    let of_large = |map: &str| maps.iter().find(|it| it.metadata.name.as_deref() == Some(map));
    assert!(of_large(&name(1)).is_none());
    let kept = of_large(&name(0)).unwrap();
    assert!(kept.binary_data.is_none() && json!(kept.data).to_string().contains(&pushed), "{kept:#?}");

    // No source has it any more.
    stage.apply(two.clone()).await;
    stage.patch(json!({ "spec": { "source": { "configMap": { "name": "paddle" }, "oci": null } } })).await;
    stage.serves(&two).await;
    let pods = stage.pods().await;
    stage.restart().await;
    assert_eq!(text(&stage.answered("old").await, "/snapshot/digest"), digest);

    let mut changed = large.clone();
    *changed.last_mut().unwrap() ^= 1;
    registry.corrupt(&digest, &changed).unwrap();
    stage.restart().await;
    let held =
        |job: &Value| condition_of(job, "PluginFaulted").is_some_and(|it| text(it, "/reason") == "PluginMissing");
    let job = stage.world.is(&PADDLE_JOBS, "old", "held", held).await;
    let why = text(condition_of(&job, "PluginFaulted").unwrap(), "/message");
    assert!(why.contains(&pushed) && why.contains("it was changed on its way or in the registry"), "{why}");
    assert_eq!(stage.pods().await, pods);

    registry.corrupt(&digest, &large).unwrap();
    let free = |job: &Value| condition_of(job, "PluginFaulted").is_none();
    stage.world.is(&PADDLE_JOBS, "old", "free again", free).await;
    assert_eq!(stage.pods().await, pods);
    stage.end().await;
}

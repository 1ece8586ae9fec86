//! What is kept of a component: in the ConfigMaps of a simulated cluster, and in a registry on this machine.

use super::{
    sweep::{Fate, RELEASED_AFTER, fate},
    *,
};
use crate::{delivery::fetch::Fetched, error::chain, plugin_resource::PluginSpec};
use axum::{
    Router,
    http::{StatusCode, Uri, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use parking_lot::Mutex;
use rand_chacha::{
    ChaCha20Rng,
    rand_core::{RngCore, SeedableRng},
};
use registry::Digest;
use sandbox::Executor;
use serde_json::Value;
use sim::Sim;
use std::{collections::BTreeSet, net::SocketAddr, sync::Arc};
use tokio::net::TcpListener;

const NAMESPACE: &str = "default";

const PULL_SECRET: &str = "pull";

/// More bytes than this are many here.
const FEW: usize = 100;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Many bytes that begin as a component does.
fn component(rest: u8) -> Vec<u8> {
    [b"\0asm\x0d\0\x01\0".as_slice(), &[rest; 10 * FEW]].concat()
}

/// The repository `owner/plugin` of a registry: what it has, by path.
#[derive(Clone, Default)]
struct Repository(Arc<Mutex<BTreeMap<String, Vec<u8>>>>);

impl Repository {
    /// Answers on this machine from now on.
    async fn serve(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let repository = self.clone();
        let routes = Router::new().fallback(move |url: Uri| async move { repository.answer(&url) });
        tokio::spawn(async move { axum::serve(listener, routes).await });
        address
    }

    fn answer(&self, url: &Uri) -> Response {
        let path = url.path().trim_start_matches("/v2/owner/plugin/");
        match self.0.lock().get(path) {
            Some(bytes) => ([(CONTENT_TYPE, MANIFEST)], bytes.clone()).into_response(),
            None => StatusCode::NOT_FOUND.into_response(),
        }
    }

    fn put(&self, path: &str, bytes: &[u8]) {
        self.0.lock().insert(path.to_owned(), bytes.to_vec());
    }

    /// The component is under the tag `1` from now on, and for ever under the digest that this returns.
    fn push(&self, wasm: &[u8]) -> Digest {
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {
                "mediaType": "application/vnd.wasm.config.v0+json",
                "digest": Digest::of(b"{}").to_string(),
                "size": 2,
            },
            "layers": [{ "mediaType": "application/wasm", "digest": Digest::of(wasm).to_string(), "size": wasm.len() }],
        });
        let manifest = manifest.to_string().into_bytes();
        let digest = Digest::of(&manifest);
        self.put(&format!("blobs/{}", Digest::of(wasm)), wasm);
        self.put("manifests/1", &manifest);
        self.put(&format!("manifests/{digest}"), &manifest);
        digest
    }

    fn lose_everything(&self) {
        self.0.lock().clear();
    }
}

/// The host's namespace, and a Plugin that comes from a repository by the tag `1`.
struct Stage {
    repository: Repository,
    address: SocketAddr,
    sources: Sources,
    spec: PluginSpec,
}

impl Stage {
    async fn new() -> Self {
        let repository = Repository::default();
        let address = repository.serve().await;
        let client = Sim::new(sim::Options::default()).client("host");
        let secret = Secret {
            metadata: ObjectMeta { name: Some(PULL_SECRET.to_owned()), ..ObjectMeta::default() },
            data: Some(BTreeMap::from([(".dockerconfigjson".to_owned(), ByteString(b"{\"auths\":{}}".to_vec()))])),
            ..Secret::default()
        };
        let secrets = Api::<Secret>::namespaced(client.clone(), NAMESPACE);
        secrets.create(&PostParams::default(), &secret).await.unwrap();
        let reference = format!("{address}/owner/plugin:1");
        let source = json!({ "oci": { "reference": reference, "pullSecret": PULL_SECRET, "insecure": true } });
        let spec = serde_json::from_value(json!({ "source": source })).unwrap();
        let namespace = Some(NAMESPACE.to_owned());
        let sources = Sources { client, namespace, allowed: BTreeSet::new(), limit: 1 << 20 };
        Self { repository, address, sources, spec }
    }

    /// What a host has that has just started.
    fn archive(&self) -> Archive {
        let plugins = Arc::new(Plugins::empty(sandbox::Options::new(Executor::Inline)).unwrap());
        Archive::new(&self.sources, &plugins, NAMESPACE, FEW)
    }

    /// The component under the tag is kept.
    async fn keep(&self) -> Fetched {
        let fetched = self.sources.fetch("plays", &self.spec).await.unwrap();
        self.archive().keep(&fetched.digest, &fetched.wasm, fetched.artifact.as_ref(), None).await.unwrap();
        fetched
    }

    async fn maps(&self) -> Vec<ConfigMap> {
        let kept = ListParams::default().labels(&format!("{}={}", LABEL.0, LABEL.1));
        self.archive().maps.list(&kept).await.unwrap().items
    }
}

#[tokio::test]
async fn many_bytes_of_a_registry_stay_there_and_a_host_that_starts_later_pulls_them() {
    let stage = Stage::new().await;
    let manifest = stage.repository.push(&component(1));
    let fetched = stage.keep().await;

    let maps = stage.maps().await;
    let [map] = maps.as_slice() else { panic!("{maps:#?}") };
    assert_eq!(map.metadata.name, Some(name(&fetched.digest, 0)));
    assert_eq!((map.immutable, &map.binary_data), (Some(true), &None));
    let artifact: Value = serde_json::from_str(&map.data.as_ref().unwrap()[ARTIFACT_KEY]).unwrap();
    let pinned = format!("{}/owner/plugin@{manifest}", stage.address);
    assert_eq!(artifact, json!({ "reference": pinned, "pullSecret": PULL_SECRET, "insecure": true }));

    // Whatever becomes of the tag.
    stage.repository.push(&component(2));
    assert_eq!(stage.archive().load(&fetched.digest).await.unwrap(), component(1));
}

#[tokio::test]
async fn other_bytes_than_those_that_were_accepted_do_not_come_back_and_it_is_said_why() {
    let stage = Stage::new().await;
    stage.repository.push(&component(1));
    let fetched = stage.keep().await;
    let why = async |digest: &decide::Digest| chain(&stage.archive().load(digest).await.unwrap_err());

    stage.repository.put(&format!("blobs/sha256:{}", fetched.digest), &component(2));
    let changed = why(&fetched.digest).await;
    assert!(
        changed.contains("anywhere but in its registry: failed to pull ") && changed.contains("changed"),
        "{changed}"
    );
    stage.repository.lose_everything();
    let gone = why(&fetched.digest).await;
    assert!(gone.contains("is not there: look at the repository's name"), "{gone}");
    let secrets = Api::<Secret>::namespaced(stage.sources.client.clone(), NAMESPACE);
    secrets.delete(PULL_SECRET, &DeleteParams::default()).await.unwrap();
    let closed = why(&fetched.digest).await;
    assert!(closed.contains("failed to read pull: NotFound"), "{closed}");
}

#[tokio::test]
async fn a_reference_to_another_component_is_not_followed() {
    let stage = Stage::new().await;
    stage.repository.push(&component(1));
    let fetched = stage.sources.fetch("plays", &stage.spec).await.unwrap();
    let other = source::digest(b"other");
    stage.archive().keep(&other, &fetched.wasm, fetched.artifact.as_ref(), None).await.unwrap();
    let error = stage.archive().load(&other).await.unwrap_err();
    assert!(matches!(error, ArchiveError::Another { .. }), "{error}");
}

#[tokio::test]
async fn few_bytes_and_those_of_no_registry_are_kept_themselves() {
    let stage = Stage::new().await;
    let (few, many) = (component(1)[..FEW].to_vec(), component(2));
    stage.repository.push(&few);
    let fetched = stage.keep().await;
    let digest = source::digest(&many);
    stage.archive().keep(&digest, &many, None, None).await.unwrap();

    let maps = stage.maps().await;
    assert!(maps.len() == 2 && maps.iter().all(|map| map.data.is_none()), "{maps:#?}");
    stage.repository.lose_everything();
    assert_eq!(stage.archive().load(&fetched.digest).await.unwrap(), few);
    assert_eq!(stage.archive().load(&digest).await.unwrap(), many);
}

#[tokio::test]
async fn what_has_the_name_and_holds_something_else_does_not_count_as_kept() {
    let stage = Stage::new().await;
    let wasm = component(1);
    let digest = source::digest(&wasm);
    let keep = async || stage.archive().keep(&digest, &wasm, None, None).await;
    keep().await.unwrap();
    let maps = stage.archive().maps;
    let mut kept = maps.get(&name(&digest, 0)).await.unwrap();
    maps.delete(&name(&digest, 0), &DeleteParams::default()).await.unwrap();
    kept.metadata = ObjectMeta { name: kept.metadata.name, ..ObjectMeta::default() };
    maps.create(&PostParams::default(), &kept).await.unwrap();
    let error = keep().await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("configmap/{} is there and holds something else", name(&digest, 0))), "{error}");
    maps.delete(&name(&digest, 0), &DeleteParams::default()).await.unwrap();
    keep().await.unwrap();
}

/// Bytes that do not compress, more than one ConfigMap holds.
fn of_two_parts() -> Vec<u8> {
    let mut noise = ChaCha20Rng::from_seed([7; 32]);
    let mut wasm = vec![0; CHUNK + 1000];
    noise.fill_bytes(&mut wasm);
    wasm
}

#[tokio::test]
async fn a_part_that_another_host_has_left_behind_is_replaced() {
    let stage = Stage::new().await;
    let wasm = of_two_parts();
    let digest = source::digest(&wasm);
    let archive = stage.archive();
    archive.keep(&digest, &wasm, None, None).await.unwrap();
    let [first, second] = [0, 1].map(|number| name(&digest, number));
    archive.maps.delete(&first, &DeleteParams::default()).await.unwrap();
    let mut left = archive.maps.get(&second).await.unwrap();
    archive.maps.delete(&second, &DeleteParams::default()).await.unwrap();
    left.metadata = ObjectMeta { uid: None, resource_version: None, ..left.metadata };
    left.binary_data = Some(BTreeMap::from([(COMPRESSED_KEY.to_owned(), ByteString(vec![1, 2, 3]))]));
    archive.maps.create(&PostParams::default(), &left).await.unwrap();

    archive.keep(&digest, &wasm, None, None).await.unwrap();
    assert_eq!(archive.load(&digest).await.unwrap(), wasm);
}

#[tokio::test]
async fn what_names_a_registry_is_released_as_bytes_are() {
    let stage = Stage::new().await;
    stage.repository.push(&component(1));
    let fetched = stage.keep().await;
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let (used, unused) = (BTreeSet::from([fetched.digest.clone()]), BTreeSet::new());
    stage.archive().sweep(&used, now).await.unwrap();
    stage.archive().sweep(&unused, now).await.unwrap();
    assert_eq!(stage.archive().load(&fetched.digest).await.unwrap(), component(1));
    stage.archive().sweep(&unused, now + RELEASED_AFTER).await.unwrap();
    assert!(stage.maps().await.is_empty());
    let error = stage.archive().load(&fetched.digest).await.unwrap_err();
    assert!(matches!(error, ArchiveError::NotKept(_)), "{error}");
}

/// A component of two parts that nothing has needed for a day, and its ConfigMaps, the first one first.
async fn unused(stage: &Stage) -> (Vec<u8>, [ConfigMap; 2]) {
    let wasm = of_two_parts();
    stage.archive().keep(&source::digest(&wasm), &wasm, None, None).await.unwrap();
    stage.archive().sweep(&BTreeSet::new(), A_DAY_AGO.parse().unwrap()).await.unwrap();
    let mut maps = stage.maps().await;
    maps.sort_by_key(|map| map.metadata.name.clone());
    (wasm, maps.try_into().unwrap())
}

const A_DAY_AGO: &str = "2026-01-01T00:00:00Z";

#[tokio::test]
async fn what_is_kept_again_after_it_was_listed_as_unused_is_not_released() {
    let stage = Stage::new().await;
    let (wasm, [first, second]) = unused(&stage).await;
    let (archive, digest) = (stage.archive(), source::digest(&wasm));
    archive.keep(&digest, &wasm, None, None).await.unwrap();
    assert!(!archive.release(&first.metadata).await.unwrap());

    // Nor is a part that is found again after the first one was released.
    archive.maps.delete(&name(&digest, 0), &DeleteParams::default()).await.unwrap();
    archive.keep(&digest, &wasm, None, None).await.unwrap();
    assert!(!archive.release(&second.metadata).await.unwrap());
    assert_eq!(archive.load(&digest).await.unwrap(), wasm);
}

#[tokio::test]
async fn the_other_parts_of_a_plugin_stay_while_the_first_one_does() {
    let stage = Stage::new().await;
    let (wasm, _) = unused(&stage).await;
    let (archive, digest) = (stage.archive(), source::digest(&wasm));
    archive.keep(&digest, &wasm, None, None).await.unwrap();
    let now = A_DAY_AGO.parse::<Timestamp>().unwrap() + RELEASED_AFTER;
    archive.sweep(&BTreeSet::new(), now).await.unwrap();
    assert_eq!(archive.load(&digest).await.unwrap(), wasm);
    archive.sweep(&BTreeSet::new(), now + RELEASED_AFTER).await.unwrap();
    assert!(stage.maps().await.is_empty());
}

#[tokio::test]
async fn what_is_released_between_a_look_and_a_mark_is_not_kept() {
    let stage = Stage::new().await;
    let (wasm, [first, _]) = unused(&stage).await;
    let (archive, digest) = (stage.archive(), source::digest(&wasm));
    assert!(archive.release(&first.metadata).await.unwrap());
    assert!(!archive.holds(&digest, 0, first.metadata, None).await.unwrap());
}

fn map(annotations: &[(&str, &str)]) -> PartialObjectMeta<ConfigMap> {
    let annotations = annotations.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    PartialObjectMeta {
        metadata: ObjectMeta { annotations: Some(annotations), ..ObjectMeta::default() },
        ..PartialObjectMeta::default()
    }
}

#[test]
fn what_is_kept_is_released_when_nothing_has_needed_it_for_a_day() {
    let now: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
    let digest = decide::testkit::digest("d");
    let (used, unused) = (BTreeSet::from([digest.clone()]), BTreeSet::new());
    let fresh = map(&[(DIGEST_ANNOTATION, digest.as_str())]);
    assert_eq!(fate(&fresh, &used, now), Fate::Stays);
    assert_eq!(fate(&fresh, &unused, now), Fate::Mark(Some(now.to_string())));
    let marked = map(&[(DIGEST_ANNOTATION, digest.as_str()), (UNUSED_ANNOTATION, "2026-01-01T00:00:01Z")]);
    assert_eq!(fate(&marked, &unused, now), Fate::Stays);
    assert_eq!(fate(&marked, &used, now), Fate::Mark(None));
    let old = map(&[(DIGEST_ANNOTATION, digest.as_str()), (UNUSED_ANNOTATION, "2026-01-01T00:00:00Z")]);
    assert_eq!(fate(&old, &unused, now), Fate::Goes);
    assert_eq!(fate(&map(&[]), &unused, now), Fate::Stays);
}

//! Who vouches for an artifact: with a public key, nothing is fetched that its owner has not signed.

use super::{
    options, pull_with,
    server::{Reply, Server},
    stock::{INDEX, MANIFEST, Stock, digest},
    told,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use p256::{
    ecdsa::{Signature, SigningKey, signature::Signer},
    pkcs8::{EncodePrivateKey, EncodePublicKey, LineEnding},
};
use registry::{PublicKey, PullError, PullOptions, SignatureError};
use serde_json::{Value, json};

const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
const SIGNED: &str = "https://sigstore.dev/cosign/sign/v1";

/// A key pair that is the same on every run.
fn signer(number: u8) -> SigningKey {
    SigningKey::from_slice(&[number; 32]).unwrap()
}

fn public(signer: &SigningKey) -> PublicKey {
    PublicKey::parse(&signer.verifying_key().to_public_key_pem(LineEnding::LF).unwrap()).unwrap()
}

fn sign(signer: &SigningKey, message: &[u8]) -> String {
    let signature: Signature = signer.sign(message);
    BASE64_STANDARD.encode(signature.to_der())
}

/// What cosign signs of a manifest.
fn payload(digest: &str) -> String {
    let image = json!({ "docker-manifest-digest": digest });
    let identity = json!({ "docker-reference": "" });
    let critical = json!({ "identity": identity, "image": image, "type": "cosign container image signature" });
    json!({ "critical": critical, "optional": null }).to_string()
}

/// With these payloads and signatures where cosign leaves them.
fn signed(stock: Stock, signatures: &[(String, String)]) -> Stock {
    let layers = signatures.iter().map(|(payload, signature)| {
        json!({
            "mediaType": "application/vnd.dev.cosign.simplesigning.v1+json",
            "digest": digest(payload.as_bytes()),
            "size": payload.len(),
            "annotations": { "dev.cosignproject.cosign/signature": signature },
        })
    });
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": { "mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(b"{}"), "size": 2 },
        "layers": layers.collect::<Vec<_>>(),
    });
    let tag = format!("manifests/{}.sig", stock.digest().replace(':', "-"));
    let stock = stock.and(tag, Reply::ok(manifest.to_string()).header("Content-Type", MANIFEST));
    signatures.iter().fold(stock, |stock, (payload, _)| {
        stock.and(format!("blobs/{}", digest(payload.as_bytes())), Reply::ok(payload.as_bytes()))
    })
}

/// What a statement of this type about a manifest looks like, signed, in a bundle.
fn bundle(signer: &SigningKey, predicate_type: &str, digest: &str) -> String {
    let subject = json!([{ "digest": { "sha256": digest.trim_start_matches("sha256:") } }]);
    let statement =
        json!({ "_type": "https://in-toto.io/Statement/v1", "subject": subject, "predicateType": predicate_type });
    let (statement, kind) = (statement.to_string(), "application/vnd.in-toto+json");
    let message = format!("DSSEv1 {} {kind} {} {statement}", kind.len(), statement.len());
    json!({
        "mediaType": BUNDLE,
        "verificationMaterial": { "publicKey": { "hint": "" } },
        "dsseEnvelope": {
            "payload": BASE64_STANDARD.encode(&statement),
            "payloadType": kind,
            "signatures": [{ "sig": sign(signer, message.as_bytes()) }],
        },
    })
    .to_string()
}

/// With this bundle as an artifact that refers to the manifest, in a registry that lists such, or by the tag where it does not.
fn referred(stock: Stock, bundle: &str, list: &str) -> Stock {
    let manifest: Value = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": BUNDLE,
        "config": { "mediaType": "application/vnd.oci.empty.v1+json", "digest": digest(b"{}"), "size": 2 },
        "layers": [{ "mediaType": BUNDLE, "digest": digest(bundle.as_bytes()), "size": bundle.len() }],
        "subject": { "mediaType": MANIFEST, "digest": stock.digest(), "size": 1 },
    });
    let own = digest(manifest.to_string().as_bytes());
    let entry =
        json!({ "mediaType": MANIFEST, "artifactType": BUNDLE, "digest": own, "size": manifest.to_string().len() });
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [entry] }).to_string();
    stock
        .and(list, Reply::ok(index).header("Content-Type", INDEX))
        .and(format!("manifests/{own}"), Reply::ok(manifest.to_string()).header("Content-Type", MANIFEST))
        .and(format!("blobs/{}", digest(bundle.as_bytes())), Reply::ok(bundle))
}

fn referrers(stock: &Stock) -> String {
    format!("referrers/{}", stock.digest())
}

/// What comes of a pull with the first signer's key.
async fn pull(stock: Stock) -> Result<Vec<u8>, SignatureError> {
    pull_by(public(&signer(1)), stock).await
}

/// What comes of a pull with this key.
async fn pull_by(key: PublicKey, stock: Stock) -> Result<Vec<u8>, SignatureError> {
    let blob = stock.blob();
    let server = Server::start(move |asked| stock.answer(asked)).await;
    let options = PullOptions { public_key: Some(key), ..options() };
    match pull_with(&format!("{}/owner/plugin:1", server.address), &options).await {
        Ok(pulled) => Ok(pulled.wasm),
        Err(PullError::Signature { source, .. }) => {
            assert!(!server.was_asked(&blob), "it was fetched before its signature held");
            Err(source)
        }
        Err(other) => panic!("{}", told(&other)),
    }
}

#[tokio::test]
async fn an_artifact_that_the_key_has_signed_is_pulled() {
    let stock = Stock::new();
    let payload = payload(&stock.digest());
    let signature = sign(&signer(1), payload.as_bytes());
    assert_eq!(pull(signed(stock.clone(), &[(payload, signature)])).await.unwrap(), stock.wasm);
}

#[tokio::test]
async fn one_signature_by_the_key_is_enough_among_those_of_others() {
    let stock = Stock::new();
    let mine = payload(&stock.digest());
    let theirs = mine.replace("null", "{}");
    let signatures =
        [(theirs.clone(), sign(&signer(2), theirs.as_bytes())), (mine.clone(), sign(&signer(1), mine.as_bytes()))];
    assert!(pull(signed(stock, &signatures)).await.is_ok());
}

#[tokio::test]
async fn an_artifact_without_a_signature_is_refused() {
    let error = pull(Stock::new()).await.unwrap_err();
    assert!(matches!(error, SignatureError::Absent { .. }), "{}", told(&error));
    assert!(error.to_string().contains("make one with `cosign sign --key cosign.key"), "{error}");
}

#[tokio::test]
async fn a_signature_by_another_key_is_none() {
    let stock = Stock::new();
    let payload = payload(&stock.digest());
    let signature = sign(&signer(2), payload.as_bytes());
    let error = pull(signed(stock, &[(payload, signature)])).await.unwrap_err();
    assert!(matches!(error, SignatureError::OtherKey(1)), "{}", told(&error));
}

#[tokio::test]
async fn a_signature_for_another_digest_is_none() {
    let (stock, other) = (Stock::new(), digest(b"another"));
    let payload = payload(&other);
    let signature = sign(&signer(1), payload.as_bytes());
    let error = pull(signed(stock.clone(), &[(payload, signature)])).await.unwrap_err();
    let SignatureError::OtherDigest { signed, manifest } = &error else { panic!("{}", told(&error)) };
    assert_eq!((signed, manifest.to_string()), (&other, stock.digest()));
}

#[tokio::test]
async fn a_signature_that_is_none_is_refused() {
    let stock = Stock::new();
    let payload = payload(&stock.digest());
    for noise in ["", "not base64!", "AAAA", &BASE64_STANDARD.encode([0x30; 70])] {
        let error = pull(signed(stock.clone(), &[(payload.clone(), noise.to_owned())])).await.unwrap_err();
        assert!(matches!(error, SignatureError::OtherKey(1)), "{noise}: {}", told(&error));
    }
}

#[tokio::test]
async fn a_signed_text_that_is_no_signature_of_an_artifact_vouches_for_nothing() {
    let stock = Stock::new();
    let atomic = payload(&stock.digest()).replace("cosign container image signature", "atomic container signature");
    for text in [atomic, "{}".to_owned(), "no JSON".to_owned(), String::new()] {
        let signature = sign(&signer(1), text.as_bytes());
        let error = pull(signed(stock.clone(), &[(text.clone(), signature)])).await.unwrap_err();
        assert!(matches!(error, SignatureError::OtherStatement(_)), "{text}: {}", told(&error));
    }
}

#[tokio::test]
async fn a_bundle_that_refers_to_the_artifact_is_found_in_the_list_and_by_the_tag() {
    let stock = Stock::new();
    let bundle = bundle(&signer(1), SIGNED, &stock.digest());
    for list in [referrers(&stock), format!("manifests/{}", stock.digest().replace(':', "-"))] {
        assert!(pull(referred(stock.clone(), &bundle, &list)).await.is_ok(), "{list}");
    }
}

#[tokio::test]
async fn a_bundle_by_another_key_or_of_another_artifact_is_none() {
    let stock = Stock::new();
    let list = referrers(&stock);
    let theirs = bundle(&signer(2), SIGNED, &stock.digest());
    let error = pull(referred(stock.clone(), &theirs, &list)).await.unwrap_err();
    assert!(matches!(error, SignatureError::OtherKey(1)), "{}", told(&error));
    let moved = bundle(&signer(1), SIGNED, &digest(b"another"));
    let error = pull(referred(stock.clone(), &moved, &list)).await.unwrap_err();
    assert!(matches!(error, SignatureError::OtherDigest { .. }), "{}", told(&error));
    let error = pull(referred(stock, "{}", &list)).await.unwrap_err();
    assert!(matches!(error, SignatureError::OtherKey(1)), "{}", told(&error));
}

#[tokio::test]
async fn an_attestation_by_the_key_is_no_signature() {
    let stock = Stock::new();
    let scan = bundle(&signer(1), "https://cosign.sigstore.dev/attestation/vuln/v1", &stock.digest());
    let list = referrers(&stock);
    let error = pull(referred(stock, &scan, &list)).await.unwrap_err();
    assert!(matches!(&error, SignatureError::OtherStatement(of) if of.contains("vuln")), "{}", told(&error));
}

#[tokio::test]
async fn a_payload_that_is_not_what_it_is_called_by_is_refused() {
    let stock = Stock::new();
    let mine = payload(&stock.digest());
    let signature = sign(&signer(1), mine.as_bytes());
    let blob = format!("blobs/{}", digest(mine.as_bytes()));
    let stock = signed(stock.and(blob, Reply::ok(mine.replace("null", "1234"))), &[(mine, signature)]);
    let error = pull(stock).await.unwrap_err();
    assert!(matches!(error, SignatureError::Registry(_)), "{}", told(&error));
}

#[tokio::test]
async fn what_the_images_key_signs_vouches_for_the_manifest_that_it_names_and_for_no_other() {
    let stock = Stock::new();
    let pem = |number: u8| p256::SecretKey::from_slice(&[number; 32]).unwrap().to_pkcs8_pem(LineEnding::LF).unwrap();
    let by = |number: u8, digest: &str| {
        let made = image::sign::Key::parse(&pem(number)).unwrap().sign("registry.example.org/team/troupe:1", digest);
        (made.payload, made.signature)
    };
    assert_eq!(pull(signed(stock.clone(), &[by(1, &stock.digest())])).await.unwrap(), stock.wasm);
    let error = pull(signed(stock.clone(), &[by(2, &stock.digest())])).await.unwrap_err();
    assert!(matches!(error, SignatureError::OtherKey(1)), "{}", told(&error));
    let error = pull(signed(stock, &[by(1, &digest(b"another"))])).await.unwrap_err();
    assert!(matches!(error, SignatureError::OtherDigest { .. }), "{}", told(&error));
}

/// What cosign wrote, from the folder whose README says how.
mod cosign {
    pub(super) const KEY: &str = include_str!("../../../host/registry/src/signature/cosign/cosign.pub");
    pub(super) const ARTIFACT: &str = include_str!("../../../host/registry/src/signature/cosign/artifact.json");
    pub(super) const SIGNATURES: &str = include_str!("../../../host/registry/src/signature/cosign/signatures.json");
    pub(super) const PAYLOAD: &str = include_str!("../../../host/registry/src/signature/cosign/payload.json");
    pub(super) const REFERRERS: &str = include_str!("../../../host/registry/src/signature/cosign/referrers.json");
    pub(super) const REFERRER: &str = include_str!("../../../host/registry/src/signature/cosign/bundle-manifest.json");
    pub(super) const BUNDLE: &str = include_str!("../../../host/registry/src/signature/cosign/bundle.json");
}

/// The artifact that cosign signed, and what it has left of it: a payload with a signature, or a bundle.
fn by_cosign() -> [(&'static str, Stock); 2] {
    let wasm = b"\0asm\x0d\0\x01\0".to_vec();
    let manifest = serde_json::from_str(cosign::ARTIFACT).unwrap();
    let stock = Stock { wasm, manifest, media_type: MANIFEST, others: vec![] };
    let tag = format!("manifests/{}", stock.digest().replace(':', "-"));
    let manifest = |text: &str, media_type: &str| Reply::ok(text).header("Content-Type", media_type);
    let blob = |text: &str| (format!("blobs/{}", digest(text.as_bytes())), Reply::ok(text));
    let (payload, bundle) = (blob(cosign::PAYLOAD), blob(cosign::BUNDLE));
    let signed = stock.clone().and(format!("{tag}.sig"), manifest(cosign::SIGNATURES, MANIFEST));
    let referrer = format!("manifests/{}", digest(cosign::REFERRER.as_bytes()));
    let referred =
        stock.and(tag, manifest(cosign::REFERRERS, INDEX)).and(referrer, manifest(cosign::REFERRER, MANIFEST));
    [("payload", signed.and(payload.0, payload.1)), ("bundle", referred.and(bundle.0, bundle.1))]
}

#[tokio::test]
async fn an_artifact_that_cosign_has_signed_is_pulled_with_its_key_only() {
    for (what, stock) in by_cosign() {
        let key = PublicKey::parse(cosign::KEY).unwrap();
        assert_eq!(pull_by(key, stock.clone()).await.unwrap(), stock.wasm, "{what}");
        let error = pull(stock).await.unwrap_err();
        assert!(matches!(error, SignatureError::OtherKey(1)), "{what}: {}", told(&error));
    }
}

#[tokio::test]
async fn what_cosign_has_written_of_one_artifact_vouches_for_no_other() {
    for (what, stock) in by_cosign() {
        let (old, mut other) = (stock.digest(), Stock::new());
        let [from, to] = [&old, &other.digest()].map(|digest| digest.replace(':', "-"));
        other.others = stock.others.into_iter().map(|(path, reply)| (path.replace(&from, &to), reply)).collect();
        let error = pull_by(PublicKey::parse(cosign::KEY).unwrap(), other).await.unwrap_err();
        let SignatureError::OtherDigest { signed, .. } = &error else { panic!("{what}: {}", told(&error)) };
        assert_eq!(signed, &old, "{what}");
    }
}

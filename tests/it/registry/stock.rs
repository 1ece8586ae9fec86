//! What a registry has in stock: an artifact as it should be, to be spoiled in one way.

use super::server::{ReceivedRequest, Reply};
use registry::Digest;
use serde_json::{Value, json};

pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(super) const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// The repository `owner/plugin` with one artifact, tagged `1`.
#[derive(Debug, Clone)]
pub(super) struct Stock {
    pub(super) wasm: Vec<u8>,
    pub(super) manifest: Value,
    pub(super) media_type: &'static str,
    /// Other things by path below the repository: `manifests/x` or `blobs/x`.
    pub(super) others: Vec<(String, Reply)>,
}

impl Stock {
    /// A component of some size; nobody here asks it anything.
    pub(super) fn new() -> Self {
        let mut wasm = b"\0asm\x0d\0\x01\0".to_vec();
        wasm.extend((0..100_000_u32).map(|number| number.to_le_bytes()[0]));
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": { "mediaType": "application/vnd.wasm.config.v0+json", "digest": digest(b"{}"), "size": 2 },
            "layers": [{ "mediaType": "application/wasm", "digest": digest(&wasm), "size": wasm.len() }],
        });
        Self { wasm, manifest, media_type: MANIFEST, others: vec![] }
    }

    /// With a change at one place of the manifest.
    pub(super) fn with(mut self, pointer: &str, value: Value) -> Self {
        *self.manifest.pointer_mut(pointer).unwrap() = value;
        self
    }

    /// With something else under a path, before all else.
    pub(super) fn and(mut self, path: impl Into<String>, reply: Reply) -> Self {
        self.others.push((path.into(), reply));
        self
    }

    /// The manifest's digest.
    pub(super) fn digest(&self) -> String {
        digest(self.manifest.to_string().as_bytes())
    }

    /// Where the component lies.
    pub(super) fn blob(&self) -> String {
        format!("blobs/{}", digest(&self.wasm))
    }

    pub(super) fn answer(&self, asked: &ReceivedRequest) -> Reply {
        let path = asked.line.strip_prefix("GET /v2/owner/plugin/").unwrap_or_default();
        if let Some((_, reply)) = self.others.iter().find(|(other, _)| other == path) {
            return reply.clone();
        }
        if path == "manifests/1" || path == format!("manifests/{}", self.digest()) {
            return Reply::ok(self.manifest.to_string()).header("Content-Type", self.media_type);
        }
        if path == self.blob() { Reply::ok(self.wasm.clone()) } else { Reply::status("404 Not Found") }
    }
}

pub(super) fn digest(bytes: &[u8]) -> String {
    Digest::of(bytes).to_string()
}

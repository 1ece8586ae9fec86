//! The components that are delivered, their sources, and the Plugins that name these.

use super::{
    deliveries::{API, NAMESPACE},
    jobs::PLUGIN_OF_ONE_POD,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use sandbox::{Plugins, source};
use serde_json::{Value, json};

/// The same component under another digest: with one more custom section.
///
/// # Panics
/// The mark has more than 100 bytes.
#[must_use]
pub fn marked(wasm: &[u8], mark: &str) -> Vec<u8> {
    let mut wasm = wasm.to_vec();
    let name = b"mark";
    let size = |bytes: usize| u8::try_from(bytes).ok().filter(|bytes| *bytes <= 105).expect("marks are short");
    wasm.extend([0, size(1 + name.len() + mark.len()), size(name.len())]);
    wasm.extend(name);
    wasm.extend(mark.as_bytes());
    wasm
}

/// The built-in component for this framework under another digest.
///
/// # Panics
/// None comes with the host.
#[must_use]
pub fn another(framework: &str, mark: &str) -> Vec<u8> {
    marked(Plugins::built_in(framework).expect("it comes with the host"), mark)
}

/// A component that calls itself so and serves a kind that nothing else serves.
///
/// # Panics
/// The name has another length than that of the plugin that it is made of.
#[must_use]
pub fn of_poodles(name: &str) -> Vec<u8> {
    let named = replaced(&another(PLUGIN_OF_ONE_POD, name), b"paddle0.1.0", format!("{name}0.1.0").as_bytes());
    replaced(&named, b"PaddleJobpaddlejobs", b"PoodleJobpoodlejobs")
}

/// The bytes with others in the only place that has these.
fn replaced(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    assert_eq!(old.len(), new.len(), "a component says how long its parts are");
    let places: Vec<_> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(old)).collect();
    let [at] = places[..] else { panic!("{} places", places.len()) };
    [&bytes[..at], new, &bytes[at + old.len()..]].concat()
}

/// A Plugin of this name.
pub(super) fn plugin(name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": API, "kind": "Plugin", "metadata": { "name": name }, "spec": spec })
}

/// The source of a Plugin of this name: a ConfigMap with these bytes.
pub(super) fn source_of(name: &str, wasm: &[u8]) -> Value {
    let data = json!({ source::KEY: STANDARD.encode(wasm) });
    let metadata = json!({ "name": name, "namespace": NAMESPACE });
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": data })
}

//! The config of the Wasm OCI artifact layout, which describes a component without running it.

use super::digest::Digest;
use sandbox::surface::Surface;
use serde_json::{Value, json};

/// A constant, so that pushing a component twice makes one artifact. Some tools require a time here.
const CREATED: &str = "1970-01-01T00:00:00Z";

/// Returns the component's config: its layer, and its imports and exports.
///
/// # Errors
/// Returns an error if the component is malformed.
pub(super) fn config(wasm: &[u8]) -> Result<Value, wasmparser::BinaryReaderError> {
    let Surface { imports, exports } = Surface::of(wasm)?;
    Ok(json!({
        "created": CREATED,
        "architecture": "wasm",
        "os": "wasip2",
        "layerDigests": [Digest::of(wasm).to_string()],
        "component": { "exports": exports, "imports": imports },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandbox::Plugins;

    #[test]
    fn the_config_lists_the_imports_and_exports_of_a_plugin() {
        let wasm = Plugins::built_in("paddle").unwrap();
        let config = config(wasm).unwrap();
        assert_eq!(config["component"]["exports"], json!(["troupe:framework/framework@0.1.0"]));
        let imports = config["component"]["imports"].to_string();
        assert!(imports.contains("troupe:framework/") && !imports.contains("cm32p2"), "{imports}");
        assert_eq!(config["layerDigests"], json!([Digest::of(wasm).to_string()]));
    }

    #[test]
    fn a_truncated_component_is_malformed() {
        let wasm = Plugins::built_in("paddle").unwrap();
        assert!(config(&wasm[..wasm.len() / 2]).is_err());
    }
}

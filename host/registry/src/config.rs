//! What an artifact says of its component without running it: the config of the Wasm OCI artifact layout.

use super::digest::Digest;
use sandbox::surface::Surface;
use serde_json::{Value, json};

/// The same for the same component, so that pushing it twice makes one artifact; some tools want a time to stand here.
const CREATED: &str = "1970-01-01T00:00:00Z";

/// The component's config: its layer, and what it imports and exports.
///
/// # Errors
/// The component is malformed.
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
    fn the_imports_and_exports_of_a_plugin_are_told() {
        let wasm = Plugins::built_in("paddle").unwrap();
        let config = config(wasm).unwrap();
        assert_eq!(config["component"]["exports"], json!(["troupe:framework/framework@0.1.0"]));
        let imports = config["component"]["imports"].to_string();
        assert!(imports.contains("troupe:framework/") && !imports.contains("cm32p2"), "{imports}");
        assert_eq!(config["layerDigests"], json!([Digest::of(wasm).to_string()]));
    }

    #[test]
    fn what_is_cut_off_is_malformed() {
        let wasm = Plugins::built_in("paddle").unwrap();
        assert!(config(&wasm[..wasm.len() / 2]).is_err());
    }
}

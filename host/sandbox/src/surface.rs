//! Reads a component's imports and exports from its bytes, without compiling or running it.

use wasmparser::{BinaryReaderError, Parser, Payload};

/// The name of the contract's interface that every plugin exports, without its version.
const FRAMEWORK: &str = "troupe:framework/framework@";

/// The names of a component's imports and exports, in the component's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surface {
    /// Imported interfaces, such as `wasi:io/streams@0.2.6`.
    pub imports: Vec<String>,
    /// Exported interfaces.
    pub exports: Vec<String>,
}

impl Surface {
    /// Reads the imports and exports of the component itself, without those of the modules and components inside it.
    ///
    /// # Errors
    /// Returns an error if the bytes cannot be parsed.
    pub fn of(wasm: &[u8]) -> Result<Self, BinaryReaderError> {
        let (mut depth, mut surface) = (0_u32, Self { imports: vec![], exports: vec![] });
        for payload in Parser::new(0).parse_all(wasm) {
            match payload? {
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::ComponentImportSection(section) if depth == 0 => {
                    for import in section {
                        surface.imports.push(import?.name.name.to_owned());
                    }
                }
                Payload::ComponentExportSection(section) if depth == 0 => {
                    for export in section {
                        surface.exports.push(export?.name.name.to_owned());
                    }
                }
                _ => {}
            }
        }
        Ok(surface)
    }

    /// Returns the version of the contract that the component exports, if it exports the contract.
    #[must_use]
    pub fn contract(&self) -> Option<&str> {
        self.exports.iter().find_map(|export| export.strip_prefix(FRAMEWORK))
    }
}

//! What a component imports and exports, read from its bytes without compiling or running it.

use wasmparser::{BinaryReaderError, Parser, Payload};

/// The interface of the contract that every plugin exports, without its version.
const FRAMEWORK: &str = "troupe:framework/framework@";

/// The names of what a component imports and exports, in its own order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surface {
    /// Interfaces that it needs: `wasi:io/streams@0.2.6`.
    pub imports: Vec<String>,
    /// Interfaces that it has.
    pub exports: Vec<String>,
}

impl Surface {
    /// What the component itself imports and exports; what its parts say to each other is left out.
    ///
    /// # Errors
    /// The bytes are no component.
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

    /// The version of the contract that it was built against, if it exports the contract.
    #[must_use]
    pub fn contract(&self) -> Option<&str> {
        self.exports.iter().find_map(|export| export.strip_prefix(FRAMEWORK))
    }
}

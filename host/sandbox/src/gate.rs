//! Limits the complexity of a component. One read before compilation counts its parts: a refused component costs no
//! compilation, and an accepted one is small enough to compile within bounds.

use super::{
    load_error::LoadError,
    remedy::{LESS, Trouble, remedy},
};
use wasmparser::{Encoding, Parser, Payload};

/// Maximum number of memories of a component. What links a language's runtime to its bindings may have one of its own
/// beside the program's (QuickJS: an empty one). Together they have no more bytes than `Limits::memory`.
pub(super) const MEMORIES: u32 = 2;

/// The name of the count of memories.
const OF_MEMORIES: &str = "memories";

/// Maximum number of tables of a component.
pub(super) const TABLES: u32 = 4;

/// Maximum number of core modules in a component; the pool has room for twice as many instances of them. A Python
/// interpreter with its libraries and stubs has 38 modules.
pub(super) const MODULES: u32 = 64;

/// Counts over all modules and components inside a component.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    functions: u64,
    largest_body: u64,
    memories: u64,
    tables: u64,
    modules: u64,
    nesting: u64,
    custom_sections: u64,
    definitions: u64,
}

/// The limit of each count. A whole JavaScript engine has about 20,000 functions, the largest of them 300 KB.
const MOST: Counts = Counts {
    functions: 50_000,
    largest_body: 1 << 20,
    memories: MEMORIES as u64,
    tables: TABLES as u64,
    modules: MODULES as u64,
    nesting: 8,
    custom_sections: 256,
    definitions: 200_000,
};

/// Checks that no count of a component exceeds its limit.
///
/// # Errors
/// Returns the first count that exceeds its limit, or an error if the bytes cannot be read as WebAssembly.
pub(super) fn pass(wasm: &[u8]) -> Result<(), LoadError> {
    let mut counts = Counts::default();
    let mut depth = 0;
    for payload in Parser::new(0).parse_all(wasm) {
        let payload = payload.map_err(|error| LoadError::Compile(error.into()))?;
        match &payload {
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            _ => {}
        }
        counts.add(&payload);
        counts.nesting = counts.nesting.max(depth);
        if let Some((what, is, most)) = counts.beyond(&MOST) {
            let remedy = if what == OF_MEMORIES { remedy(Trouble::Memories, wasm) } else { LESS };
            return Err(LoadError::TooComplex { what, is, most, remedy });
        }
    }
    Ok(())
}

impl Counts {
    fn add(&mut self, payload: &Payload<'_>) {
        match payload {
            Payload::Version { encoding: Encoding::Module, .. } => self.modules += 1,
            Payload::FunctionSection(functions) => self.functions += u64::from(functions.count()),
            Payload::CodeSectionEntry(body) => self.largest_body = self.largest_body.max(body.range().len() as u64),
            Payload::MemorySection(memories) => self.memories += u64::from(memories.count()),
            Payload::TableSection(tables) => self.tables += u64::from(tables.count()),
            Payload::CustomSection(_) => self.custom_sections += 1,
            other => self.definitions += u64::from(definitions(other)),
        }
    }

    /// Returns the first count that exceeds its limit, as (name, count, limit).
    fn beyond(&self, most: &Self) -> Option<(&'static str, u64, u64)> {
        let each = [
            ("functions", self.functions, most.functions),
            ("bytes in one function", self.largest_body, most.largest_body),
            (OF_MEMORIES, self.memories, most.memories),
            ("tables", self.tables, most.tables),
            ("modules", self.modules, most.modules),
            ("components within each other", self.nesting, most.nesting),
            ("custom sections", self.custom_sections, most.custom_sections),
            ("definitions", self.definitions, most.definitions),
        ];
        each.into_iter().find(|(_, is, most)| is > most)
    }
}

/// Returns the number of other definitions in a section.
fn definitions(section: &Payload<'_>) -> u32 {
    match section {
        Payload::TypeSection(section) => section.count(),
        Payload::ImportSection(section) => section.count(),
        Payload::TagSection(section) => section.count(),
        Payload::GlobalSection(section) => section.count(),
        Payload::ExportSection(section) => section.count(),
        Payload::ElementSection(section) => section.count(),
        Payload::DataSection(section) => section.count(),
        Payload::InstanceSection(section) => section.count(),
        Payload::CoreTypeSection(section) => section.count(),
        Payload::ComponentInstanceSection(section) => section.count(),
        Payload::ComponentAliasSection(section) => section.count(),
        Payload::ComponentTypeSection(section) => section.count(),
        Payload::ComponentCanonicalSection(section) => section.count(),
        Payload::ComponentImportSection(section) => section.count(),
        Payload::ComponentExportSection(section) => section.count(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_exceeded_count_is_named_with_its_limit() {
        let most = Counts { functions: 2, memories: 1, ..Counts::default() };
        let counts = Counts { functions: 2, memories: 3, ..Counts::default() };
        assert_eq!(counts.beyond(&most), Some(("memories", 3, 1)));
        assert_eq!(most.beyond(&most), None);
    }
}

//! The second copy of a component, for calls that are made twice.

use super::{compile::reload, convert::Exports, load_error::LoadError};
use std::sync::{Arc, OnceLock};
use wasmtime::Engine;

/// A second copy of a component, which shares neither code nor memory with the first. Kept, since to load it takes as long as
/// many calls; made when it is needed first, since it takes as much memory as the first. Clones are the same twin.
#[derive(Clone, Default)]
pub(super) struct Twin(Arc<OnceLock<Exports>>);

impl Twin {
    /// Returns the twin of the component.
    ///
    /// # Errors
    /// Returns an error if its compiled code cannot be loaded again.
    pub(super) fn get(&self, engine: &Engine, exports: &Exports) -> Result<&Exports, LoadError> {
        if let Some(twin) = self.0.get() {
            return Ok(twin);
        }
        let twin = reload(engine, exports)?;
        Ok(self.0.get_or_init(|| twin))
    }
}

//! Checks that a plugin's description is consistent.

use crate::settings::ConfigError;
use decide::{plan::Descriptor, vet::is_label};

/// The reason why a plugin's description is not acceptable.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionError {
    /// The plugin serves, watches or creates what no plugin may.
    #[error("{0}")]
    NotAllowed(String),
    /// The plugin's name is no DNS label.
    #[error("the name {0:?} is no DNS label")]
    Name(String),
    /// There is no kind of job.
    #[error("it serves no kind")]
    NoKind,
    /// A kind has only one half of what hands its jobs to another manager.
    #[error("kind {0} has a managed-by switch or an own-manager without the other")]
    Manager(String),
    /// The name of a role, in lower case, is no DNS label.
    #[error("role {role:?} of kind {kind} is no DNS label")]
    Role {
        /// The role.
        role: String,
        /// Its kind of job.
        kind: String,
    },
    /// A kind is described twice.
    #[error("kind {0} appears twice")]
    Twice(String),
    /// A loaded plugin serves a kind already.
    #[error("kind {kind} is served by plugin {plugin} already")]
    KindTaken {
        /// The kind.
        kind: String,
        /// The name of the plugin that serves it.
        plugin: String,
    },
    /// A loaded plugin has the name already.
    #[error("another plugin is called {0}")]
    NameTaken(String),
    /// The plugin's schema does not allow a plugin without settings.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Checks a description by itself.
///
/// # Errors
/// It is inconsistent, or a name in it is invalid.
pub(super) fn sound(new: &Descriptor) -> Result<(), DescriptionError> {
    decide::vet::description(new).map_err(|why| DescriptionError::NotAllowed(why.to_string()))?;
    if !is_label(&new.name) {
        return Err(DescriptionError::Name(new.name.clone()));
    }
    if new.kinds.is_empty() {
        return Err(DescriptionError::NoKind);
    }
    for (place, kind) in new.kinds.iter().enumerate() {
        let name = || kind.kind.clone();
        if kind.managed_by.is_some() != kind.own_manager.is_some() {
            return Err(DescriptionError::Manager(name()));
        }
        // Frameworks may write role names in upper case (`PS`).
        if let Some(role) = kind.roles.iter().find(|role| !is_label(&role.to_ascii_lowercase())) {
            return Err(DescriptionError::Role { role: role.clone(), kind: name() });
        }
        if new.kinds[..place].iter().any(|other| other.is_same(kind)) {
            return Err(DescriptionError::Twice(name()));
        }
    }
    Ok(())
}

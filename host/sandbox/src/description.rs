//! Checks that a plugin's description is consistent.

use decide::{plan::Descriptor, vet::is_label};

/// Checks a description. Returns a message if it is inconsistent or a name in it is invalid.
pub(super) fn sound(new: &Descriptor) -> Result<(), String> {
    decide::vet::description(new).map_err(|error| error.to_string())?;
    if !is_label(&new.name) {
        return Err(format!("the name {:?} is no DNS label", new.name));
    }
    if new.kinds.is_empty() {
        return Err("it serves no kind".to_owned());
    }
    for (place, kind) in new.kinds.iter().enumerate() {
        if kind.managed_by.is_some() != kind.own_manager.is_some() {
            return Err(format!("kind {} has a managed-by switch or an own-manager without the other", kind.kind));
        }
        // Frameworks may write role names in upper case (`PS`).
        if let Some(role) = kind.roles.iter().find(|role| !is_label(&role.to_ascii_lowercase())) {
            return Err(format!("role {role:?} of kind {} is no DNS label", kind.kind));
        }
        if new.kinds[..place].iter().any(|other| other.is_same(kind)) {
            return Err(format!("kind {} stands twice", kind.kind));
        }
    }
    Ok(())
}

//! What has to be so before something is made.

use crate::types::{FieldGate, Gate, PodsGate, Reached};

/// All replicas of the role have come so far.
pub fn pods_are(role: impl Into<String>, reached: Reached) -> Gate {
    Gate::Pods(PodsGate { role: role.into(), reached })
}

/// The object of this key has one of these texts at the pointer.
pub fn field_is(key: impl Into<String>, at: impl Into<String>, one_of: &[&str]) -> Gate {
    Gate::Field(FieldGate {
        key: key.into(),
        at: at.into(),
        one_of: one_of.iter().map(|text| (*text).to_owned()).collect(),
    })
}

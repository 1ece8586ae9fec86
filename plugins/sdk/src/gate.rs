//! Gates: conditions that must hold before the host creates pods or an object.

use crate::types::{FieldGate, Gate, PodsGate, Reached};

/// A gate that opens when all replicas of the role have reached this state.
pub fn pods_are(role: impl Into<String>, reached: Reached) -> Gate {
    Gate::Pods(PodsGate { role: role.into(), reached })
}

/// A gate that opens when the plan's object with this key has one of these texts at the pointer.
pub fn field_is(key: impl Into<String>, at: impl Into<String>, one_of: &[&str]) -> Gate {
    Gate::Field(FieldGate {
        key: key.into(),
        at: at.into(),
        one_of: one_of.iter().map(|text| (*text).to_owned()).collect(),
    })
}

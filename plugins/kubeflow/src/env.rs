//! The variables of a container, in the original's order: appended after the user's, of which Kubernetes then uses the
//! last of a name.

use crate::family::Group;
use crate::kind::Kind;
use troupe_plugin::types::{EnvEntry, Piece};
use troupe_plugin::{Container, PodTemplate};

/// A variable.
#[derive(Debug, Clone)]
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    pub(crate) value: Value,
}

/// The value of a variable.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Fixed(String),
    /// The same, unless the user's container has a variable of that name.
    UnlessSet(&'static str),
    /// Another for each replica: the host fills it in.
    PerReplica(Vec<Piece>),
    /// A field of the pod.
    Field(&'static str),
}

/// Returns a variable with a value that all replicas of a group have.
pub(crate) fn fixed(name: &'static str, value: impl Into<String>) -> Variable {
    Variable { name, value: Value::Fixed(value.into()) }
}

/// Returns a variable with a value that all replicas of a group have whose users say none.
pub(crate) const fn unless_set(name: &'static str, value: &'static str) -> Variable {
    Variable { name, value: Value::UnlessSet(value) }
}

/// Returns a variable with a number that all replicas of a group have.
pub(crate) fn number(name: &'static str, value: impl Into<i64>) -> Variable {
    fixed(name, value.into().to_string())
}

/// Returns a variable whose value is the index of the replica among all of its type, plus a number.
pub(crate) fn index(name: &'static str, group: &Group<'_>, plus: u32) -> Variable {
    Variable { name, value: Value::PerReplica(vec![piece(group, plus)]) }
}

/// Returns the piece that expands to the index of the replica among all of its type, plus a number.
pub(crate) fn piece(group: &Group<'_>, plus: u32) -> Piece {
    Piece::Index(i32::try_from(group.from + plus).unwrap_or(i32::MAX))
}

/// Appends the variables to the containers that get them. A value per replica is a placeholder, which keeps the order.
pub(crate) fn edit(kind: &Kind, variables: &[Variable], template: &mut PodTemplate<'_>) {
    match kind.all_containers {
        true => template.each_container(|container| append(variables, container)),
        false => template.container(kind.container).iter_mut().for_each(|container| append(variables, container)),
    }
}

// In line it would stand twice in the component.
#[inline(never)]
fn append(variables: &[Variable], container: &mut Container<'_, '_>) {
    for Variable { name, value } in variables {
        match value {
            Value::Fixed(text) => container.env(name, text),
            Value::UnlessSet(text) => container.env_unless_set(name, text),
            Value::PerReplica(_) => container.env(name, ""),
            Value::Field(path) => container.env_from_field(name, path),
        }
    }
}

/// Returns the values that the host fills in for each replica.
pub(crate) fn per_replica(kind: &Kind, variables: Vec<Variable>) -> Vec<EnvEntry> {
    let container = if kind.all_containers { "*" } else { kind.container };
    let entry = |Variable { name, value }| match value {
        Value::PerReplica(value) => Some(EnvEntry { container: container.into(), name: name.into(), value }),
        Value::Fixed(_) | Value::UnlessSet(_) | Value::Field(_) => None,
    };
    variables.into_iter().filter_map(entry).collect()
}

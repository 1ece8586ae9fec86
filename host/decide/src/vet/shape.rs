//! Checks that a template can hold what the host writes into it: objects, lists and strings in their places.

use crate::{
    flaw::Flaw,
    plan::{EnvEntry, Role},
    pointer::find,
    rejection::{Objection, Rejection, field_of_spec},
    template::{kind, wrong_type},
};
use serde_json::Value;

/// Checks a role's template.
///
/// # Errors
/// The place in the template and the expected type. It is the user's error where the template in the job's spec is
/// wrong.
pub(super) fn vet(spec: &Value, role: &Role) -> Result<(), Objection> {
    let user = role.template_at.as_deref().and_then(|at| Some((at, find(spec, at)?)));
    let is = |there: Option<&Value>, right: &str| there.is_none_or(|there| there.is_null() || kind(there) == right);
    let must_be = |at: &str, right: &'static str| match is(find(&role.template, at), right) {
        true => Ok(()),
        false => Err(wrong_type(user, at, right)),
    };
    for at in ["/metadata", "/metadata/labels", "/metadata/annotations", "/spec"] {
        must_be(at, "an object")?;
    }
    for (text, at) in [(&role.hostname, "/spec/hostname"), (&role.subdomain, "/spec/subdomain")] {
        if text.is_some() {
            must_be(at, "a string")?;
        }
    }
    must_be("/spec/containers", "a list")?;
    let containers = find(&role.template, "/spec/containers").and_then(Value::as_array);
    let containers = containers.map_or(&[][..], Vec::as_slice);
    if containers.is_empty() && role.replicas > 0 {
        return Err(no_containers(role));
    }
    for (place, container) in containers.iter().enumerate() {
        let at = |field: &str| format!("/spec/containers/{place}{field}");
        if !is(Some(container), "an object") {
            return Err(wrong_type(user, &at(""), "an object"));
        }
        let has_env = role.env.iter().any(|entry| is_for(entry, place, container));
        if has_env && !is(container.get("env"), "a list") {
            return Err(wrong_type(user, &at("/env"), "a list"));
        }
    }
    Ok(())
}

fn is_for(entry: &EnvEntry, place: usize, container: &Value) -> bool {
    entry.is_for(place, container["name"].as_str().unwrap_or_default())
}

/// Reports missing containers. A plugin keeps the user's containers, so a user's template without any is the user's
/// error.
fn no_containers(role: &Role) -> Objection {
    match &role.template_at {
        Some(at) => {
            let path = field_of_spec(&[at, "/spec/containers"]);
            Rejection::field(path, "must have at least one container").into()
        }
        None => Flaw::NoContainers.into(),
    }
}

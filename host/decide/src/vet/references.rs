//! References to other objects, by the field names that Kubernetes uses for them everywhere.

use super::uses::Walk;
use crate::grants::Need;
use serde_json::Value;

impl<'a> Walk<'a> {
    /// Records the object that the field names. Returns whether the walk can skip the field.
    pub(super) fn reference(&mut self, name: &'a str, value: &'a Value) -> bool {
        if let Some(need) = named(name) {
            return self.text(need, value);
        }
        match name {
            "image" => self.text(Need::Image, value) || self.part_of(Need::Image, value, &["reference"]),
            "imagePullSecrets" => self.pull_secrets(value),
            "secret" => self.part_of(Need::Secret, value, &["secretName", "name"]),
            "configMap" | "configMapRef" | "configMapKeyRef" => self.part_of(Need::ConfigMap, value, &["name"]),
            "persistentVolumeClaim" => self.part_of(Need::Claim, value, &["claimName"]),
            "namespaces" => {
                let Value::Array(all) = value else { return false };
                self.each(all, |walk, one| {
                    walk.text(Need::Namespace, one);
                });
                true
            }
            "namespaceSelector" => {
                self.use_whole(Need::Namespace, "any that the selector finds", value);
                true
            }
            _ if is_secret_reference(name) => {
                self.text(Need::Secret, value) || self.part_of(Need::Secret, value, &["name"])
            }
            _ => false,
        }
    }

    fn text(&mut self, need: Need, value: &'a Value) -> bool {
        let text = value.as_str();
        self.use_word(need, text.unwrap_or_default());
        text.is_some()
    }

    /// Records the name in one of these fields of the value. The other fields say how the object is used.
    fn part_of(&mut self, need: Need, value: &'a Value, fields: &[&'a str]) -> bool {
        let Value::Object(there) = value else { return false };
        for field in fields {
            if let Some(name) = there.get(*field) {
                self.under(field, |walk| walk.text(need, name));
            }
        }
        true
    }

    fn pull_secrets(&mut self, value: &'a Value) -> bool {
        let Value::Array(all) = value else { return false };
        self.each(all, |walk, one| {
            let _ = walk.text(Need::PullSecret, one) || walk.part_of(Need::PullSecret, one, &["name"]);
        });
        true
    }
}

/// Returns what a field with nothing but a name in it refers to. Frameworks use `priorityClass` for
/// `priorityClassName`.
fn named(field: &str) -> Option<Need> {
    Some(match field {
        "serviceAccountName" | "serviceAccount" => Need::ServiceAccount,
        "priorityClassName" | "priorityClass" => Need::PriorityClass,
        "runtimeClassName" => Need::RuntimeClass,
        "schedulerName" => Need::Scheduler,
        "nodeName" => Need::NodeName,
        "secretName" => Need::Secret,
        "configMapName" => Need::ConfigMap,
        "claimName" => Need::Claim,
        "namespace" => Need::Namespace,
        _ => return None,
    })
}

/// Returns whether the field refers to a Secret: `secretRef`, `secretKeyRef`, or a volume driver's
/// `nodePublishSecretRef`.
fn is_secret_reference(field: &str) -> bool {
    matches!(field, "secretRef" | "secretKeyRef") || field.ends_with("SecretRef") || field.ends_with("SecretKeyRef")
}

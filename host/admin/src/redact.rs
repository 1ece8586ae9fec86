//! Removes the values of environment variables and HTTP headers from passes, and those of ConfigMaps that plans depend on:
//! users keep secrets in them.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use troupe::record::passes::Pass;

/// The replacement of a value.
pub(super) const REDACTED: &str = "REDACTED";

/// The annotation with the whole object as `kubectl apply` sent it, values included.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Whether a reader asked for the values of environment variables: `?env=true`.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Environment {
    #[serde(default)]
    env: bool,
}

impl Environment {
    /// Returns the pass with values redacted, and the decision that follows from the redacted pass.
    pub(super) fn apply(self, pass: Pass) -> serde_json::Result<Pass> {
        if self.env {
            return Ok(pass);
        }
        redacted(&pass)
    }
}

fn redacted<T: Serialize + DeserializeOwned>(value: &T) -> serde_json::Result<T> {
    let mut json = serde_json::from_str(&serde_json::to_string(value)?)?;
    redact(&mut json);
    // As text, as passes are written and read everywhere: each other way compiles all their types again.
    serde_json::from_str(&json.to_string())
}

/// Redacts the value of every object that has a name and a text as its value, at any place, as if it were a variable or
/// a header: the meaning of a user's field is known only to the framework.
fn redact(json: &mut Value) {
    match json {
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::Object(fields) => {
            let is_variable = fields.get("name").is_some_and(Value::is_string);
            for (name, field) in fields {
                let is_secret = is_variable && name == "value" || name == LAST_APPLIED;
                match field {
                    // The content of a ConfigMap that a job's user names.
                    Value::Object(data) if is_variable && name == "data" => {
                        data.values_mut().for_each(|value| *value = REDACTED.into());
                    }
                    Value::String(text) if is_secret => REDACTED.clone_into(text),
                    field => redact(field),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use decide::plan::Content;
    use serde_json::json;

    #[test]
    fn values_of_variables_and_headers_go_and_everything_else_stays() {
        let mut spec = json!({
            "template": { "spec": { "containers": [{
                "name": "main",
                "image": "x",
                "env": [{ "name": "PASSWORD", "value": "hunter2" }, { "name": "HOST", "valueFrom": { "fieldRef": {} } }],
                "livenessProbe": { "httpGet": { "httpHeaders": [{ "name": "Authorization", "value": "Bearer x" }] } },
            }] } },
            "limits": [{ "name": "cpu", "value": 2 }],
        });
        redact(&mut spec);
        let container = &spec["template"]["spec"]["containers"][0];
        assert_eq!(container["env"][0], json!({ "name": "PASSWORD", "value": "REDACTED" }));
        assert_eq!(container["env"][1]["valueFrom"], json!({ "fieldRef": {} }));
        assert_eq!(container["livenessProbe"]["httpGet"]["httpHeaders"][0]["value"], "REDACTED");
        assert_eq!((&container["image"], &spec["limits"][0]["value"]), (&json!("x"), &json!(2)));
    }

    #[test]
    fn the_content_of_what_a_job_names_goes() {
        let data = Some([("password".to_owned(), "hunter2".to_owned())].into());
        let content = Content { at: "/settings".into(), name: "settings".into(), data };
        let redacted = redacted(&vec![content]).unwrap();
        assert_eq!(redacted[0].name, "settings");
        assert_eq!(redacted[0].data.as_ref().unwrap()["password"], REDACTED);
    }

    #[test]
    fn the_annotation_in_which_kubectl_keeps_the_whole_object_goes() {
        let mut annotations = json!({ LAST_APPLIED: "{\"env\":[{\"name\":\"PASSWORD\",\"value\":\"hunter2\"}]}" });
        redact(&mut annotations);
        assert_eq!(annotations[LAST_APPLIED], "REDACTED");
    }
}

//! Removes the values of environment variables and HTTP headers from passes, and of the ConfigMaps and Secrets that plans
//! depend on: users keep secrets in them.

use super::answers;
use serde::Deserialize;
use serde_json::Value;
use std::{collections::BTreeMap, io, mem};
use troupe::record::passes::{Pass, REDACTED};

/// The annotation with the whole object as `kubectl apply` sent it, values included.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Whether a reader asked for the values of environment variables: `?env=true`.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Environment {
    #[serde(default)]
    env: bool,
}

impl Environment {
    /// Returns the pass as a line of JSON of at most so many bytes, with values redacted. Those of ConfigMaps and Secrets
    /// that the job names are redacted whatever the reader asks for: the right to read a job gives none to read them.
    ///
    /// # Errors
    /// As for [`answers::text`].
    pub(super) fn line(self, mut pass: Pass, most: usize) -> io::Result<Vec<u8>> {
        let contents = pass.snapshot.contents.iter_mut().filter_map(|content| content.data.as_mut());
        contents.flat_map(BTreeMap::values_mut).for_each(|value| REDACTED.clone_into(value));
        let mut line = answers::text(&pass, most)?;
        if !self.env {
            // As values, a pass takes many times its text: it is there once.
            drop(pass);
            let mut json: Value = serde_json::from_slice(&mem::take(&mut line))?;
            redact(&mut json);
            line = answers::text(&json, most)?;
        }
        line.push(b'\n');
        Ok(line)
    }
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
                    // What a job's user writes under a name, as into a ConfigMap.
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
    use decide::{
        decide,
        plan::{Answer, Content, Rejection},
        snapshot::Job,
        testkit,
    };
    use serde_json::json;

    /// A pass over a job that names an object with a secret, and has one in a variable.
    fn pass() -> Pass {
        let spec = json!({ "env": [{ "name": "PASSWORD", "value": "of a variable" }] });
        let mut snapshot = testkit::snapshot(Job { spec, ..testkit::job("hamlet", "u") });
        let data = Some([("password".to_owned(), "hunter2".to_owned())].into());
        snapshot.contents = vec![Content { at: "/settings".into(), name: "settings".into(), data }];
        let answer = Answer::Rejected(Rejection::Unsupported("tales".into()));
        let decision = decide(&snapshot, &answer);
        Pass { plugin: "plays".into(), config: "{}".into(), snapshot, outlook: None, answer, decision }
    }

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
    fn the_content_of_what_a_job_names_goes_whatever_is_asked_for_and_its_names_and_keys_stay() {
        for env in [false, true] {
            let line = String::from_utf8(Environment { env }.line(pass(), usize::MAX).unwrap()).unwrap();
            assert!(!line.contains("hunter2"), "{line}");
            assert_eq!(line.contains("of a variable"), env, "{line}");
            let shown = Pass::from_json(&line).unwrap().snapshot.contents;
            let data = [("password".to_owned(), REDACTED.to_owned())].into();
            assert_eq!(shown, [Content { at: "/settings".into(), name: "settings".into(), data: Some(data) }]);
        }
    }

    #[test]
    fn a_line_that_would_be_too_large_is_none() {
        for env in [false, true] {
            let line = |most| Environment { env }.line(pass(), most);
            let whole = line(usize::MAX).unwrap();
            assert!(answers::is_too_large(&line(whole.len() / 2).unwrap_err()));
        }
    }

    #[test]
    fn the_annotation_in_which_kubectl_keeps_the_whole_object_goes() {
        let mut annotations = json!({ LAST_APPLIED: "{\"env\":[{\"name\":\"PASSWORD\",\"value\":\"hunter2\"}]}" });
        redact(&mut annotations);
        assert_eq!(annotations[LAST_APPLIED], "REDACTED");
    }
}

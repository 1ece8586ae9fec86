//! What a cluster operator's settings change in what a plugin describes: kinds of object that are added, and who queues jobs.

use super::{ChildKind, Descriptor, OwnedBy, Queueing};
use crate::grants::Need;
use serde::Deserialize;
use serde_json::Value;

/// The JSON schema keyword of a setting whose value is a list of kinds that jobs own too. What stands in it says how the
/// host watches objects of these kinds.
const MARK: &str = "x-troupe-children";

/// The JSON schema keyword of a setting whose value says, by kind of job, who queues its jobs: `auto`, `host` or `kueue`.
const QUEUEING: &str = "x-troupe-queueing";

/// Why settings are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The keyword in the schema has a wrong value: the plugin's mistake.
    #[error("{MARK} of the setting {setting}: {why}")]
    Mark {
        /// The setting.
        setting: String,
        /// What is wrong.
        why: String,
    },
    /// The setting is no list of kinds.
    #[error("{setting}: {why}; each must have apiVersion, kind and plural")]
    Value {
        /// The setting.
        setting: String,
        /// What is wrong.
        why: String,
    },
    /// The setting does not say who queues jobs.
    #[error("{setting}: {why}; each entry must be a kind of job of this plugin with auto, host or kueue")]
    Queueing {
        /// The setting.
        setting: String,
        /// What is wrong.
        why: String,
    },
    /// The kind is one of the plugin's own jobs, which would own each other.
    #[error("{setting}: {kind} is a kind of job of this plugin, which cannot own its own kind")]
    OwnKind {
        /// The setting.
        setting: String,
        /// The kind, as in a grant.
        kind: String,
    },
}

/// How objects of the added kinds are watched.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Watched {
    /// The label selector that each of them matches.
    selector: String,
    /// JSON pointers of the fields kept of each.
    keep: Vec<String>,
    /// Whether the host may remove them.
    #[serde(default)]
    deletes: bool,
}

/// A kind that a setting names.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    api_version: String,
    kind: String,
    plural: String,
}

impl Descriptor {
    /// Returns the description with the kinds that these settings add, in their order, and with the grants that they need.
    /// A kind that is described already is not added again. Jobs of a kind are queued by whom the settings say.
    ///
    /// # Errors
    /// The setting that is no list of kinds, or names a kind of job of the plugin's own as a child; the one that names
    /// another kind, or nobody, for the queueing.
    pub fn with_settings(&self, config: &Value) -> Result<Self, SettingsError> {
        let mut whole = self.clone();
        whole.be_queued_by(config)?;
        let properties = self.config_schema.get("properties").and_then(Value::as_object);
        for (setting, property) in properties.into_iter().flatten() {
            let (Some(mark), Some(value)) = (property.get(MARK), config.get(setting)) else { continue };
            let setting = || setting.clone();
            let watched = Watched::deserialize(mark)
                .map_err(|error| SettingsError::Mark { setting: setting(), why: error.to_string() })?;
            let named = Vec::<Named>::deserialize(value)
                .map_err(|error| SettingsError::Value { setting: setting(), why: error.to_string() })?;
            for Named { api_version, kind, plural } in named {
                let (selector, keep) = (Some(watched.selector.clone()), watched.keep.clone());
                // The kind may come to the cluster later, and its jobs wait for nothing else of it.
                let child =
                    ChildKind { api_version, kind, plural, selector, keep, optional: true, owned_by: OwnedBy::Job };
                // In another version it would be watched twice, and each object of it seen twice.
                if whole.own_children().any(|known| known.id() == child.id()) {
                    continue;
                }
                if self.kinds.iter().any(|own| own.id() == child.id()) {
                    return Err(SettingsError::OwnKind { setting: setting(), kind: child.id() });
                }
                if watched.deletes {
                    whole.asks.grant(Need::Deletion, &child.id());
                }
                whole.children.push(child);
            }
        }
        Ok(whole)
    }

    fn be_queued_by(&mut self, config: &Value) -> Result<(), SettingsError> {
        let properties = self.config_schema.get("properties").and_then(Value::as_object);
        let marked = properties.into_iter().flatten().filter(|(_, it)| it.get(QUEUEING) == Some(&Value::Bool(true)));
        let named: Vec<_> = marked.filter_map(|(setting, _)| Some((setting.clone(), config.get(setting)?))).collect();
        for (setting, value) in named {
            let wrong = |why: String| SettingsError::Queueing { setting: setting.clone(), why };
            let value = value.as_object().ok_or_else(|| wrong(format!("{value} is no object")))?;
            for (kind, who) in value {
                let mut of_kind = self.kinds.iter_mut().filter(|own| own.kind == *kind).peekable();
                of_kind.peek().ok_or_else(|| wrong(format!("{kind} is no kind of job of this plugin")))?;
                let queueing = match who.as_str() {
                    Some("auto") => Queueing::Elsewhere,
                    Some("host") => Queueing::Host,
                    Some("kueue") => Queueing::Kueue,
                    _ => return Err(wrong(format!("{kind}: {who}"))),
                };
                of_kind.for_each(|own| own.queueing = queueing);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vet;
    use serde_json::json;

    fn descriptor(mark: &Value) -> Descriptor {
        let schema = json!({ "properties": { "kinds": { "type": "array", "x-troupe-children": mark } } });
        let kind = json!({ "group": "example.com", "version": "v1", "kind": "Clock", "plural": "clocks",
            "suspend": null, "managed_by": null, "own_manager": null, "retired_finalizers": [] });
        let job = json!({ "api_version": "batch/v1", "kind": "Job", "plural": "jobs", "selector": null, "keep": [],
            "optional": false });
        serde_json::from_value(json!({ "name": "clock", "version": "1.0.0", "kinds": [kind], "children": [job],
            "config_schema": schema }))
        .unwrap()
    }

    fn mark() -> Value {
        json!({ "selector": "example.com/clock", "keep": ["/status"], "deletes": true })
    }

    fn named(api_version: &str, kind: &str, plural: &str) -> Value {
        json!({ "kinds": [{ "apiVersion": api_version, "kind": kind, "plural": plural }] })
    }

    #[test]
    fn a_kind_of_the_settings_is_watched_like_one_of_the_plugins_and_may_be_removed() {
        let whole = descriptor(&mark()).with_settings(&named("dask.org/v1", "DaskJob", "daskjobs")).unwrap();
        let added = &whole.children[1];
        assert_eq!((added.id(), added.plural.as_str()), ("DaskJob.dask.org".to_owned(), "daskjobs"));
        assert_eq!((added.selector.as_deref(), &*added.keep), (Some("example.com/clock"), &["/status".to_owned()][..]));
        assert!(added.optional);
        let wanted = whole.wanted_grants();
        assert!(wanted.kinds.contains("DaskJob.dask.org") && wanted.deletes.contains("DaskJob.dask.org"));
    }

    #[test]
    fn settings_without_the_keyword_and_kinds_that_are_there_add_nothing() {
        let plain = descriptor(&mark());
        for config in [json!({}), named("batch/v1", "Job", "jobs"), json!({ "other": [7] })] {
            assert_eq!(plain.with_settings(&config), Ok(plain.clone()), "{config}");
        }
    }

    #[test]
    fn jobs_of_a_kind_are_queued_by_whom_the_settings_say() {
        let mut plain = descriptor(&mark());
        plain.config_schema = json!({ "properties": { "queueing": { "x-troupe-queueing": true } } });
        let queued = |value: Value| {
            let whole = plain.with_settings(&json!({ "queueing": value })).map_err(|error| error.to_string())?;
            Ok::<_, String>(whole.kinds[0].queueing)
        };
        for (word, who) in [("host", Queueing::Host), ("kueue", Queueing::Kueue), ("auto", Queueing::Elsewhere)] {
            assert_eq!(queued(json!({ "Clock": word })), Ok(who));
        }
        let then = "; each entry must be a kind of job of this plugin with auto, host or kueue";
        assert_eq!(queued(json!({ "Clock": "me" })), Err(format!("queueing: Clock: \"me\"{then}")));
        assert_eq!(
            queued(json!({ "Watch": "host" })),
            Err(format!("queueing: Watch is no kind of job of this plugin{then}"))
        );
        assert_eq!(queued(json!([])), Err(format!("queueing: [] is no object{then}")));
    }

    #[test]
    fn what_is_wrong_is_the_settings_or_the_schemas() {
        let error = |descriptor: Descriptor, config| descriptor.with_settings(&config).unwrap_err().to_string();
        assert!(error(descriptor(&mark()), json!({ "kinds": "all" })).starts_with("kinds: invalid type: string"));
        assert!(error(descriptor(&mark()), json!({ "kinds": [{}] })).contains("apiVersion"));
        assert!(
            error(descriptor(&json!(true)), json!({ "kinds": [] }))
                .starts_with("x-troupe-children of the setting kinds")
        );
        let own = error(descriptor(&mark()), named("example.com/v2", "Clock", "clocks"));
        assert!(own.contains("Clock.example.com is a kind of job of this plugin"), "{own}");
    }

    // What no plugin may have, no setting adds.
    #[test]
    fn a_kind_that_no_job_may_own_is_refused_when_the_whole_is_vetted() {
        for (api_version, kind, plural) in [
            ("v1", "Secret", "secrets"),
            ("rbac.authorization.k8s.io/v1", "Role", "roles"),
            ("v1", "ConfigMap", "secrets"),
        ] {
            let whole = descriptor(&mark()).with_settings(&named(api_version, kind, plural)).unwrap();
            assert!(vet::description(&whole).is_err(), "{kind}");
        }
    }
}

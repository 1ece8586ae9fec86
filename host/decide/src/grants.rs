//! What a plugin's plans may contain beyond what the job's user asks for: nothing, unless it is granted.

mod covers;
mod table;

pub use table::{Grants, Need};

use serde::Deserialize;
use serde_json::Value;
use std::fmt;
use table::Held;

/// The JSON schema keyword of a setting that says which grant the value of the setting is.
const MARK: &str = "x-troupe-grants";

/// Why the grants that a plugin asks for cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrantsError {
    /// This host knows no grant of this name.
    #[error("grants: this host knows no grant {0:?}")]
    Unknown(String),
    /// A value has the wrong type; the text says which is expected.
    #[error("grants: {0}")]
    Value(String),
}

impl Grants {
    /// Parses the grants that a plugin asks for: JSON as in `spec.grants` of a Plugin.
    ///
    /// # Errors
    /// The JSON has a name that this host does not know, or a value of the wrong type.
    pub fn asked(json: &Value) -> Result<Self, GrantsError> {
        let schema = schemars::schema_for!(Self);
        let known = schema.get("properties").and_then(Value::as_object);
        let is_known = |name: &String| known.is_some_and(|known| known.contains_key(name));
        if let Some(name) = json.as_object().into_iter().flatten().map(|(name, _)| name).find(|name| !is_known(name)) {
            return Err(GrantsError::Unknown(name.clone()));
        }
        Self::deserialize(json).map_err(|error| GrantsError::Value(error.to_string()))
    }

    /// Returns what the cluster operator's settings for a plugin grant: the values of settings that the plugin's schema
    /// marks as images or schedulers (`"x-troupe-grants": "images"`). Whoever sets them wants them used.
    #[must_use]
    pub fn by_settings(schema: &Value, config: &Value) -> Self {
        let mut grants = Self::default();
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let Some(value) = config.get(name).and_then(Value::as_str).filter(|value| !value.is_empty()) else {
                continue;
            };
            match property.get(MARK).and_then(Value::as_str) {
                Some("images") => grants.grant(Need::Image, value),
                Some("schedulers") => grants.grant(Need::Scheduler, value),
                _ => {}
            }
        }
        grants
    }

    /// Returns the grants of both, with the limits of `self`.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        for (need, word) in other.all() {
            self.grant(need, &word);
        }
        self
    }

    /// Returns what both grant, with the narrower of their limits.
    #[must_use]
    pub fn within(&self, other: &Self) -> Self {
        fn narrower<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            one.into_iter().chain(other).min()
        }
        let namespaces = match (&self.namespaces, &other.namespaces) {
            (Some(one), Some(other)) => Some(one & other),
            (one, other) => one.as_ref().or(other.as_ref()).cloned(),
        };
        let limits = Self {
            namespaces,
            max_replicas: narrower(self.max_replicas, other.max_replicas),
            max_objects: narrower(self.max_objects, other.max_objects),
            ..Self::default()
        };
        // Either may have the pattern that covers a word of the other.
        let both = [(self, other), (other, self)]
            .into_iter()
            .flat_map(|(one, other)| one.all().into_iter().filter(|(need, word)| other.allows(*need, word)));
        both.fold(limits, |mut grants, (need, word)| {
            grants.grant(need, &word);
            grants
        })
    }

    /// Returns whether this is granted.
    #[must_use]
    pub fn allows(&self, need: Need, word: &str) -> bool {
        match self.held(need) {
            // A granted image may run any command.
            Held::Flag(is_granted) if need == Need::Command => is_granted || self.allows(Need::Image, word),
            Held::Flag(is_granted) => is_granted,
            Held::List(words) => covers::covers(need, words, word),
            Held::Never => false,
        }
    }

    /// Returns the grant of a need as a value in a ConfigMap: `true` or `false`, or one word a line. `None` where no
    /// grant can allow the need.
    #[must_use]
    pub fn text(&self, need: Need) -> Option<String> {
        match self.held(need) {
            Held::Flag(is_granted) => Some(is_granted.to_string()),
            Held::List(words) => Some(words.iter().map(String::as_str).collect::<Vec<_>>().join("\n")),
            Held::Never => None,
        }
    }

    /// Returns whether the plugin may serve jobs of this namespace.
    #[must_use]
    pub fn serves(&self, namespace: &str) -> bool {
        self.namespaces.as_ref().is_none_or(|namespaces| namespaces.contains(namespace))
    }

    /// Returns every single grant, without limits.
    fn all(&self) -> Vec<(Need, String)> {
        let of = |need: Need| match self.held(need) {
            Held::Flag(true) => vec![(need, String::new())],
            Held::List(words) => words.iter().map(|word| (need, word.clone())).collect(),
            Held::Flag(false) | Held::Never => vec![],
        };
        Need::ALL.iter().copied().flat_map(of).collect()
    }
}

/// Returns what is asked for and not granted; empty when the plugin may be used. Its `Display` is what to add under
/// `spec.grants`. Limits (`namespaces`, `maxReplicas`, `maxObjects`) are never missing.
#[must_use]
pub fn missing(asked: &Grants, granted: &Grants) -> Grants {
    let mut missing = Grants::default();
    for (need, word) in asked.all() {
        if !granted.allows(need, &word) {
            missing.grant(need, &word);
        }
    }
    missing
}

/// Returns the grant that would allow this, as in `spec.grants`; `None` where no grant can allow it.
pub(crate) fn example(need: Need, word: &str) -> Option<String> {
    let mut grants = Grants::default();
    grants.grant(need, word);
    match grants.held(need) {
        Held::Flag(_) => Some(format!("{}: true", need.grant()?)),
        Held::List(_) => Some(format!("{}: [{word}]", need.grant()?)),
        Held::Never => None,
    }
}

/// Formats as YAML, one line for each grant.
impl fmt::Display for Grants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = serde_json::to_value(self).unwrap_or_default();
        for (at, (name, value)) in all.as_object().into_iter().flatten().enumerate() {
            let line_break = if at == 0 { "" } else { "\n" };
            write!(f, "{line_break}{name}: {value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeSet;

    fn grants(json: &Value) -> Grants {
        Grants::asked(json).unwrap()
    }

    #[test]
    fn the_missing_grants_are_what_to_add() {
        let asked = grants(&json!({ "kinds": ["Pod", "Job.batch"], "hostNetwork": true, "hostPaths": ["/data/sets"],
            "images": ["busybox:1.36"], "capabilities": ["IPC_LOCK", "SYS_PTRACE"], "namespaces": ["a"] }));
        let granted = grants(&json!({ "kinds": ["Pod"], "hostPaths": ["/data"], "images": ["busybox"],
            "capabilities": ["IPC_LOCK"] }));
        let missing = missing(&asked, &granted);
        assert_eq!(missing.to_string(), "capabilities: [\"SYS_PTRACE\"]\nhostNetwork: true\nkinds: [\"Job.batch\"]");
        assert_eq!(super::missing(&asked, &granted.clone().with(&missing)), Grants::default());
    }

    #[test]
    fn what_both_grant_is_within_each_and_has_the_narrower_limits() {
        let one = grants(&json!({ "kinds": ["Pod", "Job.batch"], "hostNetwork": true, "hostPaths": ["/data"],
            "images": ["*"], "namespaces": ["a", "b"], "maxReplicas": 10 }));
        let other = grants(&json!({ "kinds": ["Pod"], "hostPaths": ["/data/sets", "/etc"], "images": ["busybox"],
            "namespaces": ["b", "c"], "maxObjects": 7 }));
        let both = grants(&json!({ "kinds": ["Pod"], "hostPaths": ["/data/sets"], "images": ["busybox"],
            "namespaces": ["b"], "maxReplicas": 10, "maxObjects": 7 }));
        assert_eq!((one.within(&other), other.within(&one)), (both.clone(), both));
    }

    #[test]
    fn a_grant_that_this_host_does_not_know_is_refused_by_its_name() {
        let error = |json| Grants::asked(&json).unwrap_err().to_string();
        assert_eq!(error(json!({ "hostNetworks": true })), "grants: this host knows no grant \"hostNetworks\"");
        assert!(error(json!({ "hostNetwork": "yes" })).contains("expected a boolean"));
    }

    #[test]
    fn every_grant_is_held_under_one_need_and_every_need_but_four_has_one() {
        let mut all = Grants::default();
        for need in Need::ALL.iter().copied() {
            all.grant(need, "x");
        }
        let names = |json: &Value| json.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        let mut known = names(schemars::schema_for!(Grants).get("properties").unwrap());
        known.retain(|name| !["namespaces", "maxReplicas", "maxObjects"].contains(&name.as_str()));
        assert_eq!(names(&serde_json::to_value(&all).unwrap()), known);
        let named: Vec<_> = Need::ALL.iter().filter_map(|need| need.grant()).map(str::to_owned).collect();
        assert_eq!(named.iter().cloned().collect::<BTreeSet<_>>(), known);
        assert_eq!((named.len(), named.len() + 4), (known.len(), Need::ALL.len()));
    }

    #[test]
    fn the_guide_lists_every_grant() {
        let schema = schemars::schema_for!(Grants);
        let rows = schema.get("properties").and_then(Value::as_object).into_iter().flatten().map(|(name, property)| {
            let said = property["description"].as_str().expect("every grant has a comment").replace('\n', " ");
            let kinds = [("boolean", "true"), ("array", "list"), ("integer", "number")];
            let is_a = |kind: &str| property["type"] == kind || property["type"][0] == kind;
            let (_, value) = kinds.iter().find(|(kind, _)| is_a(kind)).expect("a grant is one of these");
            format!("| `{name}` | {value} | {said} |\n")
        });
        let table = format!("| grant | value | what it allows |\n|---|---|---|\n{}\n", rows.collect::<String>());
        let guide = include_str!("../../../plugins/README.md");
        assert!(guide.contains(&table), "plugins/README.md lacks this table:\n{table}");
    }

    #[test]
    fn a_setting_that_the_schema_marks_grants_its_own_value() {
        let schema = json!({ "properties": {
            "initImage": { "type": "string", "x-troupe-grants": "images" },
            "scheduler": { "type": "string", "x-troupe-grants": "schedulers" },
            "folder": { "type": "string", "x-troupe-grants": "hostPaths" },
        } });
        let config = json!({ "initImage": "busybox", "scheduler": "", "folder": "/" });
        assert_eq!(Grants::by_settings(&schema, &config), grants(&json!({ "images": ["busybox"] })));
    }

    #[test]
    fn a_path_covers_what_is_below_it_and_nothing_beside() {
        let data = grants(&json!({ "hostPaths": ["/data"] }));
        for (path, is_granted) in [
            ("/data", true),
            ("/data/", true),
            ("/data/x", true),
            ("/database", false),
            ("/data/../etc", false),
            ("/", false),
        ] {
            assert_eq!(data.allows(Need::HostPath, path), is_granted, "{path}");
        }
    }

    #[test]
    fn a_repository_covers_its_tags_and_digests_and_nothing_beside() {
        let images = grants(&json!({ "images": ["example.org/tools", "localhost"] }));
        for (image, is_granted) in [
            ("example.org/tools", true),
            ("example.org/tools:1", true),
            ("example.org/tools@sha256:0", true),
            ("example.org/tools/evil", false),
            ("localhost:5000/evil", false),
            ("example.org/toolsevil", false),
        ] {
            assert_eq!(images.allows(Need::Image, image), is_granted, "{image}");
        }
    }

    #[test]
    fn the_pod_group_of_one_scheduler_covers_those_of_others_and_nothing_else() {
        let gangs = grants(&json!({ "kinds": ["PodGroup.scheduling.volcano.sh"] }));
        for (kind, is_granted) in [
            ("PodGroup.scheduling.x-k8s.io", true),
            ("PodGroup.scheduling.k8s.io", true),
            ("PodGroup.example.org", false),
            ("Queue.scheduling.volcano.sh", false),
        ] {
            assert_eq!(gangs.allows(Need::Kind, kind), is_granted, "{kind}");
        }
        assert!(!gangs.allows(Need::Deletion, "PodGroup.scheduling.volcano.sh"));
        assert!(!grants(&json!({ "kinds": ["Pod"] })).allows(Need::Kind, "PodGroup.scheduling.k8s.io"));
    }

    #[test]
    fn an_asterisk_covers_everything_but_kinds_of_object() {
        let all = grants(&json!({ "kinds": ["*"], "deletes": ["*"], "capabilities": ["*"] }));
        assert!(all.allows(Need::Capability, "SYS_ADMIN"));
        assert!(!all.allows(Need::Kind, "Pod") && !all.allows(Need::Deletion, "Service"));
    }
}

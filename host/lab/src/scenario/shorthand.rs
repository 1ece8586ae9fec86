//! Definitions for a folder of scenarios: the paths of the roles that the line of a job can name.

use super::LARGEST;
use anyhow::{Context, bail};
use serde::Deserialize;
use std::{collections::BTreeMap, path::Path};
use troupe::files;

/// The name of the definition file in the folder.
const FILE: &str = "shorthand.json";

/// The meaning of `worker=2` in a line, by plugin: `{"example": {"roles": {"worker": "path.in.spec"}, "always": []}}`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Shorthand(BTreeMap<String, Roles>);

/// The roles that the line of a job can name, for one plugin.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Roles {
    /// The path of each role in the spec, with dots.
    #[serde(default)]
    roles: BTreeMap<String, String>,
    /// The roles that a job has even if its line does not name them.
    #[serde(default)]
    pub(super) always: Vec<String>,
}

impl Shorthand {
    /// Reads `shorthand.json` in the folder, or else in its parent; if neither exists, no role is known.
    ///
    /// # Errors
    /// The file that is wrong, and the place of the error.
    pub fn of_folder(folder: &Path) -> anyhow::Result<Self> {
        for folder in [folder.to_owned(), folder.join("..")] {
            let file = folder.join(FILE);
            let name = file.display();
            match files::text(&file, LARGEST) {
                Ok(text) => return Self::read(&text).with_context(|| format!("{name} is no shorthand of scenarios")),
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Self::default())
    }

    fn read(text: &str) -> anyhow::Result<Self> {
        let read: Self = serde_json::from_str(text)?;
        for (plugin, of_plugin) in &read.0 {
            if let Some(role) = of_plugin.always.iter().find(|role| !of_plugin.has(role)) {
                bail!("{plugin}: always has {role}, which is none of its roles");
            }
        }
        Ok(read)
    }

    /// Returns the roles of a plugin's jobs.
    pub(super) fn of(&self, plugin: &str) -> Roles {
        self.0.get(plugin).cloned().unwrap_or_default()
    }
}

impl Roles {
    /// Whether the field is a role.
    pub(super) fn has(&self, field: &str) -> bool {
        self.roles.contains_key(field)
    }

    /// Returns the path of the field in the spec; a role's name at the front is replaced by the role's path.
    pub(super) fn place(&self, field: &str) -> String {
        let (first, rest) = field.split_once('.').unwrap_or((field, ""));
        match (self.roles.get(first), rest) {
            (None, _) => field.to_owned(),
            (Some(place), "") => place.clone(),
            (Some(place), rest) => format!("{place}.{rest}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_stands_where_the_file_says() {
        let text = r#"{"example": {"roles": {"worker": "groups.Worker"}, "always": ["worker"]}, "plain": {}}"#;
        let shorthand = Shorthand::read(text).unwrap();
        let roles = shorthand.of("example");
        assert!(roles.has("worker") && !roles.has("worker.image") && !roles.has("workers"));
        assert_eq!(roles.place("worker"), "groups.Worker");
        assert_eq!(roles.place("worker.image"), "groups.Worker.image");
        assert_eq!(roles.place("workers.image"), "workers.image");
        for plugin in ["plain", "another"] {
            assert_eq!(shorthand.of(plugin).place("worker"), "worker");
            assert!(!shorthand.of(plugin).has("worker") && shorthand.of(plugin).always.is_empty());
        }
    }

    #[test]
    fn what_is_wrong_with_the_file_is_reported() {
        for (text, expected) in [
            (r#"{"example": {"rolls": {}}}"#, "unknown field `rolls`"),
            (r#"{"example": {"roles": ["worker"]}}"#, "expected a map"),
            (r#"{"example": {"always": ["worker"]}}"#, "example: always has worker, which is none of its roles"),
            ("", "EOF while parsing"),
        ] {
            let error = Shorthand::read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}

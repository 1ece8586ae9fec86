//! Credentials for registries, in the format of `docker login` and of Secrets of type `kubernetes.io/dockerconfigjson`.

use super::reference::Reference;
use base64::{Engine, prelude::BASE64_STANDARD};
use http::HeaderValue;
use k8s_openapi::api::core::v1::Secret;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The key of the JSON in a Secret.
const SECRET_KEY: &str = ".dockerconfigjson";

/// Credentials by registry. Debug output contains no secret.
#[derive(Debug, Clone, Default)]
pub struct DockerConfig {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    registry: String,
    /// Prefix of the repositories that the credentials are for. Empty means all.
    prefix: String,
    credentials: Credentials,
}

/// Credentials for a registry or for its token server.
#[derive(Debug, Clone)]
pub(super) enum Credentials {
    /// A name and a password.
    Password(Password),
    /// A token that is exchanged for other tokens.
    Identity(SecretString),
}

/// A name and a password.
#[derive(Debug, Clone)]
pub(super) struct Password {
    user: String,
    password: SecretString,
}

/// The reason why credentials cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The Secret has no docker config.
    #[error("secret/{0} has no key {SECRET_KEY}: make it with `kubectl create secret docker-registry`")]
    NoKey(String),
    /// The text is not the JSON of a docker config.
    // The parser's own message may repeat a password.
    #[error("this is no docker config from line {line}, column {column} on: an object with `auths` would be one")]
    Json {
        /// The line of the error.
        line: usize,
        /// The column of the error.
        column: usize,
    },
    /// The `auth` field of an entry is malformed.
    #[error("auths[{0:?}].auth is not base64 of a name, a colon and a password")]
    Entry(String),
}

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    auths: BTreeMap<String, Auth>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
struct Auth {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
}

impl DockerConfig {
    /// Parses the JSON of a docker config. Ignores entries without credentials, and credential helpers.
    ///
    /// # Errors
    /// Returns an error if it is not a docker config.
    pub fn parse(json: &[u8]) -> Result<Self, CredentialsError> {
        let config: Config = serde_json::from_slice(json)
            .map_err(|error| CredentialsError::Json { line: error.line(), column: error.column() })?;
        let mut entries = Vec::new();
        for (name, auth) in config.auths {
            if let Some(credentials) = auth.credentials(&name)? {
                let (registry, prefix) = place(&name);
                entries.push(Entry { registry, prefix, credentials });
            }
        }
        Ok(Self { entries })
    }

    /// Reads a Secret of type `kubernetes.io/dockerconfigjson`.
    ///
    /// # Errors
    /// Returns an error if the Secret is of another type, or malformed.
    pub fn of_secret(secret: &Secret) -> Result<Self, CredentialsError> {
        let json = secret.data.as_ref().and_then(|data| data.get(SECRET_KEY));
        let name = || secret.metadata.name.clone().unwrap_or_default();
        Self::parse(&json.ok_or_else(|| CredentialsError::NoKey(name()))?.0)
    }

    /// Returns the credentials with the longest prefix that matches the reference.
    pub(super) fn of(&self, reference: &Reference) -> Option<&Credentials> {
        let (registry, _) = place(reference.registry());
        let repository = reference.repository();
        let fits = |entry: &&Entry| {
            let below =
                repository.strip_prefix(&entry.prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            entry.registry == registry && (entry.prefix.is_empty() || below)
        };
        self.entries.iter().filter(fits).max_by_key(|entry| entry.prefix.len()).map(|entry| &entry.credentials)
    }

    /// Returns whether an entry says that these credentials are for this server as well, by its name with the port, if it has
    /// one. Other credentials for it do not count: a registry could have a token made with them, and be sent it.
    pub(super) fn are_for(&self, credentials: &Credentials, server: &str) -> bool {
        let is_so = |entry: &Entry| {
            entry.registry.eq_ignore_ascii_case(server)
                && entry.prefix.is_empty()
                && entry.credentials.is_same(credentials)
        };
        self.entries.iter().any(is_so)
    }
}

impl Credentials {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Password(one), Self::Password(other)) => {
                one.user == other.user && one.password.expose_secret() == other.password.expose_secret()
            }
            (Self::Identity(one), Self::Identity(other)) => one.expose_secret() == other.expose_secret(),
            (Self::Password(_), Self::Identity(_)) | (Self::Identity(_), Self::Password(_)) => false,
        }
    }
}

impl Auth {
    /// Returns the credentials of this entry, or None if it has none.
    fn credentials(self, name: &str) -> Result<Option<Credentials>, CredentialsError> {
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        if let Some(token) = given(self.identitytoken) {
            return Ok(Some(Credentials::Identity(token.into())));
        }
        let pair = match (given(self.username), self.password, given(self.auth)) {
            (Some(user), Some(password), _) => Some((user, password)),
            (_, _, Some(auth)) => Some(decoded(&auth).ok_or_else(|| CredentialsError::Entry(name.to_owned()))?),
            _ => None,
        };
        Ok(pair.map(|(user, password)| Credentials::Password(Password { user, password: password.into() })))
    }
}

/// Decodes a name and a password, which are separated by a colon, from base64.
fn decoded(auth: &str) -> Option<(String, String)> {
    let text = String::from_utf8(BASE64_STANDARD.decode(auth.trim()).ok()?).ok()?;
    let (user, password) = text.split_once(':')?;
    Some((user.to_owned(), password.trim_end_matches('\0').to_owned()))
}

impl Password {
    /// Returns the value of the header `Authorization`.
    pub(super) fn basic(&self) -> HeaderValue {
        let pair = BASE64_STANDARD.encode(format!("{}:{}", self.user, self.password.expose_secret()));
        let mut value = HeaderValue::try_from(format!("Basic {pair}")).expect("base64 is a header's text");
        value.set_sensitive(true);
        value
    }
}

/// Returns the registry and the repository prefix of a key of `auths`, such as `https://index.docker.io/v1/`.
fn place(key: &str) -> (String, String) {
    let key = key.trim_start_matches("https://").trim_start_matches("http://").trim_end_matches('/');
    let (registry, prefix) = key.split_once('/').unwrap_or((key, ""));
    let registry = match registry.to_ascii_lowercase().as_str() {
        "index.docker.io" | "registry-1.docker.io" => "docker.io".to_owned(),
        other => other.to_owned(),
    };
    let prefix = if matches!(prefix, "v1" | "v2") { "" } else { prefix };
    (registry, prefix.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::{ByteString, apimachinery::pkg::apis::meta::v1::ObjectMeta};

    const JSON: &str = r#"{
        "auths": {
            "https://index.docker.io/v1/": {"auth": "aHVi OnB3"},
            "ghcr.io": {"auth": "bWU6YTpi"},
            "ghcr.io/team/secret": {"username": "team", "password": "t"},
            "localhost:5000": {"identitytoken": "it"},
            "helped.example.com": {}
        },
        "credsStore": "desktop"
    }"#;

    fn config() -> DockerConfig {
        DockerConfig::parse(JSON.replace("aHVi OnB3", "aHViOnB3").as_bytes()).unwrap()
    }

    fn basic(reference: &str) -> String {
        match config().of(&Reference::parse(reference).unwrap()) {
            Some(Credentials::Password(password)) => format!("{}:{}", password.user, password.password.expose_secret()),
            Some(Credentials::Identity(token)) => format!("token {}", token.expose_secret()),
            None => "nobody".to_owned(),
        }
    }

    #[test]
    fn the_entry_with_the_longest_matching_prefix_is_used() {
        assert_eq!(basic("ghcr.io/owner/plugin:1"), "me:a:b");
        assert_eq!(basic("ghcr.io/team/secret:1"), "team:t");
        assert_eq!(basic("ghcr.io/team/secret/plugin:1"), "team:t");
        assert_eq!(basic("ghcr.io/team/secrets:1"), "me:a:b");
        assert_eq!(basic("docker.io/owner/plugin:1"), "hub:pw");
        assert_eq!(basic("localhost:5000/plugin:1"), "token it");
    }

    #[test]
    fn no_other_registry_gets_the_credentials() {
        for other in ["localhost/plugin:1", "localhost:5001/p:1", "helped.example.com/p:1", "ghcr.io.evil/p:1"] {
            assert_eq!(basic(other), "nobody", "{other}");
        }
    }

    #[test]
    fn a_secret_of_another_type_is_refused() {
        let secret = |key: &str| Secret {
            metadata: ObjectMeta { name: Some("pull".to_owned()), ..ObjectMeta::default() },
            data: Some([(key.to_owned(), ByteString(br#"{"auths":{}}"#.to_vec()))].into()),
            ..Secret::default()
        };
        assert!(DockerConfig::of_secret(&secret(SECRET_KEY)).is_ok());
        let error = DockerConfig::of_secret(&secret("password")).unwrap_err().to_string();
        assert!(error.starts_with("secret/pull has no key .dockerconfigjson"), "{error}");
    }

    #[test]
    fn an_error_about_a_malformed_config_contains_no_secret() {
        let entry = |auth: &str| format!(r#"{{"auths":{{"ghcr.io":{{"auth":"{auth}"}}}}}}"#);
        for wrong in ["se:cret", "bm9jb2xvbg=="] {
            let error = DockerConfig::parse(entry(wrong).as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with("auths[\"ghcr.io\"].auth is not base64") && !error.contains(wrong), "{error}");
        }
        for wrong in ["se:cret", r#"{"auths":"se:cret"}"#, r#"{"auths":{"ghcr.io":"se:cret"}}"#] {
            let error = DockerConfig::parse(wrong.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with("this is no docker config from line 1") && !error.contains("se:cret"), "{error}");
        }
        assert!(!format!("{:?}", config()).contains("a:b"));
    }
}

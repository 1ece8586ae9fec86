//! References to artifacts: registry, repository, and a tag or a digest.

use super::digest::Digest;
use http::uri::Authority;
use std::fmt;

/// The usual name of Docker's registry, and the host that serves it.
const DOCKER_HUB: (&str, &str) = ("docker.io", "registry-1.docker.io");

/// A reference to an artifact: `registry/repository:tag` or `registry/repository@sha256:...`. If it has both, the
/// digest counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    registry: String,
    repository: String,
    version: Version,
}

/// The tag or digest of an artifact in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Version {
    /// The artifact that has this tag now.
    Tag(String),
    /// The artifact with this digest.
    Digest(Digest),
}

/// The reason why a text is not a reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// The text contains a scheme, such as `https://`.
    #[error("{0:?} begins with a scheme: leave it out, a reference is registry/repository:tag")]
    Scheme(String),
    /// The text names no registry.
    #[error("{0:?} names no registry: begin it with one, as in ghcr.io/owner/plugin:1.0")]
    NoRegistry(String),
    /// The text names neither a tag nor a digest.
    #[error("{0:?} names neither a tag nor a digest: end it with :1.0, or with @sha256: and 64 hex digits")]
    NoVersion(String),
    /// A part of the text is malformed.
    #[error("{whole:?} is no reference: {part} cannot be {text:?}; {right}")]
    Part {
        /// The whole text.
        whole: String,
        /// The name of the part.
        part: &'static str,
        /// The text of the part.
        text: String,
        /// The required form of the part.
        right: &'static str,
    },
}

impl Reference {
    /// Parses a reference. The registry must have a dot or a port in its name, or be `localhost`.
    ///
    /// # Errors
    /// Returns what is wrong with the text, and the required form.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        if text.contains("://") {
            return Err(ReferenceError::Scheme(text.to_owned()));
        }
        let names_a_registry = |name: &str| name.contains(['.', ':']) || name == "localhost";
        let (registry, rest) = text
            .split_once('/')
            .filter(|(registry, _)| names_a_registry(registry))
            .ok_or_else(|| ReferenceError::NoRegistry(text.to_owned()))?;
        let (rest, digest) = rest.split_once('@').map_or((rest, None), |(rest, digest)| (rest, Some(digest)));
        let (repository, tag) = rest.rsplit_once(':').map_or((rest, None), |(rest, tag)| (rest, Some(tag)));

        let wrong = |part, found: &str, right| ReferenceError::Part {
            whole: text.to_owned(),
            part,
            text: found.to_owned(),
            right,
        };
        if !is_registry(registry) {
            return Err(wrong("the registry", registry, "it is a host's name or address, and perhaps : and a port"));
        }
        if !is_repository(repository) {
            return Err(wrong(
                "the repository",
                repository,
                "it is lower-case letters and digits, parted by / . _ or -",
            ));
        }
        if let Some(tag) = tag.filter(|tag| !is_tag(tag)) {
            return Err(wrong("the tag", tag, "it is up to 128 letters, digits, dots, _ and -"));
        }
        let version = match (digest, tag) {
            (Some(digest), _) => Version::Digest(
                Digest::parse(digest)
                    .ok_or_else(|| wrong("the digest", digest, "it is sha256: and 64 lower-case hex digits"))?,
            ),
            (None, Some(tag)) => Version::Tag(tag.to_owned()),
            (None, None) => return Err(ReferenceError::NoVersion(text.to_owned())),
        };
        Ok(Self { registry: registry.to_ascii_lowercase(), repository: repository.to_owned(), version })
    }

    /// Returns the registry's name, with its port if it has one.
    #[must_use]
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// Returns the last part of the repository's name.
    #[must_use]
    pub fn stem(&self) -> &str {
        self.repository.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the reference to the artifact with this digest in the same repository: `registry/repository@sha256:...`.
    #[must_use]
    pub fn at(&self, digest: &Digest) -> Self {
        Self { version: Version::Digest(digest.clone()), ..self.clone() }
    }

    pub(super) fn version(&self) -> &Version {
        &self.version
    }

    /// Returns the host that serves the registry, with its port if it has one.
    pub(super) fn host(&self) -> &str {
        let hub = self.registry == DOCKER_HUB.0 || self.registry == format!("index.{}", DOCKER_HUB.0);
        if hub { DOCKER_HUB.1 } else { &self.registry }
    }

    /// Returns the repository's name on that host.
    pub(super) fn repository(&self) -> String {
        let official = self.host() == DOCKER_HUB.1 && !self.repository.contains('/');
        if official { format!("library/{}", self.repository) } else { self.repository.clone() }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        match &self.version {
            Version::Tag(tag) => write!(f, ":{tag}"),
            Version::Digest(digest) => write!(f, "@{digest}"),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(tag) => tag.fmt(f),
            Self::Digest(digest) => digest.fmt(f),
        }
    }
}

fn is_registry(text: &str) -> bool {
    let port_is_a_number = |authority: &Authority| {
        let bare = authority.as_str().ends_with(authority.host());
        bare || authority.port_u16().is_some_and(|port| port > 0)
    };
    let of_a_host = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte));
    of_a_host && text.parse::<Authority>().is_ok_and(|authority| port_is_a_number(&authority))
}

fn is_repository(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let sound = |part: &str| {
        let ends = [part.bytes().next(), part.bytes().next_back()];
        ends.iter().all(|end| end.is_some_and(inner)) && part.bytes().all(|byte| inner(byte) || b"._-".contains(&byte))
    };
    text.len() <= 255 && text.split('/').all(sound)
}

fn is_tag(text: &str) -> bool {
    let sound = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=128).contains(&text.len()) && !text.starts_with(['.', '-']) && text.bytes().all(sound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_a_registry_a_repository_and_a_tag_or_a_digest() {
        let digest = Digest::of(b"");
        let tagged = Reference::parse("GHCR.io/owner/plugin:1.0").unwrap();
        assert_eq!((tagged.host(), tagged.repository().as_str(), tagged.stem()), ("ghcr.io", "owner/plugin", "plugin"));
        assert_eq!(tagged.to_string(), "ghcr.io/owner/plugin:1.0");
        assert_eq!(tagged.at(&digest).to_string(), format!("ghcr.io/owner/plugin@{digest}"));
        for local in ["localhost/p:1", "localhost:5000/p:1", "127.0.0.1:5000/a/b:1", "[::1]:5000/p:1", "10.0.0.1/p:1"] {
            assert_eq!(Reference::parse(local).unwrap().to_string(), local);
        }
    }

    #[test]
    fn a_digest_takes_precedence_over_a_tag() {
        let digest = Digest::of(b"");
        let both = Reference::parse(&format!("ghcr.io/owner/plugin:1.0@{digest}")).unwrap();
        assert_eq!(both.version(), &Version::Digest(digest));
    }

    #[test]
    fn docker_hub_has_another_host_and_a_library_prefix() {
        let short = Reference::parse("docker.io/plugin:1").unwrap();
        assert_eq!((short.host(), short.repository().as_str()), ("registry-1.docker.io", "library/plugin"));
        assert_eq!(Reference::parse("index.docker.io/a/b:1").unwrap().repository(), "a/b");
    }

    #[test]
    fn an_invalid_reference_is_refused_with_the_required_form() {
        let refused = |text: &str| Reference::parse(text).unwrap_err().to_string();
        assert!(refused("https://ghcr.io/a/b:1").contains("leave it out"));
        for text in ["plugin:1", "owner/plugin:1", "", "/", "/a:1"] {
            assert!(refused(text).contains("names no registry"), "{text}: {}", refused(text));
        }
        assert!(refused("ghcr.io/a/b").contains("neither a tag nor a digest"));
        assert!(refused("ghcr.io/A/b:1").contains("the repository cannot be \"A/b\""));
        for text in ["ghcr.io/:1", "ghcr.io/a//b:1", "ghcr.io/../b:1", "ghcr.io/a/:1", "ghcr.io/a?b:1", "ghcr.io/-a:1"]
        {
            assert!(refused(text).contains("the repository cannot be"), "{text}: {}", refused(text));
        }
        for text in ["ghcr.io/a:", "ghcr.io/a:.", "ghcr.io/a:x y", &format!("ghcr.io/a:{}", "x".repeat(129))] {
            assert!(refused(text).contains("the tag cannot be"), "{text}: {}", refused(text));
        }
        for text in ["user:secret@ghcr.io/a:1", "ghcr.io:99999/a:1", "ghcr.io:/a:1", "a.b:c/d:1", "gh cr.io/a:1"] {
            assert!(refused(text).contains("the registry cannot be"), "{text}: {}", refused(text));
        }
        for text in ["ghcr.io/a@sha256:12", "ghcr.io/a@md5:12", "ghcr.io/a:1@"] {
            assert!(refused(text).contains("the digest cannot be"), "{text}: {}", refused(text));
        }
    }
}

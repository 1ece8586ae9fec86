//! What goes wrong between the host and a registry.

use super::{digest::Digest, reach::Forbidden};
use http::{StatusCode, Uri};
use std::{fmt, time::Duration};

/// Why a registry's answer could not be had, or not be believed.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// Nobody answers, or not as HTTP or TLS want it.
    #[error("failed to reach {url}")]
    Unreachable {
        /// Who was asked.
        url: Place,
        /// How it failed.
        #[source]
        source: hyper_util::client::legacy::Error,
    },
    /// It does not speak TLS.
    #[error("{url} does not speak TLS: if it is meant to be asked by plain HTTP, set `insecure: true`, or --insecure")]
    NotTls {
        /// Who was asked.
        url: Place,
    },
    /// It is, or resolves to, an address at which no registry is.
    #[error("{url} is not asked")]
    Forbidden {
        /// Who was not asked.
        url: Place,
        /// Why not.
        #[source]
        source: Forbidden,
    },
    /// It took too long.
    #[error("it was not done within {0:?}: try again, or look whether the registry answers")]
    Slow(Duration),
    /// The registry wants to know who asks, or does not believe it.
    #[error("{registry} asks for credentials{}: {}", if *sent { " and refuses those that it got" } else { "" }, LOG_IN)]
    Unauthorized {
        /// Which registry.
        registry: String,
        /// Whether it was told some.
        sent: bool,
    },
    /// There is no such thing.
    #[error("{url} is not there: look at the repository's name and the tag, and whether the credentials may read it")]
    Missing {
        /// What.
        url: Place,
    },
    /// Another answer than success.
    #[error("{url} answered {status}{message}")]
    Status {
        /// Who.
        url: Place,
        /// How.
        status: StatusCode,
        /// In the registry's own words, after a colon.
        message: String,
    },
    /// It asks for credentials in a way that is not known, or tells no token.
    #[error("{registry} asks for credentials in a way that is not understood: {message}")]
    Challenge {
        /// Which registry.
        registry: String,
        /// What about it.
        message: String,
    },
    /// It sends elsewhere in a way that is not followed.
    #[error("{from} sends on to {to}, which is not followed: {why}")]
    Redirect {
        /// Who sends.
        from: Place,
        /// Where to.
        to: String,
        /// Why it is not followed.
        why: &'static str,
    },
    /// The content stops early.
    #[error("{url} stopped after {got} of {declared} bytes")]
    Short {
        /// Whose content.
        url: Place,
        /// How much came.
        got: u64,
        /// How much was declared.
        declared: u64,
    },
    /// The connection broke in the middle of the content.
    #[error("{url} stopped in the middle")]
    Broken {
        /// Whose content.
        url: Place,
        /// How.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The content is larger than was declared, or than is read.
    #[error("{url} has more than {limit} bytes, which is {limit_is}")]
    Larger {
        /// Whose content.
        url: Place,
        /// How much is read.
        limit: u64,
        /// Where that number comes from.
        limit_is: &'static str,
    },
    /// The content is not what it is called by.
    #[error("{url} has digest {found}, not {wanted}: it was changed on its way or in the registry")]
    Mismatch {
        /// Whose content.
        url: Place,
        /// What it is called by.
        wanted: Digest,
        /// What it is.
        found: Digest,
    },
    /// This machine cannot speak TLS.
    #[error("failed to set up TLS; is there a bundle of certificate authorities on this machine?")]
    Tls(#[source] rustls::Error),
    /// A registry of this name cannot be asked.
    #[error("{reference} does not make a URL")]
    Url {
        /// Which reference.
        reference: String,
        /// Why.
        #[source]
        source: http::Error,
    },
}

/// What to do about credentials.
const LOG_IN: &str = "name a Secret of type kubernetes.io/dockerconfigjson with some for this registry in `pullSecret`, or \
                      log in with `docker login` on the command line (credential helpers are not asked)";

/// A URL as it is told: without its query, which may hold a key to what lies there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place(String);

impl From<&Uri> for Place {
    fn from(url: &Uri) -> Self {
        let authority = url.authority().map(http::uri::Authority::as_str).unwrap_or_default();
        Self(format!("{}://{authority}{}", url.scheme_str().unwrap_or_default(), url.path()))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Somebody else's text, short and on one line, so that it can stand in a log or a condition.
pub(super) fn tame(text: &str) -> String {
    const MOST: usize = 200;
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_told_without_its_query() {
        let url: Uri = "https://storage.example.com:8443/blob?signature=secret".parse().unwrap();
        assert_eq!(Place::from(&url).to_string(), "https://storage.example.com:8443/blob");
    }

    #[test]
    fn a_registrys_words_are_cut_and_keep_no_control_character() {
        assert_eq!(tame("a\u{1b}[31m\nb"), "a [31m b");
        assert_eq!(tame(&"x".repeat(1000)).len(), 200);
    }
}

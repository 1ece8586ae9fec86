//! Errors of requests to a registry.

use super::{digest::Digest, reach::Forbidden};
use decide::shown::blank;
use http::{StatusCode, Uri};
use std::{fmt, time::Duration};

/// The reason why a request to a registry failed, or its response was refused.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The connection failed, or TLS or HTTP on it.
    #[error("failed to reach {url}")]
    Unreachable {
        /// The requested URL.
        url: RedactedUrl,
        /// The cause.
        #[source]
        source: hyper_util::client::legacy::Error,
    },
    /// The server does not speak TLS.
    #[error("{url} does not speak TLS: if it is meant to be asked by plain HTTP, set `insecure: true`, or --insecure")]
    NotTls {
        /// The requested URL.
        url: RedactedUrl,
    },
    /// The host is, or resolves to, an address where no registry may be.
    #[error("{url} is not asked")]
    Forbidden {
        /// The URL that was not requested.
        url: RedactedUrl,
        /// The cause.
        #[source]
        source: Forbidden,
    },
    /// The work took too long.
    #[error("it was not done within {0:?}: try again, or look whether the registry answers")]
    Slow(Duration),
    /// The registry requires credentials, or refuses those that it got.
    #[error("{registry} asks for credentials{}: {}", if *sent { " and refuses those that it got" } else { "" }, LOG_IN)]
    Unauthorized {
        /// The registry's name.
        registry: String,
        /// Whether credentials were sent.
        sent: bool,
    },
    /// The registry has its tokens made by a server on another host, which did not get the credentials, and asks for some.
    #[error(
        "{registry} has its tokens made by {server}, which is another host and got none of the credentials for {registry}: \
         if they are meant for it, give {server} an entry with the same ones beside that of {registry}, in the Secret or the \
         docker config"
    )]
    Withheld {
        /// The registry's name.
        registry: String,
        /// The token server's name, with its port if it has one.
        server: String,
    },
    /// The registry answered that there is no such content.
    #[error("{url} is not there: look at the repository's name and the tag, and whether the credentials may read it")]
    Missing {
        /// The requested URL.
        url: RedactedUrl,
    },
    /// The registry answered with an error.
    #[error("{url} answered {status}{message}")]
    Status {
        /// The requested URL.
        url: RedactedUrl,
        /// The status.
        status: StatusCode,
        /// The registry's own message, after a colon.
        message: String,
    },
    /// The registry's challenge is not understood, or the token server returned no token.
    #[error("{registry} asks for credentials in a way that is not understood: {why}")]
    Challenge {
        /// The registry's name.
        registry: String,
        /// What is not understood.
        why: ChallengeError,
    },
    /// The registry redirects to a target that is not followed.
    #[error("{from} sends on to {to}, which is not followed: {why}")]
    Redirect {
        /// The URL that redirects.
        from: RedactedUrl,
        /// The target.
        to: String,
        /// Why it is not followed.
        why: &'static str,
    },
    /// The content is shorter than declared.
    #[error("{url} stopped after {got} of {declared} bytes")]
    Short {
        /// The URL of the content.
        url: RedactedUrl,
        /// Number of received bytes.
        got: u64,
        /// Number of declared bytes.
        declared: u64,
    },
    /// The connection broke in the middle of the content.
    #[error("{url} stopped in the middle")]
    Broken {
        /// The URL of the content.
        url: RedactedUrl,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The content is larger than declared or allowed.
    #[error("{url} has more than {limit} bytes, which is {limit_is}")]
    Larger {
        /// The URL of the content.
        url: RedactedUrl,
        /// The limit in bytes.
        limit: u64,
        /// What the limit is.
        limit_is: &'static str,
    },
    /// The content has another digest than expected.
    #[error("{url} has digest {found}, not {wanted}: it was changed on its way or in the registry")]
    Mismatch {
        /// The URL of the content.
        url: RedactedUrl,
        /// The expected digest.
        wanted: Digest,
        /// The actual digest.
        found: Digest,
    },
    /// This machine cannot speak TLS.
    #[error("failed to set up TLS; is there a bundle of certificate authorities on this machine?")]
    Tls(#[source] rustls::Error),
    /// The reference does not form a URL.
    #[error("{reference} does not make a URL")]
    Url {
        /// The reference.
        reference: String,
        /// The cause.
        #[source]
        source: http::Error,
    },
}

/// What is not understood of a registry's challenge, or of its token server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChallengeError {
    /// The registry refuses the request without a challenge.
    #[error("it has no WWW-Authenticate")]
    NoHeader,
    /// No challenge in the header has a known scheme and its parameters.
    #[error("WWW-Authenticate is {0:?}")]
    Header(String),
    /// No request can be made to the realm.
    #[error("its realm is {0:?}")]
    Realm(String),
    /// The token server's answer has no token.
    #[error("{0} gives no token")]
    NoToken(RedactedUrl),
    /// The token cannot stand in a header.
    #[error("{0} gives a token that is no text")]
    NotText(RedactedUrl),
}

/// Advice on how to provide credentials.
const LOG_IN: &str = "name a Secret of type kubernetes.io/dockerconfigjson with some for this registry in `pullSecret`, or \
                      log in with `docker login` on the command line (credential helpers are not asked)";

/// A URL for messages: without its query, which may contain a key to the content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedactedUrl(String);

impl From<&Uri> for RedactedUrl {
    fn from(url: &Uri) -> Self {
        let authority = url.authority().map(http::uri::Authority::as_str).unwrap_or_default();
        Self(format!("{}://{authority}{}", url.scheme_str().unwrap_or_default(), url.path()))
    }
}

impl fmt::Display for RedactedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns foreign text on one line of at most 200 characters, for a log or a condition.
pub(super) fn tame(text: &str) -> String {
    const MOST: usize = 200;
    text.chars().map(blank).take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_printed_without_its_query() {
        let url: Uri = "https://storage.example.com:8443/blob?signature=secret".parse().unwrap();
        assert_eq!(RedactedUrl::from(&url).to_string(), "https://storage.example.com:8443/blob");
    }

    #[test]
    fn a_registrys_text_is_cut_and_has_no_control_characters() {
        assert_eq!(tame("a\u{1b}[31m\nb"), "a [31m b");
        assert_eq!(tame(&"x".repeat(1000)).len(), 200);
    }
}

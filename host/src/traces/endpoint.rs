//! Where traces go, as flags and the standard's variables say it.

use http::Uri;
use std::{fmt, str::FromStr};

/// The path of traces at a collector, from OTLP's specification.
const PATH: &str = "/v1/traces";

/// The address of a collector that takes OTLP over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint(Uri);

/// Why a text is not the address of a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// It is no URL of HTTP.
    #[error("it must be http:// or https://, a host and a port, such as http://collector.observability:4318")]
    NotHttp,
    /// It has a user's name.
    #[error("it must be without a user's name; credentials are a header in OTEL_EXPORTER_OTLP_HEADERS")]
    Credentials,
    /// It has a query.
    #[error("it must be without ? and what follows")]
    Query,
    /// It has the path of traces already.
    #[error("it must be without {PATH}, which is appended")]
    Signal,
}

impl Endpoint {
    /// Returns the URL that traces are posted to.
    pub(super) fn url(&self) -> &Uri {
        &self.0
    }

    /// Returns whether requests need TLS.
    pub(super) fn is_tls(&self) -> bool {
        self.0.scheme() == Some(&http::uri::Scheme::HTTPS)
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let uri: Uri = text.parse().map_err(|_| EndpointError::NotHttp)?;
        let Some(authority) = uri.authority().filter(|_| matches!(uri.scheme_str(), Some("http" | "https"))) else {
            return Err(EndpointError::NotHttp);
        };
        if authority.as_str().contains('@') {
            return Err(EndpointError::Credentials);
        }
        if uri.query().is_some() || text.contains('#') {
            return Err(EndpointError::Query);
        }
        let base = text.trim_end_matches('/');
        if base.ends_with(PATH) {
            return Err(EndpointError::Signal);
        }
        format!("{base}{PATH}").parse().map(Self).map_err(|_| EndpointError::NotHttp)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The share of passes that are traced, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share(f64);

/// A text is not a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it must be a number from 0 (no pass) to 1 (every pass)")]
pub struct ShareError;

impl Share {
    /// Returns the share as a number.
    pub(super) fn ratio(self) -> f64 {
        self.0
    }
}

impl FromStr for Share {
    type Err = ShareError;

    fn from_str(text: &str) -> Result<Self, ShareError> {
        let ratio: f64 = text.parse().map_err(|_| ShareError)?;
        if (0.0..=1.0).contains(&ratio) { Ok(Self(ratio)) } else { Err(ShareError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_traces_is_appended_to_the_address_of_a_collector() {
        let url = |text: &str| text.parse::<Endpoint>().unwrap().to_string();
        assert_eq!(url("http://collector:4318"), "http://collector:4318/v1/traces");
        assert_eq!(url("http://collector:4318/"), "http://collector:4318/v1/traces");
        assert_eq!(url("https://[::1]/otlp/"), "https://[::1]/otlp/v1/traces");
    }
}

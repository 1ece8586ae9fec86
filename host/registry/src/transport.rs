//! HTTP requests to a registry: without proxies, unchecked redirects, addresses out of reach, or unbounded bodies.

use super::{
    digest::Digest,
    error::{RedactedUrl, RegistryError},
    reach::{Forbidden, Reach, literal},
};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, Uri, header, uri::Scheme};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{
        Client,
        connect::{HttpConnector, dns::Name},
    },
    rt::TokioExecutor,
};
use rustls_platform_verifier::BuilderVerifierExt;
use std::{
    error::Error,
    net::SocketAddr,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tower::Service;

/// Timeout of connecting.
const CONNECT: Duration = Duration::from_secs(10);

/// The protocol of requests to a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speech {
    /// HTTP over TLS.
    Tls,
    /// Plain HTTP.
    Plain,
}

impl Speech {
    /// Returns plain HTTP if `insecure` is set, else TLS.
    pub(super) fn new(insecure: bool) -> Self {
        if insecure { Self::Plain } else { Self::Tls }
    }
}

/// Sends requests within its reach. Follows no redirects.
pub(super) struct Transport {
    client: Client<HttpsConnector<HttpConnector<Resolver>>, Full<Bytes>>,
    reach: Reach,
}

impl Transport {
    /// Returns a transport that trusts the machine's certificate authorities. Plain HTTP works without any; then no
    /// target of a redirect to TLS is trusted.
    ///
    /// # Errors
    /// Returns an error if TLS is required and no certificate authorities can be loaded.
    pub(super) fn new(reach: Reach, speech: Speech) -> Result<Self, RegistryError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(RegistryError::Tls)?;
        let tls = match (tls.clone().with_platform_verifier(), speech) {
            (Ok(tls), _) => tls,
            (Err(_), Speech::Plain) => tls.with_root_certificates(rustls::RootCertStore::empty()),
            (Err(error), Speech::Tls) => return Err(RegistryError::Tls(error)),
        }
        .with_no_client_auth();
        let mut tcp = HttpConnector::new_with_resolver(Resolver { reach });
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT));
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().wrap_connector(tcp);
        Ok(Self { client: Client::builder(TokioExecutor::new()).build(connector), reach })
    }

    /// Sends one request and returns its response.
    ///
    /// # Errors
    /// Returns an error if the URL is out of reach or the connection fails.
    pub(super) async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, RegistryError> {
        let url = RedactedUrl::from(request.uri());
        // The resolver checks names. It never sees a literal address.
        if let Some(address) = request.uri().host().and_then(literal) {
            self.reach.admit(address).map_err(|source| RegistryError::Forbidden { url: url.clone(), source })?;
        }
        self.client.request(request).await.map_err(|source| match cause::<Forbidden>(&source) {
            Some(source) => RegistryError::Forbidden { url, source: source.clone() },
            None if matches!(cause(&source), Some(rustls::Error::InvalidMessage(_))) => RegistryError::NotTls { url },
            None => RegistryError::Unreachable { url, source },
        })
    }
}

/// Reads the whole body, and never keeps more than `limit` bytes. `limit_is` explains the limit in the error.
///
/// # Errors
/// Returns an error if the body is larger, or breaks off.
pub(super) async fn read(
    url: &Uri,
    response: Response<Incoming>,
    limit: u64,
    limit_is: &'static str,
) -> Result<Vec<u8>, RegistryError> {
    let larger = || RegistryError::Larger { url: url.into(), limit, limit_is };
    let declared = response.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if declared.is_some_and(|length: u64| length > limit) {
        return Err(larger());
    }
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let body = Limited::new(response.into_body(), most).collect().await;
    body.map(|body| body.to_bytes().into()).map_err(|source| {
        if source.is::<LengthLimitError>() { larger() } else { RegistryError::Broken { url: url.into(), source } }
    })
}

/// Reads the whole body, which must have this digest and size.
///
/// # Errors
/// Returns an error if the digest or the size differs.
pub(super) async fn read_exactly(
    url: &Uri,
    response: Response<Incoming>,
    digest: &Digest,
    size: u64,
) -> Result<Vec<u8>, RegistryError> {
    let content = read(url, response, size, "what was declared").await?;
    let got = content.len() as u64;
    if got < size {
        return Err(RegistryError::Short { url: url.into(), got, declared: size });
    }
    let found = Digest::of(&content);
    if found != *digest {
        return Err(RegistryError::Mismatch { url: url.into(), wanted: digest.clone(), found });
    }
    Ok(content)
}

/// Resolves the `Location` of a response to the URL `from`.
///
/// # Errors
/// Returns an error if the result is not an http or https URL, has a user's name, or leads from TLS to plain HTTP.
pub(super) fn onward(from: &Uri, location: &str) -> Result<Uri, RegistryError> {
    let refused = |why| RegistryError::Redirect { from: from.into(), to: super::error::tame(location), why };
    let base = |uri: &Uri| Some((uri.scheme()?.clone(), uri.authority()?.clone()));
    let (scheme, authority) = base(from).ok_or_else(|| refused("it does not come from a URL"))?;
    let absolute = match location {
        location if location.starts_with("//") => format!("{scheme}:{location}"),
        location if location.starts_with('/') => format!("{scheme}://{authority}{location}"),
        location => location.to_owned(),
    };
    let to: Uri = absolute.parse().map_err(|_| refused("it is no URL"))?;
    match base(&to) {
        Some((scheme, _)) if scheme != Scheme::HTTP && scheme != Scheme::HTTPS => {
            Err(refused("it is no http or https"))
        }
        Some((to, _)) if scheme == Scheme::HTTPS && to == Scheme::HTTP => {
            Err(refused("it leads from TLS to plain HTTP, where anybody could answer"))
        }
        Some((_, authority)) if authority.as_str().contains('@') => Err(refused("it has a user's name in it")),
        Some(_) => Ok(to),
        None => Err(refused("it is no URL with a scheme and a host")),
    }
}

/// Returns whether the URLs have the same scheme, host and port.
pub(super) fn same_origin(one: &Uri, other: &Uri) -> bool {
    let port = |uri: &Uri| uri.port_u16().unwrap_or(if uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 });
    let host = |uri: &Uri| uri.host().map(str::to_ascii_lowercase);
    one.scheme() == other.scheme() && host(one) == host(other) && port(one) == port(other)
}

/// Returns the first error of this type among the causes. Also looks inside I/O errors, which do not report what they
/// wrap.
fn cause<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        next = match error.downcast_ref::<std::io::Error>() {
            Some(error) => error.get_ref().map(|wrapped| wrapped as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    None
}

/// Resolves names to addresses within reach. The connection uses the checked addresses, even if the name changes
/// meanwhile.
#[derive(Clone)]
struct Resolver {
    reach: Reach,
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let reach = self.reach;
        Box::pin(async move {
            let addresses: Vec<_> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            addresses.iter().try_for_each(|address| reach.admit(address.ip()))?;
            Ok(addresses.into_iter())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lead(from: &str, location: &str) -> Result<String, RegistryError> {
        onward(&from.parse().unwrap(), location).map(|to| to.to_string())
    }

    #[test]
    fn a_location_is_absolute_or_of_the_same_host() {
        let from = "https://ghcr.io/v2/a/blobs/x";
        assert_eq!(lead(from, "https://cdn.example.com/x?y=z").unwrap(), "https://cdn.example.com/x?y=z");
        assert_eq!(lead(from, "//cdn.example.com/x").unwrap(), "https://cdn.example.com/x");
        assert_eq!(lead(from, "/x?y").unwrap(), "https://ghcr.io/x?y");
        assert_eq!(lead("http://localhost:5000/v2/", "https://localhost/x").unwrap(), "https://localhost/x");
    }

    #[test]
    fn a_location_without_tls_or_without_a_host_is_not_followed() {
        let from = "https://ghcr.io/v2/a/blobs/x";
        assert!(lead(from, "http://ghcr.io/x").unwrap_err().to_string().contains("from TLS to plain HTTP"));
        for location in ["", "x", "../x", "ftp://ghcr.io/x", "file:///etc/passwd", "https://", "https://a:b@ghcr.io/x"]
        {
            assert!(lead(from, location).is_err(), "{location}");
        }
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let same = |one: &str, other: &str| same_origin(&one.parse().unwrap(), &other.parse().unwrap());
        assert!(same("https://ghcr.io/a", "https://GHCR.io:443/b"));
        assert!(!same("https://ghcr.io/a", "http://ghcr.io/a"));
        assert!(!same("https://ghcr.io/a", "https://ghcr.io:444/a"));
        assert!(!same("https://ghcr.io/a", "https://ghcr.io.evil/a"));
    }
}

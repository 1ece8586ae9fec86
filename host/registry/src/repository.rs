//! A client of one repository: reads and writes manifests and blobs, and authenticates if the registry requires it.

use super::{
    answer::success,
    credentials::DockerConfig,
    digest::Digest,
    error::{RedactedUrl, RegistryError},
    identity::{Identity, USER_AGENT},
    manifest::{ANY_MANIFEST, Descriptor},
    reach::Reach,
    reference::{Reference, Version},
    transport::{Speech, Transport, onward, read, read_exactly, same_origin},
};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header, uri::Scheme};
use http_body_util::Full;
use hyper::body::Incoming;

/// Maximum redirects of one request. A registry redirects once, to where its blobs are.
const MOST_REDIRECTS: usize = 3;

/// Maximum bytes of a manifest. A plugin's has less than a kilobyte, a signature's some for each signer.
const MANIFEST_LIMIT: u64 = 256 << 10;

/// A client of one repository. It uses its authorization again for later requests.
pub(super) struct Repository<'a> {
    transport: Transport,
    /// `https://registry/v2/repository`.
    root: Uri,
    identity: Identity<'a>,
    authorization: Option<HeaderValue>,
}

/// A fetched manifest.
pub(super) struct Found {
    pub(super) bytes: Vec<u8>,
    pub(super) digest: Digest,
    pub(super) media_type: String,
}

impl<'a> Repository<'a> {
    /// Returns a client of the repository that the reference names. Sends no request.
    ///
    /// # Errors
    /// Returns an error if this machine cannot speak TLS, or the registry's name does not form a URL.
    pub(super) fn new(
        reference: &'a Reference,
        speech: Speech,
        config: &'a DockerConfig,
    ) -> Result<Self, RegistryError> {
        let scheme = if speech == Speech::Tls { Scheme::HTTPS } else { Scheme::HTTP };
        let root = Uri::builder()
            .scheme(scheme)
            .authority(reference.host())
            .path_and_query(format!("/v2/{}", reference.repository()))
            .build()
            .map_err(|source| RegistryError::Url { reference: reference.to_string(), source })?;
        let transport = Transport::new(Reach::of(root.host().unwrap_or_default()), speech)?;
        Ok(Self { transport, root, identity: Identity::new(reference, config), authorization: None })
    }

    /// Fetches the manifest of a tag or a digest.
    ///
    /// # Errors
    /// Returns an error if the manifest cannot be fetched, is too large, or has another digest than requested or
    /// declared.
    pub(super) async fn manifest(&mut self, version: &Version) -> Result<Found, RegistryError> {
        let url = self.url(&format!("manifests/{version}"));
        let (url, response) = self.get(url, ANY_MANIFEST).await?;
        let header = |name| response.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let media_type = header(header::CONTENT_TYPE.as_str()).unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().trim().to_owned();
        let wanted = match version {
            Version::Digest(digest) => Some(digest.clone()),
            Version::Tag(_) => header("docker-content-digest").and_then(Digest::parse),
        };
        let bytes = read(&url, response, MANIFEST_LIMIT, "the most that a manifest may have").await?;
        let digest = Digest::of(&bytes);
        match wanted {
            Some(wanted) if wanted != digest => {
                Err(RegistryError::Mismatch { url: RedactedUrl::from(&url), wanted, found: digest })
            }
            _ => Ok(Found { bytes, digest, media_type }),
        }
    }

    /// Fetches the blob with this digest and size.
    ///
    /// # Errors
    /// Returns an error if the blob cannot be fetched, or has another digest or size.
    pub(super) async fn blob(&mut self, digest: &Digest, size: u64) -> Result<Vec<u8>, RegistryError> {
        let url = self.url(&format!("blobs/{digest}"));
        let (url, response) = self.get(url, "*/*").await?;
        read_exactly(&url, response, digest, size).await
    }

    /// Fetches the index of what refers to the manifest, or returns None if the registry keeps no such list.
    ///
    /// # Errors
    /// Returns an error if the index cannot be fetched or is too large.
    pub(super) async fn referrers(&mut self, digest: &Digest) -> Result<Option<Vec<u8>>, RegistryError> {
        let url = self.url(&format!("referrers/{digest}"));
        match self.get(url, ANY_MANIFEST).await {
            Ok((url, response)) => {
                read(&url, response, MANIFEST_LIMIT, "the most that a manifest may have").await.map(Some)
            }
            Err(RegistryError::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Uploads the content unless the repository has it, and returns its descriptor.
    ///
    /// # Errors
    /// Returns an error if the registry cannot be reached or refuses the content.
    pub(super) async fn put_blob(&mut self, content: Bytes) -> Result<Descriptor, RegistryError> {
        let (digest, size) = (Digest::of(&content), content.len() as u64);
        let there = self.ask(Method::HEAD, &self.url(&format!("blobs/{digest}")), &[], Bytes::new()).await?;
        if there.status() != StatusCode::OK {
            let uploads = self.url("blobs/uploads/");
            let begun = self.ask(Method::POST, &uploads, &[], Bytes::new()).await?;
            let begun = self.success(&uploads, begun).await?;
            let location = begun.headers().get(header::LOCATION).and_then(|to| to.to_str().ok()).unwrap_or_default();
            let sign = if location.contains('?') { '&' } else { '?' };
            let upload = onward(&uploads, &format!("{location}{sign}digest={digest}"))?;
            let kind = [(header::CONTENT_TYPE, "application/octet-stream")];
            let done = self.ask(Method::PUT, &upload, &kind, content).await?;
            self.success(&upload, done).await?;
        }
        Ok(Descriptor { digest: digest.to_string(), size, ..Descriptor::default() })
    }

    /// Uploads a manifest under this tag.
    ///
    /// # Errors
    /// Returns an error if the registry cannot be reached or refuses the manifest.
    pub(super) async fn put_manifest(
        &mut self,
        tag: &str,
        media_type: &str,
        content: Bytes,
    ) -> Result<(), RegistryError> {
        let url = self.url(&format!("manifests/{tag}"));
        let done = self.ask(Method::PUT, &url, &[(header::CONTENT_TYPE, media_type)], content).await?;
        self.success(&url, done).await.map(drop)
    }

    /// Returns a URL below the root. The callers have checked the names in it.
    fn url(&self, rest: &str) -> Uri {
        format!("{}/{rest}", self.root).parse().expect("a tag, a digest and fixed words make a path")
    }

    /// Follows at most [`MOST_REDIRECTS`] redirects, and returns the final URL with its successful response.
    async fn get(&mut self, mut url: Uri, accept: &str) -> Result<(Uri, Response<Incoming>), RegistryError> {
        for _ in 0..=MOST_REDIRECTS {
            let response = self.ask(Method::GET, &url, &[(header::ACCEPT, accept)], Bytes::new()).await?;
            if !response.status().is_redirection() {
                return Ok((url.clone(), self.success(&url, response).await?));
            }
            let location = response.headers().get(header::LOCATION).and_then(|to| to.to_str().ok());
            url = onward(&url, location.unwrap_or_default())?;
        }
        let why = "these were too many redirects";
        Err(RegistryError::Redirect {
            from: RedactedUrl::from(&self.root),
            to: RedactedUrl::from(&url).to_string(),
            why,
        })
    }

    async fn success(&self, url: &Uri, response: Response<Incoming>) -> Result<Response<Incoming>, RegistryError> {
        let answer = success(url, response, || self.identity.refused()).await;
        answer.map_err(|error| self.identity.missing_credentials(error))
    }

    /// Sends a request, and sends it again with authorization if the registry requires it. Only the registry itself
    /// gets the authorization, not the target of a redirect.
    async fn ask(
        &mut self,
        method: Method,
        url: &Uri,
        headers: &[(header::HeaderName, &str)],
        body: Bytes,
    ) -> Result<Response<Incoming>, RegistryError> {
        let own = same_origin(url, &self.root);
        let request = |authorization: Option<&HeaderValue>| {
            let mut request = Request::builder().method(&method).uri(url).header(header::USER_AGENT, USER_AGENT);
            for (name, value) in headers {
                request = request.header(name, *value);
            }
            if let Some(authorization) = authorization.filter(|_| own) {
                request = request.header(header::AUTHORIZATION, authorization);
            }
            request.body(Full::new(body.clone())).expect("method, URL and headers are each sound")
        };
        let response = self.transport.send(request(self.authorization.as_ref())).await?;
        if response.status() != StatusCode::UNAUTHORIZED || !own {
            return Ok(response);
        }
        let authorization = self.identity.authorization(&self.transport, &self.root, &response).await?;
        self.authorization = Some(authorization);
        self.transport.send(request(self.authorization.as_ref())).await
    }
}

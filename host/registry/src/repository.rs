//! One repository of a registry: asked for manifests and blobs, and told who asks if it wants to know.

use super::{
    answer::success,
    credentials::DockerConfig,
    digest::Digest,
    error::{Place, RegistryError},
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

/// Redirects from one request. A registry sends on once, to where its blobs are.
const MOST_REDIRECTS: usize = 3;

/// Manifests of plugins have less than a kilobyte, those of signatures some for each signer.
const MANIFEST_LIMIT: u64 = 256 << 10;

/// One repository. It remembers the token that it was given.
pub(super) struct Repository<'a> {
    transport: Transport,
    /// `https://registry/v2/repository`.
    root: Uri,
    identity: Identity<'a>,
    authorization: Option<HeaderValue>,
}

/// A manifest, of the digest that it was asked by.
pub(super) struct Found {
    pub(super) bytes: Vec<u8>,
    pub(super) digest: Digest,
    pub(super) media_type: String,
}

impl<'a> Repository<'a> {
    /// The repository that the reference names. Nobody is asked yet.
    ///
    /// # Errors
    /// This machine cannot speak TLS, or the registry's name makes no URL.
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

    /// The manifest of a tag or a digest.
    ///
    /// # Errors
    /// It cannot be had, is too large, or is not of the digest that it was asked by or is said to have.
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
                Err(RegistryError::Mismatch { url: Place::from(&url), wanted, found: digest })
            }
            _ => Ok(Found { bytes, digest, media_type }),
        }
    }

    /// The bytes that the descriptor names, of its digest and its size.
    ///
    /// # Errors
    /// They cannot be had, or are others.
    pub(super) async fn blob(&mut self, digest: &Digest, size: u64) -> Result<Vec<u8>, RegistryError> {
        let url = self.url(&format!("blobs/{digest}"));
        let (url, response) = self.get(url, "*/*").await?;
        read_exactly(&url, response, digest, size).await
    }

    /// What refers to the manifest, as an index; nothing if the registry keeps no such list.
    ///
    /// # Errors
    /// It cannot be had, or is too large.
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

    /// Puts the bytes into the repository, unless they are there.
    ///
    /// # Errors
    /// The registry does not take them.
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

    /// Gives a manifest this tag.
    ///
    /// # Errors
    /// The registry does not take it.
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

    /// A URL below the root. The names that make it up are checked where they come from.
    fn url(&self, rest: &str) -> Uri {
        format!("{}/{rest}", self.root).parse().expect("a tag, a digest and fixed words make a path")
    }

    /// The success that a URL leads to, by way of a few redirects, and where it was found.
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
        Err(RegistryError::Redirect { from: Place::from(&self.root), to: Place::from(&url).to_string(), why })
    }

    async fn success(&self, url: &Uri, response: Response<Incoming>) -> Result<Response<Incoming>, RegistryError> {
        success(url, response, || self.identity.refused()).await
    }

    /// The answer to a request. Who asks is told to the registry itself only, and to nobody that it sends on to.
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

//! Authenticates to a registry: with a password, or with a token of the server that the registry names.

use super::{
    answer::{ANSWER_LIMIT, success},
    challenge::{Challenge, challenge},
    credentials::{Credentials, DockerConfig},
    error::{ChallengeError, RedactedUrl, RegistryError, tame},
    reference::Reference,
    token_server,
    transport::{Transport, onward, read},
};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::Full;
use hyper::body::Incoming;
use secrecy::ExposeSecret;
use serde::Deserialize;

/// The `User-Agent` of every request.
pub(super) const USER_AGENT: &str = concat!("troupe/", env!("CARGO_PKG_VERSION"));

/// The client's identity for one registry.
pub(super) struct Identity<'a> {
    registry: &'a str,
    config: &'a DockerConfig,
    credentials: Option<&'a Credentials>,
    /// The token server that did not get the credentials.
    withheld_from: Option<String>,
}

impl<'a> Identity<'a> {
    /// Returns the identity for the registry of this reference, with its credentials if there are any.
    pub(super) fn new(reference: &'a Reference, config: &'a DockerConfig) -> Self {
        Self { registry: reference.registry(), config, credentials: config.of(reference), withheld_from: None }
    }

    /// Returns the `Authorization` header for the challenge in this response of the registry at `root`.
    ///
    /// # Errors
    /// Returns an error if credentials are missing, the challenge is not understood, or no token can be fetched.
    pub(super) async fn authorization(
        &mut self,
        transport: &Transport,
        root: &Uri,
        response: &Response<Incoming>,
    ) -> Result<HeaderValue, RegistryError> {
        let challenge = challenge(response.headers()).map_err(|why| self.not_understood(why))?;
        match (challenge, self.credentials) {
            (Challenge::Bearer { realm, query }, _) => self.token(transport, root, &onward(root, &realm)?, query).await,
            (Challenge::Basic, Some(Credentials::Password(password))) => Ok(password.basic()),
            (Challenge::Basic, _) => {
                Err(RegistryError::Unauthorized { registry: self.registry.to_owned(), sent: false })
            }
        }
    }

    /// Returns the error for a registry that refuses the authorization.
    pub(super) fn refused(&self) -> RegistryError {
        let registry = self.registry.to_owned();
        match self.withheld_from.clone() {
            Some(server) => RegistryError::Withheld { registry, server },
            None => RegistryError::Unauthorized { registry, sent: self.credentials.is_some() },
        }
    }

    /// Returns the error of an answer that is no success, or that for a refusal if the credentials may be what is missing.
    pub(super) fn missing_credentials(&self, error: RegistryError) -> RegistryError {
        match error {
            RegistryError::Status { status: StatusCode::FORBIDDEN, .. } if self.withheld_from.is_some() => {
                self.refused()
            }
            error => error,
        }
    }

    /// Returns the credentials that the server at `realm` gets: those for the registry, if they belong to it. Another is
    /// asked without.
    fn for_server(&mut self, root: &Uri, realm: &Uri) -> Option<&'a Credentials> {
        let (credentials, server) = (self.credentials?, realm.authority()?.as_str());
        if token_server::belongs_to(root, realm) || self.config.are_for(credentials, server) {
            return Some(credentials);
        }
        self.withheld_from = Some(server.to_owned());
        None
    }

    /// Fetches a token from the server that the registry has named. It gets the credentials if they belong to it: over TLS,
    /// unless the registry is used without TLS as well.
    async fn token(
        &mut self,
        transport: &Transport,
        root: &Uri,
        realm: &Uri,
        query: Vec<(&'static str, String)>,
    ) -> Result<HeaderValue, RegistryError> {
        let credentials = self.for_server(root, realm);
        let request = token_request(credentials, realm, query)
            .map_err(|_| self.not_understood(ChallengeError::Realm(tame(&realm.to_string()))))?;
        let response = success(realm, transport.send(request).await?, || self.refused()).await;
        let response = response.map_err(|error| self.missing_credentials(error))?;
        let answer = read(realm, response, ANSWER_LIMIT, "the most that a token may have").await?;
        let token: Token = serde_json::from_slice(&answer)
            .map_err(|_| self.not_understood(ChallengeError::NoToken(RedactedUrl::from(realm))))?;
        let token = token.token.or(token.access_token).unwrap_or_default();
        let mut bearer = HeaderValue::try_from(format!("Bearer {token}"))
            .map_err(|_| self.not_understood(ChallengeError::NotText(RedactedUrl::from(realm))))?;
        bearer.set_sensitive(true);
        Ok(bearer)
    }

    fn not_understood(&self, why: ChallengeError) -> RegistryError {
        RegistryError::Challenge { registry: self.registry.to_owned(), why }
    }
}

fn token_request(
    credentials: Option<&Credentials>,
    realm: &Uri,
    query: Vec<(&'static str, String)>,
) -> Result<Request<Full<Bytes>>, http::Error> {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.extend_pairs(query);
    let request = Request::builder().header(header::USER_AGENT, USER_AGENT);
    if let Some(Credentials::Identity(token)) = credentials {
        form.extend_pairs([("grant_type", "refresh_token"), ("client_id", "troupe")]);
        form.append_pair("refresh_token", token.expose_secret());
        let kind = "application/x-www-form-urlencoded";
        let request = request.method(Method::POST).uri(realm).header(header::CONTENT_TYPE, kind);
        return request.body(Full::from(form.finish()));
    }
    let sign = if realm.query().is_some() { '&' } else { '?' };
    let request = request.uri(format!("{realm}{sign}{}", form.finish()));
    match credentials {
        Some(Credentials::Password(password)) => request.header(header::AUTHORIZATION, password.basic()),
        _ => request,
    }
    .body(Full::default())
}

/// The fields of a response that hold a token.
#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

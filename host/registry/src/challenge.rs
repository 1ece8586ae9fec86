//! Parses the challenges of a registry in `WWW-Authenticate`.

use super::error::{ChallengeError, tame};
use http::{HeaderMap, header};

/// What a registry requires for authentication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    /// A name and a password.
    Basic,
    /// A token of a token server.
    Bearer {
        /// The URL of the token server.
        realm: String,
        /// The service and scope of the token, as query parameters.
        query: Vec<(&'static str, String)>,
    },
}

/// Returns the first challenge in the headers that is understood. Prefers a token to a password.
///
/// # Errors
/// Returns the header that is there instead.
pub(super) fn challenge(headers: &HeaderMap) -> Result<Challenge, ChallengeError> {
    let texts: Vec<_> =
        headers.get_all(header::WWW_AUTHENTICATE).iter().filter_map(|text| text.to_str().ok()).collect();
    let found: Vec<_> = texts.iter().flat_map(|text| http_auth::parse_challenges(text).unwrap_or_default()).collect();
    let bearer = found.iter().find_map(bearer);
    let basic = || found.iter().any(|one| one.scheme.eq_ignore_ascii_case("Basic")).then_some(Challenge::Basic);
    bearer.or_else(basic).ok_or_else(|| match texts.first() {
        Some(text) => ChallengeError::Header(tame(text)),
        None => ChallengeError::NoHeader,
    })
}

fn bearer(challenge: &http_auth::ChallengeRef<'_>) -> Option<Challenge> {
    if !challenge.scheme.eq_ignore_ascii_case("Bearer") {
        return None;
    }
    let param = |wanted: &str| {
        let found = challenge.params.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| value.to_unescaped())
    };
    let query = ["service", "scope"].iter().filter_map(|name| Some((*name, param(name)?)));
    Some(Challenge::Bearer { realm: param("realm")?, query: query.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn read(texts: &[&'static str]) -> Result<Challenge, ChallengeError> {
        let headers = texts.iter().map(|text| (header::WWW_AUTHENTICATE, HeaderValue::from_static(text)));
        challenge(&headers.collect())
    }

    #[test]
    fn a_token_is_asked_for_with_service_and_scope() {
        let text = r#"Bearer realm="https://auth.example.com/token",service="r",scope="repository:a/b:pull,push""#;
        let query = vec![("service", "r".to_owned()), ("scope", "repository:a/b:pull,push".to_owned())];
        let wanted = Challenge::Bearer { realm: "https://auth.example.com/token".to_owned(), query };
        assert_eq!(read(&[text]), Ok(wanted.clone()));
        assert_eq!(read(&[r#"Basic realm="r""#, text]), Ok(wanted));
        assert_eq!(read(&[r#"basic realm="a, b""#]), Ok(Challenge::Basic));
    }

    #[test]
    fn a_challenge_that_is_not_understood_is_reported() {
        assert_eq!(read(&[]).unwrap_err().to_string(), "it has no WWW-Authenticate");
        for text in ["Negotiate", "", "Bearer", "Bearer scope=\"x\"", "Bearer realm=\"x", ",,,=", "\"\"\""] {
            assert!(read(&[text]).unwrap_err().to_string().starts_with("WWW-Authenticate is"), "{text}");
        }
    }
}

//! The document: one file with its own style and script. It holds no data.

use axum::{
    http::header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    },
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
const SHELL: &str = include_str!("shell.html");

/// Where the shell has the style and the script.
const STYLE_HERE: &str = "/* style */";
const SCRIPT_HERE: &str = "/* script */";

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// The document, and the policy that lets its own style and script alone take effect.
static DOCUMENT: LazyLock<(String, String)> = LazyLock::new(|| {
    let document = SHELL.replace(STYLE_HERE, STYLE).replace(SCRIPT_HERE, SCRIPT);
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    let policy = format!(
        "default-src 'none'; style-src {}; script-src {}; connect-src 'self'; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        hash(STYLE),
        hash(SCRIPT)
    );
    (document, policy)
});

/// Returns the document.
pub(super) async fn document() -> Response {
    let (document, policy) = &*DOCUMENT;
    let head = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, policy),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-cache"),
        (OPENER_POLICY, "same-origin"),
        (RESOURCE_POLICY, "same-origin"),
    ];
    (head, document.as_str()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_nothing_that_its_policy_forbids() {
        let (document, policy) = &*DOCUMENT;
        assert!(document.contains(STYLE) && document.contains(SCRIPT));
        assert_eq!((document.matches("<style>").count(), document.matches("<script>").count()), (1, 1));
        // An attribute is no part of a hash, and an address of another host no part of the page.
        for forbidden in [" style=\"", " onclick=", "http://", "https://", "innerHTML", "eval("] {
            let found: Vec<_> = document.lines().filter(|line| line.contains(forbidden)).collect();
            assert!(found.iter().all(|line| line.contains("www.w3.org")), "{forbidden}: {found:?}");
        }
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    }
}

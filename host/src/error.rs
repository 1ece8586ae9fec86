//! Errors as a line of text.

use std::error::Error;

/// Returns an error with its causes in one line, each message once.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = message(error);
    let mut last = error;
    while let Some(cause) = last.source().filter(|_| refusal(last).is_none()) {
        let message = message(cause);
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        last = cause;
    }
    text
}

/// Returns at most `most` bytes of a text, of whole characters; `...` ends one that was cut.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    format!("{}...", &text[..text.floor_char_boundary(most.saturating_sub(3))])
}

fn message(error: &(dyn Error + 'static)) -> String {
    refusal(error).unwrap_or_else(|| error.to_string())
}

/// Returns the API server's words if the error is its refusal: kube adds the whole status to its message.
fn refusal(error: &(dyn Error + 'static)) -> Option<String> {
    match error.downcast_ref() {
        Some(kube::Error::Api(status)) => Some(format!("{}: {}", status.reason, status.message)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("failed to get configmap/x: {}", chain(.0))]
    struct Named(#[source] kube::Error);

    #[derive(Debug, thiserror::Error)]
    #[error("failed to read the source")]
    struct Unnamed(#[source] kube::Error);

    fn refused() -> kube::Error {
        let status = serde_json::from_value(serde_json::json!({
            "status": "Failure", "code": 503, "reason": "ServiceUnavailable", "message": "the server is busy",
        }));
        kube::Error::Api(Box::new(status.unwrap()))
    }

    #[test]
    fn a_refusal_of_the_api_server_is_reported_in_its_words_alone_and_once() {
        assert_eq!(chain(&refused()), "ServiceUnavailable: the server is busy");
        assert_eq!(chain(&Named(refused())), "failed to get configmap/x: ServiceUnavailable: the server is busy");
        assert_eq!(chain(&Unnamed(refused())), "failed to read the source: ServiceUnavailable: the server is busy");
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("\u{e4}\u{e4}\u{e4}", 6), "\u{e4}\u{e4}\u{e4}");
        assert_eq!(cut("\u{e4}\u{e4}\u{e4}\u{e4}", 6), "\u{e4}...");
    }

    #[test]
    fn other_errors_are_reported_with_their_causes() {
        let cause = std::io::Error::other("no route");
        assert_eq!(chain(&kube::Error::ReadEvents(cause)), "Error reading events stream: no route");
    }
}

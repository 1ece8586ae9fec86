//! Errors as a line of text.

/// Returns an error with its causes, each message once.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let client_error = error.to_string();
        if !text.contains(&client_error) {
            text = format!("{text}: {client_error}");
        }
        cause = error.source();
    }
    text
}

/// Returns the client's error in one line: kube adds the whole status of a refusal to its message.
pub(crate) fn client_error(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{}: {}", status.reason, status.message),
        error => chain(error),
    }
}

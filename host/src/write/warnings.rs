//! Field validation of creates, and the warnings of the API server.

use decide::shown::blank;
use http::{HeaderMap, Request, header::WARNING};

/// A warning is cut after this many characters.
const LONGEST: usize = 300;

/// What the API server does about unknown and duplicate fields in objects that the host creates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum FieldValidation {
    /// Leaves them out and warns; the job reports the warning.
    #[default]
    Warn,
    /// Refuses the object; the job waits and reports that.
    Strict,
}

impl FieldValidation {
    /// Returns the create request with this field validation.
    pub(crate) fn of(self, mut request: Request<Vec<u8>>) -> Request<Vec<u8>> {
        let mode = match self {
            Self::Warn => "Warn",
            Self::Strict => "Strict",
        };
        let between = if request.uri().query().is_none_or(str::is_empty) { "?" } else { "&" };
        let uri = format!("{}{between}fieldValidation={mode}", request.uri().to_string().trim_end_matches('?'));
        *request.uri_mut() = uri.parse().expect("a URI with one more parameter is one");
        request
    }
}

/// Returns the texts of all warnings, each on one line.
pub(crate) fn of_headers(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(WARNING).into_iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    values.flat_map(|value| texts(&value)).collect()
}

/// Returns the texts of a header: `299 - "text", 299 - "another"`.
fn texts(header: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = header;
    while let Some((_, after)) = rest.split_once('"') {
        let (text, behind) = quoted(after);
        found.push(text);
        rest = behind.split_once(',').map_or("", |(_, next)| next);
    }
    found.retain(|text| !text.is_empty());
    found
}

/// Returns the text up to the closing quote, and the rest of the header after it.
fn quoted(inside: &str) -> (String, &str) {
    let mut text = String::new();
    let mut is_escaped = false;
    for (at, c) in inside.char_indices() {
        match c {
            '"' if !is_escaped => return (text, &inside[at + 1..]),
            '\\' if !is_escaped => {
                is_escaped = true;
                continue;
            }
            c if text.chars().count() < LONGEST => text.push(blank(c)),
            _ => {}
        }
        is_escaped = false;
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_of_a_header_are_reported_without_its_marks() {
        let one = r#"299 - "unknown field \"spec.containers[0].imagee\"""#;
        assert_eq!(texts(one), ["unknown field \"spec.containers[0].imagee\""]);
        assert_eq!(texts(r#"299 - "a, b", 299 kube "c\\""#), ["a, b", "c\\"]);
        let nothing: [&str; 0] = [];
        for broken in ["", "299 -", "299 - \"\"", "\""] {
            assert_eq!(texts(broken), nothing, "{broken}");
        }
        assert_eq!(texts("299 - \"a\u{1b}b"), ["a b"]);
        assert_eq!(texts(&format!("299 - \"{}\"", "x".repeat(10_000)))[0].len(), LONGEST);
    }

    #[test]
    fn a_create_says_how_its_fields_are_checked() {
        let of = |uri: &str, mode: FieldValidation| {
            let request = Request::post(uri).body(vec![]).unwrap();
            mode.of(request).uri().to_string()
        };
        assert_eq!(
            of("/a?&fieldManager=troupe", FieldValidation::Warn),
            "/a?&fieldManager=troupe&fieldValidation=Warn"
        );
        for bare in ["/a", "/a?"] {
            assert_eq!(of(bare, FieldValidation::Strict), "/a?fieldValidation=Strict");
        }
    }
}

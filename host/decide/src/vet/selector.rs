//! Label selectors, as the API server reads them from the text of a request (k8s.io/apimachinery/pkg/labels).

use super::kinds::is_subdomain;

/// Returns whether the API server takes it as a label selector: requirements with commas between, each `key`, `!key`,
/// `key=value`, `key==value`, `key!=value`, `key in (a,b)` or `key notin (a,b)`. Numbers (`key>1`) are in none of a plugin.
pub(super) fn is_selector(text: &str) -> bool {
    requirements(text).is_some_and(|all| all.into_iter().all(is_requirement))
}

/// Splits at the commas outside parentheses; none where those do not match.
fn requirements(text: &str) -> Option<Vec<&str>> {
    let (mut inside, mut begin, mut found) = (false, 0, vec![]);
    for (at, character) in text.char_indices() {
        match (character, inside) {
            ('(', false) => inside = true,
            (')', true) => inside = false,
            ('(' | ')', _) => return None,
            (',', false) => {
                found.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    found.push(&text[begin..]);
    (!inside).then_some(found)
}

fn is_requirement(text: &str) -> bool {
    let text = text.trim();
    if let Some(key) = text.strip_prefix('!') {
        return is_key(key.trim());
    }
    if let Some(at) = text.find('(') {
        let Some(values) = text[at..].strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) else { return false };
        let mut words = text[..at].split_whitespace();
        let (key, operator) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let is_set = matches!(operator, "in" | "notin") && words.next().is_none();
        return is_set && is_key(key) && values.split(',').all(|value| is_value(value.trim()));
    }
    let Some(at) = text.find(['=', '!']) else { return is_key(text) };
    let (key, rest) = text.split_at(at);
    let value = ["==", "!=", "="].iter().find_map(|operator| rest.strip_prefix(operator));
    is_key(key.trim()) && value.is_some_and(|value| is_value(value.trim()))
}

/// Returns whether labels may have this key: a name, with a subdomain and a slash before it or not.
fn is_key(key: &str) -> bool {
    let (domain, name) = key.split_once('/').map_or((None, key), |(domain, name)| (Some(domain), name));
    domain.is_none_or(is_subdomain) && !name.is_empty() && is_value(name)
}

/// Returns whether labels may have this value: letters, digits, '-', '_' and '.', with a letter or digit at both ends, or
/// nothing.
fn is_value(value: &str) -> bool {
    let ends = |byte: &u8| byte.is_ascii_alphanumeric();
    let bytes = value.as_bytes();
    bytes.len() <= 63
        && bytes.iter().all(|byte| ends(byte) || b"-_.".contains(byte))
        && bytes.first().is_none_or(ends)
        && bytes.last().is_none_or(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_api_server_takes_for_a_selector_is_one() {
        for right in [
            "app",
            "!app",
            "app=x",
            "app==x,tier!=db",
            " example.com/job-name = x ",
            "app in (a, b),tier notin (db),!old",
            "app=",
        ] {
            assert!(is_selector(right), "{right}");
        }
        for wrong in [
            "",
            ",",
            "app,",
            "a b",
            "=x",
            "app=x=y",
            "app===x",
            "app in",
            "app in a",
            "app in (a",
            "app in (a))",
            "app of (a)",
            "app in in (a)",
            "app=(x)",
            "app=-x",
            "-app",
            "a/b/c=x",
            "app=a b",
            "app=é",
            "&watch=true",
        ] {
            assert!(!is_selector(wrong), "{wrong}");
        }
    }
}

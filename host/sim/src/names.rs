//! Validation of names and labels, with the error messages of kube-apiserver.

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

/// The unit is part of the message: the real server counts characters of names and bytes of labels.
fn too_long(most: usize, unit: &str) -> String {
    format!("must be no more than {most} {unit}")
}

fn alphanumeric_ends(value: &str, inner: impl Fn(u8) -> bool, end: impl Fn(u8) -> bool) -> bool {
    let bytes = value.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    end(*first) && end(*last) && bytes.iter().all(|byte| inner(*byte))
}

fn lower(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_label(value: &str) -> bool {
    alphanumeric_ends(value, |byte| lower(byte) || byte == b'-', lower)
}

fn is_subdomain(value: &str) -> bool {
    value.split('.').all(is_label)
}

pub(crate) fn subdomain(value: &str) -> Vec<String> {
    let mut whys = Vec::new();
    if value.len() > 253 {
        whys.push(too_long(253, "characters"));
    }
    if !is_subdomain(value) {
        whys.push(format!(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '{LABEL}(\\.{LABEL})*')"
        ));
    }
    whys
}

pub(crate) fn label_name(value: &str) -> Vec<String> {
    let mut whys = Vec::new();
    if value.len() > 63 {
        whys.push(too_long(63, "characters"));
    }
    if !is_label(value) {
        whys.push(if is_subdomain(value) {
            "must not contain dots".to_owned()
        } else {
            format!(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
                 and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                 '{LABEL}')"
            )
        });
    }
    whys
}

fn is_key(value: &str) -> bool {
    alphanumeric_ends(
        value,
        |byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte),
        |byte| byte.is_ascii_alphanumeric(),
    )
}

pub(crate) fn label_value(value: &str) -> Vec<String> {
    let mut whys = Vec::new();
    if value.len() > 63 {
        whys.push(too_long(63, "bytes"));
    }
    if !value.is_empty() && !is_key(value) {
        whys.push(format!(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
             for validation is '({KEY})?')"
        ));
    }
    whys
}

pub(crate) fn qualified(value: &str) -> Vec<String> {
    let shape = format!(
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
         character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{KEY}')"
    );
    let mut whys = Vec::new();
    let parts: Vec<&str> = value.split('/').collect();
    let name = match parts[..] {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                whys.push("prefix part must be non-empty".to_owned());
            } else {
                whys.extend(subdomain(prefix).iter().map(|why| format!("prefix part {why}")));
            }
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {shape} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        whys.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        whys.push(format!("name part {}", too_long(63, "bytes")));
    }
    if !is_key(name) {
        whys.push(format!("name part {shape}"));
    }
    whys
}

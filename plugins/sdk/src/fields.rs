//! What the fields of a job's spec may be. The CRD and the plugin's own check of a job are made from the same values, so that
//! `kubectl apply` says what else only a condition of the job would.

use crate::types::{FieldError, Refusal};
use serde_json::Value;

/// A number of the spec, and what it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    /// The field, as users read it: `spec.runPolicy.backoffLimit`.
    pub path: &'static str,
    /// The least value.
    pub least: i64,
    /// The greatest value.
    pub most: i64,
}

/// A text of the spec that is one of a few words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// The field, as users read it: `spec.runPolicy.cleanPodPolicy`.
    pub path: &'static str,
    /// What it may be.
    pub words: &'static [&'static str],
    /// Whether an empty text counts as absent.
    pub may_be_empty: bool,
}

/// A name of an object of Kubernetes in the spec; an empty one counts as absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name {
    /// The field, as users read it: `spec.runPolicy.schedulingPolicy.queue`.
    pub path: &'static str,
}

impl Number {
    /// Returns the 32-bit number that is not below `least`.
    #[must_use]
    pub const fn at_least(path: &'static str, least: i64) -> Self {
        Self { path, least, most: i32::MAX as i64 }
    }

    /// Returns what would be right, if the value is wrong.
    #[must_use]
    pub fn problem(&self, value: i64) -> Option<String> {
        if value < self.least {
            return Some(format!("must be greater than or equal to {}", self.least));
        }
        (value > self.most).then(|| format!("must be at most {}, not {value}", self.most))
    }
}

impl Word {
    /// Returns whether it is one of the words, or an empty text that counts as absent.
    #[must_use]
    pub fn allows(&self, value: &str) -> bool {
        self.words.contains(&value) || value.is_empty() && self.may_be_empty
    }
}

impl Name {
    /// Returns whether it may be a name: an RFC 1123 subdomain, as the most names of objects are, or nothing.
    #[must_use]
    pub fn allows(&self, value: &str) -> bool {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let ends = |byte: Option<&u8>| byte.is_none_or(|byte| inner(*byte));
        let bytes = value.as_bytes();
        bytes.len() <= 253
            && bytes.iter().all(|byte| inner(*byte) || matches!(byte, b'-' | b'.'))
            && ends(bytes.first())
            && ends(bytes.last())
    }
}

/// Returns whether it is an amount of a resource that is not negative: a number, or a text such as 500m, 2Gi and 1e3.
#[must_use]
pub fn is_amount(value: &Value) -> bool {
    // Not parsed as a number: what reads one makes a component larger by a tenth.
    let Value::String(text) = value else { return value.as_f64().is_some_and(|number| number >= 0.0) };
    let digits = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let text = text.as_bytes();
    let text = text.strip_prefix(b"+").unwrap_or(text);
    let whole = digits(text);
    let (fraction, suffix) = match &text[whole..] {
        [b'.', rest @ ..] => (digits(rest), &rest[digits(rest)..]),
        rest => (0, rest),
    };
    let is_suffix = match suffix {
        [] | [b'n' | b'u' | b'm' | b'k' | b'K' | b'M' | b'G' | b'T' | b'P' | b'E'] => suffix != b"K",
        [b'K' | b'M' | b'G' | b'T' | b'P' | b'E', b'i'] => true,
        [b'e' | b'E', b'+' | b'-', power @ ..] | [b'e' | b'E', power @ ..] => {
            !power.is_empty() && digits(power) == power.len()
        }
        _ => false,
    };
    whole + fraction > 0 && is_suffix
}

/// Returns whether it may be the name of a resource: letters, digits, '-', '_', '.' and '/', with a letter or digit at both
/// ends, as in `example.com/gpu`.
fn is_resource(name: &str) -> bool {
    let inner = |byte: &u8| byte.is_ascii_alphanumeric();
    let bytes = name.as_bytes();
    bytes.iter().all(|byte| inner(byte) || b"-_./".contains(byte))
        && bytes.first().is_some_and(inner)
        && bytes.last().is_some_and(inner)
}

/// What is wrong with a job, each mistake with its field.
#[derive(Debug, Default)]
pub struct Mistakes(Vec<FieldError>);

impl Mistakes {
    // Inlined where each field is checked, these would make a component larger by a fiftieth.

    /// Adds a mistake: the field, and what would be right.
    pub fn add(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.0.push(FieldError { path: path.into(), message: message.into() });
    }

    /// Adds a number that is too low or too high.
    #[inline(never)]
    pub fn number(&mut self, number: &Number, value: Option<i64>) {
        self.number_at(&[number.path], number, value);
    }

    /// Does the same with a number that several fields have, such as one of each entry of a map. `path` is in
    /// parts, which are put together where something is wrong.
    #[inline(never)]
    pub fn number_at(&mut self, path: &[&str], number: &Number, value: Option<i64>) {
        if let Some(problem) = value.and_then(|value| number.problem(value)) {
            self.add(path.concat(), problem);
        }
    }

    /// Adds a text that is none of the words.
    #[inline(never)]
    pub fn word(&mut self, word: &Word, value: Option<&str>) {
        self.word_at(&[word.path], word, value);
    }

    /// Does the same with a text that several fields have.
    #[inline(never)]
    pub fn word_at(&mut self, path: &[&str], word: &Word, value: Option<&str>) {
        if let Some(value) = value.filter(|value| !word.allows(value)) {
            self.add(path.concat(), format!("{value:?} is not supported; supported values: {}", word.words.join(", ")));
        }
    }

    /// Adds a text that can be no object's name.
    #[inline(never)]
    pub fn name(&mut self, name: &Name, value: Option<&str>) {
        if let Some(value) = value.filter(|value| !name.allows(value)) {
            let message = format!(
                "{value:?} is no name: it must have a-z, 0-9, '-' and '.' only, and a letter or digit at both ends"
            );
            self.add(name.path, message);
        }
    }

    /// Adds the entries of a map from resource to amount whose keys are no names of resources, or that are no amounts.
    #[inline(never)]
    pub fn amounts(&mut self, path: &str, amounts: Option<&Value>) {
        for (resource, amount) in amounts.and_then(Value::as_object).into_iter().flatten() {
            if !is_resource(resource) {
                self.add(path, format!("{resource:?} is no resource such as cpu or example.com/gpu"));
            }
            if !is_amount(amount) {
                self.add(format!("{path}[{resource}]"), format!("{amount} is no amount such as 2, 500m or 2Gi"));
            }
        }
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the refusal of the job.
    #[must_use]
    pub fn refusal(self) -> Refusal {
        Refusal::Invalid(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(add: impl FnOnce(&mut Mistakes)) -> Vec<String> {
        let mut mistakes = Mistakes::default();
        add(&mut mistakes);
        mistakes.0.into_iter().map(|it| format!("{}: {}", it.path, it.message)).collect()
    }

    #[test]
    fn a_number_is_within_its_limits_or_the_nearer_one_is_named() {
        let number = Number { path: "spec.n", least: 1, most: 9 };
        for right in [None, Some(1), Some(9)] {
            assert!(told(|mistakes| mistakes.number(&number, right)).is_empty());
        }
        assert_eq!(told(|mistakes| mistakes.number(&number, Some(0))), ["spec.n: must be greater than or equal to 1"]);
        assert_eq!(told(|mistakes| mistakes.number(&number, Some(10))), ["spec.n: must be at most 9, not 10"]);
    }

    #[test]
    fn a_name_is_one_that_an_object_may_have_or_nothing() {
        let name = Name { path: "spec.queue" };
        for right in ["", "a", "team-a.blue", "0"] {
            assert!(told(|mistakes| mistakes.name(&name, Some(right))).is_empty(), "{right}");
        }
        for wrong in [" ", "no such word", "A", "-a", "a.", &"a".repeat(254)] {
            assert_eq!(told(|mistakes| mistakes.name(&name, Some(wrong))).len(), 1, "{wrong}");
        }
    }

    #[test]
    fn an_amount_is_a_quantity_that_is_not_negative() {
        let of =
            |amount: Value| told(|mistakes| mistakes.amounts("spec.min", Some(&serde_json::json!({ "cpu": amount }))));
        for right in ["1", "0.5", ".5", "500m", "+2Gi", "1e3", "1E-2", "3E", "4Ei"] {
            assert!(of(right.into()).is_empty(), "{right}");
        }
        assert!(of(2.into()).is_empty() && of(0.5.into()).is_empty());
        for wrong in ["", " ", "many", "-1", "1x", "1..2", ".", "e3", "1e", "1e+", "1K", "Gi"] {
            assert_eq!(of(wrong.into()).len(), 1, "{wrong}");
        }
        assert_eq!(of((-1).into()), ["spec.min[cpu]: -1 is no amount such as 2, 500m or 2Gi"]);
        let named = |name: &str| told(|mistakes| mistakes.amounts("spec.min", Some(&serde_json::json!({ (name): 1 }))));
        for right in ["cpu", "hugepages-2Mi", "example.com/gpu", "requests.example.com/a_b"] {
            assert!(named(right).is_empty(), "{right}");
        }
        assert_eq!(named("no such"), [r#"spec.min: "no such" is no resource such as cpu or example.com/gpu"#]);
        for wrong in ["", "-cpu", "cpu/"] {
            assert_eq!(named(wrong).len(), 1, "{wrong}");
        }
    }

    #[test]
    fn a_word_is_a_known_one_or_all_are_named() {
        let mut word = Word { path: "spec.w", words: &["A", "B"], may_be_empty: true };
        assert!(told(|mistakes| mistakes.word(&word, Some("B"))).is_empty());
        assert!(told(|mistakes| mistakes.word(&word, Some(""))).is_empty());
        word.may_be_empty = false;
        assert_eq!(
            told(|mistakes| mistakes.word_at(&["spec.of[X]", ".w"], &word, Some(""))),
            ["spec.of[X].w: \"\" is not supported; supported values: A, B"]
        );
    }
}

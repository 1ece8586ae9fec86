//! Resource quantities: parsing, sums, and the canonical form of Kubernetes. Our own: exact and
//! 100 lines, where the crates of quantities are built on decimals of limited precision.

use serde_json::Value;
use std::{
    collections::BTreeMap,
    fmt,
    ops::{Add, Mul},
};

/// The number of nano-units in 1. Nano is the smallest unit of a Kubernetes quantity.
const NANO: i128 = 1_000_000_000;

/// An amount of a resource. A sum is written in the form of its first summand that is not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quantity {
    nanos: i128,
    form: Form,
}

/// The form in which an amount is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `1500m`, `2`, `3k`.
    Decimal,
    /// `512Mi`.
    Binary,
}

impl Quantity {
    /// The quantity 0.
    const ZERO: Self = Self { nanos: 0, form: Form::Decimal };

    /// Parses a quantity of a manifest, which is a string or a number. Returns None if the value is not a quantity.
    fn read(json: &Value) -> Option<Self> {
        match json {
            Value::String(text) => Self::parse(text),
            Value::Number(number) => Self::parse(&number.to_string()),
            _ => None,
        }
    }

    /// Parses a quantity as Kubernetes does. Returns None if the text is not a quantity or has more than 18 digits.
    fn parse(text: &str) -> Option<Self> {
        let end = text.find(|c: char| !c.is_ascii_digit() && !"+-.".contains(c)).unwrap_or(text.len());
        let (number, suffix) = text.split_at(end);
        let (scale, form) = scale(suffix)?;
        let (negative, number) = match number.as_bytes().first()? {
            b'-' => (true, &number[1..]),
            b'+' => (false, &number[1..]),
            _ => (false, number),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty() || digits.len() > 18 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        // Kubernetes rounds up to the next nano-unit.
        let parts = digits.parse::<i128>().ok()?.checked_mul(scale)?;
        let denominator = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
        let nanos = parts.div_euclid(denominator) + i128::from(parts.rem_euclid(denominator) > 0);
        Some(Self { nanos: if negative { -nanos } else { nanos }, form })
    }
}

/// Returns the nano-units of 1 with this suffix, and the form of the suffix.
fn scale(suffix: &str) -> Option<(i128, Form)> {
    const DECIMAL: [(&str, i128); 10] = [
        ("n", 1),
        ("u", 1_000),
        ("m", 1_000_000),
        ("", NANO),
        ("k", NANO * 1_000),
        ("M", NANO * 1_000_000),
        ("G", NANO * 1_000_000_000),
        ("T", NANO * 1_000_000_000_000),
        ("P", NANO * 1_000_000_000_000_000),
        ("E", NANO * 1_000_000_000_000_000_000),
    ];
    if let Some((_, scale)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((*scale, Form::Decimal));
    }
    if let Some(power) = BINARY.iter().position(|name| *name == suffix) {
        return Some((NANO << (10 * (power + 1)), Form::Binary));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    let power = u32::try_from(exponent.checked_add(9)?).ok().filter(|power| *power <= 27)?;
    Some((10_i128.pow(power), Form::Decimal))
}

const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

impl Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let form = if self.nanos == 0 { other.form } else { self.form };
        Self { nanos: self.nanos.saturating_add(other.nanos), form }
    }
}

impl Mul<u32> for Quantity {
    type Output = Self;

    fn mul(self, times: u32) -> Self {
        Self { nanos: self.nanos.saturating_mul(times.into()), ..self }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.nanos % NANO == 0;
        if self.form == Form::Binary && whole && (self.nanos / NANO).abs() >= 1024 {
            let (mut amount, mut suffix) = (self.nanos / NANO, "");
            for name in BINARY {
                if amount % 1024 != 0 {
                    break;
                }
                (amount, suffix) = (amount / 1024, name);
            }
            return write!(f, "{amount}{suffix}");
        }
        let (mut amount, mut suffix) = (self.nanos, "n");
        for name in ["u", "m", "", "k", "M", "G", "T", "P", "E"] {
            if amount % 1000 != 0 {
                break;
            }
            (amount, suffix) = (amount / 1000, name);
        }
        if self.nanos == 0 { f.write_str("0") } else { write!(f, "{amount}{suffix}") }
    }
}

/// Amounts by the name of their resource.
pub(super) type Resources = BTreeMap<String, Quantity>;

/// Returns the sum of the resource requests of the containers of a pod template; the limit of a resource counts where the
/// container requests nothing of it, as the API server has it. Does not include init containers or values that are no
/// quantities.
pub(super) fn requests(template: &Value) -> Resources {
    let containers = template.pointer("/spec/containers").and_then(Value::as_array);
    let mut sum = Resources::new();
    for container in containers.into_iter().flatten() {
        let section = |name: &str| container["resources"][name].as_object().into_iter().flatten();
        let is_requested = |name: &String| container["resources"]["requests"].get(name).is_some();
        let limits = section("limits").filter(|(name, _)| !is_requested(name));
        for (name, amount) in section("requests").chain(limits) {
            if let Some(amount) = Quantity::read(amount) {
                let before = sum.get(name).copied().unwrap_or(Quantity::ZERO);
                sum.insert(name.clone(), before + amount);
            }
        }
    }
    sum
}

/// Adds `amounts`, multiplied by `times`, to `sum`.
pub(super) fn add(sum: &mut Resources, amounts: &Resources, times: u32) {
    for (name, amount) in amounts {
        let before = sum.get(name).copied().unwrap_or(Quantity::ZERO);
        sum.insert(name.clone(), before + *amount * times);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sum(texts: &[&str]) -> String {
        texts.iter().map(|text| Quantity::parse(text).unwrap()).fold(Quantity::ZERO, Add::add).to_string()
    }

    // The canonical form of apimachinery/pkg/api/resource.
    #[test]
    fn a_sum_is_written_as_kubernetes_writes_it() {
        for (texts, expected) in [
            (&["200m", "200m", "300m", "300m"][..], "1"),
            (&["1.5"], "1500m"),
            (&["2Gi", "20Gi", "20Gi"], "42Gi"),
            (&["0.5Gi"], "512Mi"),
            (&["1Gi", "1"], "1073741825"),
            (&["1000Ki"], "1000Ki"),
            (&["512"], "512"),
            (&["1e3"], "1k"),
            (&["100n"], "100n"),
            (&["0", "4Gi"], "4Gi"),
            (&["0"], "0"),
            (&["-1"], "-1"),
            (&["5000M"], "5G"),
        ] {
            assert_eq!(sum(texts), expected, "{texts:?}");
        }
    }

    #[test]
    fn text_that_is_not_a_quantity_is_none() {
        for wrong in ["", "x", "1.2.3", "1gi", "--1", "1e99", "1e2147483647", "1e-2147483648", "9999999999999999999"] {
            assert_eq!(Quantity::parse(wrong), None, "{wrong}");
        }
        assert_eq!(Quantity::read(&json!(2)), Quantity::parse("2"));
        assert_eq!(Quantity::read(&json!(null)), None);
    }

    #[test]
    fn limits_count_as_requests_that_are_missing() {
        let container = json!({ "resources": { "requests": { "cpu": "1" }, "limits": { "cpu": 2, "gpu": 1 } } });
        let only_limits = json!({ "resources": { "limits": { "memory": "1Gi" } } });
        let template = json!({ "spec": { "containers": [container, only_limits, {}] } });
        let names: Vec<_> = requests(&template).into_iter().map(|(name, sum)| format!("{name}={sum}")).collect();
        assert_eq!(names, ["cpu=1", "gpu=1", "memory=1Gi"]);
    }
}

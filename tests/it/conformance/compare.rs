//! Two transcripts compared.

use serde_json::{Value, json};

use super::run::Answer;
use super::step::Sequence;

/// Every step in which the servers differ, with the real and the simulated answer as text; what does not count is
/// as in the simulator's.
pub(super) fn differences(sequence: &Sequence, simulated: &[Answer], real: &[Answer]) -> Vec<(usize, String, String)> {
    let sides = sequence.steps.iter().zip(simulated).zip(real).enumerate();
    sides
        .filter_map(|(index, ((step, simulated), real))| {
            let (simulated, mut real) = (shown(simulated), shown(real));
            if step.kind.loose {
                limit(&mut real["body"], &simulated["body"]);
            }
            if simulated == real && real["code"] != 0 {
                return None;
            }
            let text = |value: &Value| {
                format!("{} {}/{} {} {}\n{value:#}\n", step.method, step.kind.plural, step.name, step.sub, step.query)
            };
            Some((index, text(&real), text(&simulated)))
        })
        .collect()
}

fn shown(answer: &Answer) -> Value {
    json!({"code": answer.code, "body": answer.body})
}

/// Leaves of the real object, list or events what the simulated has, except that metadata and refusals stay whole.
fn limit(real: &mut Value, simulated: &Value) {
    if let (Value::Array(real), Value::Array(simulated)) = (&mut *real, simulated) {
        for (real, simulated) in real.iter_mut().zip(simulated) {
            limit(&mut real["object"], &simulated["object"]);
        }
    } else if let (Some(Value::Array(real)), Some(Value::Array(simulated))) =
        (real.get_mut("items"), simulated.get("items"))
    {
        for (real, simulated) in real.iter_mut().zip(simulated) {
            limit(real, simulated);
        }
    } else if real["kind"] != "Status" {
        let Value::Object(real) = real else { return };
        for (key, value) in real {
            if key != "metadata" {
                common(value, &simulated[key]);
            }
        }
    }
}

fn common(real: &mut Value, simulated: &Value) {
    match (real, simulated) {
        (Value::Object(real), Value::Object(simulated)) => {
            real.retain(|key, _| simulated.contains_key(key));
            for (key, value) in real {
                common(value, &simulated[key]);
            }
        }
        (Value::Array(real), Value::Array(simulated)) => {
            real.iter_mut().zip(simulated).for_each(|(real, simulated)| common(real, simulated));
        }
        _ => {}
    }
}

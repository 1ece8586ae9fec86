//! Compares two answers to the same call. A plugin has no clock, randomness or memory of its own, so that the host can
//! cache, replay and compare its answers. If two answers differ, the result is a fault, which is never cached.

use super::{
    call::{Callee, Caller, NoPlan, internal},
    convert::JobInput,
    plan_cache::Key,
};
use decide::plan::{Descriptor, Fault, Plan};
use serde::Serialize;
use serde_json::Value;

/// In service, one plan in 64 is requested twice.
const SAMPLED: u8 = 64;

impl Caller {
    /// Calls `describe` twice, the second time on `anew` and on another thread, and returns the description.
    ///
    /// # Errors
    /// Returns a fault if a call fails or the answers differ.
    pub(super) fn describe_twice(&self, callee: Callee<'_>, anew: Callee<'_>) -> Result<Descriptor, Fault> {
        let first = self.describe(callee)?;
        let second = on_another_thread(|| self.describe(anew))?;
        check_same(callee.plugin, "describe", &first, &second).map(|()| first)
    }

    /// Calls `plan` twice, the second time on the component's twin and on another thread, and returns the plan.
    ///
    /// # Errors
    /// Returns an error if a call fails or the answers differ.
    fn plan_twice(&self, callee: Callee<'_>, job: (&JobInput, &Value), key: Key) -> Result<Plan, NoPlan> {
        let ask = |callee| match self.plan(callee, job, key) {
            Err(NoPlan::Faulted(fault)) => Err(fault),
            Err(NoPlan::Rejected(rejection)) => Ok(Err(rejection)),
            Ok(plan) => Ok(Ok(plan)),
        };
        let twin = callee.twin.get(self.engine(), callee.exports);
        let twin = twin.map_err(|error| internal(callee.plugin, "plan", &error.to_string()))?;
        let first = ask(callee)?;
        on_another_thread(|| {
            let second = ask(Callee { exports: twin, ..callee })?;
            check_same(callee.plugin, "plan", &first, &second)
        })?;
        Ok(first?)
    }

    /// Calls `plan` for a job: twice for a sample of the inputs, else once.
    ///
    /// # Errors
    /// Returns an error if a call fails or the answers differ.
    pub(super) fn plan_sampled(&self, callee: Callee<'_>, job: (&JobInput, &Value), key: Key) -> Result<Plan, NoPlan> {
        if is_sampled(&key) { self.plan_twice(callee, job, key) } else { self.plan(callee, job, key) }
    }
}

/// Runs the work on another thread and returns its result.
pub(super) fn on_another_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let done = std::thread::scope(|scope| scope.spawn(work).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns whether an input is sampled. The hash of the input decides, not a counter, so that a repeated run makes the
/// same calls.
fn is_sampled(key: &Key) -> bool {
    key[0].is_multiple_of(SAMPLED)
}

/// # Errors
/// Returns a fault that says where the answers differ, unless their JSON is identical.
pub(super) fn check_same<T: Serialize>(plugin: &str, function: &str, first: &T, second: &T) -> Result<(), Fault> {
    difference(first, second).map_or(Ok(()), |message| {
        Err(Fault::NonDeterministic { plugin: plugin.to_owned(), function: function.to_owned(), message })
    })
}

/// Returns where two answers differ, or None if their JSON is identical.
fn difference<T: Serialize>(first: &T, second: &T) -> Option<String> {
    let json = |answer| serde_json::to_value(answer).unwrap_or_default();
    let (first, second) = (json(first), json(second));
    if same(&first, &second) {
        return None;
    }
    Some(format!("its answers differ at {:?}", place(&first, &second)))
}

/// Returns whether the JSON texts are identical. 0.0 and -0.0 are equal values with different texts.
fn same(first: &Value, second: &Value) -> bool {
    let (first, second) = (first.to_string(), second.to_string());
    first == second
}

/// Returns the JSON pointer of the first difference.
fn place(first: &Value, second: &Value) -> String {
    let below = |at: String, first: &Value, second: &Value| format!("/{at}{}", place(first, second));
    let differ = |first: &Value, second: &Value| !same(first, second);
    match (first, second) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            let mut fields = a.iter().zip(b.values()).filter(|((_, one), other)| differ(one, other));
            fields.next().map_or_else(String::new, |((name, one), other)| below(name.clone(), one, other))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let mut items = a.iter().zip(b).enumerate().filter(|(_, (one, other))| differ(one, other));
            items.next().map_or_else(String::new, |(at, (one, other))| below(at.to_string(), one, other))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_message_names_the_first_difference() {
        let answer = |image: &str, zero: f64| json!({ "roles": [{}, { "image": image, "zero": zero }] });
        assert_eq!(difference(&answer("a", 0.0), &answer("a", 0.0)), None);
        let message = difference(&answer("a", 0.0), &answer("b", 0.0));
        assert_eq!(message.as_deref(), Some("its answers differ at \"/roles/1/image\""));
        let message = difference(&answer("a", 0.0), &answer("a", -0.0));
        assert_eq!(message.as_deref(), Some("its answers differ at \"/roles/1/zero\""));
        assert_eq!(difference(&json!([1]), &json!([1, 2])).as_deref(), Some("its answers differ at \"\""));
    }

    #[test]
    fn one_input_in_sixty_four_is_sampled() {
        let sampled = (0..=u8::MAX).filter(|first| is_sampled(&[*first; 32])).count();
        assert_eq!(sampled, 4);
    }
}

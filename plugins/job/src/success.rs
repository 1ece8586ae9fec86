//! `successPolicy`: which successes are enough.

use crate::indexes::Indexes;
use crate::valid::{Mode, Valid};

/// Returns the place of the first rule that these successes meet.
pub(crate) fn met(valid: &Valid<'_>, succeeded: &Indexes) -> Option<usize> {
    let Mode::Indexed { completions } = valid.mode else { return None };
    // As in a Job, nothing is enough before the first success.
    if succeeded.count() == 0 {
        return None;
    }
    valid.success_rules().position(|rule| {
        let enough = rule.succeeded_count.and_then(|count| u32::try_from(count).ok());
        match rule.succeeded_indexes.as_deref().map(|text| Indexes::parse(text, completions)) {
            Some(Ok(wanted)) => {
                let have = succeeded.count_in(&wanted);
                have == wanted.count() || enough.is_some_and(|enough| have >= enough)
            }
            // Validation refuses it.
            Some(Err(_)) => false,
            None => enough.is_some_and(|enough| succeeded.count() >= enough),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{indexed, job};
    use crate::valid::validate;
    use serde_json::{Value, json};

    // J11: the first rule that is met counts, by all of its indexes or by enough of them
    #[test]
    fn a_rule_is_met_by_all_of_its_indexes_or_by_enough() {
        let met = |rules: Value, succeeded: &[(u32, u32)]| {
            let job = job(&indexed(10, &json!({ "successPolicy": { "rules": rules } })));
            met(&validate(&job).unwrap(), &Indexes::of(succeeded.to_vec()))
        };
        let by_index = json!([{ "succeededIndexes": "1,3" }]);
        assert_eq!((met(by_index.clone(), &[(0, 2)]), met(by_index, &[(1, 3)])), (None, Some(0)));
        let by_both = json!([{ "succeededIndexes": "1,3,5", "succeededCount": 2 }]);
        assert_eq!((met(by_both.clone(), &[(1, 2)]), met(by_both, &[(1, 3)])), (None, Some(0)));
        let several = json!([{ "succeededIndexes": "9" }, { "succeededCount": 2 }]);
        assert_eq!((met(several.clone(), &[(0, 0)]), met(several, &[(0, 1)])), (None, Some(1)));
    }
}

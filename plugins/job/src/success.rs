//! `successPolicy`: which successes are enough.

use crate::plan::ROLE;
use crate::spec::SuccessRule;
use crate::valid::{Mode, Valid};
use troupe_plugin::Indexes;
use troupe_plugin::types::Criterion;

/// Returns a list of criteria for each rule: the first that is met counts. As in a Job, nothing is enough before the first
/// success.
pub(crate) fn criteria(valid: &Valid<'_>) -> Vec<Vec<Criterion>> {
    let Mode::Indexed { .. } = valid.mode else { return vec![] };
    valid.success_rules().map(|rule| vec![criterion(rule)]).collect()
}

fn criterion(rule: &SuccessRule) -> Criterion {
    let enough = rule.succeeded_count.and_then(|count| u32::try_from(count).ok());
    // Validation refuses a text that is no set.
    let indexes = rule.succeeded_indexes.as_deref().and_then(|text| Indexes::parse(text).ok());
    Criterion { role: ROLE.into(), indices: indexes.map_or_else(Vec::new, Indexes::into_ranges), at_least: enough }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{indexed, job};
    use crate::valid::validate;
    use serde_json::{Value, json};

    // J11: by all of its indexes or by enough of them
    #[test]
    fn a_rule_names_its_indexes_and_how_many_are_enough() {
        let criteria = |rules: Value| {
            let job = job(&indexed(10, &json!({ "successPolicy": { "rules": rules } })));
            let lists = criteria(&validate(&job).unwrap());
            lists.into_iter().map(|all| (all[0].indices.clone(), all[0].at_least)).collect::<Vec<_>>()
        };
        let rules = json!([
            { "succeededIndexes": "1,3" },
            { "succeededIndexes": "1,3-5", "succeededCount": 2 },
            { "succeededCount": 2 },
        ]);
        assert_eq!(criteria(rules), [(vec![(1, 1), (3, 3)], None), (vec![(1, 1), (3, 5)], Some(2)), (vec![], Some(2))]);
    }
}

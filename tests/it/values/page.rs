//! The page that says what happens to values that mean nothing.

use super::{
    Case, Outcome,
    harmless::{self, HARMLESS},
    settings, templates,
};
use crate::book;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

/// Compares the page with the outcomes, or writes it. `counts` is the number of fields of each kind.
pub(crate) fn is_generated(
    cases: &[Case],
    counts: &[(String, usize)],
    outcomes: &[Outcome],
    settings: &[settings::Tried],
    templates: &templates::Counts,
) {
    let unused: Vec<_> = (0..HARMLESS.len())
        .filter(|row| !cases.iter().zip(outcomes).any(|it| is_harmless(it) && it.0.why_harmless() == Some(*row)))
        .map(|row| HARMLESS[row].why)
        .collect();
    assert_eq!(unused, Vec::<&str>::new(), "reasons that no value needs");
    let page = page(cases, counts, outcomes) + &of_templates(templates) + &of_settings(settings);
    book::is_generated("docs/jobs/values.md", &page);
}

fn is_harmless((case, outcome): (&Case, &Outcome)) -> bool {
    *outcome == Outcome::Silent || matches!(outcome, Outcome::Warned(words) if !case.is_named_in(words))
}

const INTRODUCTION: &str = "\
A test gives every field of every kind values that mean nothing: a word that is none of those that are known, a number below
and above what makes sense, an empty text, a blank, a path that is not absolute, a map and a list without entries, an entry
twice, an unknown key of a map. It breaks each relation between fields that a plugin names. Each such job goes to a real API server with the host
running, and what happens is on this page. Fields of templates are not in this table: a template is a Pod's or a Job's, whose API
server refuses what means nothing, and the job's condition `Waiting` has its words.

- **Refused**: the definition of the kind refuses the job, and `kubectl apply` says which field is wrong and what it may be.
- **Rejected**: only the plugin can know. The job has no pods, and its condition `Rejected` names field, value and what is right.
- **Warned**: the job runs, as with the original operator. Its condition `Warned` and an event name the field.
- **Harmless**: the value means something after all; the last section says what.

The same values as edits of a job that runs are refused as for a new job. What is rejected or warned of then, neither
restarts nor removes a pod. A job that an earlier definition let in stays readable, and its status is written: the API server
does not check fields that do not change (from Kubernetes 1.30 on).
";

fn page(cases: &[Case], counts: &[(String, usize)], outcomes: &[Outcome]) -> String {
    let mut page = format!(
        "<!-- Generated from tests/it/values; a test keeps it so. -->\n\n# Values that mean nothing\n\n{INTRODUCTION}\n\
         | kind | fields | values | refused | rejected | warned | harmless |\n|---|---|---|---|---|---|---|\n"
    );
    let mut total = [0; 6];
    for (resource, fields) in counts {
        let of_kind: Vec<_> = cases.iter().zip(outcomes).filter(|(case, _)| case.resource == *resource).collect();
        let count = |is: fn((&Case, &Outcome)) -> bool| of_kind.iter().filter(|it| is((it.0, it.1))).count();
        let row = [
            *fields,
            of_kind.len(),
            count(|it| matches!(it.1, Outcome::Refused(_))),
            count(|it| matches!(it.1, Outcome::Rejected(_) | Outcome::Waits(_))),
            count(|it| matches!(it.1, Outcome::Warned(_)) && !is_harmless(it)),
            count(is_harmless),
        ];
        line(&mut page, resource, row);
        total = std::array::from_fn(|at| total[at] + row[at]);
    }
    line(&mut page, "all", total);
    page.push_str("\n## Rejected by the plugin alone\n\n| kind | value | words |\n|---|---|---|\n");
    said(&mut page, cases, outcomes, |outcome| matches!(outcome, Outcome::Rejected(_) | Outcome::Waits(_)));
    page.push_str("\n## Warned of\n\n| kind | value | words |\n|---|---|---|\n");
    said(&mut page, cases, outcomes, |outcome| matches!(outcome, Outcome::Warned(_)));
    page.push_str("\n## Harmless\n\n| fields | values | why |\n|---|---|---|\n");
    let mut harmless: BTreeMap<usize, (BTreeSet<&str>, BTreeSet<String>)> = BTreeMap::new();
    for it in cases.iter().zip(outcomes).filter(|it| is_harmless(*it)) {
        let (fields, values) = harmless.entry(it.0.why_harmless().unwrap_or_default()).or_default();
        fields.insert(it.0.field.trim_start_matches("spec."));
        values.insert(harmless::shown(&it.0.value));
    }
    for (row, (fields, values)) in harmless {
        let fields: Vec<_> = fields.iter().map(|field| format!("`{field}`")).collect();
        let values: Vec<_> = values.iter().map(|value| format!("`{value}`")).collect();
        writeln!(page, "| {} | {} | {} |", fields.join(", "), values.join(", "), HARMLESS[row].why).unwrap();
    }
    page
}

fn of_templates(counts: &templates::Counts) -> String {
    let templates::Counts { fields, values, refused, told, taken } = counts;
    format!(
        "\n## Templates of pods\n\nThe {fields} fields of pod templates are Kubernetes' own, and the same in every kind. They were \
         tried with one: of {values} values the definition refuses {refused}, of {told} the job's condition says with the API server's \
         words why it has no pod, and of {taken} Kubernetes makes a pod, which the kubelet or the scheduler may have more to say of.\n"
    )
}

/// Returns what is said of the settings of plugins, the chart's values and the host's options.
fn of_settings(settings: &[settings::Tried]) -> String {
    let mut page = "\n## Settings\n\nThe same of what the cluster operator writes: the settings of the plugins that come with the host, \
                    the values of the chart, the options of `troupe operator`, and Plugins. What the API server takes of a \
                    Plugin was written into one that serves: the host read each, and either went on with it or said what its \
                    component needs. A map without entries says nothing, and its defaults count.\n\n\
                    | of | values | refused | harmless |\n|---|---|---|---|\n"
        .to_owned();
    let mut of: Vec<&str> = settings.iter().map(|it| it.of.as_str()).collect();
    of.dedup();
    for of in of {
        let all: Vec<_> = settings.iter().filter(|it| it.of == of).collect();
        let refused = all.iter().filter(|it| it.refused.is_some()).count();
        writeln!(page, "| {of} | {} | {refused} | {} |", all.len(), all.len() - refused).unwrap();
    }
    page.push_str("\n| harmless settings | values | why |\n|---|---|---|\n");
    let mut harmless: BTreeMap<&str, (BTreeSet<String>, BTreeSet<String>)> = BTreeMap::new();
    // Maps that say nothing need no line.
    for it in settings.iter().filter(|it| it.refused.is_none() && it.value != serde_json::json!({})) {
        let (names, values) = harmless.entry(settings::why(it).unwrap_or_default()).or_default();
        names.insert(format!("`{}`", it.name));
        values.insert(format!("`{}`", harmless::shown(&it.value)));
    }
    for (why, (names, values)) in harmless {
        let listed = |all: BTreeSet<String>| all.into_iter().collect::<Vec<_>>().join(", ");
        writeln!(page, "| {} | {} | {why} |", listed(names), listed(values)).unwrap();
    }
    page
}

fn line(page: &mut String, name: &str, row: [usize; 6]) {
    let cells: Vec<_> = row.iter().map(ToString::to_string).collect();
    writeln!(page, "| {name} | {} |", cells.join(" | ")).unwrap();
}

/// Adds a line for each case with such an outcome that is said of its field.
fn said(page: &mut String, cases: &[Case], outcomes: &[Outcome], is: fn(&Outcome) -> bool) {
    for (case, outcome) in cases.iter().zip(outcomes).filter(|it| is(it.1) && !is_harmless(*it)) {
        let value = match case.is_relation {
            true => format!("not: {}", case.field),
            false => format!("`{}: {}`", case.name, harmless::shown(&case.value)),
        };
        let words =
            outcome.words().trim_start_matches("Found validation errors: ").replace('|', "\\|").replace('<', "&lt;");
        writeln!(page, "| {} | {value} | {words} |", case.resource).unwrap();
    }
}

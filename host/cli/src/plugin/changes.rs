//! The differences that another plugin makes, by job and field, over all passes of a recording. A value that the recording
//! leaves out is compared with nothing.

use decide::difference::{Danger, Difference};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};
use troupe::record::passes::{Pass, REDACTED};

/// The differences over a recording.
#[derive(Debug, Default, Serialize)]
pub(super) struct Changes {
    /// The number of compared passes.
    passes: usize,
    /// The number of passes that differ.
    differing: usize,
    /// The differences by job.
    jobs: Vec<Job>,
    #[serde(skip)]
    places: BTreeMap<(String, String), usize>,
}

/// The differences of one job.
#[derive(Debug, Serialize)]
struct Job {
    kind: String,
    namespace: String,
    name: String,
    uid: String,
    differences: Vec<Changed>,
    /// The fields that differ only because the recording leaves their values out.
    #[serde(skip)]
    left_out: BTreeSet<(String, String)>,
    #[serde(skip)]
    passes: usize,
}

/// A difference as first found.
#[derive(Debug, Serialize)]
struct Changed {
    #[serde(flatten)]
    difference: Difference,
    /// The number of passes in which this field differs.
    passes: usize,
}

impl Changes {
    /// Counts a pass and adds the differences to its recorded answer, except those that come from values which the recording
    /// leaves out.
    pub(super) fn note_recorded(&mut self, pass: &Pass, differences: Vec<Difference>) {
        let (left_out, differences): (Vec<_>, _) = differences.into_iter().partition(is_left_out);
        let place = self.note(pass, differences);
        self.jobs[place].left_out.extend(left_out.into_iter().map(|it| (it.what, it.field)));
    }

    /// Counts a pass and adds its differences. Returns the place of its job.
    pub(super) fn note(&mut self, pass: &Pass, differences: Vec<Difference>) -> usize {
        self.passes += 1;
        let job = &pass.snapshot.job;
        let key = (pass.snapshot.kind.kind.clone(), job.uid.clone());
        let place = *self.places.entry(key).or_insert(self.jobs.len());
        if place == self.jobs.len() {
            self.jobs.push(Job {
                kind: pass.snapshot.kind.kind.clone(),
                namespace: job.namespace.clone(),
                name: job.name.clone(),
                uid: job.uid.clone(),
                differences: vec![],
                left_out: BTreeSet::new(),
                passes: 0,
            });
        }
        self.differing += usize::from(!differences.is_empty());
        self.jobs[place].note(differences);
        place
    }

    /// Whether no pass differs.
    pub(super) fn is_empty(&self) -> bool {
        self.differing == 0
    }

    /// Whether some difference is dangerous to live objects.
    pub(super) fn is_dangerous(&self) -> bool {
        let mut all = self.jobs.iter().flat_map(|job| &job.differences);
        all.any(|changed| changed.difference.danger == Danger::Dangerous)
    }
}

/// Returns whether the recorded answer and the new one differ in this place because one of them was made with a value that the
/// recording leaves out. What only one of them has at all is a difference whatever its value.
fn is_left_out(difference: &Difference) -> bool {
    let Difference { old, new, .. } = difference;
    old != "none" && new != "none" && old.contains(REDACTED) != new.contains(REDACTED)
}

impl Job {
    fn note(&mut self, differences: Vec<Difference>) {
        self.passes += 1;
        for new in differences {
            let same = |old: &&mut Changed| {
                let (old, new) = (&old.difference, &new);
                (&old.what, &old.field, old.danger) == (&new.what, &new.field, new.danger)
            };
            match self.differences.iter_mut().find(same) {
                Some(known) => known.passes += 1,
                None => self.differences.push(Changed { difference: new, passes: 1 }),
            }
        }
    }
}

fn count(number: usize, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for job in self.jobs.iter().filter(|job| !job.differences.is_empty() || !job.left_out.is_empty()) {
            writeln!(f, "{} {}/{}", job.kind, job.namespace, job.name)?;
            for Changed { difference, passes } in &job.differences {
                writeln!(f, "  {difference}, in {} of {}", passes, count(job.passes, "pass", "passes"))?;
            }
            if let (1.., Some((what, field))) = (job.left_out.len(), job.left_out.first()) {
                let values = count(job.left_out.len(), "value", "values");
                writeln!(f, "  not compared: {values} that the recording leaves out, the first is {what} {field}")?;
            }
        }
        let over = format!("{} over {}", count(self.passes, "pass", "passes"), count(self.jobs.len(), "job", "jobs"));
        match (self.differing, self.is_dangerous()) {
            (0, _) => write!(f, "{over}: no difference"),
            (differ, false) => write!(f, "{over}: {differ} differ, none dangerously"),
            (differ, true) => write!(f, "{over}: {differ} differ, some dangerously"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use decide::{
        decide,
        plan::{Answer, Rejection},
        testkit,
    };

    fn pass() -> Pass {
        let snapshot = testkit::snapshot(testkit::job("hamlet", "u"));
        let answer = Answer::Rejected(Rejection::Unsupported("tales".into()));
        let decision = decide(&snapshot, &answer);
        Pass { plugin: "plays".into(), config: "{}".into(), snapshot, outlook: None, answer, decision }
    }

    fn difference(field: &str, old: &str, new: &str) -> Difference {
        let (what, danger) = ("role worker".to_owned(), Danger::Dangerous);
        Difference { what, field: field.into(), old: old.into(), new: new.into(), danger }
    }

    #[test]
    fn a_value_that_the_recording_leaves_out_is_no_difference_of_the_plugin() {
        let mut changes = Changes::default();
        let of_variable = difference("/template/env/0/value", "\"REDACTED\"", "\"worker-0\"");
        let of_settings = difference("/env/SETTINGS", "of the file", "REDACTED");
        changes.note_recorded(&pass(), vec![of_variable, of_settings]);
        assert!(changes.is_empty() && !changes.is_dangerous());
        let text = changes.to_string();
        assert!(!text.contains("dangerous"), "{text}");
        let words = "not compared: 2 values that the recording leaves out, the first is role worker /env/SETTINGS";
        assert!(text.contains(words) && text.ends_with("1 pass over 1 job: no difference"), "{text}");
    }

    #[test]
    fn what_only_one_answer_has_and_what_two_plugins_answer_to_one_recording_is_compared() {
        for (old, new) in [("\"REDACTED\"", "none"), ("none", "\"REDACTED\""), ("\"a\"", "\"b\"")] {
            let mut changes = Changes::default();
            changes.note_recorded(&pass(), vec![difference("/env/A", old, new)]);
            assert!(changes.is_dangerous(), "{old} {new}");
        }
        let mut changes = Changes::default();
        changes.note(&pass(), vec![difference("/env/A", "\"REDACTED\"", "\"b\"")]);
        assert!(changes.is_dangerous());
    }
}

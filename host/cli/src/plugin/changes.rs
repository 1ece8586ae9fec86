//! The differences that another plugin makes, by job and field, over all passes of a recording.

use decide::difference::{Danger, Difference};
use serde::Serialize;
use std::{collections::BTreeMap, fmt};
use troupe::record::passes::Pass;

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
    /// Counts a pass and adds its differences.
    pub(super) fn note(&mut self, pass: &Pass, differences: Vec<Difference>) {
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
                passes: 0,
            });
        }
        self.differing += usize::from(!differences.is_empty());
        self.jobs[place].note(differences);
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
        for job in self.jobs.iter().filter(|job| !job.differences.is_empty()) {
            writeln!(f, "{} {}/{}", job.kind, job.namespace, job.name)?;
            for Changed { difference, passes } in &job.differences {
                writeln!(f, "  {difference}, in {} of {}", passes, count(job.passes, "pass", "passes"))?;
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

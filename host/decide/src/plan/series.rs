//! Series of a plan, and what `bind` says about them.

use super::{Plan, group};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Objects of one kind that come and go by name while the job is open: the runs of a schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Key, unique within the plan.
    pub key: String,
    /// API version of the objects.
    pub api_version: String,
    /// Their kind.
    pub kind: String,
    /// JSON pointer of the user's template in the job's spec: `metadata` and `spec` of each object.
    pub template_at: String,
    /// Labels of each object, in place of the template's.
    pub labels: BTreeMap<String, String>,
}

impl Series {
    /// Returns whether an object of this kind belongs to the series, in any version.
    #[must_use]
    pub fn has(&self, api_version: &str, kind: &str) -> bool {
        self.kind == kind && group(&self.api_version) == group(api_version)
    }
}

impl Plan {
    /// Returns the series of a run; `None` if the plan does not have it.
    #[must_use]
    pub fn series_of(&self, run: &Run) -> Option<&Series> {
        self.series.iter().find(|series| series.key == run.series)
    }

    /// Returns the series that objects of this kind belong to, if there is one.
    #[must_use]
    pub fn series_with(&self, api_version: &str, kind: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.has(api_version, kind))
    }
}

/// What `bind` says about the series of a plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Runs {
    /// Objects to create. If the name is taken by an object of the series, nothing is created.
    pub make: Vec<Run>,
    /// Uids of objects to delete.
    pub remove: BTreeSet<String>,
}

impl Runs {
    /// Returns whether nothing is to be done.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.make.is_empty() && self.remove.is_empty()
    }
}

/// One object of a series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Key of the series.
    pub series: String,
    /// Name of the object.
    pub name: String,
    /// Annotations of the object, in place of the template's.
    pub annotations: BTreeMap<String, String>,
}

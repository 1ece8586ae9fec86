//! Checks series, and the runs that `bind` asks for.

use super::{marks, own_name, provenance::label_of_plugin};
use crate::{
    flaw::{Flaw, Subject},
    plan::{ChildKind, Descriptor, Plan, Run, Runs, Series},
    rejection::{Objection, PlanError, Rejection, field_of_spec},
    snapshot::Job,
};
use serde_json::Value;

/// Maximum number of runs that one answer may ask for.
const MOST_RUNS: usize = 100;

/// Checks a series of a plan.
///
/// # Errors
/// What is wrong with it; the user's error where the template in the job's spec is.
pub(super) fn vet(descriptor: &Descriptor, job: &Job, plan: &Plan, series: &Series) -> Result<(), Objection> {
    let Series { api_version, kind, .. } = series;
    let is_planned_otherwise = |other: &str| plan.objects.iter().any(|object| object.kind == other);
    if matches!(kind.as_str(), "Pod" | "Secret")
        || is_planned_otherwise(kind)
        || (kind == "Job" && !plan.roles.is_empty())
    {
        return Err(Flaw::NotInSeries { kind: kind.clone() }.into());
    }
    let other = plan.series.iter().find(|other| other.key != series.key && other.has(api_version, kind));
    if let Some(other) = other {
        return Err(Flaw::SeriesOfOneKind { other: other.key.clone() }.into());
    }
    let of_kind = |child: &ChildKind| child.kind == *kind && child.api_version == *api_version;
    if !descriptor.own_children().any(of_kind) {
        return Err(Flaw::UndescribedKind { kind: format!("{api_version} {kind}") }.into());
    }
    for label in series.labels.keys() {
        label_of_plugin(label)?;
    }
    template(job, series)
}

/// Checks that the user's template is an object with a spec, and that its labels and annotations can be added to.
fn template(job: &Job, series: &Series) -> Result<(), Objection> {
    let at = |part: &str| field_of_spec(&[&series.template_at, part]);
    let Some(template) = job.spec.pointer(&series.template_at) else {
        return Err(Flaw::NoTemplate { at: series.template_at.clone() }.into());
    };
    let wrong = |part: &str| Err(Rejection::field(at(part), "must be an object").into());
    for part in ["", "/metadata", "/metadata/labels", "/metadata/annotations"] {
        match template.pointer(part) {
            None | Some(Value::Null | Value::Object(_)) => {}
            Some(_) => return wrong(part),
        }
    }
    if template["spec"].is_object() { Ok(()) } else { wrong("/spec") }
}

/// Checks the runs that `bind` asks for.
///
/// # Errors
/// As for [`vet`].
pub(super) fn runs(job: &Job, plan: &Plan, runs: &Runs) -> Result<(), Objection> {
    let count = runs.make.len();
    if count > MOST_RUNS {
        return Err(PlanError::from(Flaw::ManyRuns { count, most: MOST_RUNS }).into());
    }
    runs.make.iter().try_for_each(|one| {
        let subject = Subject::Series(one.series.clone());
        run(job, plan, one, &subject).map_err(|objection| super::readable(objection.about(subject)))
    })
}

fn run(job: &Job, plan: &Plan, run: &Run, subject: &Subject) -> Result<(), Objection> {
    if plan.series_of(run).is_none() {
        return Err(Flaw::NoSeries.into());
    }
    if let Some(annotation) = run.annotations.keys().find(|name| marks::is_reserved_annotation(name)) {
        return Err(Flaw::ReservedAnnotation { annotation: annotation.clone() }.into());
    }
    let Some(suffix) = run.name.strip_prefix(&job.name) else {
        return Err(Flaw::ForeignName { name: run.name.clone() }.into());
    };
    own_name(job, subject, |job| format!("{job}{suffix}"))
}

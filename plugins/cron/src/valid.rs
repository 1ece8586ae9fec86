//! What a CronJob must be: all mistakes at once, each with its field.

use crate::CronJob;
use crate::kinds::{JOB, KINDS, Kind};
use crate::schedule::{self, InvalidSchedule, Schedule, Text, Zone};
use troupe_plugin::types::{FieldError, Refusal};

/// The longest name: that of a run is 11 characters longer, and a label.
pub(crate) const MAX_NAME: usize = 52;

/// A CronJob that is as it must be, with the defaults filled in.
#[derive(Debug)]
pub(crate) struct Valid {
    pub(crate) schedule: Schedule,
    /// How many seconds late a run may start.
    pub(crate) deadline: Option<i64>,
    pub(crate) concurrency: Concurrency,
    pub(crate) suspended: bool,
    pub(crate) template: Template,
    pub(crate) limits: Limits,
}

/// What becomes of a run that is due while others are active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Concurrency {
    Allow,
    Forbid,
    Replace,
}

/// Where the template of runs is, and of which kind they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) pointer: &'static str,
    pub(crate) kind: Kind,
}

/// How many finished runs are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) succeeded: usize,
    pub(crate) failed: usize,
}

/// Returns the CronJob with its defaults, or everything that is wrong with it.
pub(crate) fn validate(job: &CronJob) -> Result<Valid, Refusal> {
    let spec = &job.spec;
    let mut wrong = Mistakes(vec![]);
    wrong.name(job.name());
    let schedule = wrong.schedule(spec.schedule.as_deref(), spec.time_zone.as_deref());
    let deadline = spec.starting_deadline_seconds;
    deadline.map(|seconds| wrong.count("spec.startingDeadlineSeconds", seconds));
    let concurrency = wrong.concurrency(spec.concurrency_policy.as_deref());
    let limits = Limits {
        succeeded: wrong.count("spec.successfulJobsHistoryLimit", spec.successful_jobs_history_limit.unwrap_or(3)),
        failed: wrong.count("spec.failedJobsHistoryLimit", spec.failed_jobs_history_limit.unwrap_or(1)),
    };
    let template = wrong.template(job);
    let suspended = spec.suspend.unwrap_or(false);
    match (schedule, template) {
        (Some(schedule), Some(template)) if wrong.0.is_empty() => {
            Ok(Valid { schedule, deadline, concurrency, suspended, template, limits })
        }
        _ => Err(Refusal::Invalid(wrong.0)),
    }
}

struct Mistakes(Vec<FieldError>);

impl Mistakes {
    fn add(&mut self, path: &str, message: impl Into<String>) {
        self.0.push(FieldError { path: path.to_owned(), message: message.into() });
    }

    fn name(&mut self, name: &str) {
        if name.len() > MAX_NAME {
            self.add("metadata.name", format!("must be no more than {MAX_NAME} characters"));
        } else if name.contains('.') {
            self.add("metadata.name", "must not have dots: the names of runs, which are labels, begin with it");
        }
    }

    fn schedule(&mut self, schedule: Option<&str>, zone: Option<&str>) -> Option<Schedule> {
        let text = Text::of(schedule.unwrap_or_default());
        let zone = match (zone, text.zone) {
            (Some(_), Some(_)) => {
                self.add("spec.schedule", "must not begin with TZ= or CRON_TZ= where spec.timeZone is set");
                None
            }
            (Some(name), None) => self.zone("spec.timeZone", name),
            (None, Some("") | None) => Zone::named("UTC"),
            (None, Some(name)) => self.zone("spec.schedule", name),
        };
        // Better: the original runs every second then.
        if schedule::every(text.rest).is_some_and(|duration| duration <= 0) {
            self.add("spec.schedule", format!("{:?} is no time to wait: must be at least @every 1s", text.rest));
        }
        // A wrong schedule is reported beside a wrong zone.
        let parsed = Schedule::parse(text.rest, zone.clone().or_else(|| Zone::named("UTC"))?);
        match parsed {
            Ok(schedule) => zone.map(|_| schedule),
            Err(InvalidSchedule(why)) => {
                self.add("spec.schedule", why);
                None
            }
        }
    }

    fn zone(&mut self, path: &str, name: &str) -> Option<Zone> {
        let zone = Zone::named(name);
        if zone.is_none() {
            self.add(path, format!("unknown time zone {name:?}: must be an IANA name such as Europe/Berlin"));
        }
        zone
    }

    fn count(&mut self, path: &str, number: i64) -> usize {
        if number < 0 {
            self.add(path, "must be greater than or equal to 0");
        }
        usize::try_from(number).unwrap_or(usize::MAX)
    }

    fn concurrency(&mut self, policy: Option<&str>) -> Concurrency {
        match policy {
            None | Some("Allow") => Concurrency::Allow,
            Some("Forbid") => Concurrency::Forbid,
            Some("Replace") => Concurrency::Replace,
            Some(other) => {
                let supported = "supported values: Allow, Forbid, Replace";
                self.add("spec.concurrencyPolicy", format!("{other:?} is not supported; {supported}"));
                Concurrency::Allow
            }
        }
    }

    fn template(&mut self, job: &CronJob) -> Option<Template> {
        match (&job.spec.job_template, &job.spec.template) {
            (Some(of_job), None) => {
                self.has_spec("spec.jobTemplate.spec", of_job.spec.is_some());
                Some(Template { pointer: "/jobTemplate", kind: JOB.clone() })
            }
            (None, Some(any)) => {
                self.has_spec("spec.template.spec", any.spec.is_some());
                let named = |name: &Option<String>| name.clone().unwrap_or_default();
                let (api_version, kind) = (named(&any.api_version), named(&any.kind));
                let all = || KINDS.iter().chain(&job.config.kinds);
                let known = all().find(|known| known.is(&api_version, &kind));
                if known.is_none() {
                    let kinds: Vec<_> = all().map(|known| format!("{} {}", known.api_version, known.kind)).collect();
                    let kinds = kinds.join(", ");
                    self.add("spec.template.kind", format!("{api_version} {kind} is not one of {kinds}"));
                }
                known.map(|kind| Template { pointer: "/template", kind: kind.clone() })
            }
            (Some(_), Some(_)) => {
                self.add("spec.template", "must not be set together with spec.jobTemplate");
                None
            }
            (None, None) => {
                self.add("spec.jobTemplate", "must be set, or spec.template for a job of another kind");
                None
            }
        }
    }

    fn has_spec(&mut self, path: &str, has: bool) {
        if !has {
            self.add(path, "must be the spec of the job");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cron_job, hourly, job_named};
    use serde_json::{Value, json};
    use troupe_plugin::testkit;

    fn mistakes(job: &CronJob) -> Vec<(String, String)> {
        match validate(job) {
            Err(Refusal::Invalid(errors)) => errors.into_iter().map(|error| (error.path, error.message)).collect(),
            other => panic!("not refused: {other:?}"),
        }
    }

    // C01
    #[test]
    fn what_is_left_out_has_the_originals_defaults() {
        let valid = validate(&cron_job(&hourly())).unwrap();
        assert_eq!((valid.concurrency, valid.suspended, valid.deadline), (Concurrency::Allow, false, None));
        assert_eq!(valid.limits, Limits { succeeded: 3, failed: 1 });
        assert_eq!(valid.template, Template { pointer: "/jobTemplate", kind: JOB.clone() });
    }

    // C02
    #[test]
    fn each_wrong_field_is_named() {
        let cases = [
            ("schedule", json!(null), "spec.schedule", "must have 5 fields"),
            ("schedule", json!("0 0 * *"), "spec.schedule", "day of week), not 4"),
            ("schedule", json!("0 25 * * *"), "spec.schedule", "hour \"25\" must be from 0 to 23"),
            ("schedule", json!("0 0 * * 7"), "spec.schedule", "day of week \"7\" must be from 0 to 6, or sun to sat"),
            ("schedule", json!("5-1 * * * *"), "spec.schedule", "begins after its end"),
            ("schedule", json!("*/0 * * * *"), "spec.schedule", "must have a step"),
            ("schedule", json!(", * * * *"), "spec.schedule", "names nothing"),
            ("schedule", json!("@never"), "spec.schedule", "is not one of @yearly"),
            ("schedule", json!("@every soon"), "spec.schedule", "is no duration"),
            ("schedule", json!("TZ=Mars/Base 0 5 * * *"), "spec.schedule", "unknown time zone \"Mars/Base\""),
            ("schedule", json!("TZ=UTC"), "spec.schedule", "must have 5 fields"),
            ("timeZone", json!("Mars/Base"), "spec.timeZone", "unknown time zone"),
            ("timeZone", json!("Local"), "spec.timeZone", "unknown time zone"),
            ("timeZone", json!(""), "spec.timeZone", "unknown time zone"),
            ("startingDeadlineSeconds", json!(-1), "spec.startingDeadlineSeconds", "or equal to 0"),
            ("successfulJobsHistoryLimit", json!(-1), "spec.successfulJobsHistoryLimit", "or equal to 0"),
            ("failedJobsHistoryLimit", json!(-1), "spec.failedJobsHistoryLimit", "or equal to 0"),
            ("concurrencyPolicy", json!("forbid"), "spec.concurrencyPolicy", "Allow, Forbid, Replace"),
            ("jobTemplate", json!(null), "spec.jobTemplate", "must be set"),
            ("jobTemplate", json!({}), "spec.jobTemplate.spec", "must be the spec"),
        ];
        for (field, value, path, message) in cases {
            let mut spec = hourly();
            spec[field] = value;
            let told = mistakes(&cron_job(&spec));
            assert_eq!(told.len(), 1, "{told:?}");
            assert!(told[0].0 == path && told[0].1.contains(message), "{told:?}");
        }
    }

    // C02
    #[test]
    fn all_mistakes_are_reported_at_once() {
        let spec = json!({ "schedule": "* * *", "timeZone": "Mars/Base", "concurrencyPolicy": "", "startingDeadlineSeconds": -5 });
        let paths: Vec<_> = mistakes(&cron_job(&spec)).into_iter().map(|(path, _)| path).collect();
        let fields = ["timeZone", "schedule", "startingDeadlineSeconds", "concurrencyPolicy", "jobTemplate"];
        assert_eq!(paths, fields.map(|field| format!("spec.{field}")));
    }

    // C02: batch/v1 refuses a zone in the schedule always, the original reads it
    #[test]
    fn a_zone_stands_in_the_schedule_or_in_a_field() {
        for (schedule, zone, is_valid) in [
            ("TZ=Europe/Berlin 0 5 * * *", json!(null), true),
            ("CRON_TZ=Europe/Berlin @daily", json!(null), true),
            ("0 5 * * *", json!("Europe/Berlin"), true),
            ("TZ=Europe/Berlin 0 5 * * *", json!("Europe/Berlin"), false),
        ] {
            let mut spec = hourly();
            spec["schedule"] = json!(schedule);
            spec["timeZone"] = zone;
            assert_eq!(validate(&cron_job(&spec)).is_ok(), is_valid, "{schedule}");
        }
    }

    // C02
    #[test]
    fn a_name_leaves_room_for_the_time_of_a_run() {
        assert!(validate(&job_named(&"a".repeat(52), &hourly())).is_ok());
        for (name, message) in [("a".repeat(53), "no more than 52"), ("my.job".into(), "must not have dots")] {
            let told = mistakes(&job_named(&name, &hourly()));
            assert!(told[0].0 == "metadata.name" && told[0].1.contains(message), "{told:?}");
        }
    }

    fn with_template(template: &Value) -> CronJob {
        cron_job(&json!({ "schedule": "@hourly", "template": template }))
    }

    // C03
    #[test]
    fn a_template_is_of_a_kind_that_is_watched() {
        for kind in KINDS {
            let job = with_template(&json!({ "apiVersion": kind.api_version, "kind": kind.kind, "spec": {} }));
            assert_eq!(validate(&job).unwrap().template, Template { pointer: "/template", kind: kind.clone() });
        }
        for (api_version, kind) in [("v1", "Pod"), ("kubeflow.org/v1", "MPIJob"), ("", "Job")] {
            let job = with_template(&json!({ "apiVersion": api_version, "kind": kind, "spec": {} }));
            let told = mistakes(&job);
            assert_eq!(told[0].0, "spec.template.kind");
            assert!(told[0].1.contains("batch/v1 Job, kubeflow.org/v2beta1 MPIJob, "), "{told:?}");
        }
        assert_eq!(mistakes(&with_template(&json!({}))).len(), 2);
    }

    // C03
    #[test]
    fn a_template_may_be_of_a_kind_of_the_settings() {
        let mut view = testkit::job("CronJob", "tick", &echo());
        view.config = json!({ "kinds": [{ "apiVersion": "example.org/v1", "kind": "EchoJob", "plural": "echojobs" }] })
            .to_string();
        let template = validate(&CronJob::parse(view).unwrap()).unwrap().template;
        assert_eq!((template.pointer, template.kind.grant()), ("/template", "EchoJob.example.org".to_owned()));
        assert_eq!(mistakes(&cron_job(&echo()))[0].0, "spec.template.kind");
    }

    fn echo() -> Value {
        json!({ "schedule": "@hourly", "template": { "apiVersion": "example.org/v1", "kind": "EchoJob", "spec": {} } })
    }

    // C03
    #[test]
    fn there_is_one_template() {
        let mut spec = hourly();
        spec["template"] = json!({ "apiVersion": "batch/v1", "kind": "Job", "spec": {} });
        assert_eq!(mistakes(&cron_job(&spec))[0].0, "spec.template");
    }
}

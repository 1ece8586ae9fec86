//! The status of a job, and when the job is finished.

use crate::TrainingJob;
use crate::family::Family;
use crate::limits;
use crate::outcome::{Standing, named, standing};
use crate::tally::{self, Tally};
use serde_json::{Map, Value, json};
use troupe_plugin::conditions::{Conditions, Step};
use troupe_plugin::types::{Clean, Event, Observation, Outcome, Outlook, Refusal, Verdict};
use troupe_plugin::{ObservationExt, json_text, parse_rfc3339, rfc3339};

/// Returns the job's whole status, from the previous status and the observation.
pub(crate) fn judge(job: &TrainingJob, seen: &Observation, outlook: &Outlook) -> Result<Verdict, Refusal> {
    let family = Family::of(job)?;
    let previous: Value = seen.previous();
    let mut status = Status::of(&family, &previous, rfc3339(seen.now));
    if status.is_over() {
        let counts = previous.get("replicaStatuses").cloned().unwrap_or_else(|| json!({}));
        return Ok(status.verdict(&counts));
    }
    let tallies = tally::of(&family, seen, outlook.suspended);
    status.set_created();
    match outlook.suspended {
        true => status.suspend(),
        false => {
            status.resume_or_start();
            status.report_restarts(&tallies);
            let standing = standing(&family, &tallies);
            let may_stop = !status.conditions.finished() && standing != Standing::Succeeded;
            match limits::reached(&family, seen, status.started()).filter(|_| may_stop) {
                Some(why) => status.stop(why),
                None => status.proceed(standing),
            }
            status.deadline = limits::deadline(&family, status.started());
        }
    }
    let counts = counts(&family, &tallies, status.conditions.is_true("Succeeded"));
    Ok(status.verdict(&counts))
}

/// The host emits no more events of a pass; each more would only make the answer longer.
const MOST_EVENTS: usize = 64;

/// The status while it is computed, with the events of its changes.
struct Status<'a> {
    family: &'a Family<'a>,
    now: String,
    conditions: Conditions,
    start_time: Option<String>,
    completion_time: Option<String>,
    events: Vec<Event>,
    /// When the job is looked at again, in Unix milliseconds.
    deadline: Option<u64>,
    /// It has reached a limit, so that its pods are stopped.
    is_stopped: bool,
}

impl<'a> Status<'a> {
    fn of(family: &'a Family<'a>, previous: &Value, now: String) -> Self {
        let time = |field: &str| previous.get(field).and_then(Value::as_str).map(str::to_owned);
        Self {
            family,
            now,
            conditions: Conditions::of(previous),
            start_time: time("startTime"),
            completion_time: time("completionTime"),
            events: vec![],
            deadline: None,
            is_stopped: false,
        }
    }

    /// Returns whether the job is finished and has a completion time, which the original sometimes forgets. The status
    /// then no longer changes.
    fn is_over(&self) -> bool {
        self.conditions.finished() && self.completion_time.is_some()
    }

    fn set_created(&mut self) {
        if self.conditions.is_empty() {
            let message = self.message("is created.");
            self.set("Created", true, "Created", &message);
        }
    }

    fn suspend(&mut self) {
        let message = self.message("is suspended.");
        if self.conditions.is_true("Running") {
            self.set("Running", false, "Suspended", &message);
        }
        let step = self.set("Suspended", true, "Suspended", &message);
        self.report(step, "Suspended", message);
    }

    fn resume_or_start(&mut self) {
        if self.conditions.is_true("Suspended") {
            let message = self.message("is resumed.");
            let step = self.set("Suspended", false, "Resumed", &message);
            self.report(step, "Resumed", message);
            self.start_time = Some(self.now.clone());
        }
        self.start_time.get_or_insert_with(|| self.now.clone());
    }

    fn proceed(&mut self, standing: Standing) {
        if self.conditions.finished() {
            self.completion_time.get_or_insert_with(|| self.now.clone());
            return;
        }
        match standing {
            Standing::Waiting => {}
            Standing::Running => {
                let message = format!("{} is running.", named(self.family).0);
                self.conditions.remove("Restarting");
                let step = self.set("Running", true, "Running", &message);
                self.report(step, "Running", message);
            }
            Standing::Restarting(of) => {
                let message = self.restarting(of);
                self.conditions.remove("Running");
                self.set("Restarting", true, "Restarting", &message);
            }
            Standing::Succeeded => {
                let (name, is) = named(self.family);
                self.finish("Succeeded", false, format!("{name}{is} successfully completed."));
            }
            Standing::Failed(failure) => self.finish("Failed", failure.warning, failure.message),
        }
    }

    /// Reports each failed pod that is replaced once, whatever the conditions say.
    fn report_restarts(&mut self, tallies: &[Tally]) {
        for tally in tallies.iter().filter(|_| !self.conditions.finished()) {
            let event =
                Event { warning: true, reason: self.reason("Restarting"), message: self.restarting(tally.of.name) };
            self.events.extend(std::iter::repeat_n(event, tally.restarts.min(MOST_EVENTS)));
        }
    }

    fn restarting(&self, of: &str) -> String {
        format!("job {} is restarting because {of} replica(s) failed.", self.family.job.name())
    }

    /// Fails a job that has reached a limit.
    fn stop(&mut self, why: &str) {
        self.is_stopped = true;
        self.finish("Failed", false, format!("Job {} has failed because {why}", self.family.job.name()));
    }

    /// Returns when the job was started or resumed, in Unix milliseconds.
    fn started(&self) -> u64 {
        self.start_time.as_deref().and_then(parse_rfc3339).unwrap_or(u64::MAX)
    }

    fn finish(&mut self, kind: &str, warning: bool, message: String) {
        self.completion_time.get_or_insert_with(|| self.now.clone());
        let reason = self.reason(kind);
        self.conditions.finish(kind, &reason, &message, &self.now);
        self.events.push(Event { warning, reason, message });
    }

    fn set(&mut self, kind: &str, status: bool, why: &str, message: &str) -> Step {
        self.conditions.set(kind, status, &self.reason(why), message, &self.now)
    }

    fn report(&mut self, step: Step, why: &str, message: String) {
        if step == Step::New {
            self.events.push(Event { warning: false, reason: self.reason(why), message });
        }
    }

    fn reason(&self, why: &str) -> String {
        [self.family.kind.name, why].concat()
    }

    fn message(&self, what: &str) -> String {
        format!("{} {} {what}", self.family.kind.name, self.family.job.name())
    }

    fn verdict(self, replica_statuses: &Value) -> Verdict {
        let outcome = match self.is_over() {
            true if self.conditions.is_true("Failed") => Outcome::Failed,
            true => Outcome::Succeeded,
            false => Outcome::Open,
        };
        let mut status = json!({ "conditions": self.conditions.to_json(), "replicaStatuses": replica_statuses });
        for (field, time) in [("startTime", self.start_time), ("completionTime", self.completion_time)] {
            if let Some(time) = time {
                status[field] = time.into();
            }
        }
        // What has ended by itself keeps its log; what a limit ends must not go on.
        let policy = self.family.job.spec.run_policy.as_ref();
        let all_go = policy.is_some_and(|policy| policy.clean_pod_policy.as_deref() == Some("All"));
        let clean = (self.is_stopped && !all_go).then_some(Clean::Active);
        let verdict = Verdict::new(json_text(&status), self.conditions.headline(), outcome);
        Verdict { clean, wake_at: self.deadline, events: self.events, ..verdict }
    }
}

fn counts(family: &Family<'_>, tallies: &[Tally], succeeded: bool) -> Value {
    let mut counts = Map::new();
    for tally in tallies {
        counts.insert(tally.of.name.to_owned(), tally.entry(family, succeeded));
    }
    counts.into()
}

//! What can be wrong with a plan so that its plugin's author has to act, and the words for it.

use crate::shown::blank;
use std::fmt;

/// Maximum length of a message in bytes: it becomes a condition and an event.
const LONGEST: usize = 1000;

/// Maximum length of a value in a message, in characters.
const SHOWN: usize = 120;

/// A part of a plan, as messages name it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Subject {
    #[error("the plan")]
    Plan,
    #[error("role {0}")]
    Role(String),
    #[error("object {0}")]
    Object(String),
    #[error("secret {0}")]
    Secret(String),
    #[error("series {0}")]
    Series(String),
}

/// What is wrong with a plan, and with which part of it. Its `Display` is one line of bounded length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError {
    subject: Option<Subject>,
    flaw: Flaw,
}

impl PlanError {
    /// Names the part, unless one is named.
    pub(crate) fn about(self, subject: Subject) -> Self {
        Self { subject: self.subject.or(Some(subject)), flaw: self.flaw }
    }

    /// Returns the message with the number of the rule that the plan breaks, as in the plugin guide: `(rule V07)`.
    #[must_use]
    pub fn numbered(&self) -> String {
        format!("{self} (rule {})", self.flaw.rule())
    }
}

impl From<Flaw> for PlanError {
    fn from(flaw: Flaw) -> Self {
        Self { subject: None, flaw }
    }
}

impl std::error::Error for PlanError {}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subject, flaw } = self;
        let message = match subject {
            Some(subject) => format!("{subject}: {flaw}"),
            None => flaw.to_string(),
        };
        f.write_str(&line(&message))
    }
}

/// What is wrong with a part of a plan. Values are whole; messages show the beginning of long ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Flaw {
    // Names.
    #[error("{what} {name} appears twice")]
    Twice { what: &'static str, name: String },
    #[error("the name {name} does not begin with the job's name")]
    ForeignName { name: String },
    #[error("the name {name} is no DNS label of at most {most} characters")]
    InvalidName { name: String, most: usize },
    #[error("its pod name has no index")]
    NameWithoutIndex,
    #[error("an address of role {role} cannot be part of a name")]
    AddressInName { role: String },
    #[error("an attempt cannot be part of a name, which stays when pods start again")]
    AttemptInName,
    #[error("a restart of the whole job has no way to start the Job of role {role} again")]
    RestartOfJob { role: String },

    // What `describe` and the rest of the plan do not name.
    #[error("describe does not name it; its roles are {}", roles.join(", "))]
    UndescribedRole { roles: Vec<String> },
    #[error("describe does not name {kind} as a child")]
    UndescribedKind { kind: String },
    #[error("describe does not keep {pointer} of {kind}")]
    FieldNotKept { kind: String, pointer: String },
    #[error("there is no role {role}")]
    NoRole { role: String },
    #[error("there is no role {role} to be a member")]
    NoMember { role: String },
    #[error("it waits for {other}, which the plan does not have")]
    AwaitsNothing { other: Subject },
    #[error("it waits for {other}, of which there is one for each pod")]
    AwaitsMany { other: Subject },
    #[error("it contains an address of role {role}, which the plan does not have")]
    AddressOfNothing { role: String },
    #[error("it contains an address of role {role} but does not wait for it")]
    AddressNotAwaited { role: String },

    // Templates and their edits.
    #[error("there is nothing at {pointer} to fill in")]
    NothingToFill { pointer: String },
    #[error("a criterion is about role {role}, which the plan does not have")]
    CriterionOfNothing { role: String },
    #[error("the plan has {criteria} success criteria with {ranges} ranges, more than {most} or {most_ranges}")]
    ManyCriteria { criteria: usize, ranges: usize, most: usize, most_ranges: usize },
    #[error("its template has no containers")]
    NoContainers,
    #[error("what is at {at} of the template is not {right}")]
    WrongType { at: String, right: &'static str },
    #[error("the job's spec has no object at {at}")]
    NoTemplate { at: String },
    #[error("an edit goes more than {most} steps deep")]
    DeepEdit { most: usize },
    #[error("an edit leads to {pointer}, but there is no item {item}")]
    NoItem { pointer: String, item: String },

    // What a role, an object or a secret cannot be.
    #[error("the spec of its Job is no object")]
    JobWithoutSpec,
    #[error("a role backed by a Job has 1 replica, not {replicas}")]
    JobReplicas { replicas: u32 },
    #[error("what becomes of a pod of a Job is for the Job to say")]
    FailuresBehindJob,
    #[error("no exit code is in the range {first} to {last}")]
    EmptyRange { first: i32, last: i32 },
    #[error("its Job has /spec/{field}: {}, which is not a plugin's to say", shown(value))]
    JobField { field: String, value: String },
    #[error("a {kind} is asked for as a role or a secret")]
    NotAnObject { kind: String },
    #[error("no plan may have a {kind}")]
    ForbiddenKind { kind: String },
    #[error("an object per pod cannot be bound")]
    BoundPerPod,
    #[error("/status is not a plugin's to write")]
    Status,
    #[error("upkeep: {pointer} and {other} are the same place, or one is in the other")]
    FollowedTwice { pointer: String, other: String },
    #[error("upkeep: {pointer} is the host's or another controller's to write")]
    NotToFollow { pointer: String },
    #[error("all objects of kind {kind} go when the job ends, or none")]
    MixedCleaning { kind: String },
    #[error("a {kind} is asked for as a role, an object or a secret, and not in a series")]
    NotInSeries { kind: String },
    #[error("series {other} is of the same kind")]
    SeriesOfOneKind { other: String },
    #[error("the plan has no such series")]
    NoSeries,
    #[error("bind asks for {count} runs, more than {most}")]
    ManyRuns { count: usize, most: usize },
    #[error("a Secret of type {secret_type:?} is never a key pair")]
    NoKeyPair { secret_type: String },

    // What a plan may not use.
    #[error("the label {} is not a plugin's to set", shown(label))]
    ReservedLabel { label: String },
    #[error("the annotation {} is not a plugin's to set", shown(annotation))]
    ReservedAnnotation { annotation: String },
    #[error("/spec/selector is {}, which may find pods of others: it must name the job", shown(selector))]
    ForeignSelector { selector: String },
    #[error("{at} differs between replicas, which only names of the plan's own objects may")]
    Varies { at: String },
    #[error("{field} is {}; {}", shown(value), way_out(grant.as_deref()))]
    NotGranted { field: &'static str, value: String, grant: Option<String> },
    #[error("{} is {}, which the job's user does not ask for; {}", shown(at), shown(value), way_out(grant.as_deref()))]
    NotAskedFor { at: String, value: String, grant: Option<String> },
}

/// Gives each flaw the number of the rule that it breaks. Numbers stand in messages and in `docs/plugins/rules.md`: one that
/// was given is never given to another rule.
macro_rules! rules {
    ($($number:literal $flaw:ident,)*) => {
        /// The numbers of all rules that a plan is held to.
        pub const RULES: &[&str] = &[$($number),*];

        impl Flaw {
            fn rule(&self) -> &'static str {
                match self { $(Self::$flaw { .. } => $number,)* }
            }
        }
    };
}

rules! {
    "V01" Twice,
    "V02" ForeignName,
    "V03" InvalidName,
    "V04" NameWithoutIndex,
    "V05" AddressInName,
    "V06" UndescribedRole,
    "V07" UndescribedKind,
    "V08" FieldNotKept,
    "V09" NoRole,
    "V10" AwaitsNothing,
    "V11" AwaitsMany,
    "V12" AddressOfNothing,
    "V13" AddressNotAwaited,
    "V14" NothingToFill,
    "V15" NoContainers,
    "V16" WrongType,
    "V17" NoTemplate,
    "V18" DeepEdit,
    "V19" NoItem,
    "V20" JobWithoutSpec,
    "V21" JobReplicas,
    "V22" FailuresBehindJob,
    "V23" EmptyRange,
    "V24" JobField,
    "V25" NotAnObject,
    "V26" ForbiddenKind,
    "V27" BoundPerPod,
    "V28" Status,
    "V29" FollowedTwice,
    "V30" NotToFollow,
    "V31" MixedCleaning,
    "V32" NotInSeries,
    "V33" SeriesOfOneKind,
    "V34" NoSeries,
    "V35" ManyRuns,
    "V36" NoKeyPair,
    "V37" ReservedLabel,
    "V38" ReservedAnnotation,
    "V39" ForeignSelector,
    "V40" Varies,
    "V41" NotGranted,
    "V42" NotAskedFor,
    "V43" AttemptInName,
    "V44" RestartOfJob,
    "V45" CriterionOfNothing,
    "V46" ManyCriteria,
    "V47" NoMember,
}

/// Returns what would allow a use.
fn way_out(grant: Option<&str>) -> String {
    match grant {
        Some(grant) => format!("`spec.grants.{}` would allow it", shown(grant)),
        None => "no grant allows it".to_owned(),
    }
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns the message without control characters, and shortened to what a condition may hold.
pub(crate) fn line(message: &str) -> String {
    let mut line: String = message.chars().map(blank).collect();
    line.truncate(line.floor_char_boundary(LONGEST));
    line
}

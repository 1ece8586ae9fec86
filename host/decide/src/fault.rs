//! What a plugin did wrong, and the words for it.

use crate::time::rfc3339;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What a plugin did wrong. The plugin's author has to change something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Fault {
    /// It trapped or exited.
    #[error("plugin {plugin} trapped in {function}: {message}")]
    Trapped {
        /// Which plugin.
        plugin: String,
        /// In which of its functions.
        function: String,
        /// What the runtime said.
        message: String,
    },
    /// It used up its fuel or its time.
    #[error("plugin {plugin} ran out of {budget} in {function}")]
    OutOfBudget {
        /// Which plugin.
        plugin: String,
        /// In which of its functions.
        function: String,
        /// `fuel`, `time` or `memory`.
        budget: String,
    },
    /// It said so itself.
    #[error("plugin {plugin} reported an internal error in {function}: {message}")]
    Internal {
        /// Which plugin.
        plugin: String,
        /// In which of its functions.
        function: String,
        /// Its words.
        message: String,
    },
    /// It is not there.
    #[error("{}", missing(.digest, .why))]
    Missing {
        /// Its digest; "" when no plugin serves new jobs of the framework.
        digest: String,
        /// Why its bytes cannot be had; "" where that is not known.
        #[serde(default)]
        why: String,
    },
    /// The job's status names it, and the host never accepted it.
    #[error(
        "status.troupe.digest names the plugin {digest}, which this host has never accepted for jobs of this kind: none of \
         it is loaded, and the job's pods are left alone; suspend the job until it has no pods, and it is planned anew, or \
         make it again"
    )]
    NotAccepted {
        /// Its digest.
        digest: String,
    },
    /// Its bytes are not kept yet, and without them the job would be lost with this host.
    #[error("no job is planned by plugin {plugin} before its bytes are kept, which is tried again: {why}")]
    NotKept {
        /// Which plugin.
        plugin: String,
        /// Why they are not.
        why: String,
    },
    /// Its answer is not acceptable.
    #[error("plugin {plugin} gave an answer in {function} that the host does not accept: {message}")]
    Unacceptable {
        /// Which plugin.
        plugin: String,
        /// In which of its functions.
        function: String,
        /// What is wrong with it.
        message: String,
    },
    /// It answered the same question in two ways.
    #[error("plugin {plugin} is not deterministic: asked {function} twice, {message}")]
    NonDeterministic {
        /// Which plugin.
        plugin: String,
        /// Which of its functions.
        function: String,
        /// Where the answers differ.
        message: String,
    },
    /// It failed so often in a row that it is not asked for a while.
    #[error("plugin {plugin} is not asked {}: {cause}", pause(*.scope, *.until))]
    BreakerOpen {
        /// Which plugin.
        plugin: String,
        /// About what.
        scope: Scope,
        /// When it is asked again.
        until: Timestamp,
        /// The last fault of those that led to this.
        cause: String,
    },
    /// It has used up what all of its calls together may use up in a minute.
    #[error(
        "plugin {plugin} is not asked for a while: its calls have used up the {fuel} units of fuel that it has for a \
             minute; raise limits.fuelPerMinute of its Plugin, or find out what it does with them"
    )]
    Throttled {
        /// Which plugin.
        plugin: String,
        /// What it has for a minute.
        fuel: u64,
        /// When it is asked again.
        until: Timestamp,
    },
}

/// What a plugin is not asked about while its breaker is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scope {
    /// The one job that it failed for again and again.
    Job,
    /// The jobs of one namespace: it failed for several of them.
    Namespace,
    /// Any job: it failed in several namespaces.
    Plugin,
}

/// The words for a pause. Those for many jobs name no time, since a new one would be a write to the status of each.
fn pause(scope: Scope, until: Timestamp) -> String {
    match scope {
        Scope::Job => format!("about this job before {}, since it failed again and again", rfc3339(until)),
        Scope::Namespace => {
            "about jobs in this namespace for a while, since it failed for several of them in a row".to_owned()
        }
        Scope::Plugin => "about any job for a while, since it failed in several namespaces".to_owned(),
    }
}

fn missing(digest: &str, why: &str) -> String {
    let Some(short) = digest.get(..12) else {
        return "no plugin serves new jobs of this kind; make a Plugin that does".to_owned();
    };
    let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
    format!(
        "the plugin {short} that plans this job is lost: neither this host nor its namespace has the bytes; the job's pods \
         are left alone, and it goes on when a ConfigMap troupe-plugin-{short}-0, its registry or a Plugin brings them \
         back{why}"
    )
}

impl Fault {
    /// The reason of a condition: one CamelCase word per kind of fault.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Trapped { .. } => "Trapped",
            Self::OutOfBudget { .. } => "OutOfBudget",
            Self::Missing { .. } => "PluginMissing",
            Self::NotAccepted { .. } => "PluginNotAccepted",
            Self::NotKept { .. } => "PluginNotKept",
            Self::Internal { .. } => "InternalError",
            Self::Unacceptable { .. } => "UnacceptableAnswer",
            Self::NonDeterministic { .. } => "NonDeterministic",
            Self::BreakerOpen { .. } => "BreakerOpen",
            Self::Throttled { .. } => "Throttled",
        }
    }
}

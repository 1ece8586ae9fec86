//! Faults of plugins, and their messages.

use crate::{
    condition::Reason,
    digest::{Digest, or_empty},
    time::rfc3339,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A fault of a plugin. The plugin's author has to change something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Fault {
    /// The plugin trapped or exited.
    #[error("plugin {plugin} trapped in {function}: {message}")]
    Trapped {
        /// The plugin.
        plugin: String,
        /// The function that was called.
        function: String,
        /// The runtime's message.
        message: String,
    },
    /// The plugin exhausted a budget.
    #[error("plugin {plugin} ran out of {budget} in {function}")]
    OutOfBudget {
        /// The plugin.
        plugin: String,
        /// The function that was called.
        function: String,
        /// What it exhausted.
        budget: Budget,
    },
    /// The plugin reported an internal error.
    #[error("plugin {plugin} reported an internal error in {function}: {message}")]
    Internal {
        /// The plugin.
        plugin: String,
        /// The function that was called.
        function: String,
        /// The plugin's message.
        message: String,
    },
    /// The plugin's bytes are not available.
    #[error("{}", missing(.digest.as_ref(), .why))]
    Missing {
        /// Its digest; `None` when no plugin serves new jobs of the framework.
        #[serde(with = "or_empty")]
        digest: Option<Digest>,
        /// Why the bytes are not available; "" where the reason is unknown.
        #[serde(default)]
        why: String,
    },
    /// The job's status names a plugin that the host never accepted for its kind.
    #[error(
        "status.troupe.digest names plugin {digest}, which this host has never accepted for jobs of this kind: the host does \
         not load it and leaves the job's pods alone; suspend the job until it has no pods, then it gets a new plan, or \
         create the job again"
    )]
    NotAccepted {
        /// Its digest.
        digest: Digest,
    },
    /// No plugin serves new jobs of the kind: the Plugin that would was refused. The message names the reason alone, since
    /// its details may be settings of the cluster.
    #[error(
        "no plugin serves new jobs of this kind: Plugin {plugin}, which would, was refused ({why}); whoever runs the cluster \
         sees the details with kubectl describe plugin {plugin}"
    )]
    Refused {
        /// The plugin.
        plugin: String,
        /// The reason of the refusal, in CamelCase.
        why: String,
    },
    /// The plugin's bytes are not kept yet; without them the job would be lost with this host.
    #[error("plugin {plugin} plans no new job until its bytes are archived, which the host tries again: {why}")]
    NotKept {
        /// The plugin.
        plugin: String,
        /// Why the bytes are not kept.
        why: String,
    },
    /// The host cannot read an object that the job's user names and whose content the plan depends on.
    #[error("{kind} {name}, which the job names, cannot be read, which the host tries again: {why}")]
    Unread {
        /// The kind of the object.
        kind: String,
        /// Its name.
        name: String,
        /// The API server's answer.
        why: String,
    },
    /// The host does not accept the plugin's answer.
    #[error("plugin {plugin} gave an answer in {function} that the host does not accept: {message}")]
    Unacceptable {
        /// The plugin.
        plugin: String,
        /// The function that was called.
        function: String,
        /// What is wrong with the answer.
        message: String,
    },
    /// The plugin gave two answers to the same question.
    #[error("plugin {plugin} is not deterministic: asked {function} twice, {message}")]
    NonDeterministic {
        /// The plugin.
        plugin: String,
        /// The function that was called.
        function: String,
        /// Where the answers differ.
        message: String,
    },
    /// The breaker is open: the plugin failed repeatedly and is not asked for a while.
    #[error("plugin {plugin} is not asked {}: {cause}", pause(*.scope, *.until))]
    BreakerOpen {
        /// The plugin.
        plugin: String,
        /// The jobs that are affected.
        scope: Scope,
        /// When the plugin is asked again.
        until: Timestamp,
        /// The last fault that led to this.
        cause: String,
    },
    /// The calls of the plugin together have used up the fuel of a minute.
    #[error(
        "plugin {plugin} is not asked for a while: its calls have used up the {fuel} units of fuel that it has for a \
             minute; raise limits.fuelPerMinute of its Plugin, or find out what it does with them"
    )]
    Throttled {
        /// The plugin.
        plugin: String,
        /// Fuel units for a minute.
        fuel: u64,
        /// When the plugin is asked again.
        until: Timestamp,
    },
}

/// What a call of a plugin may use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Budget {
    /// Instructions.
    Fuel,
    /// Time until the deadline.
    Time,
    /// Memory of the instance.
    Memory,
    /// Instances at the same time, of all plugins.
    Instances,
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fuel => "fuel",
            Self::Time => "time",
            Self::Memory => "memory",
            Self::Instances => "instances",
        })
    }
}

/// The jobs that an open breaker affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scope {
    /// The one job for which the plugin failed repeatedly.
    Job,
    /// The jobs of one namespace: the plugin failed for several of them.
    Namespace,
    /// Any job: the plugin failed in several namespaces.
    Plugin,
}

/// Returns the message for a pause. A pause of many jobs names no time: a new time would rewrite the status of each
/// job.
fn pause(scope: Scope, until: Timestamp) -> String {
    match scope {
        Scope::Job => format!("about this job before {}, since it failed again and again", rfc3339(until)),
        Scope::Namespace => {
            "about jobs in this namespace for a while, since it failed for several of them in a row".to_owned()
        }
        Scope::Plugin => "about any job for a while, since it failed in several namespaces".to_owned(),
    }
}

fn missing(digest: Option<&Digest>, why: &str) -> String {
    let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
    let Some(short) = digest.map(Digest::short) else {
        return format!("no plugin serves new jobs of this kind{why}; create a Plugin that does");
    };
    format!(
        "the bytes of plugin {short}, which plans this job, are neither in this host nor in its namespace; the host leaves \
         the job's pods alone until ConfigMap troupe-plugin-{short}-0, the plugin's registry or a Plugin provides the \
         bytes{why}"
    )
}

impl Fault {
    /// Returns the reason of the condition.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::Trapped { .. } => Reason::Trapped,
            Self::OutOfBudget { .. } => Reason::OutOfBudget,
            Self::Missing { .. } => Reason::PluginMissing,
            Self::NotAccepted { .. } => Reason::PluginNotAccepted,
            Self::Refused { .. } => Reason::PluginRefused,
            Self::NotKept { .. } => Reason::PluginNotKept,
            Self::Unread { .. } => Reason::ContentUnread,
            Self::Internal { .. } => Reason::InternalError,
            Self::Unacceptable { .. } => Reason::UnacceptableAnswer,
            Self::NonDeterministic { .. } => Reason::NonDeterministic,
            Self::BreakerOpen { .. } => Reason::BreakerOpen,
            Self::Throttled { .. } => Reason::Throttled,
        }
    }
}

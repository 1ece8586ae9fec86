//! The words of the host's own conditions and events. A word is the name of its variant, and stands nowhere else.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Defines an enum of words that users see as they are written here.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $word:ident,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$doc])* $word,)*
        }

        impl $name {
            /// Every variant, in the order of their definition.
            pub const ALL: &'static [Self] = &[$(Self::$word,)*];

            /// Returns the word as users see it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$word => stringify!($word),)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// The type of a condition of the host's own. They stand below `status.troupe`.
    Condition {
        /// The job waits for something; False if it waits for nothing, Unknown if no plugin says so.
        Waiting,
        /// The job is refused; its user has to act.
        Rejected,
        /// The plugin gave no answer; its author, or whoever runs the cluster, has to act.
        PluginFaulted,
        /// Another writer keeps overwriting the status.
        Contested,
        /// The API server returned warnings about the job's children, a label of the job is in the wrong place, or the plugin
        /// warns of something in the job.
        Warned,
        /// Pods were created from a template that has changed since.
        PodsOutdated,
    }
}

words! {
    /// The reason of a condition or event of the host's own: one CamelCase word for each cause.
    Reason {
        /// Pods that have to exist first do not.
        Pods,
        /// Pods have no address yet.
        PodAddresses,
        /// Pods do not run yet.
        PodsRunning,
        /// Pods are not ready yet.
        PodsReady,
        /// Pods have not succeeded yet.
        PodsSucceeded,
        /// Another's object has the name.
        NameTaken,
        /// An earlier object of the name is being deleted.
        Terminating,
        /// No node can take a pod.
        Unschedulable,
        /// A pod has scheduling gates.
        SchedulingGated,
        /// An image cannot be pulled.
        ImagePull,
        /// A container cannot be created or started.
        ContainerNotStarted,
        /// A container ends again and again.
        CrashLoop,
        /// An init container has not ended yet.
        InitContainer,
        /// The node of a pod is not ready.
        NodeLost,
        /// Failed pods are replaced after a delay.
        BackOff,
        /// Runs of the namespace's jobs are made at a pace.
        Paced,
        /// A field of an object lacks an accepted value.
        Field,
        /// An object that is created once was deleted.
        Deleted,
        /// The installed CRD prunes what the host writes down.
        StatusPruned,
        /// The namespace is being deleted.
        NamespaceTerminating,
        /// The queue has said nothing of the job yet.
        Queued,
        /// The queue does not admit the job.
        NotAdmitted,
        /// The queue has evicted the job.
        Evicted,
        /// The Workload of the job is deactivated: its `spec.active` is false.
        Deactivated,
        /// A flavor or a priority class is not there.
        ClassMissing,
        /// No ports of the nodes are available.
        HostPorts,
        /// A Job is gone, and nobody saw how it ended.
        Lost,
        /// The API server refuses a write.
        Refused,
        /// A write failed.
        WriteFailed,
        /// The job waits for nothing, as far as the host sees.
        Proceeding,
        /// The job waits for nothing, since its user has suspended it.
        Suspended,
        /// The job waits for nothing, since it has ended.
        Ended,
        /// The job waits for nothing, since it is refused.
        Rejected,
        /// Nobody knows what the job waits for, since its plugin gives no answer.
        NoVerdict,
        /// The job was edited after its pods were created.
        TemplateChanged,
        /// Fields of the job are invalid.
        ValidationError,
        /// The plugin or the host does not support something.
        Unsupported,
        /// The job exceeds a limit.
        LimitExceeded,
        /// Jobs of the namespace are not served.
        NamespaceNotServed,
        /// The plugin trapped or exited.
        Trapped,
        /// The plugin exhausted a budget.
        OutOfBudget,
        /// The plugin's bytes are not available.
        PluginMissing,
        /// The host never accepted the plugin.
        PluginNotAccepted,
        /// No plugin serves the kind, since the one that would was refused.
        PluginRefused,
        /// The plugin's bytes are not kept yet.
        PluginNotKept,
        /// The host cannot read an object that the job names.
        ContentUnread,
        /// The plugin reported an internal error.
        InternalError,
        /// The host does not accept the plugin's answer.
        UnacceptableAnswer,
        /// The plugin gave two answers to one question.
        NonDeterministic,
        /// The plugin is not asked after repeated faults.
        BreakerOpen,
        /// The plugin has used up the fuel of a minute.
        Throttled,
        /// Somebody else writes the same status.
        AnotherWriter,
        /// The API server warned about an object that it stored.
        APIServerWarning,
        /// The label of a queue is where it queues each pod by itself, or nothing.
        QueueLabelMisplaced,
        /// The plan warns of something in the job.
        PluginWarning,
        /// Pods or Jobs were created.
        Created,
    }
}

impl Reason {
    /// Events of the host for which a framework may name its own reason.
    pub const RENAMED: [Self; 3] = [Self::Created, Self::NameTaken, Self::Refused];
}

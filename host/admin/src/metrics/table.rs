//! Every metric of the host: its name, type, labels and meaning. `docs/metrics.md` is made from this table.

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// A number that only grows while the host runs.
    Counter,
    /// A number that goes up and down.
    Gauge,
    /// Counts by upper bound, with their sum and number.
    Histogram,
}

impl Type {
    /// Returns the type as in the text format.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// The name, as queries have it: with `_total`, without `_bucket`, `_sum` and `_count`.
    pub name: &'static str,
    /// The type.
    pub kind: Type,
    /// The labels, without `le`.
    pub labels: &'static [&'static str],
    /// What the value means.
    pub help: &'static str,
}

/// Defines a constant for each metric, and the list of all.
macro_rules! metrics {
    ($($word:ident: $kind:ident $name:literal [$($label:literal),*] $help:literal)*) => {
        $(pub(super) const $word: Metric =
            Metric { name: $name, kind: Type::$kind, labels: &[$($label),*], help: $help };)*

        /// Every metric, in the order of the metrics page.
        pub const ALL: &[Metric] = &[$($word),*];
    };
}

metrics! {
    RECONCILES: Counter "controller_runtime_reconcile_total" ["controller", "result"]
        "Passes over jobs by result: success, requeue_after (again at a time), error"
    RECONCILE_ERRORS: Counter "controller_runtime_reconcile_errors_total" ["controller"]
        "Passes over jobs that failed and are tried again"
    RECONCILE_PANICS: Counter "controller_runtime_reconcile_panics_total" ["controller"]
        "Passes over jobs in which the host panicked"
    RECONCILE_SECONDS: Histogram "controller_runtime_reconcile_time_seconds" ["controller"]
        "Duration of passes over jobs"
    ACTIVE_WORKERS: Gauge "controller_runtime_active_workers" ["controller"]
        "Passes that are under way"
    MAX_WORKERS: Gauge "controller_runtime_max_concurrent_reconciles" ["controller"]
        "Upper limit of passes that are under way, of all kinds together"
    QUEUE_DEPTH: Gauge "workqueue_depth" ["name"]
        "Jobs that are ready to be looked at"
    QUEUE_ADDS: Counter "workqueue_adds_total" ["name"]
        "Jobs that have become ready to be looked at"
    QUEUE_RETRIES: Counter "workqueue_retries_total" ["name"]
        "Jobs that were queued again after a failed pass"
    QUEUE_SECONDS: Histogram "workqueue_queue_duration_seconds" ["name"]
        "Time for which a job was ready before its pass began"
    WORK_SECONDS: Histogram "workqueue_work_duration_seconds" ["name"]
        "Time from the beginning of a pass until its job can be queued again"
    LONGEST_WORK: Gauge "workqueue_longest_running_processor_seconds" ["name"]
        "Age of the oldest pass that is under way"
    UNFINISHED_WORK: Gauge "workqueue_unfinished_work_seconds" ["name"]
        "Sum of the ages of all passes that are under way"
    REQUESTS: Counter "rest_client_requests_total" ["code", "method", "host", "resource"]
        "Requests to the API server; the code is <error> where there was no answer"
    REQUEST_SECONDS: Histogram "rest_client_request_duration_seconds" ["verb", "host"]
        "Time from a request to the head of its answer; that of a watch is not its end"
    LEADER: Gauge "leader_election_master_status" ["name"]
        "Whether this host has the lease: 1 or 0; absent without --leader-elect"
    CPU: Counter "process_cpu_seconds_total" []
        "Processor time that the process has used"
    MEMORY: Gauge "process_resident_memory_bytes" []
        "Resident memory of the process"
    VIRTUAL_MEMORY: Gauge "process_virtual_memory_bytes" []
        "Address space of the process"
    START: Gauge "process_start_time_seconds" []
        "When the process started, in seconds since 1970"
    OPEN_FDS: Gauge "process_open_fds" []
        "Open file descriptors of the process"
    MAX_FDS: Gauge "process_max_fds" []
        "Upper limit of open file descriptors"
    JOBS: Gauge "troupe_jobs" ["controller", "phase"]
        "Jobs by phase: pending, running, suspended, succeeded, failed, rejected, faulted, deleting, external (run by another manager)"
    JOBS_WAITING: Gauge "troupe_jobs_waiting" ["controller", "reason"]
        "Jobs by what they wait for, or by why nothing is done: the reason of their condition"
    JOBS_CREATED: Counter "troupe_jobs_created_total" ["controller"]
        "Jobs that this host has seen from their beginning"
    UNTIL_PODS: Histogram "troupe_job_pods_created_seconds" ["controller"]
        "Time from the creation of a job until all of its pods are created; without jobs that were suspended before"
    UNTIL_RUNNING: Histogram "troupe_job_running_seconds" ["controller"]
        "Time from the creation of a job until all of its pods run or have run; without jobs that were suspended before"
    UNTIL_END: Histogram "troupe_job_end_seconds" ["controller", "outcome"]
        "Time from the creation of a job until it succeeded or failed"
    REPLACED: Counter "troupe_pods_replaced_total" ["controller"]
        "Failed pods that were counted, to be created again"
    FAILED_WRITES: Counter "troupe_failed_writes_total" ["controller", "reason"]
        "Writes of passes that did not succeed; Refused: the API server, a webhook or a quota says no"
    REJECTIONS: Counter "troupe_rejections_total" ["controller", "reason"]
        "Passes that rejected a job, which its user has to change"
    FAULTS: Counter "troupe_faults_total" ["controller", "reason"]
        "Passes without an answer of the plugin; UnacceptableAnswer: the host denied its output"
    PLUGIN_SECONDS: Histogram "troupe_plugin_call_seconds" ["plugin", "function"]
        "Duration of calls of plugins"
    PLUGIN_FAULTS: Counter "troupe_plugin_call_faults_total" ["plugin", "function"]
        "Calls of plugins that trapped, used up a budget, or had an answer that could not be read"
    PLUGIN_FUEL: Counter "troupe_plugin_fuel_total" ["plugin", "function"]
        "Fuel that calls of plugins have used"
    REVISIONS: Gauge "troupe_plugin_revision_info" ["plugin", "digest", "role"]
        "Digests that plan new jobs: 1 for each"
    TRIALS: Gauge "troupe_plugin_trial_passes" ["plugin", "class"]
        "Passes that a candidate was shown beside the active digest"
    BREAKER: Gauge "troupe_plugin_breaker_state" ["plugin"]
        "Whether plugins are asked: 0 yes, 1 by one namespace to see whether they answer, 2 no"
    BREAKER_JOBS: Gauge "troupe_plugin_breaker_jobs" ["plugin"]
        "Jobs about which their plugin is not asked for a while"
    BREAKER_NAMESPACES: Gauge "troupe_plugin_breaker_namespaces" ["plugin"]
        "Namespaces about whose jobs their plugin is not asked for a while"
    WATCHED: Gauge "troupe_watched_objects" ["resource"]
        "Objects that the watches hold"
    READY: Gauge "troupe_ready" []
        "Whether every watch has listed, or waits for its kind or the right to it, or this host waits for the lease: what /readyz says"
    POLICIES: Gauge "troupe_policy_applied" ["policy"]
        "Whether a policy around the host was there, bound, had its parameters and covered all kinds when the host last read it, every five minutes: 1 or 0; absent if never read"
    SPANS_DROPPED: Counter "troupe_trace_spans_dropped_total" ["reason"]
        "Spans of traces that were not sent (QueueFull) or that the collector did not take (NotTaken); absent without --otlp-endpoint"
    TASK_RESTARTS: Counter "troupe_task_restarts_total" ["task"]
        "Long-lived tasks that panicked or ended, and were started again"
}

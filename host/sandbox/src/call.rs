//! The only caller of plugins. `describe` and `plan` each run on a fresh instance, `bind` and `judge` of a pass share
//! one. Each instance is dropped afterwards: no state of a plugin survives, and no instance is used after a trap.

use super::{
    allowance::Allowances,
    convert::{Bodies, Exports, JobInput, Live, Seen, Stop},
    guest::Guest,
    limits::{Limits, OutOfMemory},
    load_error::LoadError,
    log::{Log, clean},
    stats::{Call, Tally},
    trace::{self, Outcome},
    twin::Twin,
};
use decide::{
    Outlook,
    plan::{Answer, Bindings, Budget, Descriptor, Fault, Plan, Rejection, Verdict},
};
use serde_json::Value;
use std::time::{Duration, Instant};
use wasmtime::{Engine, PoolConcurrencyLimitError, Store, Trap};

/// The period of the epoch in production.
const TICK: Duration = Duration::from_millis(10);

/// Maximum bytes of a job, with its observed objects, for which a plugin must keep its limits. If a larger input
/// exceeds a limit, that is held against the job.
pub(super) const HEAVY: usize = 64 << 10;

/// The reason why there is no plan or no verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPlan {
    /// The user's mistake.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The plugin's fault.
    #[error(transparent)]
    Faulted(#[from] Fault),
}

impl From<NoPlan> for Answer {
    fn from(no_plan: NoPlan) -> Self {
        match no_plan {
            NoPlan::Rejected(rejection) => Self::Rejected(rejection),
            NoPlan::Faulted(fault) => Self::Faulted(fault),
        }
    }
}

/// The result of a pass: what `bind` and `judge` returned.
pub(super) type Said = (Bindings, Verdict);

/// Calls plugins within their limits.
#[derive(Debug)]
pub(super) struct Caller {
    engine: Engine,
    limits: Limits,
    tally: Tally,
}

/// The plugin to call.
#[derive(Clone, Copy)]
pub(super) struct Callee<'a> {
    pub(super) plugin: &'a str,
    pub(super) exports: &'a Exports,
    /// For calls that are made twice.
    pub(super) twin: &'a Twin,
    /// The bodies that its plans have in common.
    pub(super) bodies: &'a Bodies,
    pub(super) limits: &'a Limits,
    /// Where the fuel of the calls is charged.
    pub(super) allowances: &'a Allowances,
}

/// An instance with its store.
struct Open<'a> {
    caller: &'a Caller,
    callee: Callee<'a>,
    store: Store<Guest>,
    live: Option<Live>,
    fuel: u64,
    calls: Vec<Call>,
    shown: Shown<'a>,
}

/// The input of the calls.
#[derive(Clone, Copy)]
struct Shown<'a> {
    job: Option<&'a JobInput>,
    seen: Option<&'a Seen>,
}

impl Shown<'_> {
    /// Returns the approximate size in memory, in bytes.
    fn bytes(self) -> usize {
        self.job.map_or(0, JobInput::bytes) + self.seen.map_or(0, Seen::bytes)
    }
}

/// The purpose of a fresh instance.
struct Purpose<'a> {
    function: &'static str,
    /// `namespace/name` of the job, for the log.
    subject: &'a str,
    now: u64,
    seed: &'a str,
    shown: Shown<'a>,
}

impl Caller {
    /// # Errors
    /// Returns an error if this machine cannot run WebAssembly.
    pub(super) fn new(limits: Limits) -> Result<Self, LoadError> {
        Ok(Self { engine: super::compile::engine(&limits)?, limits, tally: Tally::default() })
    }

    /// Returns a caller with the same engine and limits, and with statistics that begin at zero.
    pub(super) fn counted_anew(&self) -> Self {
        Self { engine: self.engine.clone(), limits: self.limits.clone(), tally: Tally::default() }
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns the limits of a plugin that has none of its own. Memory and tables are those of the engine, the largest
    /// possible.
    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(super) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Starts the thread that advances the epoch, until the engine is dropped. Not used in reproducible runs.
    pub(super) fn start_clock(&self) -> std::io::Result<()> {
        let engine = self.engine.weak();
        let tick = move || {
            while let Some(engine) = engine.upgrade() {
                engine.increment_epoch();
                drop(engine);
                std::thread::sleep(TICK);
            }
        };
        std::thread::Builder::new().name("plugin-clock".to_owned()).spawn(tick).map(drop)
    }

    /// Calls `describe` and returns the description. The plugin's clocks return 0.
    pub(super) fn describe(&self, callee: Callee<'_>) -> Result<Descriptor, Fault> {
        let purpose =
            Purpose { function: "describe", subject: "", now: 0, seed: "", shown: Shown { job: None, seen: None } };
        let open = self.open(callee, &purpose);
        open.and_then(|mut open| open.ask("describe", Live::describe)).map_err(|no_plan| match no_plan {
            NoPlan::Faulted(fault) => fault,
            NoPlan::Rejected(rejection) => internal(callee.plugin, "describe", &rejection.to_string()),
        })
    }

    /// Calls `plan` for a job with this spec. The plugin's clocks return 0, its random bytes follow from `key`.
    pub(super) fn plan(
        &self,
        callee: Callee<'_>,
        (job, spec): (&JobInput, &Value),
        key: [u8; 32],
    ) -> Result<Plan, NoPlan> {
        let seed = String::from_utf8_lossy(&key);
        let shown = Shown { job: Some(job), seen: None };
        let purpose = Purpose { function: "plan", subject: &job.subject(), now: 0, seed: &seed, shown };
        let plan = |live: &Live, store: &mut Store<Guest>, limits: &Limits| {
            live.plan(store, (limits, callee.bodies), (job, spec))
        };
        self.open(callee, &purpose)?.ask("plan", plan)
    }

    /// Calls `bind` and `judge` on one instance, and returns the wanted bodies and the verdict.
    pub(super) fn pass(
        &self,
        callee: Callee<'_>,
        (job, seen): (&JobInput, &Seen),
        wanted: &[String],
        outlook: &Outlook,
    ) -> Result<Said, NoPlan> {
        let subject = job.subject();
        let shown = Shown { job: Some(job), seen: Some(seen) };
        let purpose = Purpose { function: "bind", subject: &subject, now: seen.now(), seed: job.uid(), shown };
        let mut open = self.open(callee, &purpose)?;
        let bindings = open.ask("bind", |live, store, limits| live.bind(store, limits, (job, seen), wanted))?;
        let verdict = open.ask("judge", |live, store, limits| live.judge(store, limits, outlook))?;
        Ok((bindings, verdict))
    }

    fn open<'a>(&'a self, callee: Callee<'a>, purpose: &Purpose<'a>) -> Result<Open<'a>, NoPlan> {
        let limits = callee.limits;
        let log = Log::new(callee.plugin.into(), purpose.subject.into(), limits.log_lines);
        let store = Guest::new(limits, log, purpose.now, purpose.seed).into_store(&self.engine, limits);
        let pods = purpose.shown.seen.map_or(0, Seen::pods);
        let fuel = limits.fuel.saturating_add(limits.fuel_per_pod.saturating_mul(pods));
        let (calls, shown) = (Vec::with_capacity(3), purpose.shown);
        let mut open = Open { caller: self, callee, store, live: None, fuel, calls, shown };
        let live = open.timed("instantiate", |open| open.callee.exports.instantiate(&mut open.store));
        open.live = Some(live.map_err(|stop| open.no_plan(purpose.function, stop))?);
        Ok(open)
    }
}

impl Open<'_> {
    fn ask<T>(
        &mut self,
        function: &'static str,
        question: impl FnOnce(&Live, &mut Store<Guest>, &Limits) -> Result<T, Stop>,
    ) -> Result<T, NoPlan> {
        let answer = self.timed(function, |open| match &open.live {
            Some(live) => question(live, &mut open.store, open.callee.limits),
            None => Err(Stop::Internal("it was asked before it was instantiated".to_owned())),
        });
        answer.map_err(|stop| self.no_plan(function, stop))
    }

    /// Runs one call with full fuel and a new deadline, and records what it used.
    fn timed<T>(&mut self, function: &'static str, run: impl FnOnce(&mut Self) -> Result<T, Stop>) -> Result<T, Stop> {
        self.store.set_fuel(self.fuel).map_err(Stop::Trap)?;
        let ticks = self.callee.limits.wall.as_millis() / TICK.as_millis();
        self.store.set_epoch_deadline(u64::try_from(ticks).unwrap_or(u64::MAX / 2).max(1));
        let span = trace::call(self.callee.plugin, function);
        let began = Instant::now();
        let result = run(self);
        let took = began.elapsed();
        let fuel = self.fuel - self.store.get_fuel().unwrap_or_default();
        let outcome = match &result {
            Ok(_) => Outcome::Answered,
            Err(Stop::Rejected(_)) => Outcome::Rejected,
            Err(_) => Outcome::Faulted,
        };
        trace::called(&span, fuel, outcome);
        self.calls.push(Call { function, took, fuel, faulted: matches!(outcome, Outcome::Faulted) });
        result
    }

    fn no_plan(&self, function: &str, stop: Stop) -> NoPlan {
        let (plugin, function) = (self.callee.plugin.to_owned(), function.to_owned());
        match stop {
            Stop::Rejected(rejection) => NoPlan::Rejected(rejection),
            Stop::Internal(message) => NoPlan::Faulted(Fault::Internal { plugin, function, message }),
            Stop::Unacceptable(message) => NoPlan::Faulted(Fault::Unacceptable { plugin, function, message }),
            Stop::TooLarge(message) => self.used_up(Fault::Unacceptable { plugin, function, message }),
            Stop::Trap(error) => self.trapped(plugin, function, &error),
        }
    }

    fn trapped(&self, plugin: String, function: String, error: &wasmtime::Error) -> NoPlan {
        let out_of = |budget| Fault::OutOfBudget { plugin: plugin.clone(), function: function.clone(), budget };
        match error.downcast_ref::<Trap>() {
            Some(Trap::OutOfFuel) => return self.used_up(out_of(Budget::Fuel)),
            // A timeout depends on the machine too, so it never becomes a rejection.
            Some(Trap::Interrupt) => return out_of(Budget::Time).into(),
            _ if error.is::<OutOfMemory>() => return self.used_up(out_of(Budget::Memory)),
            _ if error.is::<PoolConcurrencyLimitError>() => return out_of(Budget::Instances).into(),
            _ => {}
        }
        let cause = error.root_cause().to_string();
        if cause.ends_with("fuel allocated for hostcalls has been exhausted") {
            let message = format!("it is larger than {} bytes", self.callee.limits.answer);
            return self.used_up(Fault::Unacceptable { plugin, function, message });
        }
        let words = self.store.data().log.last_words();
        let message = if words.is_empty() { cause } else { format!("{cause}: {words}") };
        Fault::Trapped { plugin, function, message: clean(&message, 1024) }.into()
    }

    /// Returns the error for an exceeded limit: a rejection of the job if the job is heavy, else a fault of the plugin.
    fn used_up(&self, fault: Fault) -> NoPlan {
        match self.shown.bytes() {
            bytes if bytes > HEAVY => Rejection::TooMuch(format!(
                "{fault}: the job, with its pods and objects, has about {bytes} bytes; any job of up to {HEAVY} has to \
                 be answered for, a larger one where it can be"
            ))
            .into(),
            _ => fault.into(),
        }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.caller.tally.record(self.callee.plugin, &self.calls);
        let used = self.calls.iter().map(|call| call.fuel).sum();
        let namespace = self.shown.job.map_or("", JobInput::namespace);
        self.callee.allowances.charge(self.callee.plugin, namespace, used);
    }
}

/// Returns an internal fault with a message of the plugin, or of the host on its behalf.
pub(super) fn internal(plugin: &str, function: &str, message: &str) -> Fault {
    Fault::Internal { plugin: plugin.to_owned(), function: function.to_owned(), message: message.to_owned() }
}

//! The faults of each request and each watch: those drawn by chance, and those aimed by tests.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;

use crate::dice::Dice;
use crate::error::ApiError;
use crate::faults::{Crash, Faults, Matching, When};
use crate::world::World;

/// The parts of a request that faults depend on.
#[derive(Debug)]
pub(crate) struct About<'a> {
    pub(crate) actor: &'a str,
    pub(crate) verb: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

/// The faults of one request.
#[derive(Debug, Default)]
pub(crate) struct Fate {
    pub(crate) wait: Duration,
    pub(crate) error: Option<ApiError>,
    pub(crate) broken: bool,
    pub(crate) lost: bool,
    pub(crate) crash: Option<When>,
    pub(crate) wait_after: Duration,
}

impl Fate {
    /// Whether the client gets the answer, at most this long after the request was applied.
    pub(crate) fn is_answered_within(&self, patience: Duration) -> bool {
        !self.lost && self.crash.is_none() && self.wait + self.wait_after < patience
    }

    /// Whether it takes so long that the client may give up.
    pub(crate) fn is_slow(&self) -> bool {
        self.wait.max(self.wait_after) >= Duration::from_secs(1)
    }
}

/// The faults of one watch.
#[derive(Debug)]
pub(crate) struct WatchFate {
    pub(crate) lag: Duration,
    pub(crate) gone: bool,
    /// The time after which no more events come.
    pub(crate) silent_after: Option<Duration>,
    pub(crate) bookmarks: bool,
    pub(crate) dice: Dice,
}

/// The fault plan and its state.
pub(crate) struct FaultState {
    pub(crate) faults: Faults,
    refusals: BTreeMap<u64, (Matching, ApiError, Option<u64>)>,
    aimed: Vec<(String, u64, When)>,
    asked: BTreeMap<String, u64>,
    clients: BTreeMap<u64, String>,
    dead: BTreeSet<u64>,
    pub(crate) frozen: BTreeSet<String>,
    crashes: Vec<mpsc::UnboundedSender<Crash>>,
}

impl FaultState {
    pub(crate) fn new(faults: Faults) -> Self {
        Self {
            faults,
            refusals: BTreeMap::new(),
            aimed: Vec::new(),
            asked: BTreeMap::new(),
            clients: BTreeMap::new(),
            dead: BTreeSet::new(),
            frozen: BTreeSet::new(),
            crashes: Vec::new(),
        }
    }

    pub(crate) fn listen(&mut self) -> mpsc::UnboundedReceiver<Crash> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.crashes.push(sender);
        receiver
    }

    pub(crate) fn is_dead(&self, client: u64) -> bool {
        self.dead.contains(&client)
    }

    pub(crate) fn lift(&mut self, refusal: u64) {
        self.refusals.remove(&refusal);
    }
}

impl World {
    pub(crate) fn new_client(&mut self, actor: &str) -> u64 {
        let client = self.number("client");
        self.faults.clients.insert(client, actor.to_owned());
        client
    }

    pub(crate) fn refuse(&mut self, matching: Matching, error: ApiError, times: Option<u64>) -> u64 {
        let number = self.number("refusal");
        self.faults.refusals.insert(number, (matching, error, times));
        number
    }

    /// Crashes the actor at its n-th request from now on, counting from 1.
    pub(crate) fn aim(&mut self, actor: &str, request: u64, when: When) {
        let so_far = self.faults.asked.get(actor).copied().unwrap_or(0);
        self.faults.aimed.push((actor.to_owned(), so_far + request, when));
    }

    pub(crate) fn asked(&self, actor: &str) -> u64 {
        self.faults.asked.get(actor).copied().unwrap_or(0)
    }

    /// Cuts off all clients of this actor: they get no more responses. New clients do.
    pub(crate) fn kill(&mut self, crash: &Crash) {
        let FaultState { clients, dead, crashes, .. } = &mut self.faults;
        dead.extend(clients.iter().filter(|(_, actor)| **actor == crash.actor).map(|(client, _)| *client));
        crashes.retain(|sender| sender.send(crash.clone()).is_ok());
    }

    fn failing(&self) -> bool {
        self.faults.faults.until.is_none_or(|end| self.elapsed() < end)
    }

    pub(crate) fn fate(&mut self, about: &About<'_>) -> Fate {
        let asked = self.faults.asked.entry(about.actor.to_owned()).or_default();
        *asked += 1;
        let asked = *asked;
        let mut fate = self.drawn(about);
        let aimed = self.faults.aimed.iter().position(|(actor, at, _)| actor == about.actor && *at == asked);
        if let Some(aimed) = aimed {
            fate = Fate { crash: Some(self.faults.aimed.remove(aimed).2), ..Fate::default() };
        }
        let refusal = self.faults.refusals.iter().find(|(_, (matching, ..))| matching.matches(about));
        if let Some((number, (matching, error, times))) = refusal {
            let (number, error, times, called) = (*number, error.clone(), *times, matching.called);
            if let Some(called) = called {
                self.trouble(called);
            }
            match times {
                Some(1) => self.faults.lift(number),
                Some(more) => {
                    if let Some(refusal) = self.faults.refusals.get_mut(&number) {
                        refusal.2 = Some(more - 1);
                    }
                }
                None => {}
            }
            fate.error = Some(error);
        }
        fate
    }

    fn drawn(&mut self, about: &About<'_>) -> Fate {
        if about.actor == "user" || self.faults.faults == Faults::none() || !self.failing() {
            return Fate::default();
        }
        let faults = self.faults.faults.clone();
        let number = self.number("request");
        let dice = |concern: &str| Dice::new(self.seed ^ faults.seed.rotate_left(32), concern, number);
        let mut fate = Fate { wait: dice("latency").up_to(faults.latency), ..Fate::default() };
        let mut slow = dice("slow");
        if slow.chance(faults.slow) {
            let longest = faults.slow_for.saturating_sub(Duration::from_secs(1));
            let time = Duration::from_secs(1) + slow.up_to(longest);
            if slow.chance(0.5) {
                fate.wait += time;
            } else {
                fate.wait_after = time;
            }
        }
        let mut error = dice("error");
        if error.chance(faults.error) {
            fate.error = Some(passing_error(&mut error));
        }
        if dice("conflict").chance(faults.conflict) && matches!(about.verb, "patch" | "update") {
            fate.error = Some(conflict(about));
        }
        fate.broken = dice("connection").chance(faults.connection);
        fate.lost = dice("reply").chance(faults.reply_lost) && about.verb != "watch";
        let mut crash = dice("crash");
        if crash.chance(faults.crash) {
            fate.crash = Some(if crash.chance(0.5) { When::Before } else { When::After });
        }
        fate
    }

    pub(crate) fn watch_fate(&mut self, actor: &str) -> WatchFate {
        let faults = self.faults.faults.clone();
        let number = self.number("watch");
        let mut dice = Dice::new(self.seed ^ faults.seed.rotate_left(32), "watch", number);
        let calm = actor == "user" || !self.failing();
        let (lag, gone) = (dice.up_to(faults.watch_lag), dice.chance(faults.reopen_gone));
        let mut silence = Dice::new(self.seed ^ faults.seed.rotate_left(32), "silence", number);
        let silent = !calm && silence.chance(faults.watch_silent);
        WatchFate {
            lag: if calm { Duration::ZERO } else { lag },
            gone: gone && !calm,
            silent_after: silent.then(|| silence.up_to(Duration::from_secs(30))),
            bookmarks: calm || !faults.no_bookmarks,
            dice,
        }
    }

    /// Returns the faults of the next event of a watch: its delay, and whether the watch breaks, expires or repeats it.
    pub(crate) fn event_fate(&self, actor: &str, fate: &mut WatchFate) -> EventFate {
        let faults = &self.faults.faults;
        let jitter = fate.dice.up_to(fate.lag / 2);
        let (drop, gone, twice) = (
            fate.dice.chance(faults.watch_drop),
            fate.dice.chance(faults.watch_gone),
            fate.dice.chance(faults.watch_twice),
        );
        if actor == "user" || !self.failing() {
            return EventFate::default();
        }
        EventFate { delay: fate.lag + jitter, drop, gone, twice }
    }
}

/// From here on an event is as late as behind another API server whose watch cache lags.
const SECONDS_LATE: Duration = Duration::from_secs(2);

/// The faults of one watch event.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct EventFate {
    pub(crate) delay: Duration,
    pub(crate) drop: bool,
    pub(crate) gone: bool,
    pub(crate) twice: bool,
}

impl EventFate {
    /// Returns the name of the fault, if there is one.
    pub(crate) fn trouble(&self) -> Option<&'static str> {
        match self {
            Self { gone: true, .. } => Some("watch ended with 410"),
            Self { drop: true, .. } => Some("watch broken"),
            Self { twice: true, .. } => Some("event twice"),
            Self { delay, .. } if *delay >= SECONDS_LATE => Some("event late by seconds"),
            Self { delay, .. } if !delay.is_zero() => Some("event late"),
            Self { .. } => None,
        }
    }
}

fn passing_error(dice: &mut Dice) -> ApiError {
    match dice.below(3) {
        0 => {
            let mut error = ApiError::new(500, "InternalError", "Internal error occurred: etcdserver: leader changed");
            error.details = Some(json!({ "causes": [{ "message": "etcdserver: leader changed" }] }));
            error
        }
        1 => ApiError::new(503, "ServiceUnavailable", "the server is currently unable to handle the request"),
        _ => {
            let message = "the server has received too many requests and has asked us to try again later";
            let mut error = ApiError::new(429, "TooManyRequests", message);
            error.details = Some(json!({ "retryAfterSeconds": 1 }));
            error
        }
    }
}

fn conflict(about: &About<'_>) -> ApiError {
    let mut error = ApiError::new(
        409,
        "Conflict",
        format!(
            "Operation cannot be fulfilled on {} {:?}: the object has been modified; please apply your changes to the \
             latest version and try again",
            about.resource, about.name
        ),
    );
    error.details = Some(json!({ "name": about.name, "kind": about.resource }));
    error
}

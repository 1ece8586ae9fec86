//! The shared state of the API server and its controllers: store, clock, seed, watchers, records.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use crate::Uids;
use crate::dice::Dice;
use crate::fate::FaultState;
use crate::kubelet::LifeState;
use crate::record::{Delivery, Hash, RequestRecord, View, Write};
use crate::store::{Change, Event, Kind, Location, Store, name, namespace, text};

/// A callback for every write.
pub(crate) type Hook = Box<dyn FnMut(&Write, &View<'_>) + Send>;

/// A callback for every object delivered to a client.
pub(crate) type DeliveryHook = Box<dyn FnMut(&Delivery<'_>) + Send>;

/// The whole state, behind one lock that is never held across an `.await`.
pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) uids: Uids,
    /// The object being created, as it was sent; for the hooks.
    pub(crate) sent: Option<Value>,
    base: Timestamp,
    start: Instant,
    pub(crate) store: Store,
    pub(crate) requests: Vec<RequestRecord>,
    pub(crate) hash: Hash,
    pub(crate) hooks: Vec<Hook>,
    pub(crate) delivery_hooks: Vec<DeliveryHook>,
    watchers: BTreeMap<u64, (String, mpsc::UnboundedSender<Arc<Event>>)>,
    numbers: BTreeMap<&'static str, u64>,
    /// The times of each kind of fault.
    pub(crate) troubles: BTreeMap<String, Vec<Timestamp>>,
    /// The changes since the controllers last ran, and what wakes them.
    pub(crate) changed: VecDeque<Arc<Event>>,
    pub(crate) agenda: BTreeSet<(Instant, u64, Errand)>,
    pub(crate) wake: Arc<Notify>,
    pub(crate) faults: FaultState,
    pub(crate) life: LifeState,
}

/// Something that a controller checks later.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Errand {
    Pod(String),
    Job(Location),
    Collect(String),
}

impl World {
    pub(crate) fn new(
        seed: u64,
        base: Timestamp,
        uids: Uids,
        store: Store,
        faults: FaultState,
        life: LifeState,
    ) -> Self {
        Self {
            seed,
            uids,
            sent: None,
            base,
            start: Instant::now(),
            store,
            requests: Vec::new(),
            hash: Hash::default(),
            hooks: Vec::new(),
            delivery_hooks: Vec::new(),
            watchers: BTreeMap::new(),
            numbers: BTreeMap::new(),
            troubles: BTreeMap::new(),
            changed: VecDeque::new(),
            agenda: BTreeSet::new(),
            wake: Arc::new(Notify::new()),
            faults,
            life,
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    pub(crate) fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.elapsed()).unwrap_or(SignedDuration::MAX);
        self.base.checked_add(elapsed).unwrap_or(Timestamp::MAX)
    }

    /// Returns the current time as in objects: RFC 3339, whole seconds.
    pub(crate) fn stamp(&self) -> String {
        stamp(self.now())
    }

    /// Returns the next number of a sequence, from 1.
    pub(crate) fn number(&mut self, of: &'static str) -> u64 {
        let number = self.numbers.entry(of).or_default();
        *number += 1;
        *number
    }

    /// Returns the number that [`World::number`] will return next.
    pub(crate) fn next_number(&self, of: &'static str) -> u64 {
        self.numbers.get(of).copied().unwrap_or_default() + 1
    }

    /// Records a fault.
    pub(crate) fn trouble(&mut self, what: &str) {
        let now = self.now();
        self.troubles.entry(what.to_owned()).or_default().push(now);
    }

    /// Returns the dice for the next item of a concern.
    pub(crate) fn dice(&mut self, concern: &'static str) -> Dice {
        let number = self.number(concern);
        Dice::new(self.seed, concern, number)
    }

    /// Calls the hooks with an object that a list or a watch delivered.
    pub(crate) fn delivered(&mut self, actor: &str, kind: &str, object: &Value) {
        let delivery = Delivery { actor, kind, object, at: self.now() };
        self.delivery_hooks.iter_mut().for_each(|hook| hook(&delivery));
    }

    /// Stores an object, or removes it with `None`; notifies the watchers, the controllers and the hooks.
    pub(crate) fn commit(&mut self, actor: &str, location: Location, after: Option<Value>) -> Arc<Value> {
        let event = self.store.write(location, after);
        self.hash.field(actor);
        self.hash.field(&event.location.table);
        self.hash.field(&event.location.key);
        self.hash.field(match event.change {
            Change::Added => "added",
            Change::Modified => "modified",
            Change::Deleted => "deleted",
        });
        self.hash.object(&event.object);
        self.kinds_changed(&event);
        self.watchers.retain(|_, (table, watcher)| {
            if *table == event.location.table { watcher.send(event.clone()).is_ok() } else { !watcher.is_closed() }
        });
        self.changed.push_back(event.clone());
        self.wake.notify_one();
        self.call_hooks(actor, &event);
        event.object.clone()
    }

    fn call_hooks(&mut self, actor: &str, event: &Event) {
        if self.hooks.is_empty() {
            return;
        }
        let Some(kind) = self.store.kind(&event.location.table) else {
            return;
        };
        let write = Write {
            actor: actor.to_owned(),
            group: kind.group.clone(),
            kind: kind.kind.clone(),
            namespace: namespace(&event.object).to_owned(),
            name: name(&event.object).to_owned(),
            before: event.before.clone(),
            after: (event.change != Change::Deleted).then(|| event.object.clone()),
            sent: self.sent.take(),
            version: event.version,
            at: self.now(),
        };
        let mut hooks = std::mem::take(&mut self.hooks);
        for hook in &mut hooks {
            hook(&write, &View { store: &self.store });
        }
        self.hooks = hooks;
    }

    /// Serves the kind of a new CustomResourceDefinition; stops serving that of a removed one.
    fn kinds_changed(&mut self, event: &Event) {
        if event.location.table != "apiextensions.k8s.io/customresourcedefinitions" {
            return;
        }
        let spec = &event.object["spec"];
        let served = spec["versions"].as_array().into_iter().flatten();
        let version = served.clone().find(|version| version["storage"] == true).or_else(|| served.clone().next());
        let kind = Kind {
            group: text(&spec["group"]).to_owned(),
            version: version.map(|version| text(&version["name"]).to_owned()).unwrap_or_default(),
            kind: text(&spec["names"]["kind"]).to_owned(),
            plural: text(&spec["names"]["plural"]).to_owned(),
            namespaced: spec["scope"] != "Cluster",
            status: version.is_some_and(|version| version["subresources"]["status"].is_object()),
            pruned: vec![],
        };
        match event.change {
            Change::Deleted => {
                let table = kind.table();
                let keys: Vec<String> =
                    self.store.tables.get(&table).into_iter().flat_map(|table| table.objects.keys().cloned()).collect();
                for key in keys {
                    self.commit("apiserver", Location { table: table.clone(), key }, None);
                }
                self.store.remove_kind(&table);
            }
            _ => self.store.add_kind(kind),
        }
    }

    /// Subscribes to the changes of a table from now on.
    pub(crate) fn subscribe(&mut self, table: &str) -> mpsc::UnboundedReceiver<Arc<Event>> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let number = self.number("subscription");
        self.watchers.insert(number, (table.to_owned(), sender));
        receiver
    }

    /// Schedules an errand of a controller.
    pub(crate) fn later(&mut self, delay: Duration, errand: Errand) {
        let number = self.number("errand");
        self.agenda.insert((Instant::now() + delay, number, errand));
        self.wake.notify_one();
    }

    pub(crate) fn record(&mut self, record: RequestRecord) {
        for field in [&record.actor, &record.verb, &record.group, &record.resource, &record.subresource] {
            self.hash.field(field);
        }
        self.hash.field(&record.namespace);
        self.hash.field(&record.name);
        self.hash.add(&record.code.to_le_bytes());
        self.requests.push(record);
    }

    /// Returns a free address of the service network.
    pub(crate) fn cluster_ip(&mut self) -> String {
        let number = self.number("cluster ip");
        format!("10.96.{}.{}", number / 250 % 250, number % 250 + 1)
    }

    /// Writes an object as a controller does: no request, no faults, no validation.
    pub(crate) fn alter(&mut self, actor: &str, location: &Location, change: impl FnOnce(&mut Value)) {
        let Some(before) = self.store.get(location).cloned() else {
            return;
        };
        let mut after = (*before).clone();
        change(&mut after);
        if after != *before {
            self.commit(actor, location.clone(), Some(after));
        }
    }
}

/// Formats a time as Kubernetes does: RFC 3339 in whole seconds.
pub(crate) fn stamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Parses a time that Kubernetes wrote.
pub(crate) fn parse(stamp: &Value) -> Option<Timestamp> {
    stamp.as_str()?.parse().ok()
}

/// Returns the namespaces that every cluster starts with.
pub(crate) fn first_namespaces() -> [Value; 4] {
    ["default", "kube-node-lease", "kube-public", "kube-system"]
        .map(|name| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }))
}

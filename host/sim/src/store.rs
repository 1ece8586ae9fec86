//! Objects by kind and key, their uids and owners, and the history of changes that watches replay.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;

pub(crate) use crate::kind::Kind;

/// The address of an object in the store: its table, and its key as in etcd (`namespace/name` or `name`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Location {
    pub(crate) table: String,
    pub(crate) key: String,
}

/// The type of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Added,
    Modified,
    Deleted,
}

/// One change as watches see it; the `object` of a deletion carries the resource version of the deletion.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) version: u64,
    pub(crate) change: Change,
    pub(crate) location: Location,
    pub(crate) object: Arc<Value>,
    pub(crate) before: Option<Arc<Value>>,
}

/// All objects of one kind.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) kind: Arc<Kind>,
    pub(crate) objects: BTreeMap<String, Arc<Value>>,
}

/// The stored state, without any API rules.
#[derive(Debug, Default)]
pub(crate) struct Store {
    pub(crate) tables: BTreeMap<String, Table>,
    by_uid: BTreeMap<String, Location>,
    by_owner: BTreeMap<String, BTreeSet<Location>>,
    history: VecDeque<Arc<Event>>,
    /// The resource version of the last change.
    pub(crate) version: u64,
    /// The history after this resource version is kept.
    pub(crate) compacted: u64,
    pub(crate) window: usize,
}

impl Store {
    pub(crate) fn add_kind(&mut self, kind: Kind) {
        let table = self.tables.entry(kind.table());
        let kind = Arc::new(kind);
        table
            .and_modify(|table| table.kind = kind.clone())
            .or_insert_with(|| Table { kind: kind.clone(), objects: BTreeMap::new() });
    }

    pub(crate) fn remove_kind(&mut self, table: &str) {
        self.tables.remove(table);
    }

    pub(crate) fn kind(&self, table: &str) -> Option<Arc<Kind>> {
        self.tables.get(table).map(|table| table.kind.clone())
    }

    /// Returns the kind with this apiVersion and kind, as in an owner reference.
    pub(crate) fn kind_of(&self, api_version: &str, kind: &str) -> Option<Arc<Kind>> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        self.tables.values().map(|table| &table.kind).find(|have| have.group == group && have.kind == kind).cloned()
    }

    pub(crate) fn get(&self, location: &Location) -> Option<&Arc<Value>> {
        self.tables.get(&location.table)?.objects.get(&location.key)
    }

    pub(crate) fn find_uid(&self, uid: &str) -> Option<(&Location, &Arc<Value>)> {
        let location = self.by_uid.get(uid)?;
        Some((location, self.get(location)?))
    }

    /// Returns the places of the objects that name `uid` in their owner references.
    pub(crate) fn owned(&self, uid: &str) -> Vec<Location> {
        self.by_owner.get(uid).into_iter().flatten().cloned().collect()
    }

    /// Returns the objects of a table in etcd's order, in one namespace or in all if it is empty.
    pub(crate) fn list<'a>(&'a self, table: &str, namespace: &str) -> impl Iterator<Item = &'a Arc<Value>> + use<'a> {
        let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        let from = prefix.clone();
        self.tables
            .get(table)
            .into_iter()
            .flat_map(move |table| table.objects.range(from.clone()..))
            .take_while(move |(key, _)| key.starts_with(&prefix))
            .map(|(_, object)| object)
    }

    /// Returns the objects of a table as they were at `version`; None if that is compacted.
    pub(crate) fn list_at(&self, table: &str, version: u64) -> Option<BTreeMap<String, Arc<Value>>> {
        if version < self.compacted {
            return None;
        }
        let mut objects = self.tables.get(table)?.objects.clone();
        for event in self.history.iter().rev().take_while(|event| event.version > version) {
            if event.location.table != table {
                continue;
            }
            match &event.before {
                Some(before) => objects.insert(event.location.key.clone(), before.clone()),
                None => objects.remove(&event.location.key),
            };
        }
        Some(objects)
    }

    /// Returns the changes of a table after `version`; None if some of them are compacted.
    pub(crate) fn since(&self, table: &str, version: u64) -> Option<Vec<Arc<Event>>> {
        if version < self.compacted {
            return None;
        }
        Some(
            self.history
                .iter()
                .skip_while(|event| event.version <= version)
                .filter(|event| event.location.table == table)
                .cloned()
                .collect(),
        )
    }

    /// Compacts all changes so far, so that older watches and continue tokens are refused with 410.
    pub(crate) fn compact(&mut self) {
        self.history.clear();
        self.compacted = self.version;
    }

    /// Stores the object, or removes it with `None`, under the next resource version; returns the change.
    pub(crate) fn write(&mut self, location: Location, after: Option<Value>) -> Arc<Event> {
        self.version += 1;
        let before = self.get(&location).cloned();
        let change = match (&before, &after) {
            (None, _) => Change::Added,
            (_, Some(_)) => Change::Modified,
            (_, None) => Change::Deleted,
        };
        let gone = after.is_none();
        let mut object = after.unwrap_or_else(|| before.as_deref().cloned().unwrap_or(Value::Null));
        object["metadata"]["resourceVersion"] = Value::String(self.version.to_string());
        let object = Arc::new(object);
        if let Some(before) = &before {
            self.unindex(&location, before);
        }
        if let Some(table) = self.tables.get_mut(&location.table) {
            if gone {
                table.objects.remove(&location.key);
            } else {
                table.objects.insert(location.key.clone(), object.clone());
            }
        }
        if !gone {
            self.index(&location, &object);
        }
        let event = Arc::new(Event { version: self.version, change, location, object, before });
        self.history.push_back(event.clone());
        while self.history.len() > self.window {
            if let Some(old) = self.history.pop_front() {
                self.compacted = old.version;
            }
        }
        event
    }

    fn index(&mut self, location: &Location, object: &Value) {
        self.by_uid.insert(uid(object).to_owned(), location.clone());
        for owner in owners(object) {
            self.by_owner.entry(uid_of(owner).to_owned()).or_default().insert(location.clone());
        }
    }

    fn unindex(&mut self, location: &Location, object: &Value) {
        self.by_uid.remove(uid(object));
        for owner in owners(object) {
            if let Some(owned) = self.by_owner.get_mut(uid_of(owner)) {
                owned.remove(location);
                if owned.is_empty() {
                    self.by_owner.remove(uid_of(owner));
                }
            }
        }
    }
}

impl Location {
    pub(crate) fn of(kind: &Kind, object: &Value) -> Self {
        Self { table: kind.table(), key: key(namespace(object), name(object)) }
    }
}

pub(crate) fn table(group: &str, plural: &str) -> String {
    format!("{group}/{plural}")
}

pub(crate) fn key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(crate) fn name(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(&object["metadata"]["namespace"])
}

pub(crate) fn uid(object: &Value) -> &str {
    text(&object["metadata"]["uid"])
}

fn uid_of(owner: &Value) -> &str {
    text(&owner["uid"])
}

pub(crate) fn owners(object: &Value) -> &[Value] {
    object["metadata"]["ownerReferences"].as_array().map_or(&[], Vec::as_slice)
}

/// Returns the owner reference with `controller: true`.
pub(crate) fn controller(object: &Value) -> Option<&Value> {
    owners(object).iter().find(|owner| owner["controller"] == true)
}

pub(crate) fn finalizers(object: &Value) -> Vec<String> {
    object["metadata"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|finalizer| finalizer.as_str().map(str::to_owned))
        .collect()
}

pub(crate) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|list| list.iter().any(|have| have == finalizer))
}

pub(crate) fn deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

pub(crate) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"].get(key)?.as_str()
}

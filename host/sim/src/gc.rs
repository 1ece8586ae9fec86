//! The garbage collector: dependents of owners that are gone, foreground and orphaning deletion, deleted namespaces.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::defaults::remove;
use crate::delete::{DeleteOptions, FOREGROUND, ORPHAN, Propagation};
use crate::store::{
    Change, Event, Kind, Location, deleting, finalizers, has_finalizer, name, namespace, owners, text, uid,
};
use crate::verbs::Target;
use crate::world::{Errand, World};

const ACTOR: &str = "garbage-collector";

/// The state of one owner reference.
#[derive(PartialEq)]
enum Owner {
    Solid,
    Dangling,
    /// The owner is being deleted in the foreground, and waits for its dependents.
    Waiting,
}

impl World {
    /// Schedules the objects to check after a change.
    pub(crate) fn collect_changed(&mut self, event: &Event) {
        let object = &*event.object;
        let id = uid(object);
        let after = self.life.life.collect;
        match event.change {
            Change::Deleted => {
                for location in self.store.owned(id) {
                    self.collect_later(&location);
                }
                for owner in owners(object) {
                    self.later(after, Errand::Collect(text(&owner["uid"]).to_owned()));
                }
                if !namespace(object).is_empty() {
                    self.namespace_emptied(namespace(object));
                }
            }
            Change::Added | Change::Modified => {
                let marked = deleting(object);
                if !owners(object).is_empty() || marked {
                    self.later(after, Errand::Collect(id.to_owned()));
                }
                if marked {
                    for location in self.store.owned(id) {
                        self.collect_later(&location);
                    }
                }
            }
        }
    }

    fn collect_later(&mut self, location: &Location) {
        if let Some(object) = self.store.get(location) {
            let id = uid(object).to_owned();
            self.later(self.life.life.collect, Errand::Collect(id));
        }
    }

    fn namespace_emptied(&mut self, namespace: &str) {
        let location = Location { table: "/namespaces".into(), key: namespace.to_owned() };
        if self.store.get(&location).is_some_and(|namespace| deleting(namespace)) {
            self.collect_later(&location);
        }
    }

    /// Checks one object.
    pub(crate) fn collect_due(&mut self, id: &str) {
        let Some((location, object)) = self.store.find_uid(id) else {
            return;
        };
        let (location, object) = (location.clone(), object.clone());
        let Some(kind) = self.store.kind(&location.table) else {
            return;
        };
        if deleting(&object) {
            if kind.is("Namespace") {
                self.empty_namespace(&location, name(&object));
            } else if has_finalizer(&object, ORPHAN) {
                self.orphan(&location, id);
            } else if has_finalizer(&object, FOREGROUND) {
                self.delete_dependents(&location, id);
            }
            return;
        }
        self.collect(&kind, &location, &object);
    }

    /// Deletes an object without remaining owners, or removes the references to owners that are gone.
    fn collect(&mut self, kind: &Arc<Kind>, location: &Location, object: &Value) {
        let verdicts: Vec<(String, Owner)> = owners(object)
            .iter()
            .map(|owner| (text(&owner["uid"]).to_owned(), self.judge(owner, namespace(object))))
            .collect();
        if verdicts.is_empty() || verdicts.iter().all(|(_, owner)| *owner == Owner::Solid) {
            return;
        }
        if verdicts.iter().any(|(_, owner)| *owner == Owner::Solid) {
            let gone: Vec<String> =
                verdicts.into_iter().filter(|(_, owner)| *owner != Owner::Solid).map(|(uid, _)| uid).collect();
            self.unown(location, &gone);
            return;
        }
        let waited_for = verdicts.iter().any(|(_, owner)| *owner == Owner::Waiting);
        let propagation = if waited_for && !self.store.owned(uid(object)).is_empty() {
            Propagation::Foreground
        } else if has_finalizer(object, ORPHAN) {
            Propagation::Orphan
        } else if has_finalizer(object, FOREGROUND) {
            Propagation::Foreground
        } else {
            Propagation::Background
        };
        let options = DeleteOptions {
            uid: Some(uid(object).to_owned()),
            propagation: Some(propagation),
            ..DeleteOptions::default()
        };
        // The object exists and its uid was just read, so the delete cannot be refused.
        let _ = self.delete(&Target::own(ACTOR, kind, object), &options);
    }

    fn judge(&self, owner: &Value, within: &str) -> Owner {
        let Some((_, found)) = self.store.find_uid(text(&owner["uid"])) else {
            return Owner::Dangling;
        };
        let same_place = namespace(found).is_empty() || namespace(found) == within;
        let same = name(found) == text(&owner["name"]) && found["kind"] == owner["kind"] && same_place;
        if !same {
            Owner::Dangling
        } else if deleting(found) && has_finalizer(found, FOREGROUND) {
            Owner::Waiting
        } else {
            Owner::Solid
        }
    }

    fn unown(&mut self, location: &Location, gone: &[String]) {
        self.alter(ACTOR, location, |object| {
            if let Some(list) = object["metadata"]["ownerReferences"].as_array_mut() {
                list.retain(|owner| !gone.iter().any(|gone| owner["uid"] == *gone));
                if list.is_empty() {
                    remove(&mut object["metadata"], "ownerReferences");
                }
            }
        });
    }

    /// Removes the owner reference from its dependents, then releases the owner.
    fn orphan(&mut self, location: &Location, id: &str) {
        for dependent in self.store.owned(id) {
            self.unown(&dependent, &[id.to_owned()]);
        }
        self.release(location, ORPHAN);
    }

    /// Releases the owner once no dependent blocks it; the dependents are collected on their own.
    fn delete_dependents(&mut self, location: &Location, id: &str) {
        let blocks = |object: &Value| {
            owners(object).iter().any(|owner| text(&owner["uid"]) == id && owner["blockOwnerDeletion"] == true)
        };
        let blocked =
            self.store.owned(id).iter().filter_map(|location| self.store.get(location)).any(|object| blocks(object));
        if !blocked {
            self.release(location, FOREGROUND);
        }
    }

    /// Removes a finalizer, and removes the object with its last finalizer.
    pub(crate) fn release(&mut self, location: &Location, finalizer: &str) {
        let Some(object) = self.store.get(location).cloned() else {
            return;
        };
        let left: Vec<String> = finalizers(&object).into_iter().filter(|have| have != finalizer).collect();
        let patience = object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
        let actor = if finalizer == crate::jobs::FINALIZER { "job-controller" } else { ACTOR };
        if left.is_empty() && deleting(&object) && patience == 0 {
            self.commit(actor, location.clone(), None);
            return;
        }
        self.alter(actor, location, |object| {
            if left.is_empty() {
                remove(&mut object["metadata"], "finalizers");
            } else {
                object["metadata"]["finalizers"] = json!(left);
            }
        });
    }

    /// Deletes the objects in a deleted namespace, and then the namespace.
    fn empty_namespace(&mut self, location: &Location, namespace: &str) {
        let mut left = 0;
        let tables: Vec<Arc<Kind>> =
            self.store.tables.values().map(|table| table.kind.clone()).filter(|kind| kind.namespaced).collect();
        for kind in tables {
            let objects: Vec<Arc<Value>> = self.store.list(&kind.table(), namespace).cloned().collect();
            for object in objects {
                if deleting(&object) {
                    left += 1;
                    continue;
                }
                let target = Target::own("namespace-controller", &kind, &object);
                if let Ok(crate::delete::Deleted::Marked(_)) = self.delete(&target, &DeleteOptions::background()) {
                    left += 1;
                }
            }
        }
        if left == 0 {
            self.commit("namespace-controller", location.clone(), None);
        }
    }
}

//! The objects of one watch, by name and by owner, and the version that the watch has reached.

use crate::{
    job_key::JobKey,
    observe::wire::{Held, Object, Owner},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The objects of one watch.
#[derive(Debug, Default)]
pub struct Table {
    /// The objects by namespace and name.
    pub objects: BTreeMap<(String, String), Object>,
    /// By the namespace, name and uid of the controller that the objects name, with slashes between: whether it is theirs or
    /// not.
    by_owner: BTreeMap<String, Owned>,
    /// The newest resource version that an event, a bookmark or a list has shown.
    pub(crate) progress: u64,
    pub(crate) listed: Listed,
    /// The resource version of its latest list.
    pub(crate) list: u64,
}

/// A controller of objects. It is in their namespace: an owner reference means nothing in another.
#[derive(Debug, Clone, Copy)]
pub struct Controller<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its uid.
    pub uid: &'a str,
}

impl<'a> Controller<'a> {
    /// Returns the job with this uid.
    #[must_use]
    pub fn job(key: &'a JobKey, uid: &'a str) -> Self {
        Self { namespace: &key.namespace, name: &key.name, uid }
    }

    fn key(self) -> String {
        [self.namespace, self.name, self.uid].join("/")
    }
}

/// The objects that name one controller.
#[derive(Debug)]
struct Owned {
    owner: Arc<Owner>,
    /// Namespaces and names.
    objects: BTreeSet<(String, String)>,
}

/// Whether a watch has listed its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Listed {
    /// It has not listed yet.
    #[default]
    NotYet,
    /// The API server does not serve the kind.
    NoSuchKind,
    /// It has never listed, and the host has no right to.
    Forbidden,
    /// It has listed.
    Yes,
}

/// What a watch must show after a write before the job is decided again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// The watch has reached this resource version.
    Version(u64),
    /// The object with this uid is deleted or terminating.
    Going {
        /// The name of the object.
        name: String,
        /// The uid of the object.
        uid: String,
    },
    /// Nothing that a watch shows is enough: the answer to the create of the object with this name was lost, and the
    /// version to wait for has to be read first.
    InDoubt {
        /// The name of the object.
        name: String,
    },
}

impl Table {
    /// Returns whether the watch has shown the write.
    pub(crate) fn shows(&self, namespace: &str, expected: &Expected) -> bool {
        match expected {
            Expected::Version(version) => self.progress >= *version,
            Expected::Going { name, uid } => {
                let there = self.objects.get(&(namespace.to_owned(), name.clone()));
                there.is_none_or(|object| object.uid != *uid || is_going(object))
            }
            Expected::InDoubt { .. } => false,
        }
    }

    /// Stores an object. Returns an earlier one of its name, which a list that changes meanwhile may have shown, too.
    pub(crate) fn insert(&mut self, mut object: Object) -> Option<Object> {
        let here = (object.namespace.clone(), object.name.clone());
        if let Some(owner) = &mut object.owner {
            let new = || Owned { owner: Arc::clone(owner), objects: BTreeSet::new() };
            let owned = self.by_owner.entry(controller(&here.0, owner).key()).or_insert_with(new);
            owned.objects.insert(here.clone());
            if owned.owner == *owner {
                *owner = Arc::clone(&owned.owner);
            }
        }
        self.objects.insert(here, object)
    }

    /// Removes an object, and returns it.
    pub(crate) fn remove(&mut self, here: &(String, String)) -> Option<Object> {
        let object = self.objects.remove(here)?;
        if let Some(owner) = &object.owner {
            let key = controller(&here.0, owner).key();
            if let Some(owned) = self.by_owner.get_mut(&key) {
                owned.objects.remove(here);
                if owned.objects.is_empty() {
                    self.by_owner.remove(&key);
                }
            }
        }
        Some(object)
    }

    /// Returns the objects of this controller.
    pub(crate) fn owned_by(&self, controller: Controller<'_>) -> impl Iterator<Item = &Object> {
        let owned = self.by_owner.get(&controller.key()).into_iter().flat_map(|owned| &owned.objects);
        owned.filter_map(|here| self.objects.get(here))
    }

    /// Returns the controllers of objects in this namespace whose names begin with the prefix.
    pub(crate) fn controllers_named_alike(&self, namespace: &str, prefix: &str) -> impl Iterator<Item = &Owner> {
        self.controllers_from([namespace, prefix].join("/"))
    }

    /// Returns the controllers of objects in this namespace that have this name: an object may be gone, and another have its
    /// name.
    pub(crate) fn controllers_named(&self, namespace: &str, name: &str) -> impl Iterator<Item = &Owner> {
        self.controllers_from([namespace, name, ""].join("/")).filter(move |owner| owner.name == name)
    }

    fn controllers_from(&self, prefix: String) -> impl Iterator<Item = &Owner> + use<'_> {
        let from = self.by_owner.range(prefix.clone()..);
        from.take_while(move |(key, _)| key.starts_with(&prefix)).map(|(_, owned)| &*owned.owner)
    }
}

fn controller<'a>(namespace: &'a str, owner: &'a Owner) -> Controller<'a> {
    Controller { namespace, name: &owner.name, uid: &owner.uid }
}

fn is_going(object: &Object) -> bool {
    match &object.held {
        Held::Job(packed) => packed.job().deleting,
        Held::Pod(pod) => pod.terminating,
        Held::Child(child) => child.terminating,
    }
}

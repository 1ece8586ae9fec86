//! How much the fields take that are kept of the children of each namespace.

use crate::observe::wire::{Held, Object};
use decide::plan::FieldError;
use std::{collections::BTreeMap, sync::Arc};

/// The fields of the children of a namespace take at most so many bytes, as estimated: as values, text in small pieces takes
/// twenty times its size. Whoever may make ConfigMaps decides how many there are.
const MOST: usize = 128 << 20;

/// The bytes that fields take, by namespace.
#[derive(Debug)]
pub(super) struct Kept {
    by_namespace: BTreeMap<String, usize>,
    /// So many in a namespace.
    most: usize,
}

impl Default for Kept {
    fn default() -> Self {
        Self { by_namespace: BTreeMap::new(), most: MOST }
    }
}

impl Kept {
    /// Counts the fields of an object that is to be stored. If its namespace has too much, leaves them out and makes that
    /// the error of the object, until a watch shows it again.
    pub(super) fn admit(&mut self, object: &mut Object) {
        let bytes = bytes_of(&object.held);
        if bytes == 0 {
            return;
        }
        let of_namespace = self.by_namespace.entry(object.namespace.clone()).or_default();
        if *of_namespace + bytes <= self.most {
            *of_namespace += bytes;
            return;
        }
        let kind = match &mut object.held {
            Held::Pod(pod) => {
                Arc::make_mut(pod).fields.clear();
                "Pod"
            }
            Held::Child(child) => {
                Arc::make_mut(child).fields.clear();
                &child.kind
            }
            Held::Job(_) => return,
        };
        let most = self.most >> 20;
        let message = format!(
            "the objects of this namespace have more than {most} MiB of data that plugins read: delete some, then annotate \
             this one"
        );
        object.unreadable.get_or_insert(FieldError { path: format!("{kind} {}", object.name), message });
    }

    /// Counts the fields of an object no longer.
    pub(super) fn release(&mut self, object: &Object) {
        let bytes = bytes_of(&object.held);
        if bytes > 0
            && let Some(of_namespace) = self.by_namespace.get_mut(&object.namespace)
        {
            *of_namespace -= bytes;
            if *of_namespace == 0 {
                self.by_namespace.remove(&object.namespace);
            }
        }
    }
}

/// Estimates the bytes of an object of which fields are kept; 0 if there are none.
fn bytes_of(held: &Held) -> usize {
    let has_fields = match held {
        Held::Pod(pod) => !pod.fields.is_empty(),
        Held::Child(child) => !child.fields.is_empty(),
        Held::Job(_) => false,
    };
    if has_fields { held.bytes() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        api::resource::Resource,
        observe::{
            layout::{Purpose, WatchSpec},
            wire,
        },
    };
    use serde_json::json;

    fn config_map(namespace: &str, name: &str, bytes: usize) -> Object {
        let metadata = json!({ "namespace": namespace, "name": name, "uid": name, "resourceVersion": "1" });
        let text = json!({ "metadata": metadata, "data": { "a": "x".repeat(bytes) } }).to_string();
        let resource = Resource::new("v1", "ConfigMap", "configmaps");
        let purpose = Purpose::Children(vec!["/data".into()]);
        wire::object(&text, &WatchSpec { resource, selector: None, purpose, optional: false }).unwrap()
    }

    fn is_whole(object: &Object) -> bool {
        matches!(&object.held, Held::Child(child) if !child.fields.is_empty())
    }

    #[test]
    fn what_a_namespace_has_no_room_for_is_an_error_of_the_object_and_no_other_namespace_has_less_room() {
        let mut kept = Kept { most: 5 << 20, ..Kept::default() };
        let mut admitted = |namespace: &str, name: &str| {
            let mut object = config_map(namespace, name, 2 << 19);
            kept.admit(&mut object);
            object
        };
        let first: Vec<_> = ["a", "b", "c", "d"].map(|name| admitted("ns", name)).into();
        assert!(first.iter().all(is_whole));
        let none = admitted("ns", "e");
        assert!(!is_whole(&none));
        let wrong = none.unreadable.clone().unwrap();
        assert_eq!(wrong.path, "ConfigMap e");
        assert!(wrong.message.starts_with("the objects of this namespace have more than 5 MiB of data"), "{wrong:?}");
        let other = admitted("other", "a");
        assert!(is_whole(&other));

        kept.release(&none);
        kept.release(&first[0]);
        let mut again = config_map("ns", "e", 2 << 19);
        kept.admit(&mut again);
        assert!(is_whole(&again), "there is room now");
        first[1..].iter().chain([&again, &other]).for_each(|object| kept.release(object));
        assert!(kept.by_namespace.is_empty());
    }
}

//! Direct access for tests and scripts: changes objects without requests and faults; watches see the changes.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::delete::DeleteOptions;
use crate::paint::Progress;
use crate::store::{self, Location, key};
use crate::verbs::{Edit, Target};
use crate::world::World;
use crate::{ApiError, Kind, Sim};

impl Sim {
    /// Returns one stored object; the namespace is empty for cluster-scoped kinds.
    pub fn get(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        self.view(|view| view.get(api_version, kind, namespace, name).cloned())
    }

    /// Returns the objects of a kind in a namespace, or in all namespaces if it is empty, ordered by namespace and
    /// name.
    pub fn list(&self, api_version: &str, kind: &str, namespace: &str) -> Vec<Value> {
        self.view(|view| view.list(api_version, kind, namespace).into_iter().cloned().collect())
    }

    /// Creates an object as a user would, and returns it. Creates a missing namespace, and keeps a given status.
    ///
    /// # Panics
    /// The API server would refuse the object.
    pub fn create(&self, object: Value) -> Value {
        match self.try_create(object) {
            Ok(object) => object,
            Err(error) => panic!("the simulator refused to create the object: {error}"),
        }
    }

    /// Creates an object as a user would. Creates a missing namespace, and keeps a given status.
    pub fn try_create(&self, mut object: Value) -> Result<Value, ApiError> {
        let mut world = self.world();
        let kind = kind_of(&world, store::text(&object["apiVersion"]), store::text(&object["kind"]))?;
        if kind.namespaced && store::namespace(&object).is_empty() {
            object["metadata"]["namespace"] = json!("default");
        }
        let target = Target::own("test", &kind, &object);
        let namespace = Location { table: "/namespaces".into(), key: target.namespace.clone() };
        if kind.namespaced && world.store.get(&namespace).is_none() {
            let namespaces = kind_of(&world, "v1", "Namespace")?;
            let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": target.namespace } });
            world.create(&Target::own("test", &namespaces, &object), object)?;
        }
        let status = object.get("status").cloned();
        let made = world.create(&target, object)?;
        if let Some(status) = status.filter(|status| !status.is_null()) {
            let location = Location::of(&kind, &made);
            world.alter("test", &location, |object| object["status"] = status);
            return Ok(world.store.get(&location).map(|object| (**object).clone()).unwrap_or_default());
        }
        Ok((*made).clone())
    }

    /// Merges a patch into an object, except into its status if that is a subresource.
    pub fn patch(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        patch: Value,
    ) -> Result<Value, ApiError> {
        self.edit(api_version, kind, namespace, name, "", patch)
    }

    /// Merges a patch such as `{"status": {...}}` into an object's status.
    pub fn patch_status(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        patch: Value,
    ) -> Result<Value, ApiError> {
        self.edit(api_version, kind, namespace, name, "status", patch)
    }

    fn edit(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        subresource: &str,
        patch: Value,
    ) -> Result<Value, ApiError> {
        let mut world = self.world();
        let target =
            Target { subresource: subresource.to_owned(), ..target(&world, api_version, kind, namespace, name)? };
        world.update(&target, Edit::Merge(patch)).map(|(object, _)| (*object).clone())
    }

    /// Deletes an object in the background, with its own grace period.
    pub fn delete(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Result<(), ApiError> {
        let mut world = self.world();
        let target = target(&world, api_version, kind, namespace, name)?;
        world.delete(&target, &DeleteOptions::background()).map(|_| ())
    }

    /// Deletes an object with the given `DeleteOptions`.
    pub fn delete_with(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        options: &Value,
    ) -> Result<(), ApiError> {
        let options = DeleteOptions::parse(options)?;
        let mut world = self.world();
        let target = target(&world, api_version, kind, namespace, name)?;
        world.delete(&target, &options).map(|_| ())
    }

    /// Changes an object as a controller with every right would: without validation and defaults. Does nothing if the
    /// object does not exist.
    pub fn alter(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<(), ApiError> {
        let mut world = self.world();
        let location = target(&world, api_version, kind, namespace, name)?.location();
        world.alter("test", &location, change);
        Ok(())
    }

    /// Serves this kind from now on and replaces its earlier definition; its objects stay.
    pub fn serve(&self, kind: Kind) {
        self.world().store.add_kind(kind);
    }

    /// Returns the kind with this plural if it is served.
    pub fn kind(&self, group: &str, plural: &str) -> Option<Kind> {
        self.world().store.kind(&store::table(group, plural)).map(|kind| (*kind).clone())
    }

    /// Gives a pod a node and an address; its containers are not created yet.
    pub fn set_pod_ip(&self, namespace: &str, name: &str) {
        self.show(namespace, name, &Progress::Sandbox);
    }

    /// Makes all containers of a pod run and be ready.
    pub fn set_running(&self, namespace: &str, name: &str) {
        self.show(namespace, name, &Progress::Running);
    }

    /// Makes all containers of a pod exit with 0.
    pub fn set_succeeded(&self, namespace: &str, name: &str) {
        self.show(namespace, name, &Progress::Ended(0));
    }

    /// Makes all containers of a pod exit with this code.
    pub fn set_failed(&self, namespace: &str, name: &str, code: i64) {
        self.show(namespace, name, &Progress::Ended(if code == 0 { 1 } else { code }));
    }

    /// Removes a pod at once, as a forced deletion does: its kubelet does not stop it.
    pub fn remove_pod(&self, namespace: &str, name: &str) -> Result<(), ApiError> {
        self.delete_with("v1", "Pod", namespace, name, &json!({ "gracePeriodSeconds": 0 }))
    }

    fn show(&self, namespace: &str, name: &str, progress: &Progress) {
        let location = Location { table: "/pods".into(), key: key(namespace, name) };
        self.world().show_by_hand(&location, progress);
    }
}

fn kind_of(world: &World, api_version: &str, kind: &str) -> Result<Arc<Kind>, ApiError> {
    world
        .store
        .kind_of(api_version, kind)
        .ok_or_else(|| ApiError::bad_request(format!("no kind {kind:?} is registered in {api_version:?}")))
}

fn target(world: &World, api_version: &str, kind: &str, namespace: &str, name: &str) -> Result<Target, ApiError> {
    let kind = kind_of(world, api_version, kind)?;
    let object = json!({ "metadata": { "namespace": namespace, "name": name } });
    Ok(Target::own("test", &kind, &object))
}

//! The record of a run: every request, the hash over everything, and the writes that hooks get.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::store::{Store, key};

/// One request as the API server received it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRecord {
    /// The actor: the name given to [`crate::Sim::client`].
    pub actor: String,
    /// `get`, `list`, `watch`, `create`, `patch`, `update`, `delete` or `deletecollection`.
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural, or the path of a request that names no resource.
    pub resource: String,
    /// The subresource, mostly `status`; empty for none.
    pub subresource: String,
    /// The namespace; empty for none.
    pub namespace: String,
    /// The name; empty for collections, and for creates refused before they had a name.
    pub name: String,
    /// The HTTP status of the response; 0 without a response (a crash).
    pub code: u16,
    /// Whether the response was lost although the request was applied.
    pub reply_lost: bool,
    /// How long the client has waited for the response, but for the time that the request took to be applied.
    pub waited: Duration,
    /// The size of the request's body in bytes.
    pub bytes: usize,
    /// The virtual time at which the request left the client.
    pub sent: Timestamp,
    /// The virtual time of the response.
    pub at: Timestamp,
}

impl RequestRecord {
    /// Whether it is a write request.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }

    /// Returns verb and resource for counting: `create pods`, `patch tales/status`.
    pub fn what(&self) -> String {
        let slash = if self.subresource.is_empty() { "" } else { "/" };
        format!("{} {}{slash}{}", self.verb, self.resource, self.subresource)
    }
}

/// A state of an object that a list or a watch delivered to a client.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// The client's name.
    pub actor: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The object; only its metadata if a list asked for that.
    pub object: &'a Value,
    /// The virtual time.
    pub at: Timestamp,
}

/// One change of a stored object by any actor.
#[derive(Debug, Clone)]
pub struct Write {
    /// A client's name, or `kubelet`, `scheduler`, `job-controller`, `garbage-collector`, `test`, ...
    pub actor: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace; empty for none.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The object before; `None` when it was created.
    pub before: Option<Arc<Value>>,
    /// The object after; `None` when it was removed.
    pub after: Option<Arc<Value>>,
    /// The object as sent, if the write creates it: without the fields that the API server added.
    pub sent: Option<Value>,
    /// The resource version of the change.
    pub version: u64,
    /// The virtual time.
    pub at: Timestamp,
}

impl Write {
    /// Whether the write created the object.
    pub fn created(&self) -> bool {
        self.before.is_none()
    }

    /// Whether the write removed the object.
    pub fn removed(&self) -> bool {
        self.after.is_none()
    }
}

/// The stored objects right after a [`Write`].
pub struct View<'a> {
    pub(crate) store: &'a Store,
}

impl View<'_> {
    /// Returns one object; the namespace is empty for cluster-scoped kinds.
    pub fn get(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Option<&Value> {
        let kind = self.store.kind_of(api_version, kind)?;
        Some(self.store.tables.get(&kind.table())?.objects.get(&key(namespace, name))?)
    }

    /// Returns the objects of a kind in a namespace, or in all namespaces if it is empty.
    pub fn list(&self, api_version: &str, kind: &str, namespace: &str) -> Vec<&Value> {
        let Some(kind) = self.store.kind_of(api_version, kind) else {
            return Vec::new();
        };
        self.store.list(&kind.table(), namespace).map(|object| &**object).collect()
    }

    /// Returns one object by uid.
    pub fn by_uid(&self, uid: &str) -> Option<&Value> {
        self.store.find_uid(uid).map(|(_, object)| &**object)
    }

    /// Returns the objects that name this uid as an owner.
    pub fn owned_by(&self, uid: &str) -> Vec<&Value> {
        self.store.owned(uid).iter().filter_map(|location| self.store.get(location)).map(|object| &**object).collect()
    }
}

/// FNV-1a, 64 bits: a hash that is stable across platforms and releases.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hash(pub(crate) u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Adds a field, delimited, so that `("ab", "c")` and `("a", "bc")` differ.
    pub(crate) fn field(&mut self, text: &str) {
        self.add(text.as_bytes());
        self.add(&[0xff]);
    }

    pub(crate) fn object(&mut self, object: &Value) {
        // A write to a hash cannot fail, and every `Value` is valid JSON.
        let _ = serde_json::to_writer(&mut *self, object);
    }
}

impl std::io::Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.add(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

//! The content of ConfigMaps and Secrets that jobs' users name, where plans depend on it.
//!
//! It is read when a job is planned, and again after a minute, as a kubelet does: watches of single objects would be one for
//! each job, and a watch of all would hold everybody's. While the API server gives no answer, what was read last counts.

use crate::{
    api::{DEADLINE, answer, resource::Resource},
    write::error::WriteError,
};
use decide::{
    Snapshot,
    plan::{Answer, Content, Descriptor, Fault, Reference, Referred, Rejection},
    vet,
};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Client, api::GetParams};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};
use tokio::time::{Instant, timeout};

/// How long what was read is taken for current: a little less than a minute, after which its jobs are looked at again.
const FRESH: Duration = Duration::from_secs(55);

/// How long it is remembered, for times in which the API server gives no answer.
const KEPT: Duration = Duration::from_mins(10);

/// At most so many bytes are remembered of all objects together. Where there are more, those of the namespace with the most
/// are forgotten first: whoever names much costs others nothing.
const MOST: usize = 32 << 20;

/// Maximum bytes of the content of one object: the limit of a job's own spec.
const LARGEST: usize = 256 << 10;

/// Maximum bytes of an answer: etcd holds no larger object.
const LARGEST_ANSWER: usize = 2 << 20;

/// What a read has found.
#[derive(Debug)]
enum Found {
    Nothing,
    /// The values by key.
    Data(BTreeMap<String, String>),
    TooLarge,
}

/// An object: its kind, namespace and name.
type Key = (Referred, String, String);

/// Reads what jobs name, and remembers it for a while.
pub(crate) struct Contents {
    client: Client,
    known: Mutex<Known>,
}

/// What was read, in which order, and how much of it in which namespace.
#[derive(Debug, Default)]
struct Known {
    objects: BTreeMap<Key, (Instant, Arc<Found>)>,
    by_age: BTreeSet<(Instant, Key)>,
    namespaces: BTreeMap<String, OfNamespace>,
    bytes: usize,
}

/// What was read in one namespace.
#[derive(Debug, Default)]
struct OfNamespace {
    by_age: BTreeSet<(Instant, Key)>,
    bytes: usize,
}

impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contents").field("known", &self.known).finish_non_exhaustive()
    }
}

impl Contents {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, known: Mutex::default() }
    }

    /// Adds to the snapshot the content of the objects that the job names where this plugin's plans depend on it. Returns
    /// the answer to the job if there is one without asking the plugin: a name that is none, an object that is too large, or
    /// one that the host may not read.
    ///
    /// # Errors
    /// The API server does not say what there is, and it is not known from before.
    pub(crate) async fn add(
        &self,
        snapshot: &mut Snapshot,
        descriptor: &Descriptor,
    ) -> Result<Option<Answer>, WriteError> {
        let (mut contents, mut answer) = (Vec::new(), None);
        for reference in &descriptor.reads {
            let Some(name) = reference.name(&snapshot.job.spec) else { continue };
            let (kind, name) = (reference.kind, name.to_owned());
            if !vet::is_subdomain(&name) {
                answer = answer.or_else(|| Some(no_name(reference)));
                continue;
            }
            let found = self.found((kind, snapshot.job.namespace.clone(), name.clone())).await;
            let (data, instead) = match found {
                Ok(found) => match &*found {
                    Found::Nothing => (None, None),
                    Found::Data(data) => (Some(data.clone()), None),
                    Found::TooLarge => (None, Some(too_large(kind, &name))),
                },
                Err(error) if error.code() == Some(403) => (None, Some(unread(kind, &name, &error))),
                Err(error) => return Err(error),
            };
            contents.push(Content { at: reference.at.clone(), name, data });
            answer = answer.or(instead);
        }
        snapshot.contents = contents;
        Ok(answer)
    }

    async fn found(&self, key: Key) -> Result<Arc<Found>, WriteError> {
        let now = Instant::now();
        let known = self.known.lock().objects.get(&key).cloned();
        if let Some((_, found)) = known.as_ref().filter(|(read, _)| now.duration_since(*read) < FRESH) {
            return Ok(Arc::clone(found));
        }
        match (self.read(&key).await, known) {
            (Ok(found), _) => {
                let found = Arc::new(found);
                self.known.lock().put(key, now, &found);
                Ok(found)
            }
            (Err(error), Some((read, found))) if error.code() != Some(403) && now.duration_since(read) < KEPT => {
                Ok(found)
            }
            (Err(error), _) => Err(error),
        }
    }

    async fn read(&self, key: &Key) -> Result<Found, WriteError> {
        let read = match key.0 {
            Referred::ConfigMap => self.get(key).await.map(|map: Option<ConfigMap>| map.map(|map| map.data)),
            Referred::Secret => self.get(key).await.map(|secret: Option<Secret>| {
                let hashes = |data: BTreeMap<String, _>| data.into_iter().map(hashed).collect();
                secret.map(|secret| secret.data.map(hashes))
            }),
        };
        match read {
            Ok(Some(data)) => {
                let data = data.unwrap_or_default();
                let bytes: usize = data.iter().map(|(key, value)| key.len() + value.len()).sum();
                Ok(if bytes > LARGEST { Found::TooLarge } else { Found::Data(data) })
            }
            Ok(None) => Ok(Found::TooLarge),
            Err(error) if error.code() == Some(404) => Ok(Found::Nothing),
            Err(error) => Err(error),
        }
    }

    /// Returns the object; `None` if it is too large to be read.
    async fn get<T: DeserializeOwned>(&self, (kind, namespace, name): &Key) -> Result<Option<T>, WriteError> {
        let requests = Resource::new("v1", kind.kind(), kind.plural()).requests(Some(namespace));
        let request = requests.get(name, &GetParams::default())?;
        let text = timeout(DEADLINE, answer::text_within(&self.client, request, LARGEST_ANSWER)).await;
        let text = text.map_err(|_| WriteError::NoReply)?.map_err(WriteError::Client)?;
        let object = text.map(|text| serde_json::from_str(&text)).transpose();
        object.map_err(|error| WriteError::Client(kube::Error::SerdeError(error)))
    }
}

impl Known {
    /// Remembers what was found, and forgets what is old, or too much.
    fn put(&mut self, key: Key, read: Instant, found: &Arc<Found>) {
        self.forget(&key);
        let (bytes, entry) = (bytes(&key, found), (read, key.clone()));
        let of_namespace = self.namespaces.entry(key.1.clone()).or_default();
        of_namespace.by_age.insert(entry.clone());
        of_namespace.bytes += bytes;
        self.by_age.insert(entry);
        self.bytes += bytes;
        self.objects.insert(key, (read, Arc::clone(found)));
        while let Some(key) = self.too_old(read).or_else(|| self.too_much()) {
            self.forget(&key);
        }
    }

    /// Returns an object that was read too long before this time.
    fn too_old(&self, now: Instant) -> Option<Key> {
        let (read, key) = self.by_age.first()?;
        (now.duration_since(*read) > KEPT).then(|| key.clone())
    }

    /// Returns the oldest object of the namespace with the most bytes, if all together are too many.
    fn too_much(&self) -> Option<Key> {
        if self.bytes <= MOST {
            return None;
        }
        let most = self.namespaces.values().max_by_key(|of_namespace| of_namespace.bytes)?;
        most.by_age.first().map(|(_, key)| key.clone())
    }

    fn forget(&mut self, key: &Key) {
        let Some((read, found)) = self.objects.remove(key) else { return };
        let (bytes, entry) = (bytes(key, &found), (read, key.clone()));
        self.by_age.remove(&entry);
        self.bytes -= bytes;
        let Some(of_namespace) = self.namespaces.get_mut(&key.1) else { return };
        of_namespace.by_age.remove(&entry);
        of_namespace.bytes -= bytes;
        if of_namespace.by_age.is_empty() {
            self.namespaces.remove(&key.1);
        }
    }
}

/// Returns about how many bytes an object takes.
fn bytes((_, namespace, name): &Key, found: &Found) -> usize {
    let pairs = |data: &BTreeMap<String, String>| data.iter().map(|(key, value)| 64 + key.len() + value.len()).sum();
    let data: usize = if let Found::Data(data) = found { pairs(data) } else { 0 };
    512 + 4 * (namespace.len() + name.len()) + data
}

/// Returns the key with the SHA-256 of the value in hexadecimal digits.
fn hashed((key, value): (String, k8s_openapi::ByteString)) -> (String, String) {
    (key, format!("{:x}", Sha256::digest(&value.0)))
}

fn no_name(reference: &Reference) -> Answer {
    let field = format!("spec{}", reference.at.replace('/', "."));
    let message =
        format!("must be the name of a {}: parts of a-z, 0-9 and '-' with dots between", reference.kind.kind());
    Answer::Rejected(Rejection::field(&field, message))
}

fn too_large(kind: Referred, name: &str) -> Answer {
    Answer::Rejected(Rejection::TooMuch(format!("{} {name} has more than {LARGEST} bytes of data", kind.kind())))
}

fn unread(kind: Referred, name: &str, error: &WriteError) -> Answer {
    Answer::Faulted(Fault::Unread { kind: kind.kind().to_owned(), name: name.to_owned(), why: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_in(namespace: &str, name: &str) -> Key {
        (Referred::ConfigMap, namespace.into(), name.into())
    }

    fn key(name: &str) -> Key {
        key_in("ns", name)
    }

    fn of(size: usize) -> Arc<Found> {
        Arc::new(Found::Data([("key".to_owned(), "x".repeat(size))].into()))
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_is_bounded_in_bytes_and_time() {
        let (mut known, began) = (Known::default(), Instant::now());
        for number in 0..1000 {
            known.put(key(&format!("settings-{number}")), began, &of(LARGEST));
        }
        assert!(known.bytes <= MOST && known.objects.len() > 100, "{} bytes", known.bytes);
        assert!(known.objects.contains_key(&key("settings-999")) && !known.objects.contains_key(&key("settings-0")));
        known.put(key("settings-999"), began + FRESH, &of(1));
        known.put(key("late"), began + KEPT + Duration::from_secs(1), &of(1));
        let left: Vec<_> = known.objects.keys().map(|(.., name)| name.as_str()).collect();
        assert_eq!(left, ["late", "settings-999"], "what was read again is kept for longer");
        assert_eq!(known.bytes, known.objects.iter().map(|(key, (_, found))| bytes(key, found)).sum::<usize>());
    }
    #[tokio::test(start_paused = true)]
    async fn a_namespace_that_names_much_has_its_own_oldest_object_forgotten_and_none_of_others() {
        let (mut known, began) = (Known::default(), Instant::now());
        let at = |second| began + Duration::from_secs(second);
        known.put(key_in("modest", "settings"), at(0), &of(1_000));
        for number in 0..300 {
            known.put(key_in("greedy", &format!("settings-{number}")), at(1 + number), &of(LARGEST));
        }
        let has = |known: &Known, namespace: &str, name: &str| known.objects.contains_key(&key_in(namespace, name));
        assert!(has(&known, "modest", "settings"), "it is the oldest, and of the namespace with the least");
        assert!(has(&known, "greedy", "settings-299") && !has(&known, "greedy", "settings-0"));
        for number in 0..10 {
            known.put(key_in("late", &format!("settings-{number}")), at(301), &of(LARGEST));
        }
        assert!(has(&known, "late", "settings-0") && has(&known, "modest", "settings"));
        assert!(known.bytes <= MOST, "{} bytes", known.bytes);
        let of_each = known.namespaces.values().map(|it| (it.bytes, it.by_age.len()));
        let of_all = of_each.fold((0, 0), |(bytes, objects), (more, others)| (bytes + more, objects + others));
        assert_eq!(of_all, (known.bytes, known.objects.len()));
    }
}

//! The content of ConfigMaps and Secrets that jobs' users name, where plans depend on it.
//!
//! It is read when a job is planned, and again after a minute, as a kubelet does: watches of single objects would be one for
//! each job, and a watch of all would hold everybody's.

use crate::{
    api::resource::Resource,
    write::{apply::send, error::WriteError},
};
use decide::{
    Snapshot,
    plan::{Answer, Content, Descriptor, Fault, Reference, Referred, Rejection},
};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Client, api::GetParams};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::{collections::BTreeMap, fmt::Write, time::Duration};
use tokio::time::Instant;

/// How long what was read is taken for current: a little less than a minute, after which its jobs are looked at again.
const FRESH: Duration = Duration::from_secs(55);

/// At most this many objects are remembered.
const MOST: usize = 10_000;

/// Maximum bytes of the content of one object: the limit of a job's own spec.
const LARGEST: usize = 256 << 10;

/// The values of an object by key; `None` if there is no such object.
type Data = Option<BTreeMap<String, String>>;

/// An object: its kind, namespace and name.
type Key = (Referred, String, String);

/// Reads what jobs name, and remembers it for a while.
pub(crate) struct Contents {
    client: Client,
    known: Mutex<BTreeMap<Key, (Instant, Data)>>,
}

impl Contents {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, known: Mutex::default() }
    }

    /// Returns the content of the objects that the job names where this plugin's plans depend on it.
    ///
    /// # Errors
    /// The answer to the job: an object that cannot be read, or one that is too large.
    pub(crate) async fn of(&self, snapshot: &Snapshot, descriptor: &Descriptor) -> Result<Vec<Content>, Answer> {
        let mut contents = Vec::new();
        for Reference { kind, at } in &descriptor.reads {
            let reference = Reference { kind: *kind, at: at.clone() };
            let Some(name) = reference.name(&snapshot.job.spec) else { continue };
            let data = self.data((*kind, snapshot.job.namespace.clone(), name.to_owned())).await;
            let data = data.map_err(|error| {
                let (kind, name) = (kind.kind().to_owned(), name.to_owned());
                Answer::Faulted(Fault::Unread { kind, name, why: error.to_string() })
            })?;
            let bytes: usize = data.iter().flatten().map(|(key, value)| key.len() + value.len()).sum();
            if bytes > LARGEST {
                let message = format!("{} {name}: {bytes} bytes of data are more than {LARGEST}", kind.kind());
                return Err(Answer::Rejected(Rejection::TooMuch(message)));
            }
            contents.push(Content { at: at.clone(), name: name.to_owned(), data });
        }
        Ok(contents)
    }

    async fn data(&self, key: Key) -> Result<Data, WriteError> {
        let now = Instant::now();
        if let Some((_, data)) = self.known.lock().get(&key).filter(|(read, _)| now.duration_since(*read) < FRESH) {
            return Ok(data.clone());
        }
        let data = self.read(&key).await?;
        let mut known = self.known.lock();
        if known.len() >= MOST {
            known.retain(|_, (read, _)| now.duration_since(*read) < FRESH);
        }
        if known.len() < MOST {
            known.insert(key, (now, data.clone()));
        }
        Ok(data)
    }

    async fn read(&self, (kind, namespace, name): &Key) -> Result<Data, WriteError> {
        let requests = Resource::new("v1", kind.kind(), kind.plural()).requests(Some(namespace));
        let request = requests.get(name, &GetParams::default())?;
        let read = match kind {
            Referred::ConfigMap => {
                send::<ConfigMap>(&self.client, request).await.map(|map| map.data.unwrap_or_default())
            }
            Referred::Secret => send::<Secret>(&self.client, request).await.map(|secret| {
                let data = secret.data.unwrap_or_default();
                data.into_iter().map(|(key, value)| (key, hashed(&value.0))).collect()
            }),
        };
        match read {
            Err(error) if error.code() == Some(404) => Ok(None),
            other => other.map(Some),
        }
    }
}

/// Returns the SHA-256 of a value in hexadecimal digits.
fn hashed(value: &[u8]) -> String {
    Sha256::digest(value).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

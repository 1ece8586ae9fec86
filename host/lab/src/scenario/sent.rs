//! Objects as they were sent in creates, to separate them from what the API server added.

use parking_lot::Mutex;
use serde_json::{Map, Value};
use sim::Sim;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// By uid: the object as sent, and as the API server stored it.
type Made = BTreeMap<String, (Value, Arc<Value>)>;

/// The objects created in a cluster since this was made.
#[derive(Default)]
pub(super) struct Sent {
    made: Arc<Mutex<Made>>,
    /// The number of objects that lists and watches have delivered.
    shown: Arc<AtomicU64>,
}

impl Sent {
    pub(super) fn of(sim: &Sim) -> Self {
        let sent = Self::default();
        let (made, shown) = (Arc::clone(&sent.made), Arc::clone(&sent.shown));
        sim.on_write(move |write, _| {
            if let (Some(sent), Some(after)) = (&write.sent, &write.after) {
                let mut made = made.lock();
                made.insert(uid(after), (sent.clone(), Arc::clone(after)));
            }
        });
        sim.on_delivery(move |_| {
            shown.fetch_add(1, Ordering::Relaxed);
        });
        sent
    }

    /// Returns the number of objects that lists and watches have delivered.
    pub(super) fn shown(&self) -> u64 {
        self.shown.load(Ordering::Relaxed)
    }

    /// Returns the object without the fields that the API server added on create and nobody has changed since. Keeps
    /// the uid.
    pub(super) fn as_written(&self, object: &Value) -> Value {
        let made = self.made.lock();
        let Some((sent, made)) = made.get(&uid(object)) else { return object.clone() };
        let mut written = without(object, made, sent);
        written["metadata"]["uid"] = object["metadata"]["uid"].clone();
        // The API server stores `stringData` as base64 in `data`.
        if sent.get("stringData").is_some() {
            written["data"] = object["data"].clone();
        }
        written
    }
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

/// Returns `now` without what is in `made` but not in `sent`, as far as it is unchanged.
fn without(now: &Value, made: &Value, sent: &Value) -> Value {
    match (now, made, sent) {
        (Value::Object(now), Value::Object(made), Value::Object(sent)) => {
            let kept = now.iter().filter_map(|(name, now)| match (made.get(name), sent.get(name)) {
                (Some(made), None) if made == now => None,
                (Some(made), Some(sent)) => Some((name.clone(), without(now, made, sent))),
                _ => Some((name.clone(), now.clone())),
            });
            Value::Object(Map::from_iter(kept))
        }
        (Value::Array(now), Value::Array(made), Value::Array(sent)) if now.len() == sent.len() => {
            now.iter().zip(made).zip(sent).map(|((now, made), sent)| without(now, made, sent)).collect()
        }
        _ => now.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_api_server_added_is_left_out_until_somebody_changes_it() {
        let sent = json!({ "spec": { "containers": [{ "name": "c" }], "suspend": true } });
        let made =
            json!({ "spec": { "containers": [{ "name": "c", "policy": "Always" }], "suspend": true, "dns": "x" } });
        assert_eq!(without(&made, &made, &sent), sent);
        let mut now = made.clone();
        now["spec"]["dns"] = json!("y");
        now["spec"]["suspend"] = json!(false);
        let expected = json!({ "spec": { "containers": [{ "name": "c" }], "suspend": false, "dns": "y" } });
        assert_eq!(without(&now, &made, &sent), expected);
    }
}

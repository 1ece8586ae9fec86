//! Containers that a plugin adds to the user's pods, and what they ask for.
//!
//! An added container must not change what the user's pod asks for: a queue, a ResourceQuota or a LimitRange counts it too,
//! and it takes part in the pod's QoS class. So it asks for what a container of the user's asks for. Kubernetes counts
//! the larger of the init containers' and the containers' sum, so that the pod asks for nothing more.

use crate::{json_text, pod::Container};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// An init container that a plugin adds to the user's pods: it runs a script of the plugin's before the user's containers.
#[derive(Debug, Clone, PartialEq)]
pub struct InitContainer<'a> {
    name: &'a str,
    image: &'a str,
    script: &'a str,
    resources: Resources<'a>,
}

impl<'a> InitContainer<'a> {
    /// Returns a container that runs the script with `sh`. The node pulls its image if it does not have it.
    #[must_use]
    pub const fn shell(name: &'a str, image: &'a str, script: &'a str, resources: Resources<'a>) -> Self {
        Self { name, image, script, resources }
    }

    /// Returns the container as JSON. Concatenates, because a derived serializer costs three times as much.
    pub(crate) fn to_json(&self) -> String {
        let [name, image, script] = [self.name, self.image, self.script].map(|text| json_text(&text));
        let pull = ",\"imagePullPolicy\":\"IfNotPresent\",\"command\":[\"sh\",\"-c\",";
        let (key, resources) = self.resources.0.as_deref().map_or(("", ""), |text| (",\"resources\":", text));
        ["{\"name\":", &name, ",\"image\":", &image, pull, &script, "]", key, resources, "}"].concat()
    }
}

/// What a container that a plugin adds asks for: `resources` as JSON, if it asks for any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resources<'a>(Option<Cow<'a, str>>);

impl<'a> Resources<'a> {
    /// Returns the resources from the settings, if they say any; else the cpu, memory and ephemeral storage of the user's
    /// container beside which the added one runs, and none for no such container.
    #[must_use]
    pub fn beside(container: Option<&Container<'_, 'a>>, given: Option<&'a GivenResources>) -> Self {
        let given = given.map(|given| Cow::Borrowed(given.0.get()));
        Self(given.or_else(|| container?.shared_resources()))
    }
}

/// `resources` of a container from the cluster operator's settings, which go into the pods as they are. Their schema says
/// what is valid.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GivenResources(Box<RawValue>);

impl PartialEq for GivenResources {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl Eq for GivenResources {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PodTemplate, UserTemplate, testkit};
    use serde_json::{Value, json};

    /// The `resources` of a container that is added beside one with these.
    fn added(resources: &Value, given: Option<&GivenResources>) -> Value {
        let user = json!({ "spec": { "containers": [{ "name": "main", "resources": resources }] } });
        let read: UserTemplate = serde_json::from_value(user.clone()).unwrap();
        let mut template = PodTemplate::from_user(Some(&read), "/worker/template").unwrap();
        let resources = Resources::beside(Some(&template.first_container()), given);
        template.add_init_container(&InitContainer::shell("wait", "al\"pine", "echo '\"'", resources));
        let made = testkit::template(&template.into_template(), &json!({ "worker": { "template": user } }));
        let mut container = made["spec"]["initContainers"][0].clone();
        let resources = container.as_object_mut().unwrap().remove("resources");
        let command = ["sh", "-c", "echo '\"'"];
        let rest =
            json!({ "name": "wait", "image": "al\"pine", "imagePullPolicy": "IfNotPresent", "command": command });
        assert_eq!(container, rest);
        resources.unwrap_or(Value::Null)
    }

    #[test]
    fn an_added_container_asks_for_what_the_one_beside_it_asks_for() {
        for same in [
            json!({ "requests": { "cpu": "1" } }),
            json!({ "limits": { "cpu": 2, "memory": "1Gi" } }),
            json!({ "requests": { "memory": "1Gi" }, "limits": { "memory": "2Gi", "ephemeral-storage": "1Gi" } }),
        ] {
            assert_eq!(added(&same, None), same);
        }
    }

    #[test]
    fn an_added_container_asks_for_no_device_and_no_claim() {
        let gpu = json!({ "requests": { "cpu": "1" }, "limits": { "nvidia.com/gpu": 1, "hugepages-2Mi": "4Mi" }, "claims": [{ "name": "gpu" }] });
        assert_eq!(added(&gpu, None), json!({ "requests": { "cpu": "1" } }));
    }

    #[test]
    fn an_added_container_asks_for_nothing_where_the_user_does_not() {
        for nothing in [
            json!(null),
            json!({}),
            json!({ "limits": { "nvidia.com/gpu": 1 } }),
            json!({ "requests": null, "limits": { "hugepages-2Mi": "4Mi" } }),
            json!({ "claims": [{ "name": "gpu" }] }),
            json!("/"),
        ] {
            assert_eq!(added(&nothing, None), json!(null), "{nothing}");
        }
        assert_eq!(Resources::beside(None, None), Resources::default());
    }

    #[test]
    fn the_settings_say_otherwise() {
        let given = json!({ "requests": { "cpu": "10m" }, "limits": { "example.com/x": 1 } });
        let settings: GivenResources = serde_json::from_value(given.clone()).unwrap();
        assert_eq!(added(&json!({ "requests": { "cpu": "1" } }), Some(&settings)), given);
        assert_eq!(settings, settings.clone());
    }
}

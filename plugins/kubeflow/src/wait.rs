//! The init container in which workers wait until the name of their master resolves: neither the processes of PyTorch nor
//! those of XGBoost wait for a name.

use crate::family::{Family, Group};
use troupe_plugin::{InitContainer, PodTemplate, Resources};

/// Adds the container to the workers beside a master, unless the settings have no image for it.
pub(crate) fn for_master(family: &Family<'_>, group: &Group<'_>, name: &str, template: &mut PodTemplate<'_>) {
    let config = &family.job.config;
    let waits = group.of.name == "Worker" && family.replicas("Master").is_some();
    if config.pytorch_init_container_image.is_empty() || !waits {
        return;
    }
    let (host, tries) = (family.host("master", 0), config.pytorch_init_container_max_tries);
    let script = format!(
        "try=0; until nslookup {host}; do try=$((try+1)); \
         if [ $try -ge {tries} ]; then echo '{host} does not resolve'; exit 1; fi; sleep 2; done"
    );
    let given = config.pytorch_init_container_resources.as_ref();
    let resources = Resources::beside(template.container(family.kind.container).as_ref(), given);
    let image = &config.pytorch_init_container_image;
    template.add_init_container(&InitContainer::shell(name, image, &script, resources));
}

#[cfg(test)]
mod tests {
    use crate::TrainingJob;
    use crate::fixtures::{job, spec};
    use crate::plan::plan;
    use serde_json::{Value, json};
    use troupe_plugin::testkit;

    const BOTH: [(&str, u32); 2] = [("Master", 1), ("Worker", 2)];

    /// The roles whose pods have an init container, and its name.
    fn waiting(kind: &str, types: &[(&str, u32)], image: &str) -> Vec<(String, String)> {
        let spec = spec(kind, types, &json!({}));
        let mut job = job(kind, &spec);
        job.config.pytorch_init_container_image = image.into();
        let waits = |(role, template): (String, Value)| {
            let name = template["spec"]["initContainers"][0]["name"].as_str()?.to_owned();
            Some((role, name))
        };
        let roles = plan(&job).unwrap().roles.into_iter();
        roles.map(|role| (role.name, testkit::template(&role.template, &spec))).filter_map(waits).collect()
    }

    // AC-05, AC-07
    #[test]
    fn only_workers_beside_a_master_wait_for_its_name() {
        let both = |roles: [&str; 2], name: &str| roles.map(|role| (role.to_owned(), name.to_owned())).to_vec();
        assert_eq!(waiting("PyTorchJob", &BOTH, "alpine:3.10"), both(["worker-0", "worker"], "init-pytorch"));
        assert_eq!(waiting("XGBoostJob", &BOTH, "alpine:3.10"), both(["worker-0", "worker"], "init-xgboost")[1..]);
        assert!(waiting("PyTorchJob", &BOTH, "").is_empty() && waiting("XGBoostJob", &BOTH, "").is_empty());
        assert!(waiting("PyTorchJob", &[("Worker", 2)], "alpine:3.10").is_empty());
    }

    // AC-28
    #[test]
    fn it_asks_for_what_the_container_of_the_framework_asks_for() {
        let mut spec = spec("PyTorchJob", &BOTH, &json!({}));
        let containers = json!([
            { "name": "side", "image": "i", "resources": { "requests": { "cpu": "3" } } },
            { "name": "pytorch", "image": "i", "resources": { "limits": { "cpu": "1", "nvidia.com/gpu": 1 } } },
        ]);
        spec["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"] = containers;
        let mut job = job("PyTorchJob", &spec);
        let resources = |job: &TrainingJob| {
            let roles = plan(job).unwrap().roles;
            let worker = roles.iter().find(|role| role.name == "worker").unwrap();
            testkit::template(&worker.template, &spec)["spec"]["initContainers"][0]["resources"].clone()
        };
        assert_eq!(resources(&job), json!({ "limits": { "cpu": "1" } }));
        let given = json!({ "requests": { "cpu": "5m" } });
        job.config.pytorch_init_container_resources = Some(serde_json::from_value(given.clone()).unwrap());
        assert_eq!(resources(&job), given);
    }
}

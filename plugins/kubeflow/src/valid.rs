//! The validation of a job. It reports all errors at once, each with its field.

use crate::elastic;
use crate::family::{Family, Replicas};
use crate::fate::{RESTART_SCOPE, RestartPolicy, RestartScope};
use crate::kind::ReplicaType;
use crate::left_out::{self, LEFT_OUT_WORKERS};
use crate::spec::{self, given};
use serde::Deserialize;
use troupe_plugin::types::{Clean, Refusal};
use troupe_plugin::{MAX_REPLICAS, Mistakes, UserTemplate, dns_label_problem};

/// A valid job.
#[derive(Debug)]
pub(crate) struct Valid<'a> {
    pub(crate) family: &'a Family<'a>,
    /// What is read of the templates, in the order of `family.replicas`.
    pods: Vec<Pods>,
    pub(crate) clean_pods: Clean,
}

/// What is read of the template of a type of replica.
#[derive(Debug)]
pub(crate) struct Pods {
    of: &'static ReplicaType,
    pub(crate) restart_policy: RestartPolicy,
    /// The ports of the framework's container; the last is its default port where the user has none of that name.
    pub(crate) ports: Vec<Port>,
    /// The number of the port of the kind's name.
    pub(crate) port: u16,
    /// The user's own port has that name.
    pub(crate) has_port: bool,
    /// The restart policy and the scheduler of the template.
    pub(crate) template: PodSpec,
}

/// A port of a container.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Port {
    #[serde(default)]
    pub(crate) name: Option<String>,
    pub(crate) container_port: u16,
}

#[derive(Debug, Default, Deserialize)]
struct Template {
    #[serde(default)]
    spec: Option<PodSpec>,
}

/// A part of a pod's spec.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodSpec {
    #[serde(default)]
    containers: Option<Vec<Container>>,
    #[serde(default)]
    pub(crate) restart_policy: Option<String>,
    #[serde(default)]
    pub(crate) scheduler_name: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Container {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    image: Option<String>,
    #[serde(default)]
    ports: Option<Vec<Port>>,
}

impl Pods {
    /// Returns how many containers the template has, without the init containers.
    pub(crate) fn containers(&self) -> usize {
        self.template.containers.as_ref().map_or(0, Vec::len)
    }
}

impl Valid<'_> {
    /// Returns what is read of the template of this type.
    pub(crate) fn pods(&self, of: &ReplicaType) -> Option<&Pods> {
        self.pods.iter().find(|pods| pods.of == of)
    }

    /// Returns the port of the kind's name of this type; the kind's own number if the job does not have the type.
    pub(crate) fn port(&self, of: &str) -> u16 {
        self.pods.iter().find(|pods| pods.of.name == of).map_or(self.family.kind.port, |pods| pods.port)
    }
}

/// Returns the job as valid, or a refusal with all errors: those of every kind and its own, which are fields below the
/// spec and what is wrong with them.
pub(crate) fn validate<'a>(family: &'a Family<'a>, own: Vec<(String, String)>) -> Result<Valid<'a>, Refusal> {
    let mut errors = Errors::default();
    errors.name(family);
    errors.restart_scope(family);
    errors.left_out(family);
    errors.types(family);
    errors.total(family);
    let pods: Vec<_> = family.replicas.iter().filter_map(|replicas| errors.replicas(family, replicas)).collect();
    let clean_pods = errors.run_policy(family);
    if let Some(policy) = &family.job.spec.elastic_policy {
        elastic::check(policy, &mut errors.0);
    }
    for (path, message) in own {
        errors.0.add(format!("spec.{path}"), message);
    }
    if errors.0.is_empty() { Ok(Valid { family, pods, clean_pods }) } else { Err(errors.0.refusal()) }
}

#[derive(Default)]
struct Errors(Mistakes);

impl Errors {
    /// Checks the longest name of a pod and its Service.
    fn name(&mut self, family: &Family<'_>) {
        let last = family.replicas.iter().map(|it| family.host(it.of.lower, it.count.saturating_sub(1)));
        let longest = last.max_by_key(String::len).unwrap_or_else(|| family.job.name().to_owned());
        if let Some(problem) = dns_label_problem(&longest) {
            let message = format!("cannot begin the names of pods and Services: {longest:?}: {problem}");
            self.0.add("metadata.name", message);
        }
    }

    fn restart_scope(&mut self, family: &Family<'_>) {
        if let Err(scope) = RestartScope::of(family.job) {
            let message = format!("{scope:?} is not supported; supported values: Pod, Job");
            self.0.add(format!("metadata.annotations[{RESTART_SCOPE}]"), message);
        }
    }

    fn left_out(&mut self, family: &Family<'_>) {
        if let Err(why) = left_out::workers(family.job) {
            self.0.add(format!("metadata.annotations[{LEFT_OUT_WORKERS}]"), why);
        }
    }

    fn types(&mut self, family: &Family<'_>) {
        let field = family.kind.field;
        let Some(specs) = (family.kind.replicas)(&family.job.spec) else {
            return self.0.add(format!("spec.{field}"), "is required");
        };
        if specs.is_empty() {
            self.0.add(format!("spec.{field}"), "must have at least one type of replica");
        }
        for key in specs.keys() {
            if !family.kind.types.iter().any(|of| of.name.eq_ignore_ascii_case(key)) {
                let names: Vec<_> = family.kind.types.iter().map(|of| of.name).collect();
                let message = format!("is not supported; supported types: {}", names.join(", "));
                self.0.add(format!("spec.{field}[{key}]"), message);
            }
        }
    }

    /// Checks the number of all replicas. Where a type alone has too many, its own error says so.
    fn total(&mut self, family: &Family<'_>) {
        let total = family.total();
        if total > MAX_REPLICAS && family.replicas.iter().all(|replicas| replicas.count <= MAX_REPLICAS) {
            let message = format!("must have at most {MAX_REPLICAS} replicas in all, not {total}");
            self.0.add(format!("spec.{}", family.kind.field), message);
        }
    }

    fn replicas(&mut self, family: &Family<'_>, replicas: &Replicas<'_>) -> Option<Pods> {
        let path = format!("spec.{}[{}]", family.kind.field, replicas.key);
        self.0.number_at(&[&path, ".replicas"], &spec::REPLICAS, replicas.spec.replicas);
        let restart_policy = replicas.spec.restart_policy.as_deref();
        self.0.word_at(&[&path, ".restartPolicy"], &spec::RESTART_POLICY, restart_policy);
        let template = self.template(&format!("{path}.template"), replicas.template)?;
        let ports = self.containers(&format!("{path}.template.spec.containers"), family, &template)?;
        let named = ports.iter().find(|port| port.name.as_deref() == Some(family.kind.port_name));
        let (port, has_port) = named.map_or((family.kind.port, false), |port| (port.container_port, true));
        let restart_policy = replicas.restart_policy?;
        Some(Pods { of: replicas.of, restart_policy, ports, port, has_port, template })
    }

    fn template(&mut self, path: &str, template: Option<&UserTemplate>) -> Option<PodSpec> {
        let Some(template) = template else {
            self.0.add(format!("{path}.spec.containers"), "must define at least one container");
            return None;
        };
        match template.read::<Template>() {
            Some(template) => Some(template.spec.unwrap_or_default()),
            None => {
                self.0.add(path, "is no pod template: containers, names, images, ports or policies have another type");
                None
            }
        }
    }

    /// Checks the containers and returns the ports of the framework's.
    fn containers(&mut self, path: &str, family: &Family<'_>, template: &PodSpec) -> Option<Vec<Port>> {
        let containers = template.containers.as_deref().unwrap_or_default();
        if containers.is_empty() {
            self.0.add(path, "must define at least one container");
            return None;
        }
        for (place, container) in containers.iter().enumerate() {
            if given(container.image.as_ref()).is_none() {
                self.0.add(format!("{path}[{place}].image"), "is required");
            }
        }
        let name = family.kind.container;
        let Some(own) = containers.iter().find(|container| container.name.as_deref() == Some(name)) else {
            self.0.add(path, format!("must have a container named {name}"));
            return None;
        };
        let ports = own.ports.clone().unwrap_or_default();
        for (place, port) in ports.iter().enumerate() {
            if port.name.is_some() && ports[..place].iter().any(|other| other.name == port.name) {
                self.0
                    .add(path, format!("must have no two ports of the name {:?}", port.name.as_deref().unwrap_or("")));
            }
        }
        Some(ports)
    }

    fn run_policy(&mut self, family: &Family<'_>) -> Clean {
        let Some(policy) = &family.job.spec.run_policy else { return Clean::Keep };
        self.0.number(&spec::TTL, policy.ttl_seconds_after_finished);
        self.0.number(&spec::DEADLINE, policy.active_deadline_seconds);
        self.0.number(&spec::BACKOFF_LIMIT, policy.backoff_limit);
        self.0.word(&spec::MANAGED_BY, policy.managed_by.as_deref());
        self.0.word(&spec::CLEAN_POD_POLICY, policy.clean_pod_policy.as_deref());
        if let Some(gang) = &policy.scheduling_policy {
            self.0.number(&spec::MIN_AVAILABLE, gang.min_available);
            self.0.number(&spec::SCHEDULE_TIMEOUT, gang.schedule_timeout_seconds);
            self.0.name(&spec::QUEUE, gang.queue.as_deref());
            self.0.name(&spec::PRIORITY_CLASS, gang.priority_class.as_deref());
            self.0.amounts("spec.runPolicy.schedulingPolicy.minResources", gang.min_resources.as_ref());
        }
        match policy.clean_pod_policy.as_deref() {
            Some("Running") => Clean::Active,
            Some("All") => Clean::All,
            _ => Clean::Keep,
        }
    }
}

/// Returns the error of a type that must have exactly one replica, said in the spec.
pub(crate) fn exactly_one(family: &Family<'_>, name: &str) -> Option<(String, String)> {
    let replicas = family.replicas(name)?;
    (replicas.spec.replicas != Some(1)).then(|| (replicas.path_of_count(family), "must be 1".to_owned()))
}

#[cfg(test)]
mod tests {
    use crate::TrainingJob;
    use crate::fixtures::{errors, job, spec};
    use serde_json::{Value, json};
    use troupe_plugin::testkit;

    /// Returns a JAXJob of one worker with the value at this pointer of its spec.
    fn jax_with(pointer: &str, value: Value) -> TrainingJob {
        let mut spec = spec("JAXJob", &[("Worker", 1)], &json!({ "runPolicy": {} }));
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        spec.pointer_mut(parent).unwrap()[field] = value;
        job("JAXJob", &spec)
    }

    // AC-19
    #[test]
    fn each_wrong_field_is_named() {
        let worker = "/jaxReplicaSpecs/Worker";
        let containers = "spec.jaxReplicaSpecs[Worker].template.spec.containers";
        let cases = [
            ("/jaxReplicaSpecs".to_owned(), json!(null), "spec.jaxReplicaSpecs"),
            ("/jaxReplicaSpecs/Master".to_owned(), json!({}), "spec.jaxReplicaSpecs[Master]"),
            (format!("{worker}/replicas"), json!(-1), "spec.jaxReplicaSpecs[Worker].replicas"),
            (format!("{worker}/replicas"), json!(10_001), "spec.jaxReplicaSpecs[Worker].replicas"),
            (format!("{worker}/restartPolicy"), json!("Foo"), "spec.jaxReplicaSpecs[Worker].restartPolicy"),
            (format!("{worker}/template"), json!(null), containers),
            (format!("{worker}/template"), json!({}), containers),
            (format!("{worker}/template/spec/containers/0/name"), json!("main"), containers),
            (format!("{worker}/template/spec/containers/0/image"), json!(""), &format!("{containers}[0].image")),
            (
                format!("{worker}/template/spec/containers/0/ports"),
                json!([{ "containerPort": "x" }]),
                "spec.jaxReplicaSpecs[Worker].template",
            ),
            ("/runPolicy/managedBy".to_owned(), json!("foo"), "spec.runPolicy.managedBy"),
            ("/runPolicy/managedBy".to_owned(), json!(""), "spec.runPolicy.managedBy"),
            ("/runPolicy/cleanPodPolicy".to_owned(), json!("Foo"), "spec.runPolicy.cleanPodPolicy"),
            ("/runPolicy/ttlSecondsAfterFinished".to_owned(), json!(-1), "spec.runPolicy.ttlSecondsAfterFinished"),
        ];
        for (pointer, value, path) in cases {
            let errors = errors(&jax_with(&pointer, value));
            assert_eq!(errors.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), [path], "{pointer}");
        }
        assert!(errors(&jax_with("/runPolicy/cleanPodPolicy", json!(""))).is_empty());
    }

    // Each type may have as many as a job: all together may not have more either.
    #[test]
    fn all_replicas_together_are_no_more_than_one_job_may_have() {
        let told = |kind: &str, types: &[(&str, u32)]| errors(&job(kind, &spec(kind, types, &json!({}))));
        for (kind, types, field, total) in [
            ("TFJob", [("PS", 10_000), ("Worker", 10_000)], "tfReplicaSpecs", 20_000),
            ("XGBoostJob", [("Master", 1), ("Worker", 10_000)], "xgbReplicaSpecs", 10_001),
            ("PaddleJob", [("Master", 5_000), ("Worker", 5_001)], "paddleReplicaSpecs", 10_001),
        ] {
            let message = format!("must have at most 10000 replicas in all, not {total}");
            assert_eq!(told(kind, &types), [(format!("spec.{field}"), message)]);
        }
        assert!(told("PaddleJob", &[("Master", 5_000), ("Worker", 5_000)]).is_empty());
        let one = told("PaddleJob", &[("Master", 1), ("Worker", 10_001)]);
        assert_eq!(one.len(), 1);
        assert_eq!(one[0].0, "spec.paddleReplicaSpecs[Worker].replicas");
    }

    // AC-19, Better: the longest name counts.
    #[test]
    fn a_name_that_cannot_begin_those_of_pods_and_services_is_refused() {
        let named = |name: &str, workers: u32| {
            let spec = spec("JAXJob", &[("Worker", workers)], &json!({}));
            errors(&TrainingJob::parse(testkit::job("JAXJob", name, &spec)).unwrap())
        };
        for name in ["1job", "a.b", "Job", &"a".repeat(60)] {
            let errors = named(name, 1);
            assert_eq!(errors.len(), 1, "{name}");
            assert_eq!(errors[0].0, "metadata.name");
        }
        let name = "a".repeat(54);
        assert!(named(&name, 10).is_empty());
        assert_eq!(named(&name, 11).len(), 1);
    }

    #[test]
    fn the_case_of_a_type_does_not_matter_and_other_kinds_fields_do_not_count() {
        let mut spec = spec("JAXJob", &[("worker", 1)], &json!({}));
        spec["tfReplicaSpecs"] = json!({ "Foo": {} });
        assert!(errors(&job("JAXJob", &spec)).is_empty());
    }
}

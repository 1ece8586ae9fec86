//! The CRDs of the five kinds, from what differs between them. They accept what the originals accept.

use crate::kind::{Framework, KINDS, Kind};
use crate::spec;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value, json};
use troupe_plugin::crd::{self as shared, rule};
use troupe_plugin::{Name, Number, Word};

/// Returns the CRDs to install.
///
/// # Panics
/// If what is generated is no CRD, which a test excludes.
#[must_use]
pub fn crds() -> Vec<CustomResourceDefinition> {
    KINDS.iter().map(|kind| serde_json::from_value(crd(kind)).expect("it is a CRD")).collect()
}

fn crd(kind: &Kind) -> Value {
    // Of a pod's name, after the job's.
    let shortest = kind.types.iter().map(|of| format!("-{}-0", of.lower).len()).min();
    let schema = json!({
        "description": format!("{} is a distributed training job.", kind.name),
        "type": "object",
        "properties": { "spec": spec_of(kind), "status": status() },
        "x-kubernetes-validations": [shared::name_rule(63 - shortest.unwrap_or_default(), true)],
    });
    let mut subresources = json!({ "status": {} });
    if kind.scales {
        subresources["scale"] = json!({
            "specReplicasPath": format!(".spec.{}.Worker.replicas", kind.field),
            "statusReplicasPath": ".status.replicaStatuses.Worker.active",
            "labelSelectorPath": ".status.replicaStatuses.Worker.selector",
        });
    }
    let columns = json!([
        { "name": "State", "type": "string", "jsonPath": ".status.troupe.step" },
        { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
    ]);
    shared::document(&crate::kind_info(kind), &schema, &subresources, &columns)
}

fn spec_of(kind: &Kind) -> Value {
    let mut fields = Map::new();
    fields.insert(kind.field.into(), replica_specs(kind));
    fields.insert("runPolicy".into(), run_policy());
    fields.extend(own_fields(kind).into_iter().map(|(name, schema)| (name.to_owned(), schema)));
    let manager =
        |of: &str| format!("has({of}.runPolicy) && has({of}.runPolicy.managedBy) ? {of}.runPolicy.managedBy : ''");
    let same_manager = format!("({}) == ({})", manager("self"), manager("oldSelf"));
    let mut rules = vec![rule(&same_manager, "spec.runPolicy.managedBy is immutable")];
    rules.extend(own_rules(kind).into_iter().map(|(expression, message)| rule(&expression, message)));
    let mut schema = object("What the job is.", fields);
    schema["required"] = json!([kind.field]);
    schema["x-kubernetes-validations"] = rules.into();
    schema
}

/// Returns the fields that only this kind has.
fn own_fields(kind: &Kind) -> Vec<(&'static str, Value)> {
    match kind.framework {
        Framework::Tf => vec![
            ("successPolicy", text("AllWorkers: all have to succeed. Without it worker 0 is enough where none leads.")),
            ("enableDynamicWorker", boolean("Workers may come, go and fail. Defaults to false.")),
        ],
        Framework::PyTorch => vec![
            ("elasticPolicy", elastic_policy(kind.framework)),
            (
                "nprocPerNode",
                matching(
                    text("Processes in each pod: auto, cpu, gpu, xpu, another device or a number. Defaults to auto."),
                    "^([a-z][a-z0-9_]*|[1-9][0-9]{0,3})?$",
                ),
            ),
        ],
        Framework::Paddle => vec![("elasticPolicy", elastic_policy(kind.framework))],
        Framework::XgBoost | Framework::Jax => vec![],
    }
}

/// Returns the rules that only this kind has.
fn own_rules(kind: &Kind) -> Vec<(String, &'static str)> {
    let field = format!("self.{}", kind.field);
    let one = |entry: &str| format!("has({field}.{entry}.replicas) && {field}.{entry}.replicas == 1");
    match kind.framework {
        Framework::Tf => {
            let leads =
                |entry: &str| format!("!('{entry}' in {field}) || !has({field}.{entry}.replicas) || {}", one(entry));
            vec![
                (format!("!('Chief' in {field} && 'Master' in {field})"), "must not have both Chief and Master"),
                (leads("Chief"), "Chief must have 1 replica"),
                (leads("Master"), "Master must have 1 replica"),
            ]
        }
        Framework::PyTorch => vec![
            (
                format!("!('Master' in {field}) || ({})", one("Master")),
                "Master must have exactly 1 replica: set replicas to 1",
            ),
            (
                format!("!('Worker' in {field}) || !has({field}.Worker.replicas) || {field}.Worker.replicas >= 1"),
                "Worker must have at least 1 replica",
            ),
            (least_is_least(), "elasticPolicy.minReplicas must not be greater than maxReplicas"),
            (
                format!("!has(self.elasticPolicy) || {field}.exists(key, key.lowerAscii() == 'worker')"),
                "elasticPolicy requires Worker",
            ),
            (
                "!(has(self.nprocPerNode) && has(self.elasticPolicy) && has(self.elasticPolicy.nProcPerNode))".into(),
                "elasticPolicy.nProcPerNode must not be set together with nprocPerNode",
            ),
        ],
        Framework::XgBoost => vec![
            (format!("{field}.exists(key, key.lowerAscii() == 'master')"), "Master is required"),
            (
                format!("!('Master' in {field}) || ({})", one("Master")),
                "Master must have exactly 1 replica: set replicas to 1",
            ),
        ],
        Framework::Paddle => vec![
            (
                format!("!('Master' in {field}) || !has({field}.Master.replicas) || {field}.Master.replicas >= 1"),
                "Master must have at least 1 replica",
            ),
            (least_is_least(), "elasticPolicy.minReplicas must not be greater than maxReplicas"),
        ],
        Framework::Jax => vec![],
    }
}

fn least_is_least() -> String {
    let (least, most) = ("self.elasticPolicy.minReplicas", "self.elasticPolicy.maxReplicas");
    format!("!has(self.elasticPolicy) || !has({least}) || !has({most}) || {least} <= {most}")
}

fn replica_specs(kind: &Kind) -> Value {
    let names: Vec<_> = kind.types.iter().map(|of| format!("'{}'", of.name.to_lowercase())).collect();
    let known = format!("self.all(key, key.lowerAscii() in [{}])", names.join(", "));
    let replicas = properties([
        ("replicas", number(&spec::REPLICAS, "How many pods. Defaults to 1.")),
        (
            "restartPolicy",
            word(&spec::RESTART_POLICY, "When a pod that failed is made again; replaces the one of the template."),
        ),
        ("template", template(kind)),
    ]);
    let mut schema = json!({
        "description": format!("The replicas by type; their program runs in the container `{}`.", kind.container),
        "type": "object",
        "minProperties": 1,
        "maxProperties": kind.types.len(),
        "additionalProperties": object("The replicas of one type.", replicas),
    });
    schema["additionalProperties"]["x-kubernetes-validations"] =
        json!([rule("has(self.template)", "must have a template")]);
    let supported: Vec<_> = kind.types.iter().map(|of| of.name).collect();
    let message = format!("the types of replicas are {}", supported.join(", "));
    schema["x-kubernetes-validations"] = json!([rule(&known, &message)]);
    schema
}

fn template(kind: &Kind) -> Value {
    let mut schema = shared::of(shared::pod_template);
    let words = format!("The pods, as in a Pod. The program runs in the container {}.", kind.container);
    schema["description"] = words.into();
    // What a rule costs at most has to be known: no pod has so many containers.
    schema["properties"]["spec"]["properties"]["containers"]["maxItems"] = json!(MOST_CONTAINERS);
    let containers = "has(self.spec) && has(self.spec.containers)";
    let at_containers = |expression: &str, message: &str| {
        let mut rule = rule(expression, message);
        rule["fieldPath"] = json!(".spec.containers");
        rule
    };
    let named =
        format!("!({containers}) || self.spec.containers.exists(it, has(it.name) && it.name == '{}')", kind.container);
    let with_image = format!("!({containers}) || self.spec.containers.all(it, has(it.image) && size(it.image) > 0)");
    schema["x-kubernetes-validations"] = json!([
        rule(
            &format!("{containers} && size(self.spec.containers) > 0"),
            "spec.containers must have at least one container"
        ),
        at_containers(&named, &format!("must have a container named {}", kind.container)),
        at_containers(&with_image, "must have an image in each container"),
    ]);
    schema
}

/// More than any pod has.
const MOST_CONTAINERS: u32 = 256;

fn run_policy() -> Value {
    let mut manager =
        word(&spec::MANAGED_BY, "Who runs the job: training-operator (the default) or Kueue's MultiKueue.");
    // What a rule of the spec that compares it costs at most has to be known.
    manager["maxLength"] = json!(253);
    let mut suspend = boolean("Keeps the job without pods. Defaults to false.");
    (suspend["default"], suspend["nullable"]) = (json!(false), json!(false));
    let fields = properties([
        (
            "cleanPodPolicy",
            word(&spec::CLEAN_POD_POLICY, "Pods that are removed once the job is finished. Defaults to None."),
        ),
        (
            "ttlSecondsAfterFinished",
            number(&spec::TTL, "Seconds from its end to its deletion. Without it the job stays."),
        ),
        (
            "activeDeadlineSeconds",
            number(&spec::DEADLINE, "Seconds that the job may be active. Without it there is no limit."),
        ),
        ("backoffLimit", number(&spec::BACKOFF_LIMIT, "Restarts before the job fails. Without it there is no limit.")),
        ("schedulingPolicy", scheduling_policy()),
        ("suspend", suspend),
        ("managedBy", manager),
    ]);
    object("What happens when the job is finished, suspended or takes too long.", fields)
}

fn scheduling_policy() -> Value {
    let mut queue = name(&spec::QUEUE, "The queue of the gang scheduler. Cannot be changed.");
    queue["x-kubernetes-validations"] =
        json!([rule("self == oldSelf", "spec.runPolicy.schedulingPolicy.queue is immutable")]);
    let mut resources = shared::of(shared::quantities);
    resources["description"] = "The resources that have to be free before any pod starts, by resource.".into();
    let fields = properties([
        (
            "minAvailable",
            number(&spec::MIN_AVAILABLE, "The least number of pods to start with. Defaults to all of them."),
        ),
        ("queue", queue),
        ("minResources", resources),
        ("priorityClass", name(&spec::PRIORITY_CLASS, "The PriorityClass of the group of pods.")),
        (
            "scheduleTimeoutSeconds",
            number(&spec::SCHEDULE_TIMEOUT, "Seconds that the group may wait; for scheduler-plugins only."),
        ),
    ]);
    object("How a gang scheduler sees the job; without one it has no effect.", fields)
}

/// Returns the schema of the policy of an elastic job; PyTorch's workers have a rendezvous, Paddle's do not.
fn elastic_policy(framework: Framework) -> Value {
    let sources = ["Resource", "ContainerResource", "Pods", "Object", "External"];
    let metric = json!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "required": ["type"],
        "properties": { "type": { "description": "Where the metric comes from.", "type": "string", "enum": sources } },
    });
    let mut fields = properties([
        ("minReplicas", number(&spec::MIN_REPLICAS, "The least workers. Defaults to maxReplicas, else all.")),
        ("maxReplicas", number(&spec::MOST_REPLICAS, "The most workers. Defaults to minReplicas, else all.")),
        ("maxRestarts", number(&spec::MAX_RESTARTS, "How often workers are restarted before they fail.")),
        ("metrics", list("The metrics of a HorizontalPodAutoscaler of the workers.", &metric)),
    ]);
    if framework == Framework::PyTorch {
        let key = matching(text("Its name."), r"^[^=,\s]+$");
        let value = matching(text("Its value."), r"^[^,]*[^,\s][^,]*$");
        let mut pair = object("A setting.", properties([("key", key), ("value", value)]));
        pair["required"] = json!(["key", "value"]);
        let word = |description: &str| matching(text(description), r"^\S*$");
        fields.extend(properties([
            ("rdzvBackend", word("c10d, etcd, etcd-v2, static, or what the image has. Defaults to c10d.")),
            ("rdzvPort", number(&spec::RDZV_PORT, "The port of the rendezvous. Defaults to that of the workers.")),
            ("rdzvHost", word("The host of the rendezvous. Defaults to worker 0.")),
            ("rdzvId", text("The id of the rendezvous, which its members share.")),
            ("rdzvConf", list("More settings of the rendezvous, as its backend knows them.", &pair)),
            ("standalone", boolean("Each worker is a rendezvous of its own. Defaults to false.")),
            ("nProcPerNode", number(&spec::N_PROC_PER_NODE, "Deprecated: use nprocPerNode.")),
        ]));
    }
    object("How many workers there may be, and how they find each other.", fields)
}

fn status() -> Value {
    let mut selector = shared::of(shared::opaque);
    selector["description"] = "Never written; the original's.".into();
    let counts = properties([
        ("active", integer("Pods that run, or are about to.", "int32")),
        ("succeeded", integer("Pods that succeeded.", "int32")),
        ("failed", integer("Pods that failed.", "int32")),
        ("selector", text("The labels of the pods, for the scale subresource.")),
        ("labelSelector", selector),
    ]);
    let mut replicas = object("Pods by phase, for each type of replica.", Map::new());
    replicas["additionalProperties"] = object("The pods of one type.", counts);
    let fields = properties([
        ("conditions", shared::of(shared::conditions)),
        ("replicaStatuses", replicas),
        ("startTime", time("When the job was first seen, or resumed.")),
        ("completionTime", time("When the job was finished.")),
        ("lastReconcileTime", time("Never written; the original's.")),
        ("troupe", shared::of(shared::ledger)),
    ]);
    object("What is known of the job.", fields)
}

fn properties<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

fn object(description: &str, properties: Map<String, Value>) -> Value {
    let mut schema = described(description, "object");
    if !properties.is_empty() {
        schema["properties"] = properties.into();
    }
    schema
}

fn described(description: &str, kind: &str) -> Value {
    json!({ "description": description, "type": kind, "nullable": true })
}

fn text(description: &str) -> Value {
    described(description, "string")
}

fn matching(mut schema: Value, pattern: &str) -> Value {
    schema["pattern"] = json!(pattern);
    schema
}

fn boolean(description: &str) -> Value {
    described(description, "boolean")
}

fn number(number: &Number, description: &str) -> Value {
    shared::described(shared::number(number), description)
}

fn name(name: &Name, description: &str) -> Value {
    shared::described(shared::name(name), description)
}

fn word(word: &Word, description: &str) -> Value {
    shared::described(shared::word(word), description)
}

fn integer(description: &str, format: &str) -> Value {
    let mut schema = described(description, "integer");
    schema["format"] = json!(format);
    schema
}

fn time(description: &str) -> Value {
    let mut schema = text(description);
    schema["format"] = json!("date-time");
    schema
}

fn list(description: &str, item: &Value) -> Value {
    let mut schema = described(description, "array");
    schema["items"] = item.clone();
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(kind: &str) -> Value {
        let all = crds().into_iter().map(|crd| serde_json::to_value(crd).unwrap());
        let mut of_kind = all.filter(|crd| crd["spec"]["names"]["kind"] == kind);
        of_kind.next().unwrap()["spec"]["versions"][0].clone()
    }

    /// Returns the expressions of all rules below a schema.
    fn rules(schema: &Value) -> Vec<String> {
        let own = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
        let own = own.map(|rule| rule["rule"].as_str().unwrap().to_owned());
        let below: Vec<&Value> = match schema {
            Value::Object(fields) => fields.values().collect(),
            Value::Array(items) => items.iter().collect(),
            _ => vec![],
        };
        own.chain(below.into_iter().flat_map(rules)).collect()
    }

    #[test]
    fn the_names_are_the_originals() {
        let crds = crds();
        let names: Vec<_> = crds.iter().map(|crd| crd.metadata.name.as_deref().unwrap()).collect();
        let expected = [
            "tfjobs.kubeflow.org",
            "pytorchjobs.kubeflow.org",
            "xgboostjobs.kubeflow.org",
            "jaxjobs.kubeflow.org",
            "paddlejobs.kubeflow.org",
        ];
        assert_eq!(names, expected);
        assert_eq!(version("TFJob")["name"], "v1");
    }

    // Section 1.1: workers of three kinds can be scaled.
    #[test]
    fn the_kinds_whose_workers_can_be_scaled_have_a_scale_subresource() {
        for kind in ["TFJob", "XGBoostJob"] {
            assert_eq!(version(kind)["subresources"], json!({ "status": {} }));
        }
        for (kind, field) in
            [("PyTorchJob", "pytorchReplicaSpecs"), ("JAXJob", "jaxReplicaSpecs"), ("PaddleJob", "paddleReplicaSpecs")]
        {
            let path = format!(".spec.{field}.Worker.replicas");
            assert_eq!(version(kind)["subresources"]["scale"]["specReplicasPath"], path);
        }
    }

    // AC-19
    #[test]
    fn what_cel_can_say_is_refused_at_apply() {
        let xgboost = rules(&version("XGBoostJob"));
        for expression in [
            "oldSelf.hasValue() || (self.metadata.name.size() <= 54 && \
             self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))",
            "self == oldSelf",
            "self.all(key, key.lowerAscii() in ['master', 'worker'])",
            "self.xgbReplicaSpecs.exists(key, key.lowerAscii() == 'master')",
            "has(self.template)",
            "has(self.spec) && has(self.spec.containers) && size(self.spec.containers) > 0",
        ] {
            assert!(xgboost.iter().any(|rule| rule == expression), "{expression} in {xgboost:#?}");
        }
        assert_eq!(rules(&version("TFJob")).len(), 11);
        assert_eq!(rules(&version("PyTorchJob")).len(), 13);
    }

    #[test]
    fn a_pod_template_of_any_kubernetes_version_is_accepted_and_the_status_keeps_the_ledger() {
        for kind in &KINDS {
            let schema = version(kind.name)["schema"]["openAPIV3Schema"].clone();
            let template = schema["properties"]["spec"]["properties"][kind.field]["additionalProperties"]["properties"]
                ["template"]
                .clone();
            assert_eq!(template.pointer("/properties/spec/x-kubernetes-preserve-unknown-fields"), Some(&json!(true)));
            let ledger = &schema["properties"]["status"]["properties"]["troupe"];
            assert_eq!(ledger["x-kubernetes-preserve-unknown-fields"], json!(true));
            assert!(schema.get("required").is_none());
            assert_eq!(schema["properties"]["spec"]["required"], json!([kind.field]));
        }
    }
}

//! The chart and the manifests of `deploy/`, rendered by Helm.

use crate::{
    cluster::{
        deploy::parse,
        objects::{at, text},
    },
    rbac::{is_generated, plugins},
};
use decide::grants::Grants;
use harness::CommandLine;
use install::rbac::{self, Host, Policy, Serves};
use serde_json::{Value, json};
use std::fs;

/// Words that Helm replaces.
const NAMESPACE: &str = "{{ .Release.Namespace }}";
const WATCHED: &str = "{{ .Values.watchNamespace }}";

/// Without a cluster Helm, as it is built from its module, takes a Kubernetes of 2020 for the one to install in.
const KUBERNETES: [&str; 2] = ["--kube-version", "1.36.3"];

/// What `deploy/operator.yaml` begins with.
const MANIFESTS: &str = "\
# Everything that Troupe needs in a cluster. Generated of deploy/chart by `helm template`; a test keeps it so.
apiVersion: v1
kind: Namespace
metadata:
  name: troupe-system
  labels:
    pod-security.kubernetes.io/enforce: restricted
";

fn host(serves: Serves) -> Host {
    Host { namespace: NAMESPACE.into(), serves, installs_crds: false, ..Host::default() }
}

/// The documents of the chart with these values, and no cluster.
pub(crate) fn rendered(values: &[&str]) -> Vec<Value> {
    parse(&template(values).unwrap()).into_iter().filter(|document| !document.is_null()).collect()
}

fn template(values: &[&str]) -> anyhow::Result<String> {
    let command = ["template", "troupe", "deploy/chart", "--namespace", "troupe-system"];
    CommandLine::helm_alone()?.run(&[&command, &KUBERNETES[..], values].concat())
}

fn of_kind<'a>(documents: &'a [Value], kind: &str) -> Vec<&'a Value> {
    documents.iter().filter(|document| text(document, "/kind") == kind).collect()
}

#[test]
fn the_chart_has_the_rights_and_policies_that_the_plugins_descriptions_generate() {
    let (everywhere, in_one) = (host(Serves::Cluster), host(Serves::Namespace(WATCHED.into())));
    let plugins = plugins();
    let yaml = |documents: &[Value]| rbac::yaml(documents).unwrap();
    let file = |name: &str, text: &str| is_generated(&format!("chart/files/{name}.yaml"), text);
    file("rights", &yaml(&rbac::rights(&everywhere, &plugins).unwrap()));
    file("rights-in-a-namespace", &yaml(&rbac::rights(&in_one, &plugins).unwrap()));
    file("job-roles", &yaml(&rbac::job_roles(&plugins).unwrap()));
    file("fence-parameters", &yaml(&[rbac::parameters(&everywhere, &plugins, &Grants::default())]));
    for (name, policy) in [("fence", Policy::Fence), ("authors", Policy::Authors), ("ledger", Policy::Ledger)] {
        file(name, &policy.yaml(&everywhere, &plugins).unwrap());
    }
    // Helm reads no file outside of the chart.
    for name in ["alerts.yaml", "dashboards/jobs.json", "dashboards/operator.json"] {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/monitoring");
        is_generated(&format!("chart/files/{name}"), &fs::read_to_string(format!("{folder}/{name}")).unwrap());
    }
}

#[test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
fn the_alerts_and_dashboards_are_in_the_chart_for_whoever_wants_them() {
    let is_monitoring = |document: &&Value| {
        text(document, "/kind") == "PrometheusRule" || text(document, "/metadata/name").starts_with("troupe-dashboard-")
    };
    assert_eq!(rendered(&[]).iter().filter(is_monitoring).count(), 0, "not every cluster knows rules");
    let values = [
        "monitoring.alerts.enabled=true",
        "monitoring.alerts.labels.release=prometheus",
        "monitoring.dashboards.enabled=true",
    ];
    let values: Vec<_> = values.iter().flat_map(|value| ["--set", value]).collect();
    let documents = rendered(&values);
    let rules = of_kind(&documents, "PrometheusRule");
    let there: Value = serde_norway::from_str(include_str!("../../deploy/monitoring/alerts.yaml")).unwrap();
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0]["spec"], there["spec"], "with the templates of Prometheus as they are");
    assert_eq!(text(rules[0], "/metadata/labels/release"), "prometheus");
    for (name, there) in [
        ("jobs", include_str!("../../deploy/monitoring/dashboards/jobs.json")),
        ("operator", include_str!("../../deploy/monitoring/dashboards/operator.json")),
    ] {
        let maps = of_kind(&documents, "ConfigMap");
        let named = format!("troupe-dashboard-{name}");
        let map = maps.into_iter().find(|map| text(map, "/metadata/name") == named).unwrap();
        assert_eq!(text(map, "/metadata/labels/grafana_dashboard"), "1");
        let shown: Value = serde_json::from_str(text(map, &format!("/data/troupe-{name}.json"))).unwrap();
        assert_eq!(shown, serde_json::from_str::<Value>(there).unwrap());
    }
}

#[test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
fn a_host_may_reach_the_collector_that_gets_its_traces() {
    let of = |values: &[&str]| {
        let documents = rendered(values);
        let pod = at(of_kind(&documents, "Deployment")[0], "/spec/template/spec").clone();
        let flags = pod["containers"][0]["args"].as_array().unwrap().iter().filter_map(Value::as_str);
        let flags = flags.filter(|flag| flag.starts_with("--otlp")).map(str::to_owned).collect::<Vec<_>>();
        let egress = at(of_kind(&documents, "NetworkPolicy")[0], "/spec/egress/0/ports").as_array().unwrap().clone();
        (flags, egress.last().unwrap()["port"].clone())
    };
    assert_eq!(of(&[]), (vec![], json!(16443)));
    for (endpoint, port) in
        [("http://collector.observability:4318", 4318), ("http://collector/otlp", 80), ("https://[::1]", 443)]
    {
        let values = [format!("tracing.endpoint={endpoint}"), "tracing.sample=0.25".to_owned()];
        let flags = vec![format!("--otlp-endpoint={endpoint}"), "--otlp-sample=0.25".to_owned()];
        assert_eq!(of(&["--set", &values[0], "--set", &values[1]]), (flags, json!(port)));
    }
}

#[test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
fn the_manifests_are_the_chart_with_its_defaults() {
    is_generated("operator.yaml", &format!("{MANIFESTS}{}", template(&[]).unwrap()));
    let version = format!("version: {}\n", env!("CARGO_PKG_VERSION"));
    let chart = include_str!("../../deploy/chart/Chart.yaml");
    assert!(chart.contains(&format!("\n{version}")) && chart.contains(&format!("\nappV{}", &version[1..])), "{chart}");
}

#[test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
fn helm_finds_nothing_wrong_with_the_chart() {
    for values in
        [&[][..], &["--set", "watchNamespace=team"], &["--set", "policies.fence.users.capabilities={IPC_LOCK}"]]
    {
        let lint = ["lint", "--strict", "deploy/chart"];
        let said = CommandLine::helm_alone().unwrap().run(&[&lint, &KUBERNETES[..], values].concat()).unwrap();
        assert!(said.contains("1 chart(s) linted, 0 chart(s) failed"), "{said}");
    }
}

#[test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
fn values_that_nothing_reads_or_that_cannot_be_right_are_refused_by_name() {
    for (value, told) in [
        ("replica=3", "replica"),
        ("replicas=0", "replicas"),
        ("replicas=many", "replicas"),
        ("image.repository=Troupe Latest", "repository"),
        ("image.digest=sha256:abc", "digest"),
        ("image.pullPolicy=Sometimes", "pullPolicy"),
        ("watchNamespace=Team_A", "watchNamespace"),
        ("policies.fence=false", "fence"),
        ("policies.fence.users.capability={IPC_LOCK}", "capability"),
        ("policies.fence.users.capabilities=IPC_LOCK", "capabilities"),
        ("policies.fence.users.secrets=theirs", "secrets"),
        ("policies.fence.users.serviceAccountToken=no", "serviceAccountToken"),
        ("pluginConfig.paddle=lean", "paddle"),
        ("extraArgs={host}", "extraArgs"),
        ("crds.keep=maybe", "keep"),
        ("networkPolicy.ports={70000}", "ports"),
        ("monitoring.alerts=true", "alerts"),
        ("tracing.endpoint=collector:4318", "endpoint"),
        ("tracing.endpoint=http://user:password@collector:4318", "endpoint"),
        ("tracing.sample=2", "sample"),
    ] {
        let refused = template(&["--set", value]).unwrap_err().to_string();
        assert!(refused.contains("values don't meet the specifications of the schema"), "{value}: {refused}");
        assert!(refused.contains(told), "{value}: {refused}");
    }
}

#[test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
fn a_host_of_one_namespace_gets_roles_there_and_nothing_in_the_cluster() {
    let documents = rendered(&["--set", "watchNamespace=team"]);
    let namespaces: Vec<_> = documents.iter().map(|document| text(document, "/metadata/namespace")).collect();
    assert!(namespaces.iter().all(|namespace| ["team", "troupe-system"].contains(namespace)), "{namespaces:?}");
    let roles = of_kind(&documents, "Role");
    let [team, own] = roles[..] else { panic!("{roles:?}") };
    assert_eq!((text(team, "/metadata/namespace"), text(own, "/metadata/namespace")), ("team", "troupe-system"));
    for binding in of_kind(&documents, "RoleBinding") {
        assert_eq!(
            at(binding, "/subjects/0"),
            &json!({ "kind": "ServiceAccount", "name": "troupe", "namespace": "troupe-system" })
        );
    }
    let deployments = of_kind(&documents, "Deployment");
    let flags = at(deployments[0], "/spec/template/spec/containers/0/args").as_array().unwrap();
    assert!(flags.contains(&json!("--namespace=team")), "{flags:?}");
}

#[test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
fn what_users_pods_may_have_is_added_to_the_plugins_grants_in_the_fences_parameters() {
    let of = |values: &[&str]| {
        let documents = rendered(values);
        let maps = of_kind(&documents, "ConfigMap");
        maps.into_iter().find(|map| text(map, "/metadata/name") == "troupe-fence").unwrap()["data"].clone()
    };
    let mut expected = of(&[]);
    expected["capabilities"] = json!("IPC_LOCK\nSYS_PTRACE");
    expected["hostPID"] = json!("true");
    let users = "policies.fence.users";
    let values = [format!("{users}.capabilities={{IPC_LOCK,SYS_PTRACE,IPC_LOCK}}"), format!("{users}.hostPID=true")];
    let narrower = format!("{users}.hostNetwork=false");
    assert_eq!(of(&["--set", &values[0], "--set", &values[1], "--set", &narrower]), expected);

    let by_default = rbac::documents(&Host::default(), &plugins(), &rbac::users_by_default()).unwrap();
    assert_eq!(of(&[]), by_default.last().unwrap()["data"], "as `troupe rbac` prints them");
    let mut narrow = of(&[]);
    narrow["serviceAccounts"] = json!("trainer");
    narrow["serviceAccountToken"] = json!("false");
    narrow["priorityClasses"] = json!("");
    let values = [
        format!("{users}.serviceAccounts={{trainer}}"),
        format!("{users}.serviceAccountToken=false"),
        format!("{users}.priorityClasses=null"),
    ];
    let values: Vec<_> = values.iter().flat_map(|value| ["--set", value]).collect();
    assert_eq!(of(&values), narrow);
}

#[test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
fn the_pods_have_no_right_on_their_node_and_everything_is_on_by_default() {
    let documents = rendered(&[]);
    let pod = at(of_kind(&documents, "Deployment")[0], "/spec/template/spec").clone();
    let security = json!({ "runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532,
        "seccompProfile": { "type": "RuntimeDefault" } });
    assert_eq!(pod["securityContext"], security);
    let container = json!({ "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
        "capabilities": { "drop": ["ALL"] } });
    assert_eq!(pod["containers"][0]["securityContext"], container);
    assert_eq!(of_kind(&documents, "CustomResourceDefinition").len(), install::crds::all().len());
    let keep = "/metadata/annotations/helm.sh~1resource-policy";
    assert!(of_kind(&documents, "CustomResourceDefinition").iter().all(|crd| text(crd, keep) == "keep"));
    let policies = of_kind(&documents, "ValidatingAdmissionPolicyBinding");
    let policies: Vec<_> = policies.iter().map(|policy| text(policy, "/metadata/name")).collect();
    assert_eq!(policies, ["troupe-fence", "troupe-authors", "troupe-ledger"]);
    for kind in ["PodDisruptionBudget", "NetworkPolicy", "Service", "ServiceAccount"] {
        assert_eq!(of_kind(&documents, kind).len(), 1, "{kind}");
    }
    // Only what `--install-crds` does needs it, and this host has definitions from the chart.
    let roles = of_kind(&documents, "ClusterRole");
    let rules: Vec<_> = roles.iter().filter_map(|role| at(role, "/rules").as_array()).flatten().collect();
    let writes_definitions = |rule: &&Value| rule["resources"] == json!(["customresourcedefinitions"]);
    assert!(rules.len() > 20 && !rules.iter().any(writes_definitions), "{rules:?}");
}

#[test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
fn whoever_may_view_or_edit_in_a_namespace_may_view_or_edit_jobs_of_every_kind_there() {
    let documents = rendered(&[]);
    for (role, verb) in [("view", "list"), ("edit", "create"), ("admin", "delete")] {
        let label = format!("/metadata/labels/rbac.authorization.k8s.io~1aggregate-to-{role}");
        let roles = of_kind(&documents, "ClusterRole").into_iter().filter(|it| text(it, &label) == "true");
        let rules: Vec<_> = roles.flat_map(|role| at(role, "/rules").as_array().unwrap()).collect();
        for plugin in plugins() {
            for kind in plugin.descriptor.kinds {
                let gives = |rule: &&&Value| {
                    rule["apiGroups"][0] == kind.group.as_str()
                        && rule["resources"][0] == kind.plural.as_str()
                        && rule["verbs"].as_array().unwrap().contains(&json!(verb))
                };
                assert!(rules.iter().any(|rule| gives(&rule)), "{role} may not {verb} {}", kind.plural);
            }
        }
        assert!(rules.iter().all(|rule| !rule["resources"].to_string().contains('/')), "no status: {rules:?}");
    }
}

//! `troupe check` against a real control plane with an installed host: nothing is wrong, then each fault that is seeded is
//! told with what to do. The host itself tells which policies are applied.

use super::{
    deploy::{self, HOST},
    objects::{DEPLOYMENTS, LEASES, Namespace, PODS, SOON, at, text},
};
use crate::operator::{Operator, binary, command};
use harness::{ControlPlane, Options, until};
use kube::{
    Client,
    api::{DeleteParams, GetParams, Patch, PatchParams, PostParams},
    core::Request,
};
use serde_json::{Value, json};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const POLICY_BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CONFIG_MAPS: &str = "/api/v1/namespaces/troupe-system/configmaps";
const PLUGINS: &str = "/apis/troupe.dev/v1alpha1/plugins";
const ROLE_BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

/// A control plane on which Troupe is installed.
struct Installed {
    plane: ControlPlane,
    client: Client,
    system: Namespace,
}

impl Installed {
    async fn new() -> Self {
        let options = Options::default().actor(HOST).limited(HOST).crds(install::crds::all());
        let plane = ControlPlane::start(options).await.unwrap();
        let client = plane.client("admin").await.unwrap();
        deploy::give_rights(&client).await;
        for file in ["fence.yaml", "authors.yaml", "ledger.yaml"] {
            deploy::apply(&client, file).await;
        }
        let system = Namespace { client: client.clone(), name: "troupe-system".to_owned() };
        Self { plane, client, system }
    }

    /// Whether nothing is wrong, and what the command in README.md prints.
    async fn check(&self) -> (bool, Vec<String>) {
        let mut command = command(binary(), &self.plane.kubeconfig("troupe").unwrap());
        let documented = include_str!("../../../README.md").lines().find(|line| line.starts_with("troupe check "));
        let arguments = documented.unwrap().split_whitespace().skip(1);
        let run = move || command.args(arguments).output().unwrap();
        let output = tokio::task::spawn_blocking(run).await.unwrap();
        let told = String::from_utf8(output.stdout).unwrap();
        (output.status.success(), told.lines().map(|line| line.trim().to_owned()).collect())
    }

    /// Panics unless the check fails, and prints this fault and below it what to do.
    async fn finds(&self, fault: &str, to_do: &str) {
        let (is_clear, told) = self.check().await;
        let place = told.iter().position(|line| line.starts_with(&format!("STOP  {fault}")));
        let place = place.unwrap_or_else(|| panic!("{fault:?} is not in {told:#?}"));
        assert!(!is_clear && told[place..].iter().any(|line| line.contains(to_do)), "{to_do:?} is not in {told:#?}");
    }

    async fn finds_nothing(&self) {
        let (is_clear, told) = self.check().await;
        assert!(is_clear, "{told:#?}");
    }

    async fn delete(&self, path: &str, name: &str) {
        let request = Request::new(path).delete(name, &DeleteParams::default()).unwrap();
        self.client.request::<Value>(request).await.unwrap();
        let gone = || async {
            let request = Request::new(path).get(name, &GetParams::default())?;
            Ok(self.client.request::<Value>(request).await.is_err().then_some(()))
        };
        until(SOON, "an object to be gone", gone).await.unwrap();
    }

    async fn create(&self, path: &str, object: &Value) {
        let body = serde_json::to_vec(object).unwrap();
        let request = Request::new(path).create(&PostParams::default(), body).unwrap();
        self.client.request::<Value>(request).await.unwrap();
    }

    /// Makes again what a file has of this kind and name.
    async fn restore(&self, file: &str, kind: &str, name: &str, path: &str) {
        let is_meant = |it: &Value| it["kind"] == kind && it["metadata"]["name"] == name;
        let object = deploy::documents(file).into_iter().find(is_meant).unwrap();
        self.create(path, &object).await;
    }

    /// A host's pod, as its Deployment would make it. Nobody runs it: the host of the test is a process.
    async fn pod(&self, name: &str, arguments: &[&str]) {
        let command = json!(["troupe", "operator"]);
        let container = json!({ "name": "troupe", "image": "troupe", "command": command, "args": arguments });
        let spec = json!({ "serviceAccountName": "troupe", "schedulerName": "nobody", "containers": [container] });
        let metadata = json!({ "name": name });
        self.system
            .create(&PODS, &json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec }))
            .await;
        self.is_ready(name, "True").await;
    }

    async fn is_ready(&self, name: &str, ready: &str) {
        let conditions = json!([{ "type": "Ready", "status": ready }]);
        self.system.set_status(&PODS, name, &json!({ "phase": "Running", "conditions": conditions })).await;
    }

    async fn applied(&self, host: &Operator, policy: &str, value: u32) {
        let line = format!("troupe_policy_applied{{policy=\"{policy}\"}} {value}\n");
        let told = || async { Ok(host.metrics().await?.contains(&line).then_some(())) };
        until(SOON, "the host to tell of its policies", told).await.unwrap();
    }
}

const ELECTING: [&str; 5] =
    ["--leader-elect", "--lease-namespace", "troupe-system", "--plugin-namespace", "troupe-system"];

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn check_finds_each_fault_of_an_installation_and_says_what_to_do() {
    let it = Installed::new().await;
    it.finds("no pod of service account troupe-system/troupe runs", "start a host").await;
    let host = Operator::start_as(&it.plane, HOST, &ELECTING).await;
    it.pod("troupe-0", &ELECTING).await;
    it.finds_nothing().await;
    for policy in ["troupe-fence", "troupe-authors", "troupe-ledger"] {
        it.applied(&host, policy, 1).await;
    }

    it.is_ready("troupe-0", "False").await;
    it.finds("host troupe-system/troupe-0 is not ready", "kubectl --namespace troupe-system logs troupe-0").await;
    it.is_ready("troupe-0", "True").await;
    it.pod("troupe-1", &[]).await;
    it.finds("2 hosts run, and troupe-1 without --leader-elect", "add --leader-elect").await;
    it.system.delete(&PODS, "troupe-1").await;
    it.system.is_gone(&PODS, "troupe-1").await;

    let source = json!({ "configMap": { "name": "nowhere" } });
    let metadata = json!({ "name": "saga" });
    let plugin = json!({ "apiVersion": "troupe.dev/v1alpha1", "kind": "Plugin", "metadata": metadata, "spec": { "source": source } });
    it.create(PLUGINS, &plugin).await;
    it.finds("plugin saga does not serve", "").await;
    it.delete(PLUGINS, "saga").await;

    it.delete(POLICIES, "troupe-fence").await;
    it.finds("troupe-fence is missing", "kubectl apply -f deploy/fence.yaml").await;
    it.delete(POLICY_BINDINGS, "troupe-authors").await;
    it.finds("troupe-authors has no binding that denies", "kubectl apply -f deploy/authors.yaml").await;
    host.stop().await;
    it.finds("lease troupe-system/troupe is held by nobody", "start a host").await;
    let unfenced = Operator::start_as(&it.plane, HOST, &ELECTING).await;
    it.applied(&unfenced, "troupe-fence", 0).await;
    it.applied(&unfenced, "troupe-ledger", 1).await;
    let log = unfenced.stop().await;
    assert!(log.contains("this host runs without a policy around it: troupe-fence is missing"), "{log}");
    it.restore("fence.yaml", "ValidatingAdmissionPolicy", "troupe-fence", POLICIES).await;
    it.restore("authors.yaml", "ValidatingAdmissionPolicyBinding", "troupe-authors", POLICY_BINDINGS).await;
    it.delete(CONFIG_MAPS, "troupe-fence").await;
    let nobody = "the ConfigMap troupe-fence is missing: without it the fence holds nobody";
    it.finds(nobody, "kubectl apply -f deploy/rbac.yaml").await;
    let unfenced = Operator::start_as(&it.plane, HOST, &ELECTING).await;
    it.applied(&unfenced, "troupe-fence", 0).await;
    let log = unfenced.stop().await;
    assert!(log.contains(&format!("this host runs without a policy around it: {nobody}")), "{log}");
    it.restore("rbac.yaml", "ConfigMap", "troupe-fence", CONFIG_MAPS).await;
    let gone = json!({ "spec": { "holderIdentity": "gone_00", "renewTime": "2026-01-01T00:00:00.000000Z" } });
    it.system.patch(&LEASES, "troupe", &gone).await;
    it.finds("lease troupe-system/troupe is held by gone_00, which has not renewed it", "start a host").await;
    let host = Operator::start_as(&it.plane, HOST, &ELECTING).await;
    let held = |lease: &Value| !["gone_00", ""].contains(&text(lease, "/spec/holderIdentity"));
    it.system.is(&LEASES, "troupe", "held", held).await;
    it.finds_nothing().await;

    it.delete(ROLE_BINDINGS, "troupe").await;
    it.finds("service account troupe-system/troupe may not ", "deploy/rbac.yaml").await;
    it.restore("rbac.yaml", "ClusterRoleBinding", "troupe", ROLE_BINDINGS).await;
    let image = "registry.baidubce.com/paddlecloud/controller:v0.3.5";
    let labels = json!({ "app": "original" });
    let pod =
        json!({ "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "manager", "image": image }] } });
    let spec = json!({ "selector": { "matchLabels": labels }, "template": pod });
    let metadata = json!({ "name": "original" });
    let original = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec });
    it.system.create(&DEPLOYMENTS, &original).await;
    it.finds("paddle-operator (recognised by its image)", "scale deployment original --replicas 0").await;
    it.system.delete(&DEPLOYMENTS, "original").await;

    let name = "paddlejobs.batch.paddlepaddle.org";
    let request = Request::new(DEFINITIONS).get(name, &GetParams::default()).unwrap();
    let mut versions = at(&it.client.request::<Value>(request).await.unwrap(), "/spec/versions").clone();
    let status = "/0/schema/openAPIV3Schema/properties/status/properties";
    assert!(versions.pointer_mut(status).unwrap().as_object_mut().unwrap().remove("troupe").is_some());
    let old = Patch::Merge(json!({ "spec": { "versions": versions } }));
    let request = Request::new(DEFINITIONS).patch(name, &PatchParams::default(), &old).unwrap();
    it.client.request::<Value>(request).await.unwrap();
    it.finds("paddlejobs.batch.paddlepaddle.org v1 is too old, it drops status.troupe", "troupe crds").await;
    it.delete(DEFINITIONS, "rhinojobs.openrhino.org").await;
    it.finds("rhinojobs.openrhino.org is missing", "troupe crds | kubectl apply -f -").await;

    host.stop().await;
    let request = Request::new("/api/v1/namespaces").delete("troupe-system", &DeleteParams::default()).unwrap();
    it.client.request::<Value>(request).await.unwrap();
    it.finds("namespace troupe-system is ", "").await;

    // Nothing but questions was asked.
    let asked = it.plane.audit().unwrap().into_iter().filter(|record| record.user == "troupe");
    let writes: Vec<_> = asked.filter(|record| !["get", "list", "watch"].contains(&record.verb.as_str())).collect();
    assert!(!writes.is_empty() && writes.iter().all(|record| record.target() == "subjectaccessreviews"), "{writes:?}");
}

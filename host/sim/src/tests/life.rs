//! Tests of the scheduler and the kubelets.

use kube::api::DeleteParams;

use super::*;

fn pod(sim: &Sim, name: &str) -> Value {
    sim.get("v1", "Pod", "default", name).unwrap_or_default()
}

fn phase(sim: &Sim, name: &str) -> String {
    pod(sim, name)["status"]["phase"].as_str().unwrap_or("gone").to_owned()
}

fn condition(pod: &Value, kind: &str) -> String {
    let list = pod["status"]["conditions"].as_array().unwrap();
    let found = list.iter().find(|condition| condition["type"] == kind).unwrap();
    found["status"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_gets_an_address_runs_and_succeeds() {
    let sim = with(Life::default(), Faults::none());
    let _running = sim.start();
    sim.create(pod_json("a"));
    after(100).await;
    assert_eq!(pod(&sim, "a")["spec"]["nodeName"], "node-1");
    assert!(pod(&sim, "a")["status"]["podIP"].is_null());
    after(200).await;
    assert!(pod(&sim, "a")["status"]["podIP"].as_str().unwrap().starts_with("10.244."));
    assert_eq!(phase(&sim, "a"), "Pending");
    after(300).await;
    let running = pod(&sim, "a");
    assert_eq!(phase(&sim, "a"), "Running");
    let status = &running["status"]["containerStatuses"][0];
    assert_eq!((&status["ready"], &status["started"]), (&json!(true), &json!(true)));
    assert_eq!(status["state"]["running"]["startedAt"], "2026-01-01T00:00:00Z");
    for kind in ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"] {
        assert_eq!(condition(&running, kind), "True", "{kind}");
    }
    after(10_000).await;
    assert_eq!(phase(&sim, "a"), "Succeeded");
    assert_eq!(pod(&sim, "a")["status"]["containerStatuses"][0]["state"]["terminated"]["reason"], "Completed");
    assert_eq!(condition(&pod(&sim, "a"), "Ready"), "False");
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_with_an_address_for_the_config_map_of_its_environment() {
    let sim = with(Life::default(), Faults::none());
    let _running = sim.start();
    let mut waiting = pod_json("a");
    waiting["spec"]["containers"][0]["envFrom"] = json!([{ "configMapRef": { "name": "env" } }]);
    sim.create(waiting);
    after(5000).await;
    let status = &pod(&sim, "a")["status"];
    assert!(status["podIP"].is_string());
    assert_eq!(status["containerStatuses"][0]["state"]["waiting"]["reason"], "CreateContainerConfigError");
    sim.create(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "env" } }));
    after(1500).await;
    assert_eq!(phase(&sim, "a"), "Running");
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_without_an_address_for_the_secret_of_its_volume() {
    let sim = with(Life::default(), Faults::none());
    let _running = sim.start();
    let mut waiting = pod_json("a");
    waiting["spec"]["volumes"] = json!([{ "name": "keys", "secret": { "secretName": "keys" } }]);
    sim.create(waiting);
    after(5000).await;
    let status = pod(&sim, "a")["status"].clone();
    assert!(status["podIP"].is_null());
    assert_eq!(status["containerStatuses"][0]["state"]["waiting"]["reason"], "ContainerCreating");
    sim.create(json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "keys" } }));
    after(2000).await;
    assert_eq!(phase(&sim, "a"), "Running");
}

#[tokio::test(start_paused = true)]
async fn init_containers_run_one_after_the_other_first() {
    let sim = with(Life::default(), Faults::none());
    let _running = sim.start();
    let mut staged = pod_json("a");
    staged["spec"]["initContainers"] = json!([{ "name": "one", "image": "i" }, { "name": "two", "image": "i" }]);
    sim.create(staged);
    after(700).await;
    let statuses = pod(&sim, "a")["status"]["initContainerStatuses"].clone();
    assert!(statuses[0]["state"]["running"].is_object());
    assert_eq!(statuses[1]["state"]["waiting"]["reason"], "PodInitializing");
    assert_eq!(condition(&pod(&sim, "a"), "Initialized"), "False");
    after(1000).await;
    let statuses = pod(&sim, "a")["status"]["initContainerStatuses"].clone();
    assert_eq!((&statuses[1]["state"]["terminated"]["exitCode"], &statuses[1]["ready"]), (&json!(0), &json!(true)));
    assert_eq!(phase(&sim, "a"), "Running");
    assert_eq!(condition(&pod(&sim, "a"), "Initialized"), "True");
}

#[tokio::test(start_paused = true)]
async fn annotations_say_how_long_a_pod_runs_and_how_it_exits() {
    let sim = with(Life::default(), Faults::none());
    let _running = sim.start();
    let mut short = pod_json("a");
    short["metadata"]["annotations"] = json!({ "troupe.dev/run-for": "300ms", "troupe.dev/exit-code": "7" });
    sim.create(short);
    after(1000).await;
    assert_eq!(phase(&sim, "a"), "Failed");
    assert_eq!(pod(&sim, "a")["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 7);
}

#[tokio::test(start_paused = true)]
async fn a_restart_policy_of_on_failure_restarts_in_place() {
    let life = Life::default().rule("a*", "exit-code", "1,1,0").rule("*", "run-for", "1s");
    let sim = with(life, Faults::none());
    let _running = sim.start();
    let mut pods = pod_json("a");
    pods["spec"]["restartPolicy"] = json!("OnFailure");
    sim.create(pods);
    after(2500).await;
    let status = pod(&sim, "a")["status"]["containerStatuses"][0].clone();
    assert_eq!(status["restartCount"], 1);
    assert_eq!(status["lastState"]["terminated"]["exitCode"], 1);
    after(1000).await;
    assert_eq!(pod(&sim, "a")["status"]["containerStatuses"][0]["state"]["waiting"]["reason"], "CrashLoopBackOff");
    after(15_000).await;
    assert_eq!(phase(&sim, "a"), "Succeeded");
    assert_eq!(pod(&sim, "a")["status"]["containerStatuses"][0]["restartCount"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_the_same_name_goes_on_in_the_list_of_exit_codes() {
    let sim = with(Life::quick().rule("a", "exit-code", "1,0"), Faults::none());
    let _running = sim.start();
    sim.create(pod_json("a"));
    after(1000).await;
    assert_eq!(phase(&sim, "a"), "Failed");
    sim.delete("v1", "Pod", "default", "a").unwrap();
    sim.create(pod_json("a"));
    after(1000).await;
    assert_eq!(phase(&sim, "a"), "Succeeded");
}

#[tokio::test(start_paused = true)]
async fn an_sshd_runs_until_it_is_deleted_and_then_ends_with_its_last_status() {
    let sim = with(Life::default(), Faults::none());
    let _running = sim.start();
    let mut server = pod_json("a");
    server["spec"]["containers"][0]["command"] = json!(["/usr/sbin/sshd", "-De"]);
    sim.create(server);
    after(100_000).await;
    assert_eq!(phase(&sim, "a"), "Running");
    let last = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
    let into = last.clone();
    sim.on_write(move |write, _| {
        let after = write.after.as_ref().map(|pod| pod["status"]["phase"].as_str().unwrap_or_default().to_owned());
        into.lock().push(after.unwrap_or("gone".into()));
    });
    pods(&sim).delete("a", &DeleteParams::default()).await.unwrap();
    after(1000).await;
    assert_eq!(*last.lock(), ["Running", "Failed", "Failed", "gone"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_on_a_lost_node_stays_until_it_is_forced() {
    let sim = with(Life::default().rule("a", "terminate-after", "forever"), Faults::none());
    let _running = sim.start();
    sim.create(pod_json("a"));
    after(1000).await;
    sim.delete("v1", "Pod", "default", "a").unwrap();
    after(100_000).await;
    assert!(pod(&sim, "a")["metadata"]["deletionTimestamp"].is_string());
    sim.remove_pod("default", "a").unwrap();
    assert_eq!(phase(&sim, "a"), "gone");
}

#[tokio::test(start_paused = true)]
async fn pods_by_hand_do_what_the_scenario_says_and_nothing_else() {
    let sim = sim();
    let _running = sim.start();
    sim.create(pod_json("a"));
    after(60_000).await;
    assert_eq!(pod(&sim, "a")["spec"]["nodeName"], Value::Null);
    sim.set_pod_ip("default", "a");
    assert!(pod(&sim, "a")["status"]["podIP"].is_string());
    assert_eq!(phase(&sim, "a"), "Pending");
    sim.set_running("default", "a");
    assert_eq!(phase(&sim, "a"), "Running");
    sim.set_failed("default", "a", 3);
    assert_eq!(phase(&sim, "a"), "Failed");
    assert_eq!(pod(&sim, "a")["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 3);
}

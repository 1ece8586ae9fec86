//! Jobs on their nodes' network: ports of their own (A11).

use super::{
    jobs::paddle,
    objects::{CONFIG_MAPS, PADDLE_JOBS, PODS, at, text},
    world::World,
};

use serde_json::json;

// A11: disjoint blocks for jobs alive at once, also after the operator was killed; freed with the job
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn jobs_on_the_hosts_network_never_share_a_port() {
    let world = World::shared("hosts").await;
    let host = |name: &str, time: &str| {
        let mut job = paddle(name).worker(2).runs(time).manifest;
        job["spec"]["intranet"] = json!("Host");
        job
    };
    let port = async |name: &str| {
        let map = world.is(&CONFIG_MAPS, name, "there", |_| true).await;
        text(&map, "/data/PADDLE_PORT").parse::<u32>().unwrap()
    };
    let operator = world.operator().await;
    world.create(&PADDLE_JOBS, &host("one", "60s")).await;
    world.create(&PADDLE_JOBS, &host("two", "60s")).await;
    let (one, two) = (port("one").await, port("two").await);
    assert!(one.abs_diff(two) >= 20, "{one} and {two}");
    let pod = world.get(&PODS, "one-worker-0").await.unwrap();
    assert_eq!(at(&pod, "/spec/containers/0/ports/0/hostPort"), &json!(one));
    assert_eq!(
        (at(&pod, "/spec/hostNetwork"), text(&pod, "/spec/dnsPolicy")),
        (&json!(true), "ClusterFirstWithHostNet")
    );
    // The scheduler keeps pods apart that declare the same port of their node.
    let nodes =
        [pod, world.get(&PODS, "one-worker-1").await.unwrap()].map(|pod| text(&pod, "/spec/nodeName").to_owned());
    assert_ne!(nodes[0], nodes[1]);

    operator.kill();
    let operator = world.operator().await;
    world.create(&PADDLE_JOBS, &host("three", "60s")).await;
    let three = port("three").await;
    assert!(three.abs_diff(one) >= 20 && three.abs_diff(two) >= 20, "{one}, {two} and {three}");
    world.delete(&PADDLE_JOBS, "one").await;
    for pod in ["one-worker-0", "one-worker-1"] {
        world.is_gone(&PODS, pod).await;
    }
    // The operator learns of the job's end and of its pods' in any order; one of these jobs comes after both.
    let mut later = Vec::new();
    for number in 0..5 {
        let name = format!("later-{number}");
        world.create(&PADDLE_JOBS, &host(&name, "60s")).await;
        later.push(port(&name).await);
    }
    assert!(later.contains(&one), "{one} is not given again: {later:?}");
    operator.stop().await;
}

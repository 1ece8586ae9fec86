//! Objects that are odd and that the API server takes.

use super::{
    jobs::paddle,
    objects::{PADDLE_JOBS, text},
    world::World,
};
use harness::until;
use kube::api::{GetParams, PostParams};
use serde_json::{Value, json};

/// Levels of maps beside the ones that every job has; serde_json reads 128 in all.
const LEVELS: usize = 140;

impl World {
    /// Makes an object that most clients cannot read.
    async fn create_unread(&self, manifest: &Value) {
        let request = PADDLE_JOBS.requests(&self.name).create(&PostParams::default(), manifest.to_string().into());
        self.client.request_text(request.unwrap()).await.unwrap();
    }

    async fn unread(&self, name: &str) -> anyhow::Result<String> {
        Ok(self.client.request_text(PADDLE_JOBS.requests(&self.name).get(name, &GetParams::default())?).await?)
    }

    async fn until_rejected(&self, name: &str) {
        let rejected = || async {
            let text = self.unread(name).await?;
            Ok((text.contains(r#""type":"Rejected""#) && text.contains("nested deeper")).then_some(()))
        };
        until(super::objects::SOON, format!("{name} to be rejected"), rejected).await.unwrap();
    }
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_job_that_is_nested_too_deep_is_reported_so_and_hides_no_other() {
    let world = World::shared("odd").await;
    let mut deep = paddle("deep").worker(1).runs("1s").manifest;
    let nested = (0..LEVELS).fold(json!("bottom"), |inner, _| json!({ "x": inner }));
    deep["spec"]["worker"]["template"]["spec"]["extra"] = nested;
    // One is there before the operator lists, the other comes while it watches.
    world.create_unread(&deep).await;
    let operator = world.operator().await;
    world.until_rejected("deep").await;
    deep["metadata"]["name"] = json!("later");
    world.create_unread(&deep).await;
    world.create(&PADDLE_JOBS, &paddle("healthy").worker(1).runs("1s").manifest).await;
    world.is(&PADDLE_JOBS, "healthy", "Completed", |job| text(job, "/status/phase") == "Completed").await;
    world.until_rejected("later").await;
    for name in ["deep", "later"] {
        let events = world.events("PaddleJob", name).await;
        let [event] = events.as_slice() else { panic!("one event: {events:?}") };
        assert!(event.starts_with("Warning ValidationError: Found validation errors: spec.worker.template"), "{event}");
    }
    operator.stop().await;
}

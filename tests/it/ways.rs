//! The ways in which a job can hang. For each row of `docs/why-jobs-wait.md` a test has a real cluster bring a job there, and
//! reads that the job's condition, the command line and the page of the host say the sentence of the row.
//!
//! Here are those that take a control plane; those of a plugin's life are in `cluster/plugins/ways.rs`, those that take a
//! kubelet in `node/waits.rs`.

mod cluster;
mod guard;
mod queues;
mod table;

use crate::{
    cluster::objects::{Kind, Namespace, text},
    kubectl::Kubectl,
    operator::Operator,
};
use anyhow::{Context, Result, ensure};
use decide::own_conditions;
use harness::until;
use serde_json::Value;
use std::{path::PathBuf, time::Duration};
use table::Row;

/// Longer than a node is given to come back, and than an init container runs before a job tells of it.
const PATIENCE: Duration = Duration::from_secs(240);

/// Where a job's user looks at his jobs: the API, the command line, the page.
pub(crate) struct Views<'a> {
    jobs: &'a Namespace,
    user: Kubectl,
    host: &'a Operator,
}

impl<'a> Views<'a> {
    /// The jobs of this namespace, which this host serves, seen by the user of the kubeconfig.
    pub(crate) async fn of(jobs: &'a Namespace, kubeconfig: PathBuf, host: &'a Operator) -> Self {
        Self { jobs, user: Kubectl::of(kubeconfig, &jobs.name).await, host }
    }

    /// The job, once all of them say what the page of the book says of this way to hang.
    pub(crate) async fn tell(&self, kind: &Kind, job: &str, way: &str) -> Value {
        let row = table::row(way);
        let look = || async { self.look(kind, job, &row).await.map(Some) };
        until(PATIENCE, format!("{job} to say of \"{way}\" what docs/why-jobs-wait.md says"), look).await.unwrap()
    }

    /// Returns once the command line and the page show an event that says what the page of the book says of this way: the
    /// definition of the kind drops the host's conditions.
    pub(crate) async fn tell_by_event(&self, kind: &Kind, name: &str, way: &str) {
        let row = table::row(way);
        assert_eq!(row.condition, "Event");
        let look = || async {
            let job = self.jobs.get(kind, name).await?;
            ensure!(job["status"].get("troupe").is_none(), "it is kept: {job:#}");
            let explained =
                self.user.troupe(&["explain", &format!("{}/{name}", text(&job, "/kind").to_lowercase())])?;
            let is_told = |line: &str| line.contains(&row.reason) && line.ends_with(&row.message);
            ensure!(explained.lines().any(is_told), "explain does not show the event: {explained}");
            let shown = self.page(&format!("/page/jobs/{}/{}/{name}", kind.resource(), self.jobs.name)).await?;
            let mut events = shown["events"].as_array().into_iter().flatten();
            ensure!(
                events.any(|it| it["reason"] == *row.reason && it["message"] == *row.message),
                "the page: {shown:#}"
            );
            Ok(Some(()))
        };
        until(PATIENCE, format!("an event of {name} to say of \"{way}\" what docs/why-jobs-wait.md says"), look)
            .await
            .unwrap();
    }

    /// Returns once the command line and the page say this sentence of the job.
    pub(crate) async fn tell_of(&self, kind: &Kind, job: &Value, sentence: &str) {
        let look = || async { self.say(kind, job, sentence).await.map(Some) };
        until(PATIENCE, format!("the command line and the page to say {sentence:?}"), look).await.unwrap();
    }

    async fn look(&self, kind: &Kind, name: &str, row: &Row) -> Result<Value> {
        let job = self.jobs.get(kind, name).await?;
        let is_it = |it: &&Value| text(it, "/type") == row.condition && text(it, "/status") == "True";
        let told = own_conditions::all(&job["status"]).find(is_it);
        let told = told.with_context(|| format!("no {}: {:#}", row.condition, job["status"]))?;
        let message = text(told, "/message");
        ensure!(text(told, "/reason") == row.reason, "the reason is {}: {message}", text(told, "/reason"));
        ensure!(row.fits(message), "it says {message:?}, the page {:?}", row.message);
        let sentence = if row.condition == "Waiting" { format!("waits for {message}") } else { message.to_owned() };

        let explained = self.say(kind, &job, &sentence).await?;
        let of_condition = |line: &str| line.starts_with(&row.condition) && line.ends_with(message);
        ensure!(explained.lines().any(of_condition), "explain does not have the condition: {explained}");
        Ok(job)
    }

    /// Whether the command line and the page say this sentence of the job; returns what explains it.
    async fn say(&self, kind: &Kind, job: &Value, sentence: &str) -> Result<String> {
        let name = text(job, "/metadata/name");
        let title = format!("{}/{name}", text(job, "/kind").to_lowercase());
        let explained = self.user.troupe(&["explain", &title])?;
        ensure!(explained.lines().nth(1) == Some(sentence), "explain does not say {sentence:?}: {explained}");
        if let Some(message) = sentence.strip_prefix("waits for ") {
            let wide = self.user.run(&["get", &kind.resource(), name, "-o", "wide"])?;
            ensure!(wide.trim_end().ends_with(message), "the wide column does not say {message:?}: {wide}");
        }
        let listed = self.user.troupe(&["list"])?;
        let of_job = |line: &&str| line.starts_with(&format!("{title} "));
        let line = listed.lines().find(of_job).with_context(|| format!("list has no {title}: {listed}"))?;
        ensure!(line.ends_with(sentence), "list does not say {sentence:?}: {line}");

        let shown = self.page(&format!("/page/jobs/{}/{}/{name}", kind.resource(), self.jobs.name)).await?;
        ensure!(text(&shown, "/why") == sentence, "the page does not say {sentence:?}: {shown:#}");
        let list = self.page(&format!("/page/jobs?namespace={}", self.jobs.name)).await?;
        let mut rows = list["rows"].as_array().into_iter().flatten();
        let shown = rows.find(|it| it["name"] == name && it["kind"] == job["kind"]);
        let shown = shown.with_context(|| format!("the list of the page has no {name}: {list:#}"))?;
        ensure!(text(shown, "/why") == sentence, "the list of the page does not say {sentence:?}: {shown:#}");
        Ok(explained)
    }

    async fn page(&self, path: &str) -> Result<Value> {
        let (code, shown) = self.host.admin(path).await?;
        ensure!(code == 200, "{path}: {code} {shown}");
        Ok(serde_json::from_str(&shown)?)
    }
}

//! `troupe preflight` and `troupe check`: report what prevents Troupe from serving a cluster, and what is wrong with an
//! installed host.

use super::{runtime, serve};
use crate::args::{CheckArgs, PreflightArgs};
use admin::telemetry;
use anyhow::Context;
use install::{
    check::{self, Place},
    preflight::{self, Options, Report},
};
use kube::Client;
use sandbox::Limits;
use std::{process::ExitCode, sync::Arc};
use troupe::{measure::requests::Requests, out};

pub(super) fn preflight(args: PreflightArgs) -> anyhow::Result<ExitCode> {
    let PreflightArgs { namespace, service_account, plugin_config, json } = args;
    report(json, async |client: &Client| {
        let plugins = Arc::new(serve::plugins(&plugin_config, Limits::default(), serve::precompiled()).await?);
        let facts = preflight::look(client, plugins, &Options { namespace, service_account }).await;
        anyhow::Ok(preflight::report(&facts))
    })
}

pub(super) fn check(args: CheckArgs) -> anyhow::Result<ExitCode> {
    let CheckArgs { service_account: (namespace, service_account), json } = args;
    report(json, async |client: &Client| {
        let plugins = serve::plugins(&[], Limits::default(), serve::precompiled()).await?;
        let facts = check::look(client, &plugins, Place { namespace, service_account }).await;
        anyhow::Ok(check::report(&facts))
    })
}

/// Prints the report of what `look` finds in the cluster. The command fails if anything stands in the way.
fn report(json: bool, look: impl AsyncFnOnce(&Client) -> anyhow::Result<Report>) -> anyhow::Result<ExitCode> {
    telemetry::start(false, "error", None);
    let report = runtime::on_all_threads(Box::pin(async {
        let client = serve::client(&Requests::default(), None).await?;
        client.apiserver_version().await.context("the API server does not answer")?;
        look(&client).await
    }))??;
    if json {
        out::line(serde_json::to_string_pretty(&report).context("the report as JSON")?);
    } else {
        out::line(&report);
    }
    Ok(if report.is_clear() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

//! `troupe preflight`: reports what prevents Troupe from serving a cluster.

use super::serve;
use crate::args::PreflightArgs;
use anyhow::Context;
use sandbox::Limits;
use std::{process::ExitCode, sync::Arc};
use troupe::{
    admin::telemetry,
    install::preflight::{self, Options},
    measure::requests::Requests,
    out,
};

pub(super) fn preflight(args: PreflightArgs) -> anyhow::Result<ExitCode> {
    telemetry::start(false, "error");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime")?;
    runtime.block_on(look(args))
}

async fn look(args: PreflightArgs) -> anyhow::Result<ExitCode> {
    let PreflightArgs { namespace, service_account, plugin_config, json } = args;
    let client = serve::client(&Requests::default(), None).await?;
    client.apiserver_version().await.context("the API server does not answer")?;
    let plugins = Arc::new(serve::plugins(&plugin_config, Limits::default()).await?);
    let facts = preflight::look(&client, plugins, &Options { namespace, service_account }).await;
    let report = preflight::report(&facts);
    if json {
        out::line(serde_json::to_string_pretty(&report).context("the report as JSON")?);
    } else {
        out::line(&report);
    }
    Ok(if report.is_clear() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

//! `troupe check`: reports what is wrong with an installed host.

use super::serve;
use crate::args::CheckArgs;
use anyhow::Context;
use sandbox::Limits;
use std::process::ExitCode;
use troupe::{
    admin::telemetry,
    install::check::{self, Place},
    measure::requests::Requests,
    out,
};

pub(super) fn check(args: CheckArgs) -> anyhow::Result<ExitCode> {
    telemetry::start(false, "error");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime")?;
    runtime.block_on(look(args))
}

async fn look(args: CheckArgs) -> anyhow::Result<ExitCode> {
    let CheckArgs { service_account: (namespace, service_account), json } = args;
    let client = serve::client(&Requests::default(), None).await?;
    client.apiserver_version().await.context("the API server does not answer")?;
    let plugins = serve::plugins(&[], Limits::default()).await?;
    let report = check::report(&check::look(&client, &plugins, Place { namespace, service_account }).await);
    if json {
        out::line(serde_json::to_string_pretty(&report).context("the report as JSON")?);
    } else {
        out::line(&report);
    }
    Ok(if report.is_clear() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

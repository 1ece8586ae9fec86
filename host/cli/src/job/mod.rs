//! Commands for users of jobs, with the user's own rights: `troupe job ...`, or `kubectl troupe ...` if the binary, or a
//! link to it, is called `kubectl-troupe`.

mod cluster;
mod events;
mod explain;
mod list;
mod logs;
mod read;
mod top;
mod wait;

use crate::{
    args::job::{JobArgs, JobCommand},
    runtime,
};
use cluster::Cluster;
use std::process::ExitCode;

pub(super) fn job(args: JobArgs) -> anyhow::Result<ExitCode> {
    runtime::on_one_thread(Box::pin(async {
        let cluster = Cluster::of_user(args.context, args.namespace).await?;
        match args.command {
            JobCommand::List { all_namespaces } => list::list(&cluster, all_namespaces).await,
            JobCommand::Events { job } => events::events(&cluster, &job).await,
            JobCommand::Explain { job } => explain::explain(&cluster, &job).await,
            JobCommand::Logs { job, follow, tail } => logs::logs(&cluster, &job, follow, tail).await,
            JobCommand::Top { job, all_namespaces } => top::top(&cluster, job.as_ref(), all_namespaces).await,
            JobCommand::Wait { job, end, timeout } => wait::wait(&cluster, &job, end, timeout).await,
        }
    }))?
}

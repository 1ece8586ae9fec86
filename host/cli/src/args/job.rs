//! The command line of users of jobs.

use anyhow::Context;
use clap::{Parser, Subcommand, ValueEnum};
use kube::api::ApiResource;
use std::{convert::Infallible, fmt, str::FromStr, time::Duration};

/// The command line of `kubectl troupe`.
#[derive(Debug, Parser)]
#[command(name = "kubectl troupe", bin_name = "kubectl troupe", version)]
pub struct KubectlArgs {
    /// The command.
    #[command(flatten)]
    pub job: JobArgs,
}

/// The arguments of `troupe job`.
#[derive(Debug, clap::Args)]
pub struct JobArgs {
    /// The command.
    #[command(subcommand)]
    pub command: JobCommand,
    /// Look at this namespace instead of that of the kubeconfig.
    #[arg(long, short, global = true)]
    pub namespace: Option<String>,
    /// Use this context of the kubeconfig.
    #[arg(long, global = true)]
    pub context: Option<String>,
}

/// The commands of `troupe job`.
#[derive(Debug, Subcommand)]
pub enum JobCommand {
    /// List the jobs of all kinds, with what each waits for or what failed.
    List {
        /// List the jobs of all namespaces.
        #[arg(long, short = 'A')]
        all_namespaces: bool,
    },
    /// Print why a job is where it is: its conditions, its pods with what is in their way, and the last events.
    Explain {
        /// The job, as NAME or KIND/NAME.
        job: JobName,
    },
    /// Print the events of a job and its pods, the oldest first.
    Events {
        /// The job, as NAME or KIND/NAME.
        job: JobName,
    },
    /// Print the logs of all containers of a job, each line behind the name of its pod.
    Logs {
        /// The job, as NAME or KIND/NAME.
        job: JobName,
        /// Go on until the containers end.
        #[arg(long, short)]
        follow: bool,
        /// Print only so many of the last lines of each container.
        #[arg(long, value_name = "LINES")]
        tail: Option<i64>,
    },
    /// Print what the pods of a job use of what they request; without a job, what each job uses.
    Top {
        /// The job, as NAME or KIND/NAME.
        job: Option<JobName>,
        /// Look at the jobs of all namespaces.
        #[arg(long, short = 'A', conflicts_with = "job")]
        all_namespaces: bool,
    },
    /// Wait until a job has ended, and print each of its states. Fails if it ends in another way than wanted.
    Wait {
        /// The job, as NAME or KIND/NAME.
        job: JobName,
        /// The end that is wanted.
        #[arg(long = "for", value_enum, default_value = "succeeded")]
        end: End,
        /// Give up after so many seconds.
        #[arg(long, value_name = "SECONDS", value_parser = seconds)]
        timeout: Option<Duration>,
    },
}

/// The end of a job that a user waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum End {
    /// The job has succeeded.
    Succeeded,
    /// The job has succeeded or failed.
    Ended,
}

/// A job as its user names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobName {
    /// Kind, plural or `plural.group`, if the user says one.
    pub kind: Option<String>,
    /// The name.
    pub name: String,
}

impl JobName {
    /// Returns whether the job may be of this kind.
    #[must_use]
    pub fn is_of(&self, resource: &ApiResource) -> bool {
        let names = [
            resource.kind.to_lowercase(),
            resource.plural.clone(),
            format!("{}.{}", resource.plural, resource.group),
            format!("{}.{}", resource.kind.to_lowercase(), resource.group),
        ];
        self.kind.as_ref().is_none_or(|kind| names.contains(&kind.to_lowercase()))
    }
}

impl FromStr for JobName {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.split_once('/') {
            Some((kind, name)) => Self { kind: Some(kind.to_owned()), name: name.to_owned() },
            None => Self { kind: None, name: text.to_owned() },
        })
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Some(kind) => write!(f, "{kind}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Reads a whole number of seconds, with or without the unit.
fn seconds(text: &str) -> anyhow::Result<Duration> {
    let number = text.strip_suffix('s').unwrap_or(text).parse();
    Ok(Duration::from_secs(number.context("must be a whole number of seconds")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::echo_jobs;

    #[test]
    fn a_job_is_named_by_its_name_or_with_its_kind_in_any_form() {
        let resource = echo_jobs();
        let is_of = |text: &str| text.parse::<JobName>().unwrap().is_of(&resource);
        for text in ["hamlet", "echojob/hamlet", "EchoJob/hamlet", "echojobs/hamlet", "echojobs.echo.example.com/x"] {
            assert!(is_of(text), "{text}");
        }
        assert!(!is_of("talejob/hamlet") && !is_of("echojobs.example.org/hamlet"));
        assert_eq!("echojob/hamlet".parse::<JobName>().unwrap().to_string(), "echojob/hamlet");
    }
}

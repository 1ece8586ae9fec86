//! The command line.

use crate::host_ports;
use clap::{Parser, Subcommand};
use std::{net::SocketAddr, ops::RangeInclusive, path::PathBuf};

/// One Kubernetes operator for every distributed-job framework.
#[derive(Debug, Parser)]
#[command(name = "troupe", version)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve jobs in the cluster that the kubeconfig or the service account names.
    Operator(OperatorArgs),
    /// Look whether anything stands in the way of serving the cluster's jobs, and say what to do about it. Changes nothing.
    Preflight(PreflightArgs),
    /// Run jobs on an embedded cluster and show what plugins decide and what the host writes.
    Demo(DemoArgs),
    /// Print the CustomResourceDefinitions.
    Crds,
    /// Run jobs under seeded faults and check the invariants.
    Sim(SimArgs),
    /// Replay a pass from the admin port (`/jobs/...`) offline and tell what was decided and why.
    Explain {
        /// A file with the pass; - is standard input.
        #[arg(default_value = "-")]
        pass: PathBuf,
    },
}

/// How to serve.
#[derive(Debug, clap::Args)]
pub struct OperatorArgs {
    /// Serve only this namespace.
    #[arg(long)]
    pub namespace: Option<String>,
    /// Apply the CustomResourceDefinitions first.
    #[arg(long)]
    pub install_crds: bool,
    /// Where health, metrics and the last passes are served.
    #[arg(long, default_value = "0.0.0.0:8080")]
    pub admin_address: SocketAddr,
    /// Settings of a plugin: its name and a YAML or JSON file. May be given once for each plugin.
    #[arg(long, value_name = "PLUGIN=FILE", value_parser = plugin_config)]
    pub plugin_config: Vec<PluginConfig>,
    /// Ports of the nodes that may be given to jobs on the hosts' network.
    #[arg(long, value_name = "FIRST-LAST", value_parser = host_ports::parse, default_value = "35000-65000")]
    pub host_port_range: RangeInclusive<u32>,
    /// Take turns with other hosts by a Lease, so that several can run and one serves.
    #[arg(long)]
    pub leader_elect: bool,
    /// Namespace of the Lease `troupe`; the host's own when it runs in a cluster.
    #[arg(long)]
    pub lease_namespace: Option<String>,
    /// Write logs as JSON.
    #[arg(long)]
    pub log_json: bool,
}

/// What to look at.
#[derive(Debug, clap::Args)]
pub struct PreflightArgs {
    /// Look only at jobs in this namespace.
    #[arg(long)]
    pub namespace: Option<String>,
    /// Ask for the rights of this service account (troupe-system/troupe) instead of one's own.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = service_account)]
    pub service_account: Option<(String, String)>,
    /// Settings of a plugin, as `troupe operator` will have them.
    #[arg(long, value_name = "PLUGIN=FILE", value_parser = plugin_config)]
    pub plugin_config: Vec<PluginConfig>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

fn service_account(text: &str) -> Result<(String, String), String> {
    let (namespace, name) = text.split_once('/').ok_or("it must be a namespace, / and a name")?;
    Ok((namespace.to_owned(), name.to_owned()))
}

/// Where the settings of a plugin are.
#[derive(Debug, Clone)]
pub struct PluginConfig {
    /// The plugin's name.
    pub plugin: String,
    /// A YAML or JSON file.
    pub file: PathBuf,
}

fn plugin_config(text: &str) -> Result<PluginConfig, String> {
    let (plugin, file) = text.split_once('=').ok_or("it must be a plugin's name, = and a file")?;
    Ok(PluginConfig { plugin: plugin.to_owned(), file: file.into() })
}

/// What to show.
#[derive(Debug, clap::Args)]
pub struct DemoArgs {
    /// Manifests of jobs; without any, an example of each built-in framework.
    pub manifests: Vec<PathBuf>,
    /// Print the environment, host lists and ConfigMaps that pods get.
    #[arg(long)]
    pub explain: bool,
    /// Give up after this many seconds.
    #[arg(long, default_value_t = 60)]
    pub patience: u64,
}

/// Which seeds.
#[derive(Debug, clap::Args)]
pub struct SimArgs {
    /// How many seeds.
    #[arg(long, default_value_t = 100)]
    pub seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    pub first: u64,
    /// Print every request of the last seed.
    #[arg(long)]
    pub trace: bool,
}

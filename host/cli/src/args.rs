//! The command line.

use clap::{Parser, Subcommand};
use registry::Reference;
use sandbox::Limits;
use std::{net::SocketAddr, ops::RangeInclusive, path::PathBuf};
use troupe::{install::rbac::Policy, observe::host_ports, write::warnings::FieldValidation};

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
    #[cfg(feature = "lab")]
    /// Run jobs on an embedded cluster and show what plugins decide and what the host writes.
    Demo(DemoArgs),
    /// Print the CustomResourceDefinitions.
    Crds,
    /// Print the least rights that serve the plugins' jobs, and the parameters of the fence (`deploy/fence.yaml`); or an
    /// admission policy about their kinds of job.
    Rbac(RbacArgs),
    /// For those who write plugins and those who run them.
    Plugin {
        /// What to do.
        #[command(subcommand)]
        command: PluginCommand,
    },
    #[cfg(feature = "lab")]
    /// Run jobs under seeded faults and check the invariants.
    Sim(SimArgs),
    /// Replay a pass from the admin port (`/jobs/...`) offline and tell what was decided and why.
    Explain(ExplainArgs),
    /// Compile a component from standard input to standard output, as the host's child.
    #[command(hide = true)]
    Compile(CompileArgs),
}

/// What a compiler may use up.
#[derive(Debug, clap::Args)]
pub struct CompileArgs {
    /// Processor time, in seconds.
    #[arg(long)]
    pub cpu_seconds: u64,
    /// Address space, in bytes.
    #[arg(long)]
    pub memory_bytes: u64,
}

/// For which plugins, beside those that come with the host.
#[derive(Debug, clap::Args)]
pub struct RbacArgs {
    /// A component that is to be granted all that it asks for. May be given more than once.
    #[arg(long, value_name = "FILE")]
    pub plugin: Vec<PathBuf>,
    /// Also the cluster's Plugin resources, each with its grants.
    #[arg(long)]
    pub cluster: bool,
    /// The host's own namespace, where a Plugin's ConfigMap is unless the Plugin says otherwise.
    #[arg(long, default_value = "troupe-system", requires = "cluster")]
    pub plugin_namespace: String,
    /// What users' own jobs may have in their pods beyond that: YAML as in `spec.grants` of a Plugin (`capabilities: [IPC_LOCK]`).
    #[arg(long, value_name = "FILE")]
    pub users: Option<PathBuf>,
    /// Print this admission policy for the same plugins, and no rights.
    #[arg(long, conflicts_with = "users")]
    pub policy: Option<Policy>,
}

/// What to do with a plugin.
#[derive(Debug, Subcommand)]
pub enum PluginCommand {
    /// Tell what a component is, serves, imports and takes.
    Inspect(InspectArgs),
    /// Print a component's file as an immutable ConfigMap with the digest in its name, or as one of a name that can be changed.
    Configmap(ConfigmapArgs),
    /// Ask a plugin about recorded passes and scenarios and tell where it answers otherwise; fails if anywhere.
    Test(TestArgs),
    /// Tell what a new version of a plugin would change for recorded jobs; fails if any of it is dangerous to what lives.
    Diff(DiffArgs),
    /// Let the digest serve again that served before, and stay.
    Rollback(NamedPlugin),
    /// Let the digest serve that waits for it.
    Approve(NamedPlugin),
    /// Take a component to a registry, and print what it can be pulled by for ever.
    Push(PushArgs),
    /// Fetch a component from a registry, and check it as the host would.
    Pull(PullArgs),
}

/// Which pass.
#[derive(Debug, clap::Args)]
pub struct ExplainArgs {
    /// A file with the pass; - is standard input.
    #[arg(default_value = "-")]
    pub pass: PathBuf,
    /// Ask the plugin in this file again about what was seen; fails if it answers otherwise.
    #[arg(long, value_name = "FILE")]
    pub plugin: Option<PathBuf>,
}

/// Which component.
#[derive(Debug, clap::Args)]
pub struct InspectArgs {
    /// A component, as `cargo build --target wasm32-wasip2` makes it, or the name of a plugin that comes with the host.
    pub file: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Which plugin, and what to ask it.
#[derive(Debug, clap::Args)]
pub struct TestArgs {
    /// A component, or the name of a plugin that comes with the host.
    pub file: PathBuf,
    /// What it is tested by.
    #[command(flatten)]
    pub by: TestedBy,
    /// Rewrite what the commands of scenarios print, instead of telling where it is otherwise.
    #[arg(long, requires = "scenarios")]
    pub update: bool,
}

/// What a plugin is tested by: one of them, or both.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
pub struct TestedBy {
    /// Passes from a host's admin port (`/recording`); - is standard input.
    #[arg(long, value_name = "FILE")]
    pub recording: Option<PathBuf>,
    #[cfg(feature = "lab")]
    /// A folder of scenarios: *.txt in it and in the folders in it.
    #[arg(long, value_name = "DIR")]
    pub scenarios: Option<PathBuf>,
}

/// Which versions, and what to ask them.
#[derive(Debug, clap::Args)]
pub struct DiffArgs {
    /// The component that serves now, or the name of a plugin that comes with the host.
    pub old: PathBuf,
    /// The component that would take its place.
    pub new: PathBuf,
    /// Passes from a host's admin port (`/recording`); - is standard input.
    #[arg(long)]
    pub recording: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Which Plugin.
#[derive(Debug, clap::Args)]
pub struct NamedPlugin {
    /// The Plugin's name.
    pub name: String,
}

/// What to push, and where to.
#[derive(Debug, clap::Args)]
pub struct PushArgs {
    /// A component, as `cargo build --target wasm32-wasip2` makes it.
    pub file: PathBuf,
    /// Where to: registry/repository:tag.
    #[arg(value_parser = Reference::parse)]
    pub reference: Reference,
    /// How to speak with the registry.
    #[command(flatten)]
    pub registry: RegistryArgs,
}

/// What to pull, and where to.
#[derive(Debug, clap::Args)]
pub struct PullArgs {
    /// What: registry/repository:tag or registry/repository@sha256:...
    #[arg(value_parser = Reference::parse)]
    pub reference: Reference,
    /// Where to; the repository's name and .wasm unless it is given.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// A cosign public key, PEM, that the artifact must be signed by.
    #[arg(long, value_name = "FILE")]
    pub public_key: Option<PathBuf>,
    /// How to speak with the registry.
    #[command(flatten)]
    pub registry: RegistryArgs,
}

/// How to speak with a registry.
#[derive(Debug, clap::Args)]
pub struct RegistryArgs {
    /// By plain HTTP.
    #[arg(long)]
    pub insecure: bool,
    /// Credentials, as `docker login` writes them; $DOCKER_CONFIG/config.json or ~/.docker/config.json if there is one.
    #[arg(long, value_name = "FILE")]
    pub docker_config: Option<PathBuf>,
}

/// Which ConfigMap.
#[derive(Debug, clap::Args)]
pub struct ConfigmapArgs {
    /// A component, as `cargo build --target wasm32-wasip2` makes it.
    pub file: PathBuf,
    /// The ConfigMap's name; the file's and the digest's unless it is given.
    #[arg(long)]
    pub name: Option<String>,
    /// The host's namespace.
    #[arg(long, short, default_value = "troupe-system")]
    pub namespace: String,
    /// Compress it with zstd, as is done anyway when it would not fit.
    #[arg(long)]
    pub compress: bool,
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
    /// Where health, metrics and the last passes are served: by HTTP to everybody on a loopback address, by HTTPS to whom
    /// the API server lets read on any other (probes are open on both); 127.0.0.1:8080 unless the host runs in a cluster,
    /// where it is port 8443 of all addresses.
    #[arg(long)]
    pub admin_address: Option<SocketAddr>,
    /// The certificate of the admin port, PEM, read again when it changes; one is made at the start unless it is given.
    #[arg(long, value_name = "FILE", requires = "admin_tls_key")]
    pub admin_tls_certificate: Option<PathBuf>,
    /// The key of that certificate, PEM.
    #[arg(long, value_name = "FILE", requires = "admin_tls_certificate")]
    pub admin_tls_key: Option<PathBuf>,
    /// Settings of a plugin: its name and a YAML or JSON file. May be given once for each plugin.
    #[arg(long, value_name = "PLUGIN=FILE", value_parser = plugin_config)]
    pub plugin_config: Vec<PluginConfig>,
    /// Ports of the nodes that may be given to jobs on the hosts' network.
    #[arg(long, value_name = "FIRST-LAST", value_parser = host_ports::parse, default_value = "35000-65000")]
    pub host_port_range: RangeInclusive<u32>,
    /// How many of them the jobs of one namespace may have at once; a quarter, and at least 1000, unless it is given.
    #[arg(long, value_name = "PORTS")]
    pub host_ports_per_namespace: Option<u32>,
    /// What becomes of fields in users' pod templates that the API server does not know: it leaves them out and the job
    /// tells, or it refuses the pods.
    #[arg(long, value_enum, default_value_t)]
    pub field_validation: FieldValidation,
    /// Take turns with other hosts by a Lease, so that several can run and one serves.
    #[arg(long)]
    pub leader_elect: bool,
    /// Namespace of the Lease `troupe`; the host's own when it runs in a cluster.
    #[arg(long)]
    pub lease_namespace: Option<String>,
    /// Where the bytes of plugins are kept that jobs are planned by, and where ConfigMaps with plugins are; the host's own
    /// namespace when it runs in a cluster.
    #[arg(long, value_name = "NAMESPACE")]
    pub plugin_namespace: Option<String>,
    /// Another namespace whose ConfigMaps may be plugins. May be given more than once.
    #[arg(long, value_name = "NAMESPACE")]
    pub plugin_source_namespace: Vec<String>,
    /// The most bytes that the spec of a job may have as JSON, its templates included.
    #[arg(long, default_value_t = Limits::default().spec)]
    pub max_spec_bytes: usize,
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

#[cfg(feature = "lab")]
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

#[cfg(feature = "lab")]
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

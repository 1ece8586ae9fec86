//! The command line.

pub mod job;

use crate::plugin::{Language, NewKind};
use anyhow::Context;
use clap::{Parser, Subcommand};
use install::rbac::Policy;
use registry::Reference;
use sandbox::{LARGEST_COMPONENT, Limits};
use std::{net::SocketAddr, ops::RangeInclusive, path::PathBuf};
use troupe::{
    control::host_ports,
    traces::{Endpoint, Share},
    write::warnings::FieldValidation,
};

/// One Kubernetes operator for every distributed-job framework.
#[derive(Debug, Parser)]
#[command(name = "troupe", version)]
pub struct Args {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands of `troupe`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve jobs in the cluster that the kubeconfig or the service account names.
    Operator(Box<OperatorArgs>),
    /// Check whether anything prevents Troupe from serving the cluster's jobs, and print what to do about it. Changes
    /// nothing.
    Preflight(PreflightArgs),
    /// Check an installed host: definitions, rights, policies, hosts, the Lease, Plugins; print what is wrong and what to do
    /// about it. Changes nothing.
    Check(CheckArgs),
    #[cfg(feature = "lab")]
    /// Run jobs on an embedded cluster and print the decisions of the plugins and the writes of the host.
    Demo(DemoArgs),
    /// List, explain and follow jobs with your own rights. A link to this binary with the name kubectl-troupe has these as
    /// `kubectl troupe list` and so on.
    Job(job::JobArgs),
    /// Print the CustomResourceDefinitions.
    Crds,
    /// Print the minimal RBAC rights for the plugins' jobs and the parameters of the fence (`deploy/fence.yaml`), an
    /// admission policy, or roles for users of the jobs.
    Rbac(RbacArgs),
    /// Inspect, test, publish, approve and roll back plugins.
    Plugin {
        /// The command.
        #[command(subcommand)]
        command: PluginCommand,
    },
    #[cfg(feature = "lab")]
    /// Run jobs under seeded faults and check the invariants, one seed on each core at a time.
    Sim(SimArgs),
    /// Replay a pass from the admin port (`/jobs/...`) offline and print the decision and its reasons.
    Explain(ExplainArgs),
    /// Compile a component from standard input to standard output, as a child process of the host.
    #[command(hide = true)]
    Compile(ChildArgs),
    /// Check settings by a plugin's schema, both from standard input, as a child process of the host.
    #[command(hide = true)]
    CheckSettings(ChildArgs),
}

/// Limits of a child process.
#[derive(Debug, clap::Args)]
pub struct ChildArgs {
    /// Processor time, in seconds.
    #[arg(long)]
    pub cpu_seconds: u64,
    /// Address space, in bytes.
    #[arg(long)]
    pub memory_bytes: u64,
}

/// The plugins that get rights, in addition to the built-in ones.
#[derive(Debug, clap::Args)]
pub struct RbacArgs {
    /// A component that is granted everything it asks for. May be given more than once.
    #[arg(long, value_name = "FILE")]
    pub plugin: Vec<PathBuf>,
    /// Include the cluster's Plugin resources, each with its grants.
    #[arg(long)]
    pub cluster: bool,
    /// The host's namespace, where the ConfigMap of a Plugin is unless the Plugin names another.
    #[arg(long, default_value = "troupe-system", requires = "cluster")]
    pub plugin_namespace: String,
    /// What users' pods may use beyond the plugins' grants: YAML as in `spec.grants` of a Plugin
    /// (`capabilities: [IPC_LOCK]`). Unless it says which, they may use any service account and its token, Secret, name
    /// of a node, toleration and priority class.
    #[arg(long, value_name = "FILE")]
    pub users: Option<PathBuf>,
    /// The service account that the host runs as.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = service_account, default_value = "troupe-system/troupe")]
    pub service_account: (String, String),
    /// Print Roles for a host that serves only this namespace, instead of ClusterRoles.
    #[arg(long, conflicts_with_all = ["cluster", "policy", "job_roles"])]
    pub namespace: Option<String>,
    /// Print this admission policy for the same plugins instead of the rights.
    #[arg(long, conflicts_with = "users")]
    pub policy: Option<Policy>,
    /// Print ClusterRoles to view and edit the plugins' kinds of job instead of the rights; Kubernetes adds them to its
    /// roles view, edit and admin.
    #[arg(long, conflicts_with_all = ["users", "policy"])]
    pub job_roles: bool,
}

/// The commands of `troupe plugin`.
#[derive(Debug, Subcommand)]
pub enum PluginCommand {
    /// Make a plugin's project in a new folder, in Rust, C, Go, JavaScript or Python: code, scenarios, a CRD and an example
    /// of a job.
    New(NewArgs),
    /// Build the component of the project in a folder, and check it and its CRD as the host would.
    Build(BuildArgs),
    #[cfg(feature = "lab")]
    /// Measure the calls of a plugin while its scenarios are played, or while it answers recorded passes.
    Bench(BenchArgs),
    /// Print the kinds, imports, settings and size of a component.
    Inspect(InspectArgs),
    /// Print a component as an immutable ConfigMap with the digest in its name, or as a mutable one if a name is given,
    /// for `kubectl apply --server-side -f -`. The component is compressed with zstd.
    Configmap(ConfigmapArgs),
    /// Compare a plugin's answers with recorded passes and scenarios, and print the differences; fails if there are
    /// any.
    Test(TestArgs),
    /// Print what a new version of a plugin would change for recorded jobs; fails if a difference is dangerous to live
    /// objects.
    Diff(DiffArgs),
    /// Roll a Plugin back to its previous digest, and pin it there.
    Rollback(NamedPlugin),
    /// Approve the waiting candidate of a Plugin.
    Approve(NamedPlugin),
    /// Push a component to a registry, and print the immutable reference to pull it by.
    Push(PushArgs),
    /// Pull a component from a registry, and check it as the host would.
    Pull(PullArgs),
    /// Compile the built-in plugins for this architecture, for `troupe operator --precompiled` of this same program.
    Precompile(PrecompileArgs),
}

/// The arguments of `troupe explain`.
#[derive(Debug, clap::Args)]
pub struct ExplainArgs {
    /// The file with the pass; - for standard input.
    #[arg(default_value = "-")]
    pub pass: PathBuf,
    /// Ask the plugin in this file again about the recorded snapshot; fails if its answer differs.
    #[arg(long, value_name = "FILE")]
    pub plugin: Option<PathBuf>,
}

/// The arguments of `troupe plugin new`.
#[derive(Debug, clap::Args)]
pub struct NewArgs {
    /// The name of the plugin, of its project and of the new folder.
    pub name: String,
    /// The kind of job to serve: example.org/v1/EchoJob.
    #[arg(long, value_name = "GROUP/VERSION/KIND")]
    pub kind: NewKind,
    /// The plural of the kind; by default as English mostly has it.
    #[arg(long)]
    pub plural: Option<String>,
    /// The language.
    #[arg(long, value_enum, default_value_t)]
    pub lang: Language,
    /// For Rust, the SDK: the folder plugins/sdk of a checkout of Troupe, or the address of its git repository; by default that of
    /// the checkout in which this program was built.
    #[arg(long, value_name = "FOLDER|URL")]
    pub sdk: Option<String>,
}

/// The arguments of `troupe plugin build`.
#[derive(Debug, clap::Args)]
pub struct BuildArgs {
    /// The folder of the project.
    #[arg(default_value = ".")]
    pub folder: PathBuf,
}

/// The arguments of `troupe plugin bench`.
#[cfg(feature = "lab")]
#[derive(Debug, clap::Args)]
pub struct BenchArgs {
    /// A component, or the name of a built-in plugin; by default that of the project in the current folder, which
    /// is built.
    pub file: Option<PathBuf>,
    /// Passes from a host's admin port (`/recording`); - for standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "scenarios")]
    pub recording: Option<PathBuf>,
    /// A folder of scenarios; by default `scenarios`.
    #[arg(long, value_name = "DIR")]
    pub scenarios: Option<PathBuf>,
    /// How often the scenarios or passes are repeated.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
}

/// The arguments of `troupe plugin inspect`.
#[derive(Debug, clap::Args)]
pub struct InspectArgs {
    /// A component as built by `troupe plugin build`, or the name of a built-in plugin.
    pub file: PathBuf,
    /// Also check the CRDs in this file: that they define the kinds of the plugin and keep what the host writes.
    #[arg(long, value_name = "FILE")]
    pub crd: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `troupe plugin test`.
#[derive(Debug, clap::Args)]
pub struct TestArgs {
    /// A component, or the name of a built-in plugin; by default that of the project in the current folder, which
    /// is built.
    pub file: Option<PathBuf>,
    /// Passes from a host's admin port (`/recording`); - for standard input.
    #[arg(long, value_name = "FILE", required = cfg!(not(feature = "lab")))]
    pub recording: Option<PathBuf>,
    #[cfg(feature = "lab")]
    /// A folder of scenarios: *.txt in the folder and in its direct subfolders; by default `scenarios` if there is no
    /// recording.
    #[arg(long, value_name = "DIR")]
    pub scenarios: Option<PathBuf>,
    #[cfg(feature = "lab")]
    /// Rewrite the printed lines of scenarios instead of printing the differences.
    #[arg(long)]
    pub update: bool,
    /// Go on until interrupted, and test again within two seconds whenever the component, a source of the project, a
    /// scenario or the recording is saved.
    #[arg(long)]
    pub watch: bool,
}

/// The arguments of `troupe plugin diff`.
#[derive(Debug, clap::Args)]
pub struct DiffArgs {
    /// The component that serves now, or the name of a built-in plugin.
    pub old: PathBuf,
    /// The component that would replace it.
    pub new: PathBuf,
    /// Passes from a host's admin port (`/recording`); - for standard input.
    #[arg(long)]
    pub recording: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// The Plugin to change.
#[derive(Debug, clap::Args)]
pub struct NamedPlugin {
    /// The Plugin's name.
    pub name: String,
}

/// The arguments of `troupe plugin push`.
#[derive(Debug, clap::Args)]
pub struct PushArgs {
    /// A component as built by `troupe plugin build`, or the name of a built-in plugin.
    pub file: PathBuf,
    /// The destination: registry/repository:tag.
    #[arg(value_parser = Reference::parse)]
    pub reference: Reference,
    /// How to connect to the registry.
    #[command(flatten)]
    pub registry: RegistryArgs,
}

/// The arguments of `troupe plugin pull`.
#[derive(Debug, clap::Args)]
pub struct PullArgs {
    /// The source: registry/repository:tag or registry/repository@sha256:...
    #[arg(value_parser = Reference::parse)]
    pub reference: Reference,
    /// The output file; by default the repository's name with .wasm.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// A cosign public key in PEM; the artifact must be signed with it.
    #[arg(long, value_name = "FILE")]
    pub public_key: Option<PathBuf>,
    /// How to connect to the registry.
    #[command(flatten)]
    pub registry: RegistryArgs,
}

/// The arguments of `troupe plugin precompile`.
#[derive(Debug, clap::Args)]
pub struct PrecompileArgs {
    /// The folder for the compiled code, a file for each plugin; it is made if it is not there.
    pub folder: PathBuf,
}

/// How to connect to a registry.
#[derive(Debug, clap::Args)]
pub struct RegistryArgs {
    /// Use plain HTTP.
    #[arg(long)]
    pub insecure: bool,
    /// Credentials as `docker login` writes them; by default $DOCKER_CONFIG/config.json or ~/.docker/config.json if it
    /// exists.
    #[arg(long, value_name = "FILE")]
    pub docker_config: Option<PathBuf>,
}

/// The arguments of `troupe plugin configmap`.
#[derive(Debug, clap::Args)]
pub struct ConfigmapArgs {
    /// A component as built by `troupe plugin build`, or the name of a built-in plugin.
    pub file: PathBuf,
    /// The ConfigMap's name; by default made of the file's name and the digest.
    #[arg(long)]
    pub name: Option<String>,
    /// The host's namespace.
    #[arg(long, short, default_value = "troupe-system")]
    pub namespace: String,
}

/// The options of `troupe operator`.
#[derive(Debug, clap::Args)]
pub struct OperatorArgs {
    /// Serve only this namespace.
    #[arg(long, value_parser = namespace)]
    pub namespace: Option<String>,
    /// Apply the CustomResourceDefinitions first.
    #[arg(long)]
    pub install_crds: bool,
    /// The address for health, metrics and the latest passes: HTTP for everybody on a loopback address, HTTPS with the
    /// API server's authorization on any other (probes are open on both); by default 127.0.0.1:8080, in a cluster port
    /// 8443 of all addresses.
    #[arg(long)]
    pub admin_address: Option<SocketAddr>,
    /// The certificate of the admin port in PEM, read again when it changes; by default the host makes one at its
    /// start.
    #[arg(long, value_name = "FILE", requires = "admin_tls_key")]
    pub admin_tls_certificate: Option<PathBuf>,
    /// The key of that certificate in PEM.
    #[arg(long, value_name = "FILE", requires = "admin_tls_certificate")]
    pub admin_tls_key: Option<PathBuf>,
    /// The settings of a plugin: its name and a YAML or JSON file. May be given once for each plugin.
    #[arg(long, value_name = "PLUGIN=FILE", value_parser = plugin_config)]
    pub plugin_config: Vec<PluginConfig>,
    /// The node ports that jobs on the host network may use.
    #[arg(long, value_name = "FIRST-LAST", value_parser = host_ports::parse, default_value = "35000-65000")]
    pub host_port_range: RangeInclusive<u32>,
    /// The quota of those ports for the jobs of one namespace; by default a quarter of them, and at least 1000. Jobs that hold
    /// more when the host starts go on, but what is beyond the quota is theirs no more.
    #[arg(long, value_name = "PORTS", value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub host_ports_per_namespace: Option<u32>,
    /// The handling of fields in users' pod templates that the API server does not know: drop them and report it on the
    /// job, or refuse the pods.
    #[arg(long, value_enum, default_value_t)]
    pub field_validation: FieldValidation,
    /// Tell the metrics of jobs under the names of the operators that the built-in plugins replace, too
    /// (`docs/metrics.md`).
    #[arg(long)]
    pub compat_metrics: bool,
    /// Send a trace of each pass to this OpenTelemetry collector, by OTLP over HTTP (mostly port 4318); /v1/traces is
    /// appended. By default the environment variable OTEL_EXPORTER_OTLP_ENDPOINT; if neither is set, nothing is traced.
    #[arg(long, value_name = "URL")]
    pub otlp_endpoint: Option<Endpoint>,
    /// The share of passes that are traced, from 0 to 1; by default what OTEL_TRACES_SAMPLER says, or all.
    #[arg(long, value_name = "SHARE")]
    pub otlp_sample: Option<Share>,
    /// Use a Lease so that of several hosts one serves at a time.
    #[arg(long)]
    pub leader_elect: bool,
    /// The namespace of the Lease `troupe`; by default the host's namespace in a cluster.
    #[arg(long, value_parser = namespace)]
    pub lease_namespace: Option<String>,
    /// The namespace of the plugin archive and of ConfigMaps with plugins; by default the host's namespace in a
    /// cluster.
    #[arg(long, value_name = "NAMESPACE", value_parser = namespace)]
    pub plugin_namespace: Option<String>,
    /// Another namespace whose ConfigMaps may be plugins. May be given more than once.
    #[arg(long, value_name = "NAMESPACE", value_parser = namespace)]
    pub plugin_source_namespace: Vec<String>,
    /// The maximum size of a job's spec as JSON in bytes, templates included.
    #[arg(long, default_value_t = Limits::default().spec, value_parser = bytes)]
    pub max_spec_bytes: usize,
    /// The maximum size of a plugin's component in bytes. More than the default lets in what has a language's whole
    /// runtime in it, such as Python, which costs the host seconds and hundreds of megabytes to compile, and memory for
    /// its code.
    #[arg(long, default_value_t = Limits::default().component, value_parser = plugin_bytes)]
    pub max_plugin_bytes: usize,
    /// A folder with the built-in plugins' compiled code by `troupe plugin precompile`, so that the host compiles none of
    /// them at its start. Whoever can write to it decides what the host does. By default the environment variable
    /// TROUPE_PRECOMPILED, which the image sets.
    #[arg(long, value_name = "FOLDER")]
    pub precompiled: Option<PathBuf>,
    /// Write logs as JSON.
    #[arg(long)]
    pub log_json: bool,
}

/// The options of `troupe preflight`.
#[derive(Debug, clap::Args)]
pub struct PreflightArgs {
    /// Check only jobs in this namespace.
    #[arg(long, value_parser = namespace)]
    pub namespace: Option<String>,
    /// Check the rights of this service account (troupe-system/troupe) instead of one's own.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = service_account)]
    pub service_account: Option<(String, String)>,
    /// The settings of a plugin, as for `troupe operator`.
    #[arg(long, value_name = "PLUGIN=FILE", value_parser = plugin_config)]
    pub plugin_config: Vec<PluginConfig>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// The options of `troupe check`.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// The service account of the host; its namespace is the host's.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = service_account, default_value = "troupe-system/troupe")]
    pub service_account: (String, String),
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

fn plugin_bytes(text: &str) -> anyhow::Result<usize> {
    let bytes = bytes(text)?;
    anyhow::ensure!(bytes <= LARGEST_COMPONENT, "it must be at most {LARGEST_COMPONENT}");
    Ok(bytes)
}

fn service_account(text: &str) -> anyhow::Result<(String, String)> {
    const RIGHT: &str = "it must be a namespace, / and a name";
    let (of, name) = text.split_once('/').context(RIGHT)?;
    let is_name = name.split('.').all(|label| namespace(label).is_ok());
    anyhow::ensure!(is_name, RIGHT);
    Ok((namespace(of)?, name.to_owned()))
}

/// The name of a namespace, which is an RFC 1123 label.
fn namespace(text: &str) -> anyhow::Result<String> {
    let inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let is_label = (1..=63).contains(&bytes.len())
        && bytes.iter().all(|byte| inner(byte) || *byte == b'-')
        && [bytes.first(), bytes.last()].into_iter().flatten().all(inner);
    anyhow::ensure!(is_label, "it must be the name of a namespace: 63 characters of a-z, 0-9 and '-' at most");
    Ok(text.to_owned())
}

/// No spec and no component is smaller.
const LEAST_BYTES: usize = 1024;

fn bytes(text: &str) -> anyhow::Result<usize> {
    let bytes = text.parse()?;
    anyhow::ensure!(bytes >= LEAST_BYTES, "it must be at least {LEAST_BYTES}");
    Ok(bytes)
}

/// A plugin and the file with its settings.
#[derive(Debug, Clone)]
pub struct PluginConfig {
    /// The plugin's name.
    pub plugin: String,
    /// The YAML or JSON file.
    pub file: PathBuf,
}

fn plugin_config(text: &str) -> anyhow::Result<PluginConfig> {
    let (plugin, file) = text.split_once('=').context("it must be a plugin's name, = and a file")?;
    Ok(PluginConfig { plugin: plugin.to_owned(), file: file.into() })
}

#[cfg(feature = "lab")]
/// The arguments of `troupe demo`.
#[derive(Debug, clap::Args)]
pub struct DemoArgs {
    /// A component that serves instead of the built-in plugins. May be given more than once.
    #[arg(long, value_name = "FILE", requires = "manifests")]
    pub plugin: Vec<PathBuf>,
    /// Manifests of jobs; by default an example of each built-in framework.
    pub manifests: Vec<PathBuf>,
    /// Print the environment, host lists and ConfigMaps of the pods.
    #[arg(long)]
    pub explain: bool,
    /// Serve the host's page on a loopback address until interrupted. Pods run for a minute, so that there is time to look.
    #[arg(long)]
    pub web: bool,
    /// Give up after this many seconds.
    #[arg(long, default_value_t = 60)]
    pub patience: u64,
}

#[cfg(feature = "lab")]
/// The arguments of `troupe sim`.
#[derive(Debug, clap::Args)]
pub struct SimArgs {
    /// The number of seeds.
    #[arg(long, default_value_t = 100)]
    pub seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    pub first: u64,
    /// Print of the last seed each request of the hosts, each object that they see and each change by anybody else.
    #[arg(long)]
    pub trace: bool,
    /// A component whose jobs are among the others. May be given more than once.
    #[arg(long, value_name = "FILE", requires = "manifests")]
    pub plugin: Vec<PathBuf>,
    /// Manifests of its jobs, each of which has to end well when all its pods do. Of each there are two copies, one of
    /// which somebody interferes with.
    #[arg(requires = "plugin")]
    pub manifests: Vec<PathBuf>,
}

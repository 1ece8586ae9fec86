//! `troupe operator`: one host against a real API server.

mod policies;

use crate::{
    args::{OperatorArgs, PluginConfig},
    runtime,
};
use admin::{Access, Reviewer, Tls, telemetry};
use anyhow::Context as _;
use install::crds;
use kube::{Client, Config, client::ClientBuilder};
use sandbox::{Bounds, Compiler, Executor, Limits, Plugins};
use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
};
use tokio::{net::TcpListener, signal::unix};
use tower::util::option_layer;
use tracing::{error, info};
use troupe::{
    api::bounds,
    clock::Clock,
    control::host_ports,
    control::{
        lease::{Election, LeaseName, WriteGate},
        operator::{Ended, Operator, Options},
    },
    delivery,
    measure::requests::Requests,
    traces::{self, Endpoint, Share, SpanLayer, Traces},
};

pub(super) fn serve(args: OperatorArgs) -> anyhow::Result<ExitCode> {
    let (traces, spans) = traces(args.otlp_endpoint.as_ref(), args.otlp_sample)?.unzip();
    telemetry::start(args.log_json, "troupe=info,warn", spans);
    runtime::on_all_threads(Box::pin(operate(args, traces)))?
}

async fn operate(args: OperatorArgs, traces: Option<Arc<Traces>>) -> anyhow::Result<ExitCode> {
    let requests = Requests::default();
    let gate = args.leader_elect.then(WriteGate::closed);
    let client = client(&requests, gate.clone()).await?;
    let (listener, access) = admin_port(&args, &requests).await?;
    let lease = gate.map(|gate| anyhow::Ok((lease_name(args.lease_namespace)?, gate))).transpose()?;
    if args.install_crds {
        // Apply the CRDs before acquiring a lease: the first host that starts with this flag applies them.
        crds::install(&self::client(&requests, None).await?).await?;
    }
    let limits = Limits { spec: args.max_spec_bytes, component: args.max_plugin_bytes, ..Limits::default() };
    let plugins = Arc::new(plugins(&args.plugin_config, limits, args.precompiled.or_else(precompiled)).await?);
    for (framework, digest) in plugins.frameworks() {
        info!(plugin = framework.name, version = framework.version, digest = digest.as_str(), "serving");
    }
    let clock = Clock::system();
    let election = lease.map(|(name, gate)| Election::new(client.clone(), name, clock.clone(), gate));
    let options = Options {
        namespace: args.namespace,
        clock,
        seed: seed()?,
        host_ports: host_ports::Limits::new(args.host_port_range, args.host_ports_per_namespace),
        field_validation: args.field_validation,
        compat_metrics: args.compat_metrics,
        election,
        delivery: Some(delivery::Options {
            namespace: args.plugin_namespace.or_else(own_namespace),
            source_namespaces: args.plugin_source_namespace.into_iter().collect(),
        }),
        traces,
    };
    let kinds = plugins.kinds();
    let mut operator = Operator::new(client.clone(), plugins, options);
    let _policies = policies::report(client, kinds, &operator.context());
    let admin = tokio::spawn(admin::serve(listener, operator.context(), requests, access));
    let ended = operator.run(asked_to_stop()?).await;
    admin.abort();
    Ok(match ended {
        Ended::AsAsked => ExitCode::SUCCESS,
        // The host's supervisor restarts the process, which then waits for the lease.
        Ended::LeaseLost => ExitCode::FAILURE,
    })
}

/// Returns the traces of this host, if a flag or the standard's environment variable says where they go.
fn traces(endpoint: Option<&Endpoint>, share: Option<Share>) -> anyhow::Result<Option<(Arc<Traces>, SpanLayer)>> {
    const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let endpoint = match (endpoint, set(ENDPOINT)) {
        (Some(endpoint), _) => endpoint.clone(),
        (None, Some(text)) => text.parse().context(ENDPOINT)?,
        (None, None) => {
            anyhow::ensure!(share.is_none(), "--otlp-sample needs --otlp-endpoint");
            return Ok(None);
        }
    };
    let headers = set("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default();
    Ok(Some(Traces::new(traces::Settings { endpoint, share, headers })?))
}

/// Binds the admin port. Returns who may read it: everybody on this machine, or users that the API server authorizes.
async fn admin_port(args: &OperatorArgs, requests: &Requests) -> anyhow::Result<(TcpListener, Access)> {
    let addresses = args.admin_address.map_or_else(|| admin_addresses(own_namespace().is_some()), |it| vec![it]);
    let listener = TcpListener::bind(&addresses[..]).await.with_context(|| {
        let address = addresses.last().map(ToString::to_string).unwrap_or_default();
        format!("the admin port {address} cannot be opened; choose another with --admin-address")
    })?;
    if listener.local_addr().context("the admin port has no address")?.ip().is_loopback() {
        return Ok((listener, Access::Loopback));
    }
    let tls = match (&args.admin_tls_certificate, &args.admin_tls_key) {
        (Some(certificate), Some(key)) => Tls::of_files(certificate.clone(), key.clone()),
        _ => Tls::self_signed(),
    };
    // A host on standby sends access reviews, too.
    let reviewer = Reviewer::new(client(requests, None).await?);
    Ok((listener, Access::Reviewed(Box::new(reviewer), tls.context("the admin port has no certificate")?)))
}

/// Where the admin port is by default: the first of these addresses that can be bound.
fn admin_addresses(is_in_cluster: bool) -> Vec<SocketAddr> {
    if is_in_cluster {
        // A machine without IPv6 has no `::`.
        vec![(Ipv6Addr::UNSPECIFIED, 8443).into(), (Ipv4Addr::UNSPECIFIED, 8443).into()]
    } else {
        vec![(Ipv4Addr::LOCALHOST, 8080).into()]
    }
}

/// The name of the Lease that all hosts of a cluster share, with a holder identity that no other process has.
fn lease_name(namespace: Option<String>) -> anyhow::Result<LeaseName> {
    let namespace =
        namespace.or_else(own_namespace).context("outside a cluster --leader-elect needs --lease-namespace")?;
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "troupe".to_owned());
    let unique: String = seed()?.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let identity = format!("{host}_{unique}");
    Ok(LeaseName { namespace, name: "troupe".to_owned(), identity })
}

/// Returns the namespace of this process if it runs in a cluster.
fn own_namespace() -> Option<String> {
    let file = std::fs::read_to_string("/var/run/secrets/kubernetes.io/serviceaccount/namespace");
    file.ok().map(|namespace| namespace.trim().to_owned())
}

/// Returns the folder of the built-in plugins' compiled code that the image names.
pub(super) fn precompiled() -> Option<PathBuf> {
    // An empty value would be the current folder.
    std::env::var_os("TROUPE_PRECOMPILED").filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// Where components are compiled. Those that are larger than usual need more memory and time.
fn compiler(limits: &Limits) -> Compiler {
    let usual = Compiler::of_this_program();
    match usual {
        Compiler::Child { program, bounds } if limits.component > Limits::default().component => {
            Compiler::Child { program, bounds: Bounds { cpu_seconds: 180, memory: 4 << 30, ..bounds } }
        }
        usual => usual,
    }
}

/// Loads the built-in plugins with their settings; their compiled code is taken from this folder, if there is one.
pub(super) async fn plugins(
    configs: &[PluginConfig],
    limits: Limits,
    precompiled: Option<PathBuf>,
) -> anyhow::Result<Plugins> {
    let compiler = compiler(&limits);
    let options = sandbox::Options { compiler, limits, precompiled, ..sandbox::Options::new(Executor::blocking()) };
    let plugins = Plugins::builtin_with(options).await.context("a built-in plugin does not load")?;
    for PluginConfig { plugin, file } in configs {
        let text = crate::input::small_text(file)?;
        let config: serde_json::Value =
            serde_norway::from_str(&text).with_context(|| format!("{} is no YAML", file.display()))?;
        plugins.configure(plugin, &config).with_context(|| file.display().to_string())?;
    }
    Ok(plugins)
}

/// Returns a client that does not retry on its own and whose requests are counted and timed.
pub(super) async fn client(requests: &Requests, gate: Option<WriteGate>) -> anyhow::Result<Client> {
    let mut config =
        Config::infer().await.context("no cluster: neither a kubeconfig nor a service account is there")?;
    config.default_retry = false;
    config.read_timeout = None;
    config.connect_timeout = Some(troupe::api::DEADLINE);
    let host = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
    let builder = ClientBuilder::try_from(config).context("the kubeconfig cannot be used")?;
    let builder = builder.with_layer(&bounds::Bounds::of_host());
    Ok(builder.with_layer(&requests.layer(&host)).with_layer(&option_layer(gate)).build())
}

/// Completes on SIGTERM or SIGINT.
fn asked_to_stop() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = unix::signal(unix::SignalKind::terminate()).context("SIGTERM cannot be listened to")?;
    let mut interrupt = unix::signal(unix::SignalKind::interrupt()).context("SIGINT cannot be listened to")?;
    Ok(async move {
        tokio::select! {
            biased;
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Returns a seed from the system's random source, for keys.
fn seed() -> anyhow::Result<[u8; 32]> {
    let mut seed = [0; 32];
    let mut source = std::fs::File::open("/dev/urandom").context("failed to read random bytes")?;
    std::io::Read::read_exact(&mut source, &mut seed)
        .inspect_err(|error| error!(%error, "failed to read random bytes"))?;
    Ok(seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_admin_port_is_on_loopback_by_default_unless_the_host_runs_in_a_cluster() {
        assert!(admin_addresses(false).iter().all(|address| address.ip().is_loopback()));
        assert!(admin_addresses(true).iter().all(|address| address.ip().is_unspecified()));
    }
}

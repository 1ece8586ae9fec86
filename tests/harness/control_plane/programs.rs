//! How each program of a control plane is called.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::audit;
use crate::binaries::{Binaries, Tool};
use crate::credentials::Credentials;
use crate::options::Options;
use crate::run_dir::RunDir;

/// The programs a control plane with these options consists of.
pub(super) fn tools(options: &Options) -> Vec<Tool> {
    let mut tools = vec![Tool::Etcd, Tool::ApiServer, Tool::ControllerManager];
    tools.extend(options.scheduler.then_some(Tool::Scheduler));
    tools.extend((options.fake_nodes > 0).then_some(Tool::Kwok));
    tools
}

pub(super) fn etcd(binaries: &Binaries, dir: &RunDir, client: u16, peer: u16) -> Result<Command> {
    let (client, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
    let mut command = Command::new(binaries.path(Tool::Etcd)?);
    command
        .arg("--data-dir")
        .arg(dir.join("etcd"))
        .args(["--unsafe-no-fsync", "--log-level=warn", "--name=test"])
        .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
        .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
        .args(["--initial-cluster", &format!("test={peer}")]);
    Ok(command)
}

pub(super) fn api_server(
    binaries: &Binaries,
    dir: &RunDir,
    credentials: &Credentials,
    options: &Options,
    store: u16,
    port: u16,
) -> Result<Command> {
    // Without service accounts pods need no token, and a namespace can be used at once.
    // With fake nodes no taint: kubelets' taints are lifted too late, or never, for nodes that nobody runs on.
    let disabled = [(!options.service_accounts, "ServiceAccount"), (options.fake_nodes > 0, "TaintNodesByCondition")];
    let disabled = disabled.into_iter().filter_map(|(is_disabled, plugin)| is_disabled.then_some(plugin));
    let disabled = disabled.collect::<Vec<_>>().join(",");
    let mut command = Command::new(binaries.path(Tool::ApiServer)?);
    command
        .arg(format!("--etcd-servers=http://127.0.0.1:{store}"))
        .arg(format!("--secure-port={port}"))
        .args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none"])
        .args(["--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=Node,RBAC", "--allow-privileged"])
        .arg(format!("--disable-admission-plugins={disabled}"))
        .args(["--service-account-issuer=https://troupe.test", "--kubelet-preferred-address-types=InternalIP"])
        .arg("--tls-cert-file")
        .arg(&credentials.certificate)
        .arg("--tls-private-key-file")
        .arg(&credentials.key)
        .arg("--token-auth-file")
        .arg(&credentials.tokens)
        .arg("--service-account-key-file")
        .arg(&credentials.service_account_key)
        .arg("--service-account-signing-key-file")
        .arg(&credentials.service_account_key)
        .arg("--audit-policy-file")
        .arg(dir.write("audit-policy.yaml", if options.audits_answers { audit::ANSWERS } else { audit::POLICY })?)
        .arg("--audit-log-path")
        .arg(dir.join("audit.log"))
        // In megabytes: a run's log is one file.
        .arg("--audit-log-maxsize=1000000")
        .args(options.runtime_config())
        .args(options.feature_gates())
        .args(&options.api_server_flags);
    Ok(command)
}

pub(super) fn controller_manager(
    binaries: &Binaries,
    kubeconfig: &Path,
    credentials: &Credentials,
    options: &Options,
) -> Result<Command> {
    // Otherwise no config map that a test has not made.
    let publishes = if options.service_accounts { "*" } else { "*,-root-ca-certificate-publisher-controller" };
    let mut command = Command::new(binaries.path(Tool::ControllerManager)?);
    command
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .arg("--service-account-private-key-file")
        .arg(&credentials.service_account_key)
        .arg("--root-ca-file")
        .arg(&credentials.certificate)
        .arg(format!("--controllers={publishes}"))
        .args(["--leader-elect=false", "--secure-port=0", "--kube-api-qps=200", "--kube-api-burst=400"])
        .args(options.feature_gates());
    Ok(command)
}

pub(super) fn scheduler(binaries: &Binaries, kubeconfig: &Path, options: &Options) -> Result<Command> {
    let mut command = Command::new(binaries.path(Tool::Scheduler)?);
    command
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(["--leader-elect=false", "--secure-port=0", "--kube-api-qps=500", "--kube-api-burst=1000"])
        .args(options.feature_gates());
    Ok(command)
}

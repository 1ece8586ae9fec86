//! `troupe rbac`: prints the minimal rights for the plugins in use and the parameters of the fence, an admission policy,
//! or roles for users of their kinds of job.

use super::{input, runtime, serve};
use crate::args::RbacArgs;
use admin::telemetry;
use anyhow::{Context, anyhow};
use decide::grants::Grants;
use install::rbac::{self, Host, Plugin, Serves};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, ResourceExt};
use sandbox::{Executor, Plugins, configured, source, wanted};
use serde_json::json;
use std::{path::Path, process::ExitCode};
use troupe::{
    error::chain,
    measure::requests::Requests,
    out,
    plugin_resource::{self, ConfigMapSource, PluginSpec},
    record::replay::Replayer,
};

/// The maximum size of a component, in bytes.
const LARGEST: usize = 64 << 20;

pub(super) fn rbac(args: &RbacArgs) -> anyhow::Result<ExitCode> {
    telemetry::start(false, "error", None);
    let mut plugins = built_in()?;
    for file in &args.plugin {
        let wasm = input::component(file)?;
        let descriptor = describe(&wasm).with_context(|| file.display().to_string())?;
        put(&mut plugins, Plugin { grants: descriptor.wanted_grants(), descriptor });
    }
    if args.cluster {
        runtime::on_one_thread(Box::pin(of_cluster(&mut plugins, &args.plugin_namespace)))??;
    }
    let host = host(args);
    if let Some(policy) = args.policy {
        out::text(policy.yaml(&host, &plugins)?);
        return Ok(ExitCode::SUCCESS);
    }
    let documents = if args.job_roles {
        rbac::job_roles(&plugins)?
    } else {
        let users = args.users.as_deref().map_or_else(|| Ok(rbac::users_by_default()), users)?;
        rbac::documents(&host, &plugins, &users)?
    };
    out::text(rbac::yaml(&documents).context("the rights as YAML")?);
    Ok(ExitCode::SUCCESS)
}

fn host(args: &RbacArgs) -> Host {
    let (namespace, service_account) = args.service_account.clone();
    let serves = args.namespace.clone().map_or(Serves::Cluster, Serves::Namespace);
    Host { namespace, service_account, serves, ..Host::default() }
}

/// The built-in plugins, each granted everything it asks for.
fn built_in() -> anyhow::Result<Vec<Plugin>> {
    let plugins = Plugins::builtin(Executor::Inline).context("a built-in plugin does not load")?;
    let frameworks = plugins.frameworks().into_iter();
    Ok(frameworks
        .map(|(descriptor, _)| Plugin { grants: descriptor.wanted_grants(), descriptor: (*descriptor).clone() })
        .collect())
}

/// Reads the grants for users' pods: YAML as in `spec.grants`.
fn users(file: &Path) -> anyhow::Result<Grants> {
    let text = input::small_text(file)?;
    let said = serde_norway::from_str(&text).with_context(|| format!("{} is no YAML", file.display()))?;
    rbac::users(&said).with_context(|| file.display().to_string())
}

/// Adds the plugin, and replaces a plugin of the same name.
fn put(plugins: &mut Vec<Plugin>, plugin: Plugin) {
    plugins.retain(|there| there.descriptor.name != plugin.descriptor.name);
    plugins.push(plugin);
}

/// Adds the plugins of the cluster's Plugin resources, each with the grants of its resource. If the ConfigMap of one
/// has no component, the built-in plugin or that of a file keeps its rights, if there is one, and a message is printed.
///
/// # Errors
/// A Plugin cannot be read now. The output replaces the rights, the parameters of the fence and the policies: without
/// that Plugin it would take away what its jobs need.
async fn of_cluster(plugins: &mut Vec<Plugin>, own: &str) -> anyhow::Result<()> {
    let client = serve::client(&Requests::default(), None).await?;
    let resources = Api::<plugin_resource::Plugin>::all(client.clone());
    let all =
        resources.list(&kube::api::ListParams::default()).await.context("the Plugin resources cannot be listed")?;
    for resource in all {
        let name = resource.name_any();
        let there =
            plugins.iter().find(|plugin| plugin.descriptor.name == name).map(|plugin| plugin.descriptor.clone());
        let found = component(&client, &resource.spec, own).await.with_context(|| {
            format!(
                "plugin {name} cannot be read, so nothing is printed: applied without it, the output would take its \
                 rights away; run this again, as somebody who may read its ConfigMap"
            )
        })?;
        let descriptor = match (found, there) {
            (Component::Bytes(wasm), _) => describe(&wasm).with_context(|| format!("plugin {name}"))?,
            (Component::Elsewhere, Some(there)) => there,
            (Component::Elsewhere, None) => {
                out::diagnostic(format_args!(
                    "plugin {name} is in a registry: give its file with --plugin, or it is left out"
                ));
                continue;
            }
            (Component::Missing(why), Some(_)) => {
                out::diagnostic(format_args!("plugin {name} is left as it is: {why:#}"));
                continue;
            }
            (Component::Missing(why), None) => {
                out::diagnostic(format_args!("plugin {name} is left out: {why:#}; give its file with --plugin"));
                continue;
            }
        };
        let config = resource.spec.config.clone().unwrap_or_else(|| json!({}));
        let descriptor = configured(&descriptor, &config).unwrap_or_else(|error| {
            out::diagnostic(format_args!("plugin {name} gets no rights for its settings: {error}"));
            descriptor
        });
        let grants = resource.spec.granted().cloned().unwrap_or_else(|| wanted(&descriptor, &config));
        put(plugins, Plugin { descriptor, grants });
    }
    Ok(())
}

/// Where the bytes of a Plugin are.
enum Component {
    /// In its ConfigMap.
    Bytes(Vec<u8>),
    /// Not in a ConfigMap: with the host or in a registry.
    Elsewhere,
    /// Nowhere: there is no such ConfigMap, or no component in it.
    Missing(anyhow::Error),
}

/// Returns the bytes in the ConfigMap that the Plugin names.
///
/// # Errors
/// The API server does not say what is there.
async fn component(client: &Client, spec: &PluginSpec, own: &str) -> anyhow::Result<Component> {
    let Some(ConfigMapSource { name, namespace, key }) = &spec.source.config_map else {
        return Ok(Component::Elsewhere);
    };
    let namespace = namespace.as_deref().unwrap_or(own);
    let place = format!("configmap {namespace}/{name}");
    let maps = Api::<ConfigMap>::namespaced(client.clone(), namespace);
    let map = maps.get_opt(name).await.map_err(|error| anyhow!("{place}: {}", chain(&error)))?;
    let found = map.context("it does not exist").and_then(|map| bytes(map, key.as_deref()));
    Ok(found.map_or_else(|why| Component::Missing(why.context(place)), Component::Bytes))
}

/// Returns the component in this ConfigMap.
fn bytes(map: ConfigMap, key: Option<&str>) -> anyhow::Result<Vec<u8>> {
    let mut data = map.binary_data.unwrap_or_default();
    let keys = key.map_or_else(|| vec![source::KEY, source::COMPRESSED_KEY], |key| vec![key]);
    let found = keys.iter().find_map(|key| Some((*key, data.remove(*key)?)));
    let (key, bytes) = found.with_context(|| format!("it has no binaryData {}", keys.join(" or ")))?;
    match key.ends_with(".zst") {
        true => Ok(source::decompress(&bytes.0, LARGEST)?),
        false => Ok(bytes.0),
    }
}

/// Returns the description of a component, from an engine of its own.
fn describe(wasm: &[u8]) -> anyhow::Result<decide::plan::Descriptor> {
    Ok(Replayer::load("it", wasm)?.descriptor().clone())
}

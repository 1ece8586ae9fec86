//! What a host does about plugins before it plans the first job: keeps the bytes of those that come with it, and brings
//! back those that served before.

use super::{Delivery, Kept, Options, Plugin, Sources, Versions, kept::LARGEST, short};
use crate::{
    apply::DEADLINE,
    layout::Route,
    plugin::{Limits, Plugins},
    reconcile::Context,
    watch::chain,
};
use kube::{Api, Client, ResourceExt, api::ListParams};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::time::Instant;
use tracing::{info, warn};

/// Between two attempts to learn which Plugins there are.
const AGAIN: Duration = Duration::from_secs(1);

/// Attempts to keep the bytes of the built-in plugins.
const ATTEMPTS: u32 = 3;

impl Delivery {
    /// Whatever served before serves again once this returns.
    pub(crate) async fn start(client: Client, context: Arc<Context>, options: Options) -> Self {
        let sources = Sources {
            client: client.clone(),
            namespace: options.namespace,
            allowed: options.source_namespaces,
            limit: Limits::default().component,
        };
        let kept = sources.namespace.as_ref().map(|namespace| Kept::new(&sources, namespace, LARGEST));
        let mut delivery = Self {
            client,
            context,
            sources,
            kept,
            versions: Versions::default(),
            known: BTreeMap::new(),
            listed: None,
            swept: Instant::now(),
            lost_again: Instant::now(),
        };
        delivery.keep_built_ins().await;
        for plugin in delivery.list().await {
            delivery.restore(plugin).await;
        }
        delivery
    }

    /// Keeps the bytes of what comes with this host, since the next host may come with others. Where they cannot be kept,
    /// a job is planned by what the host has.
    async fn keep_built_ins(&mut self) {
        let Some(kept) = &self.kept else {
            info!(
                "without --plugin-namespace no bytes of plugins are kept: after an upgrade of the host, running jobs are \
                   planned by its new plugins"
            );
            return;
        };
        for (framework, digest) in self.context.plugins.frameworks() {
            let Some(wasm) = Plugins::built_in(&framework.name) else { continue };
            let mut attempt = 1;
            while let Err(error) = kept.keep(&digest, wasm, None).await {
                warn!(plugin = framework.name, error = chain(&error), "the bytes of a plugin cannot be kept");
                if attempt == ATTEMPTS {
                    self.kept = None;
                    return;
                }
                attempt += 1;
                tokio::time::sleep(AGAIN).await;
            }
        }
        self.context.stores.change(|layout| layout.keeps_bytes = true);
    }

    /// All Plugins; none where the API server does not have them. Asks until there is an answer, since a job must not be
    /// planned by what a Plugin has replaced.
    async fn list(&self) -> Vec<Plugin> {
        loop {
            let plugins = Api::<Plugin>::all(self.client.clone());
            let list = tokio::time::timeout(DEADLINE, plugins.list(&ListParams::default())).await;
            match list {
                Err(_) => warn!("no answer to the list of Plugins within {} s, trying again", DEADLINE.as_secs()),
                Ok(Ok(list)) => return list.items,
                Ok(Err(kube::Error::Api(status))) if matches!(status.code, 403 | 404) => {
                    warn!(why = status.message, "no Plugins can be seen: apply crds/ and deploy/rbac.yaml for them");
                    return vec![];
                }
                Ok(Err(error)) => warn!(error = chain(&error), "failed to list Plugins, trying again"),
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// The digest that served last serves again, whatever has become of its source.
    async fn restore(&mut self, plugin: Plugin) {
        let name = plugin.name_any();
        let active = plugin.status.as_ref().and_then(|status| status.digest.clone());
        self.learn(plugin);
        let Some(active) = active else { return };
        if !self.context.plugins.has(&active) {
            self.bring_back(&active).await;
        }
        let route = if self.context.plugins.has(&active) {
            Route::to(&active)
        } else {
            warn!(plugin = name, digest = short(&active), "the digest that served is lost; new jobs wait for another");
            Route::default()
        };
        self.route(&name, &route);
    }
}

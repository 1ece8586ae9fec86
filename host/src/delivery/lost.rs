//! Digests that jobs need and that are not loaded: brought back from what is kept, or told to be lost and looked for again.

use super::{Delivery, settings, short};
use crate::{plugin::Settings, watch::chain};
use tokio::time::Instant;
use tracing::{info, warn};

/// Lost digests are not looked for again for so many times as long as the last look took.
const REST: u32 = 10;

impl Delivery {
    /// The bytes of a digest that is kept, or why they cannot be had.
    pub(super) async fn bring(&self, digest: &str) -> Result<Vec<u8>, String> {
        let Some(kept) = &self.kept else { return Err("this host keeps no bytes of plugins".to_owned()) };
        kept.bring(digest).await.map_err(|error| chain(&error))
    }

    /// Loads a digest that jobs are pinned to; jobs of one that is lost are told so.
    pub(super) async fn bring_back(&mut self, digest: &str) {
        let wasm = match self.bring(digest).await {
            Ok(wasm) => Ok(wasm),
            Err(why) => {
                warn!(digest = short(digest), why, "the bytes of a plugin cannot be brought back");
                self.in_a_source(digest).await.ok_or(why)
            }
        };
        self.load_back(digest, wasm).await;
    }

    async fn load_back(&mut self, digest: &str, wasm: Result<Vec<u8>, String>) {
        let prepared = match wasm {
            Ok(wasm) => self.prepare(short(digest), &wasm).await.map_err(|trouble| trouble.message),
            Err(why) => Err(why),
        };
        let loaded = prepared.and_then(|prepared| {
            let spec = self.known.get(&prepared.descriptor.name).map(|known| &known.resource.spec);
            let settings = spec.map_or_else(Settings::default, settings);
            let added = self.context.plugins.add(&prepared, &settings);
            let added = added.or_else(|_| self.context.plugins.add(&prepared, &Settings::default()));
            added.map(|()| prepared).map_err(|error| error.to_string())
        });
        match loaded {
            Ok(prepared) => {
                info!(plugin = prepared.descriptor.name, digest = short(digest), "brought back for jobs that run");
                self.context.stores.change(|layout| layout.add(&prepared.descriptor, digest));
            }
            Err(why) => {
                warn!(digest = short(digest), why, "a plugin that jobs need is lost; their pods are left alone");
                self.context.stores.change(|layout| layout.lose(digest, &why));
            }
        }
        self.context.stores.jobs().into_iter().for_each(|key| self.context.queue.add(key));
    }

    /// Digests that were lost may be there again. A registry that does not answer keeps nobody else waiting for long.
    pub(super) async fn look_for_lost(&mut self) {
        let began = Instant::now();
        if self.kept.is_none() || began < self.lost_again {
            return;
        }
        let layout = self.context.stores.layout();
        for (digest, before) in layout.lost() {
            match self.bring(digest).await {
                Ok(wasm) => self.load_back(digest, Ok(wasm)).await,
                // Its jobs say so the next time that they are looked at.
                Err(why) if why != *before => self.context.stores.change(|layout| layout.lose(digest, &why)),
                Err(_) => {}
            }
        }
        self.lost_again = Instant::now() + began.elapsed() * REST;
    }

    /// The bytes of a digest that some Plugin's source still has.
    async fn in_a_source(&self, digest: &str) -> Option<Vec<u8>> {
        for (name, known) in &self.known {
            if let Ok(fetched) = self.sources.fetch(name, &known.resource.spec).await
                && fetched.digest == digest
            {
                return Some(fetched.wasm);
            }
        }
        None
    }
}

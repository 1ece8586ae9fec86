//! One control plane for all tests that do not disturb each other, ended with the last of them.

use super::objects::Namespace;
use crate::operator::Operator;
use anyhow::Result;
use harness::{ControlPlane, Options, audit};
use std::{
    ops::Deref,
    sync::{Arc, Weak},
};
use tokio::sync::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

const FAKE_NODES: usize = 4;

/// A test's place in the shared control plane: a namespace, seen by `user`.
pub(crate) struct World {
    pub(crate) plane: Arc<ControlPlane>,
    namespace: Namespace,
    _turn: Turn,
}

#[expect(dead_code, reason = "held, not read")]
enum Turn {
    Shared(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

static TURN: RwLock<()> = RwLock::const_new(());
static PLANE: Mutex<Weak<ControlPlane>> = Mutex::const_new(Weak::new());

impl World {
    /// A new namespace beside those of other tests.
    pub(crate) async fn shared(namespace: &str) -> Self {
        Self::new(namespace, Turn::Shared(TURN.read().await)).await
    }

    /// A new namespace, while no other test uses the control plane.
    pub(crate) async fn alone(namespace: &str) -> Self {
        Self::new(namespace, Turn::Alone(TURN.write().await)).await
    }

    async fn new(namespace: &str, turn: Turn) -> Self {
        let plane = {
            let mut running = PLANE.lock().await;
            match running.upgrade() {
                Some(plane) => plane,
                None => {
                    let options = Options::default().fake_nodes(FAKE_NODES).crds(install::crds::all());
                    let plane = Arc::new(ControlPlane::start(options).await.unwrap());
                    *running = Arc::downgrade(&plane);
                    plane
                }
            }
        };
        let namespace = Namespace::create_in(plane.client("user").await.unwrap(), namespace).await;
        Self { plane, namespace, _turn: turn }
    }

    /// An operator that serves this namespace only.
    pub(crate) async fn operator(&self) -> Operator {
        Operator::start(&self.plane, &["--namespace", &self.namespace.name]).await
    }

    /// Every finished request in this namespace so far.
    pub(crate) fn audit(&self) -> Result<Vec<audit::Record>> {
        let mut records = self.plane.audit()?;
        records.retain(|record| record.namespace == self.namespace.name);
        Ok(records)
    }
}

impl Deref for World {
    type Target = Namespace;

    fn deref(&self) -> &Namespace {
        &self.namespace
    }
}

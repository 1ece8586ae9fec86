//! What can befall a running control plane: a part stands still for a while, or is killed and started anew.

use std::time::Duration;

use anyhow::{Context, Result};

use super::ControlPlane;
use crate::process::Process;

/// A part that trouble can befall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// kube-apiserver.
    ApiServer,
    /// etcd.
    Etcd,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::ApiServer => "kube-apiserver",
            Part::Etcd => "etcd",
        }
    }
}

impl ControlPlane {
    /// Has a part stand still for so long: its connections stay open and nothing is answered.
    pub async fn stand_still(&mut self, part: Part, time: Duration) -> Result<()> {
        self.process(part)?.stand_still()?;
        tokio::time::sleep(time).await;
        self.process(part)?.go_on()
    }

    /// Kills a part without a last word and starts it anew; returns when the API server is ready.
    pub async fn kill_and_start(&mut self, part: Part) -> Result<()> {
        self.process(part)?.kill_and_start()?;
        self.ready().await
    }

    fn process(&mut self, part: Part) -> Result<&mut Process> {
        let found = self.processes.iter_mut().find(|process| process.name() == part.name());
        found.with_context(|| format!("{} does not run", part.name()))
    }
}

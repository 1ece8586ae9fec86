//! Copies of the loaded plugins whose calls do not affect live jobs: for other hosts, replays and candidates.

use super::{Compiled, Compiler, Loaded, Memo, Plugins, REMEMBERED};
use decide::{Snapshot, plan::Answer, ports::NoPorts};
use std::sync::{Arc, Mutex, RwLock};

impl Plugins {
    /// Returns the same plugins with a cache, breakers and fuel of their own. Compiles nothing.
    #[must_use]
    pub fn fork(&self) -> Self {
        self.fork_with(self.loaded())
    }

    pub(super) fn fork_with(&self, loaded: Vec<Arc<Loaded>>) -> Self {
        Self {
            caller: Arc::clone(&self.caller),
            loaded: RwLock::new(loaded),
            memo: Arc::new(Mutex::new(Memo::new(REMEMBERED))),
            breakers: Arc::default(),
            allowances: Arc::default(),
            aside: Arc::default(),
            compiler: self.compiler.clone(),
            vet: self.vet,
            seat: self.seat.clone(),
        }
    }

    /// Returns the same plugins with a compiler that all forks share and that compiles each component once.
    #[must_use]
    pub fn compiled_once(self) -> Self {
        Self { compiler: Compiler::Once(Compiled::default()), ..self }
    }

    /// Returns a fork whose calls take no permits from live jobs. Its cache, breakers and fuel are its own.
    pub fn apart(&self) -> Self {
        Self { seat: self.seat.beside(), ..self.fork() }
    }

    /// Returns the same plugins with the same cache and breakers. Calls take neither permits nor fuel from live jobs.
    fn beside(&self) -> Self {
        Self {
            memo: Arc::clone(&self.memo),
            breakers: Arc::clone(&self.breakers),
            allowances: Arc::clone(&self.aside),
            aside: Arc::clone(&self.aside),
            seat: self.seat.beside(),
            ..self.fork()
        }
    }

    /// Returns the answer of the plugin with this digest to the snapshot, whichever digest plans the job. Applies the
    /// host's own rules too. Calls take neither permits nor fuel from live jobs.
    pub async fn answer(&self, snapshot: &Snapshot, digest: &str) -> Answer {
        let mut snapshot = snapshot.clone();
        digest.clone_into(&mut snapshot.digest);
        self.beside().ask(&mut snapshot, |_| Err(NoPorts::NoneFree)).await.answer
    }
}

//! The same plugins, asked where nothing that lives notices: by other hosts, by replays, about candidates.

use super::{Compiled, Compiler, Loaded, Memo, Plugins, REMEMBERED};
use decide::{Snapshot, plan::Answer, ports::NoPorts};
use std::sync::{Arc, Mutex, RwLock};

impl Plugins {
    /// The same plugins with a memory of their own; nothing is compiled again.
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

    /// The same plugins; whoever forks them compiles each component once.
    #[must_use]
    pub fn compiled_once(self) -> Self {
        Self { compiler: Compiler::Once(Compiled::default()), ..self }
    }

    /// The same plugins with memory, breakers and fuel of their own, called where no live job waits: what is tried there
    /// nobody notices here.
    pub fn apart(&self) -> Self {
        Self { seat: self.seat.beside(), ..self.fork() }
    }

    /// The same plugins with the same memory, called where no live job waits, from fuel of their own.
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

    /// Everything that this digest says of the snapshot, and the host's own rules with it, whoever else plans the job. No
    /// live job waits for the calls.
    pub async fn answer(&self, snapshot: &Snapshot, digest: &str) -> Answer {
        let mut snapshot = snapshot.clone();
        digest.clone_into(&mut snapshot.digest);
        self.beside().ask(&mut snapshot, |_| Err(NoPorts::NoneFree)).await.answer
    }
}

//! Plugins by registry: what is pulled from one that misbehaves, and from a real one.

mod command;
mod credentials;
mod misbehaving;
mod real;
mod redirects;
mod server;
mod signatures;
mod stock;
mod tls;

use registry::{PullError, PullOptions, Pulled, Reference, RegistryError};
use std::time::Duration;

/// By plain HTTP, as it is spoken on this machine, and not for long.
fn options() -> PullOptions {
    PullOptions { insecure: true, patience: Duration::from_secs(10), ..PullOptions::default() }
}

/// In a task of its own, as the host does.
async fn pull_with(reference: &str, options: &PullOptions) -> Result<Pulled, PullError> {
    let (reference, options) = (Reference::parse(reference).unwrap(), options.clone());
    tokio::spawn(async move { registry::pull(&reference, &options).await }).await.unwrap()
}

/// What the registry did wrong.
async fn failure(reference: &str, options: &PullOptions) -> RegistryError {
    match pull_with(reference, options).await.unwrap_err() {
        PullError::Registry { source, .. } => source,
        other => panic!("{}", told(&other)),
    }
}

/// An error with its causes, as a person reads it.
fn told(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

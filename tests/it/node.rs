//! The built binary, a real kubelet, and the frameworks that Debian and PyPI publish: what a plugin says must be what they
//! can work with.

mod cron;
mod install;
mod job;
mod kubeflow;
mod mpi;
mod paddle;
mod rhino;
mod sdk;
mod waits;
mod world;

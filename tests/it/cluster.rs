//! The built binary against a real control plane with fake nodes.
//!
//! Every test has a namespace and an operator of its own; they share one control plane, where what a pod does is said by
//! its annotations (kwok), or by the test itself if nobody schedules it.

mod admin;
mod adoption;
mod budget;
mod burst;
mod chart;
mod check;
mod coscheduling;
mod crash;
mod crds;
pub(crate) mod deploy;
pub(crate) mod documented;
mod every_kind;
mod explain;
pub(crate) mod gang;
mod hosts;
pub(crate) mod jobs;
mod kueue;
mod mistakes;
mod mpi;
pub(crate) mod objects;
mod odd;
mod paddle;
pub(crate) mod played;
mod plugins;
mod preflight;
mod quotas;
mod releases;
mod requests;
mod resilience;
mod restarts;
mod rhino;
mod rights;
mod sequences;
mod suspension;
mod together;
pub(crate) mod top;
mod turns;
mod volcano;
pub(crate) mod world;

//! All integration tests are one binary, so that the workspace links once. A new test goes into the module of what it
//! runs on: scenarios for decisions, campaign and budget for the simulator, cluster and node for the real thing.

mod budget;
mod campaign;
mod cluster;
mod crds;
mod hostile;
mod node;
mod operator;
mod rbac;
mod scenarios;
mod tidy;

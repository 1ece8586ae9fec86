//! A real Kubernetes control plane, with fake nodes or a real one, for tests that must not believe a simulator.
//!
//! # How to run
//!
//! ```text
//! cargo test -p tests                                    # what this machine can do; the rest says why it was left out
//! TROUPE_REQUIRE=cluster,node cargo test -p tests        # as in CI: what cannot run fails
//! TROUPE_REQUIRE=frameworks cargo test -p tests node::   # real frameworks as well
//! TROUPE_REQUIRE=ecosystem cargo test -p tests -- kueue volcano coscheduling # the real ones
//! TROUPE_REQUIRE=resilience cargo test -p tests resilience   # ten minutes of trouble
//! TROUPE_REQUIRE=author cargo test -p tests author::     # a new plugin's crate, from nothing into a cluster
//! TROUPE_REQUIRE=releases cargo test -p tests releases       # older releases of Kubernetes
//! TROUPE_REQUIRE=languages cargo test -p tests languages::   # the same plugin in Rust, C, Go, JavaScript and Python
//! TROUPE_REQUIRE=book cargo test -p tests book::walk           # the commands of README and the book
//! TROUPE_REQUIRE=page cargo test -p tests page::         # the page of the host in Chromium
//! TROUPE_REQUIRE=image cargo test -p tests install       # the image as it is released
//! TROUPE_REQUIRE=machine cargo test -p tests machine::   # both commands of README on a machine that has nothing of ours
//! ```
//!
//! - The control plane (`cluster`) needs Go and openssl, but no root and no container runtime.
//!   The first build takes some minutes of Go compilation; the binaries are then kept in the user's caches, or under
//!   `target/cluster/bin` for a user without a home.
//! - The node (`node`) needs root on a Debian-like machine: the packages it lacks (containerd and friends) are installed by apt,
//!   and what programs on this machine need of PyPI by pip, into `target/tools`.
//! - The frameworks (`frameworks`) need what a node does, and download a gigabyte of Debian's and PyPI's packages the first time:
//!   they are left out unless `TROUPE_REQUIRE` names them. Their images are kept under `target/cluster/images`.
//! - The ecosystem (`ecosystem`) needs what a control plane does; the first builds of Kueue, Volcano and scheduler-plugins take up to
//!   ten minutes each: it is left out unless `TROUPE_REQUIRE` names it.
//! - The resilience test (`resilience`) needs what a control plane does, and takes ten minutes: it is left out unless `TROUPE_REQUIRE` names it.
//! - The author's test (`author`) needs what a control plane does, and builds a new plugin's crate with all that it depends on:
//!   it is left out unless `TROUPE_REQUIRE` names it.
//! - The tests on older releases of Kubernetes (`releases`) need what a control plane does, and five minutes to build each: they are left out
//!   unless `TROUPE_REQUIRE` names them.
//! - The test of languages (`languages`) needs what a control plane does, npm and Python, builds a new plugin's crate, and
//!   installs what makes components of C by apt, of JavaScript by npm and of Python by pip: it is left out unless
//!   `TROUPE_REQUIRE` names it.
//! - The page's test (`page`) needs Debian's Chromium, which is installed by apt as root where it is missing, and writes pictures
//!   to `target/page`: it is left out unless `TROUPE_REQUIRE` names it.
//! - The released image (`image`) needs what a node does, and a release build of ten minutes: it is left out unless `TROUPE_REQUIRE` names it.
//!
//! Everything a run writes is under `target/cluster/run/<unique>`: configurations, data, the audit log, and one log file a process.
//! The folder is removed when the run ends; it stays, and its path is printed, when the test panics or `TROUPE_KEEP=1`.
//!
//! # What a test looks like
//!
//! ```no_run
//! use harness::{ControlPlane, Options};
//!
//! # async fn test() -> anyhow::Result<()> {
//! // Above the test: #[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
//! let control_plane = ControlPlane::start(Options::default().fake_nodes(2)).await?;
//! let client = control_plane.client("user").await?;
//! # drop(client);
//! # Ok(())
//! # }
//! ```
//!
//! # Good to know
//!
//! - API time stamps have whole seconds; for anything finer use the [`audit`] log, which has microseconds.
//! - The garbage collector notices kinds that were created after it started only every 30 s:
//!   give CRDs to [`Options::crds`], and they are there before it.
//! - Processes of a test that was killed are ended by their guards (see `process.rs`); what they left on disk or in the network
//!   is removed by the next run.

pub mod audit;
pub mod binaries;
mod cargo_component;
mod certificate;
mod chromium;
mod command_line;
mod control_plane;
mod coscheduling;
mod credentials;
pub mod images;
mod kueue;
mod kwok;
mod manifests;
mod new_machine;
mod node;
mod options;
mod overload;
mod packages;
mod poll;
mod ports;
mod process;
mod published;
mod python;
mod registry;
pub mod release;
#[expect(dead_code, reason = "the build script uses the rest")]
mod require;
mod run_dir;
pub mod set_up;
mod slowest;
mod training_operator;
mod volcano;

pub use binaries::{Binaries, Release, Tool};
pub use cargo_component::cargo_component;
pub use certificate::{certificate, tls};
pub use chromium::Chromium;
pub use command_line::CommandLine;
pub use control_plane::{ControlPlane, Part};
pub use coscheduling::Coscheduling;
pub use kueue::{Integrations, Kueue};
pub use kwok::{EXIT_CODE, RUN_FOR};
pub use new_machine::{NewMachine, Ran};
pub use node::Node;
pub use options::Options;
pub use overload::Overload;
pub use poll::until;
pub use python::Python;
pub use registry::{Guests, Registry, USER};
pub use training_operator::TrainingOperator;
pub use volcano::Volcano;

/// Makes sure that this machine has what builds plugins of C and installs the tools of Python.
///
/// # Errors
/// A package of Debian is missing.
pub fn languages() -> anyhow::Result<()> {
    packages::have(packages::C_PLUGINS)?;
    packages::have(packages::VENV)
}

/// What cargo does before the first of this package's own tests.
#[cfg(test)]
#[ctor::ctor(unsafe)]
fn set_up_of_these_tests() {
    set_up::before_the_tests("harness");
}

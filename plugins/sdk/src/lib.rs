//! The SDK for plugin authors: the [`Framework`] trait, the [`export!`] macro, typed views of the job and of the
//! host's observation, and edits of pod templates.
//!
//! ```text
//! struct Echo;
//! impl troupe_plugin::Framework for Echo { /* describe, plan, bind, judge */ }
//! troupe_plugin::export!(Echo);
//! ```
//!
//! `wit/framework.wit` is the contract and explains every field.
//!
//! The feature `arena` replaces the allocator of the component by one that never frees memory. An instance lives for one
//! pass, so that what is freed is seldom used again, and an allocation costs a few instructions. Without the feature a
//! plugin has the allocator of the standard library, which is right for one that builds and drops large values: the
//! host limits the memory of an instance.
//!
//! The feature `schema` adds the module `crd`, which makes the CRD of a kind from the types of its spec and status. It is
//! for native builds only.

#[doc(hidden)]
#[path = "bindings.rs"]
#[rustfmt::skip]
pub mod __bindings;
mod added;
#[cfg(all(feature = "arena", target_family = "wasm"))]
mod arena;
pub mod conditions;
#[cfg(all(feature = "schema", not(target_family = "wasm")))]
pub mod crd;
mod fields;
mod gang;
mod gate;
mod indexes;
mod job;
mod observed;
#[cfg(all(feature = "crd", not(target_family = "wasm")))]
pub mod original;
mod place;
mod pod;
pub mod testkit;
mod text;
mod time;

#[doc(hidden)]
pub use __bindings::__export_troupe_plugin;
#[doc(hidden)]
pub use __bindings::exports::troupe::framework::framework::Guest as __Guest;
pub use __bindings::troupe::framework::types;
pub use added::{GivenResources, InitContainer, Resources};
pub use fields::{Mistakes, Name, Number, Word, is_amount};
pub use gang::warn_of_gang;
pub use gate::{field_is, pods_are};
pub use indexes::{Indexes, NotIndexes};
pub use job::{Job, invalid, unsupported};
pub use observed::{ChildExt, DISRUPTION_TARGET, ObservationExt, PodExt, ends_for_good};
pub use pod::{Container, PodTemplate, UserTemplate};
pub use text::{dns_label_problem, index, job_name, json_text, pod_name, text};
pub use time::{parse_rfc3339, rfc3339};

use types::{
    Backing, Bindings, Deletion, Descriptor, JobPlan, Observation, OnNewAddress, Outcome, Outlook, Piece, Refusal,
    Role, Success, Template, Verdict,
};

/// The maximum number of replicas of a job. The host refuses a plan with more; a plugin should refuse the job first and
/// name the field that is too large.
pub const MAX_REPLICAS: u32 = 10_000;

/// A framework: how its jobs become pods and objects, and when its jobs are finished.
///
/// Every function is pure: the same arguments give the same answer on every machine and at any time.
pub trait Framework {
    /// The type of the job's `spec`.
    type Spec: serde::de::DeserializeOwned;
    /// The type of the cluster operator's settings for this plugin.
    type Config: serde::de::DeserializeOwned;

    /// Returns the facts that hold for every job of the framework.
    fn describe() -> Descriptor;

    /// Returns the roles, objects, secrets and policy that the job needs.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] with each field of the job that is wrong.
    fn plan(job: &Job<Self::Spec, Self::Config>) -> Result<JobPlan, Refusal>;

    /// Returns the bodies of the `bound` objects whose keys are in `wanted`. The host does not change an object whose
    /// body is left out.
    ///
    /// # Errors
    /// As for [`Framework::plan`].
    fn bind(job: &Job<Self::Spec, Self::Config>, seen: &Observation, wanted: &[String]) -> Result<Bindings, Refusal>;

    /// Returns the job's whole status and whether the job is finished.
    ///
    /// # Errors
    /// As for [`Framework::plan`].
    fn judge(job: &Job<Self::Spec, Self::Config>, seen: &Observation, outlook: &Outlook) -> Result<Verdict, Refusal>;
}

impl Role {
    /// Returns a role whose pods the host makes at once, each of which has done its work when it succeeds and stays as it is
    /// when it fails.
    #[must_use]
    pub fn new(name: impl Into<String>, replicas: u32, pod_name: Vec<Piece>, template: Template) -> Self {
        Self {
            name: name.into(),
            replicas,
            backing: Backing::Pods,
            pod_name,
            hostname: None,
            subdomain: None,
            template,
            env: vec![],
            labels: vec![],
            fill: vec![],
            success: Success::Final,
            failures: vec![],
            deletion: Deletion::Uncounted,
            at_once: None,
            failures_per_replica: None,
            left_out: vec![],
            on_new_address: OnNewAddress::Keep,
            after: vec![],
        }
    }
}

impl Verdict {
    /// Returns a verdict without events: the plan's policy says which pods are removed, and the job is judged again when
    /// something changes.
    #[must_use]
    pub fn new(status: String, headline: impl Into<String>, outcome: Outcome) -> Self {
        Self { status, headline: headline.into(), outcome, clean: None, wake_at: None, events: vec![] }
    }
}

/// Exports a type that implements [`Framework`] as the plugin of this component.
///
/// Expands to nothing in a native build, where the exported names would collide with those of another plugin.
#[macro_export]
macro_rules! export {
    ($framework:ty) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            struct Exported;
            type Parsed =
                $crate::Job<<$framework as $crate::Framework>::Spec, <$framework as $crate::Framework>::Config>;
            ::std::thread_local! {
                /// The arguments of `bind`, kept for `judge`.
                static SHOWN: ::std::cell::RefCell<Option<(Parsed, $crate::types::Observation)>> =
                    const { ::std::cell::RefCell::new(None) };
            }
            impl $crate::__Guest for Exported {
                fn describe() -> $crate::types::Descriptor {
                    <$framework as $crate::Framework>::describe()
                }
                fn plan(job: $crate::types::JobView) -> Result<$crate::types::JobPlan, $crate::types::Refusal> {
                    <$framework as $crate::Framework>::plan(&$crate::Job::parse(job)?)
                }
                fn bind(
                    job: $crate::types::JobView,
                    seen: $crate::types::Observation,
                    wanted: Vec<String>,
                ) -> Result<$crate::types::Bindings, $crate::types::Refusal> {
                    let job = $crate::Job::parse(job)?;
                    let bindings = <$framework as $crate::Framework>::bind(&job, &seen, &wanted);
                    SHOWN.set(Some((job, seen)));
                    bindings
                }
                fn judge(outlook: $crate::types::Outlook) -> Result<$crate::types::Verdict, $crate::types::Refusal> {
                    SHOWN.with_borrow(|shown| match shown {
                        Some((job, seen)) => <$framework as $crate::Framework>::judge(job, seen, &outlook),
                        None => Err($crate::types::Refusal::Internal("judge was called before bind".to_owned())),
                    })
                }
            }
    $crate::__export_troupe_plugin!(Exported with_types_in $crate::__bindings);
        };
    };
}

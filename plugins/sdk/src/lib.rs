//! What a plugin author needs: the [`Framework`] trait, the [`export!`] macro, typed views of what the host shows,
//! and editing of pod templates.
//!
//! ```text
//! struct Echo;
//! impl troupe_plugin::Framework for Echo { /* describe, plan, bind, judge */ }
//! troupe_plugin::export!(Echo);
//! ```
//!
//! The contract itself, with every field explained, is `wit/framework.wit`.

#[doc(hidden)]
#[path = "bindings.rs"]
pub mod __bindings;
#[cfg(target_family = "wasm")]
mod arena;
#[cfg(all(feature = "crd", not(target_family = "wasm")))]
pub mod crd;
mod gate;
mod job;
mod observed;
#[cfg(all(feature = "crd", not(target_family = "wasm")))]
pub mod original;
mod place;
mod pod;
pub mod quantity;
pub mod testkit;
mod text;
mod time;

#[doc(hidden)]
pub use __bindings::__export_troupe_plugin;
#[doc(hidden)]
pub use __bindings::exports::troupe::framework::framework::Guest as __Guest;
pub use __bindings::troupe::framework::types;
pub use gate::{field_is, pods_are};
pub use job::{Job, invalid, unsupported};
pub use observed::{ChildExt, ObservationExt, PodExt};
pub use pod::{Container, PodTemplate, UserTemplate};
pub use text::{index, job_name, json_text, pod_name, text};
pub use time::{parse_rfc3339, rfc3339};

use types::{Bindings, Descriptor, JobPlan, Observation, Outlook, Refusal, Verdict};

/// The host refuses jobs of more replicas: tell the user by the field that is too large.
pub const MOST_REPLICAS: u32 = 10_000;

/// A framework: how its jobs become pods and objects, and when they are done.
///
/// Every function is pure: the same arguments give the same answer, on whatever machine and at whatever time.
pub trait Framework {
    /// The job's `spec` as this framework reads it.
    type Spec: serde::de::DeserializeOwned;
    /// The cluster operator's settings for this plugin.
    type Config: serde::de::DeserializeOwned;

    /// Facts that hold for every job.
    fn describe() -> Descriptor;

    /// What should exist for the job.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] names the fields of the job that are wrong.
    fn plan(job: &Job<Self::Spec, Self::Config>) -> Result<JobPlan, Refusal>;

    /// The bodies of the `bound` objects named in `wanted`. One that is left out stays as it is.
    ///
    /// # Errors
    /// As for [`Framework::plan`].
    fn bind(job: &Job<Self::Spec, Self::Config>, seen: &Observation, wanted: &[String]) -> Result<Bindings, Refusal>;

    /// The job's whole status and whether it is over.
    ///
    /// # Errors
    /// As for [`Framework::plan`].
    fn judge(job: &Job<Self::Spec, Self::Config>, seen: &Observation, outlook: &Outlook) -> Result<Verdict, Refusal>;
}

/// Makes a type that implements [`Framework`] this component's plugin.
///
/// Expands to nothing in a native build, where the exported names would clash with another plugin's.
#[macro_export]
macro_rules! export {
    ($framework:ty) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            struct Exported;
            type Parsed =
                $crate::Job<<$framework as $crate::Framework>::Spec, <$framework as $crate::Framework>::Config>;
            ::std::thread_local! {
                /// What `bind` was shown, for `judge`.
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

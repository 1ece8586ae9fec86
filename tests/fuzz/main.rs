//! libFuzzer on the fuzz target that `TROUPE_FUZZ` names.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::{env, sync::LazyLock};
use troupe::fuzz::{TARGETS, Target};

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let wanted = env::var("TROUPE_FUZZ").unwrap_or_default();
    let names = TARGETS.map(|target| target.name).join(", ");
    let target = TARGETS.into_iter().find(|target| target.name == wanted);
    target.unwrap_or_else(|| panic!("TROUPE_FUZZ={wanted} names none of {names}"))
});

fuzz_target!(|bytes: &[u8]| (TARGET.run)(bytes));

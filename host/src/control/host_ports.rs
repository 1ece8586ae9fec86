//! Host ports, in blocks. A block belongs to one job while the job wants replicas or has live ones.
//!
//! The block stands in the job's ledger, so that it survives a restart of the host. But everybody who may write the
//! job's status may change the ledger, so the source of truth is `Blocks`: the blocks that this host has given or
//! accepted. A ledger that differs is corrected. Ledgers are believed once, when their kind is listed for the first
//! time: first the ledgers of jobs whose pods run on the claimed ports, then the others by age, within the range and
//! the quota of the namespace. A job whose claim is refused has no pods on these ports and is given others. A job whose
//! plan asks for no ports, or for another number, loses its claim in its first pass.

mod allocator;
mod blocks;
mod free;

pub(crate) use allocator::PortAllocator;
use blocks::{Blocks, Claim};
use std::ops::RangeInclusive;

/// The default range of host ports.
pub const USUAL: RangeInclusive<u32> = 35_000..=65_000;

/// Divisor of the size of the range: the result is the default quota of a namespace.
const PART: u32 = 4;

/// Lower bound of the default quota of a namespace: the most ports that one job may ask for.
const LEAST: u32 = 1000;

/// The host ports that jobs may hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The range.
    pub range: RangeInclusive<u32>,
    /// The quota: how many ports the jobs of one namespace may hold at once.
    pub per_namespace: u32,
}

impl Limits {
    /// Returns limits with this range and this quota, or with the default quota.
    #[must_use]
    pub fn new(range: RangeInclusive<u32>, per_namespace: Option<u32>) -> Self {
        let all = range.end().saturating_sub(*range.start()) + 1;
        Self { per_namespace: per_namespace.unwrap_or((all / PART).max(LEAST)), range }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::new(USUAL, None)
    }
}

/// The text is no range of ports.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no range of ports such as 35000-65000")]
pub struct InvalidRange(String);

/// Parses a range of ports on the command line: `35000-65000` or `35000,65000`.
///
/// # Errors
/// If the text is no such range.
pub fn parse(text: &str) -> Result<RangeInclusive<u32>, InvalidRange> {
    let wrong = || InvalidRange(text.to_owned());
    let (first, last) = text.split_once(['-', ',']).ok_or_else(wrong)?;
    let port = |text: &str| text.trim().parse::<u16>().map_err(|_| wrong());
    let (first, last) = (u32::from(port(first)?), u32::from(port(last)?));
    if first == 0 || first > last { Err(wrong()) } else { Ok(first..=last) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_may_have_a_quarter_of_the_ports_and_as_many_as_a_job_may_ask_for() {
        let most = [USUAL, 100..=199, 1..=6000].map(|range| Limits::new(range, None).per_namespace);
        assert_eq!(most, [7500, 1000, 1500]);
    }

    #[test]
    fn a_range_is_read_as_the_original_writes_it_too() {
        assert_eq!(parse("35000,65000"), Ok(35_000..=65_000));
        assert_eq!(parse("1-2"), Ok(1..=2));
        for wrong in ["", "7", "9-8", "0-5", "1-70000", "a-b"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}

//! Ports of the nodes, in blocks that belong to one job while replicas of it exist or are wanted: which may be given.
//!
//! What a job was given stands in its ledger, so that it outlives the host, and a ledger is a word of whoever may write the
//! job's status. So the truth is `Blocks`, what this host gave and believed; a ledger that says otherwise is put right.
//! Ledgers are believed once, when their kind is listed for the first time: first those of jobs whose pods run on the ports
//! that they claim, then the older ones within the range and the namespace's quota. A job that loses a claim has no pods on
//! these ports and is given others; one whose plan asks for none, or for another number, gives up its claim in its first pass.

mod blocks;
mod free;

pub(crate) use blocks::{Blocks, Claim};
use std::ops::RangeInclusive;

/// The ports that are given out unless the operator says otherwise.
pub const USUAL: RangeInclusive<u32> = 35_000..=65_000;

/// The jobs of a namespace may have this part of the ports unless the operator says otherwise,
const PART: u32 = 4;

/// but never fewer than one job may ask for.
const LEAST: u32 = 1000;

/// Which ports may be given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// These.
    pub range: RangeInclusive<u32>,
    /// So many to the jobs of one namespace at once.
    pub per_namespace: u32,
}

impl Limits {
    /// These ports, and so many or the usual part of them to one namespace.
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

/// A range as it stands on the command line: `35000-65000` or `35000,65000`.
///
/// # Errors
/// What is wrong with it, in words.
pub fn parse(text: &str) -> Result<RangeInclusive<u32>, String> {
    let wrong = || format!("{text:?} is no range of ports such as 35000-65000");
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

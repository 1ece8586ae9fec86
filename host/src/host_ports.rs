//! Ports of the nodes, in blocks that belong to one job while it lives. What is given is kept in the jobs' ledgers; this
//! finds a block that is free.

use decide::ledger::HostPorts;
use std::ops::RangeInclusive;

/// The ports that are given out unless the operator says otherwise.
pub const USUAL: RangeInclusive<u32> = 35_000..=65_000;

/// The lowest block of so many ports in the range that overlaps none of those that are held.
pub(crate) fn free(range: &RangeInclusive<u32>, count: u32, mut held: Vec<HostPorts>) -> Option<HostPorts> {
    held.sort_by_key(|block| block.first);
    let mut first = *range.start();
    for block in held {
        if block.first >= first.saturating_add(count) {
            break;
        }
        first = first.max(block.first.saturating_add(block.count));
    }
    let last = first.checked_add(count)?.checked_sub(1)?;
    (last <= *range.end()).then_some(HostPorts { first, count })
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

    fn block(first: u32, count: u32) -> HostPorts {
        HostPorts { first, count }
    }

    #[test]
    fn the_lowest_block_that_is_nobodys_is_taken() {
        let range = 100..=199;
        assert_eq!(free(&range, 20, vec![]), Some(block(100, 20)));
        assert_eq!(free(&range, 20, vec![block(120, 20), block(100, 20)]), Some(block(140, 20)));
        assert_eq!(free(&range, 20, vec![block(100, 20), block(140, 20)]), Some(block(120, 20)));
        assert_eq!(free(&range, 20, vec![block(110, 20)]), Some(block(130, 20)));
        assert_eq!(free(&range, 20, vec![block(50, 60), block(100, 75)]), Some(block(175, 20)));
        assert_eq!(free(&range, 30, vec![block(100, 75)]), None);
        assert_eq!(free(&range, 101, vec![]), None);
        assert_eq!(free(&range, u32::MAX, vec![]), None);
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

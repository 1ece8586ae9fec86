//! Facts about this process, under the names of Prometheus' own client libraries. None where there is no `/proc`.

use super::{page::Page, table};
use procfs::{ProcResult, process::Process};

/// Adds what can be read of this process.
pub(super) fn add_to(page: &mut Page) {
    let Ok(me) = Process::myself() else { return };
    // A part that cannot be read is left out, not shown as zero.
    let _left_out = add_stat(page, &me);
    if let Ok(count) = me.fd_count() {
        page.gauge(&table::OPEN_FDS, count);
    }
    if let Ok(limits) = me.limits()
        && let procfs::process::LimitValue::Value(most) = limits.max_open_files.soft_limit
    {
        page.gauge(&table::MAX_FDS, most);
    }
}

#[expect(clippy::cast_precision_loss, reason = "ticks and seconds of a process are far below 2^52")]
fn add_stat(page: &mut Page, me: &Process) -> ProcResult<()> {
    let stat = me.stat()?;
    let ticks = procfs::ticks_per_second() as f64;
    page.count(&table::CPU, (stat.utime + stat.stime) as f64 / ticks);
    page.gauge(&table::MEMORY, stat.rss * procfs::page_size());
    page.gauge(&table::VIRTUAL_MEMORY, stat.vsize);
    page.real(&table::START, procfs::boot_time_secs()? as f64 + stat.starttime as f64 / ticks);
    Ok(())
}

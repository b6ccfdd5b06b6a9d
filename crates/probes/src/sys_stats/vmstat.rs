//! `SysStats.vmstat`: `/proc/vmstat`, most of it in pages.

use esatto_schema::{SysStatsConfigReader, SysStatsWriter, VmstatCounters};

use super::counter_lines::CounterLines;
use super::counter_names::VMSTAT;
use super::wanted::Wanted;

/// Makes the reader of the counters that the config wants.
pub(super) fn counters(config: &SysStatsConfigReader<'_>) -> CounterLines {
    let wanted: Wanted = config.vmstat_counters().map(|counter| counter.0).collect();
    CounterLines::new(&VMSTAT, |counter| wanted.contains(counter))
}

pub(super) fn write(counters: &mut CounterLines, text: &[u8], stats: &mut SysStatsWriter<'_>) {
    counters.read(text, |counter, value| {
        stats.vmstat().key(VmstatCounters(counter.into())).value(value);
    });
}

//! `SysStats.meminfo`: `/proc/meminfo`, in KiB.

use esatto_schema::{MeminfoCounters, SysStatsConfigReader, SysStatsWriter};

use super::counter_lines::CounterLines;
use super::counter_names::MEMINFO;
use super::wanted::Wanted;

/// Makes the reader of the counters that the config wants.
pub(super) fn counters(config: &SysStatsConfigReader<'_>) -> CounterLines {
    let wanted: Wanted = config.meminfo_counters().map(|counter| counter.0).collect();
    CounterLines::new(&MEMINFO, |counter| wanted.contains(counter))
}

pub(super) fn write(counters: &mut CounterLines, text: &[u8], stats: &mut SysStatsWriter<'_>) {
    counters.read(text, |counter, value| {
        stats.meminfo().key(MeminfoCounters(counter.into())).value(value);
    });
}

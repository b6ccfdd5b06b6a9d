//! [`SysStats`], the data source `linux.sys_stats`: counters of the whole system
//! (`docs/spec/probes.md` §14).
//!
//! Each group of counters has a file, which says where its counters come from, and a period. All
//! groups that are due in a tick are read one after the other, and then written into one packet.

mod buddyinfo;
mod counter_lines;
mod counter_names;
mod cpufreq;
mod cpuidle;
mod devfreq;
mod diskstats;
mod fuzz;
mod gpufreq;
mod group;
mod meminfo;
mod psi;
mod slabinfo;
mod stat;
#[cfg(test)]
mod tests;
mod thermal;
mod vmstat;
mod wanted;

use core::fmt;
use core::time::Duration;
use std::path::Path;

use esatto::producer::TraceWriter;
use esatto_schema::sys_stats::psi_sample::PsiResource;
use esatto_schema::{DataSourceDescriptor, SysStatsConfigReader, SysStatsWriter, TracePacketWriter};

pub use self::fuzz::fuzz;
use self::group::{Both, FileGroup, Group};
use crate::clocks::boottime_ns;
use crate::data_source::{Instance, Monotonic, SetupError};
use crate::instances::Source;
use crate::metatrace;
use crate::polled_file::PolledFile;
use crate::ticks::Ticks;

/// Shortest period of a group. Shorter ones become this one.
const MIN_PERIOD_MS: u32 = 10;

/// The data source `linux.sys_stats`: counters of the whole system.
#[derive(Debug)]
pub(crate) struct SysStats {
    groups: Vec<ScheduledGroup>,
}

/// A group of counters and its period.
struct ScheduledGroup {
    /// Name of its reads in the records of the probes' own activity.
    activity: &'static str,
    period: Duration,
    /// Set by the start.
    ticks: Option<Ticks>,
    /// True if this tick has read something to write.
    is_read: bool,
    group: Box<dyn Group + Send>,
}

impl SysStats {
    /// Makes an instance that reads below the folders `proc` and `sys`.
    pub(crate) fn new(config: &SysStatsConfigReader<'_>, proc: &Path, sys: &Path) -> Self {
        let mut groups = Vec::new();
        let mut add = |activity: &'static str, period_ms: Option<u32>, make: &dyn Fn() -> Box<dyn Group + Send>| {
            let Some(period_ms) = period_ms.filter(|&period_ms| period_ms > 0) else { return };
            let period = Duration::from_millis(period_ms.max(MIN_PERIOD_MS).into());
            groups.push(ScheduledGroup { activity, period, ticks: None, is_read: false, group: make() });
        };
        add("sys_stats meminfo", config.meminfo_period_ms(), &|| {
            let mut counters = meminfo::counters(config);
            file(proc, "meminfo", "meminfo", move |text, stats| meminfo::write(&mut counters, text, stats))
        });
        add("sys_stats vmstat", config.vmstat_period_ms(), &|| {
            let mut counters = vmstat::counters(config);
            file(proc, "vmstat", "vmstat", move |text, stats| vmstat::write(&mut counters, text, stats))
        });
        add("sys_stats stat", config.stat_period_ms(), &|| {
            let writer = stat::StatWriter::new(config);
            file(proc, "stat", "cpu_stat, num_forks, num_irq, num_softirq", move |text, stats| {
                writer.write(text, stats);
            })
        });
        add("sys_stats devfreq", config.devfreq_period_ms(), &|| Box::new(devfreq::DeviceFrequencies::new(sys)));
        add("sys_stats cpufreq", config.cpufreq_period_ms(), &|| Box::new(cpufreq::CpuFrequencies::new(sys)));
        add("sys_stats buddyinfo", config.buddyinfo_period_ms(), &|| {
            file(proc, "buddyinfo", "buddy_info", buddyinfo::write)
        });
        add("sys_stats diskstat", config.diskstat_period_ms(), &|| {
            file(proc, "diskstats", "disk_stat", diskstats::write)
        });
        add("sys_stats psi", config.psi_period_ms(), &|| pressure(proc));
        add("sys_stats thermal", config.thermal_period_ms(), &|| Box::new(thermal::Temperatures::new(sys)));
        add("sys_stats cpuidle", config.cpuidle_period_ms(), &|| Box::new(cpuidle::IdleStates::new(sys)));
        add("sys_stats gpufreq", config.gpufreq_period_ms(), &|| Box::new(gpufreq::GpuFrequency::new(sys)));
        add("sys_stats slab", config.slab_period_ms(), &|| file(proc, "slabinfo", "slab_info", slabinfo::write));
        Self { groups }
    }
}

/// Makes a group of the file `name` of `/proc`. `fields` are the fields of the trace that it fills.
fn file(
    proc: &Path,
    name: &str,
    fields: &'static str,
    writer: impl FnMut(&[u8], &mut SysStatsWriter<'_>) + Send + 'static,
) -> Box<dyn Group + Send> {
    Box::new(FileGroup::new(PolledFile::new(proc.join(name), fields), writer))
}

/// Makes the group of the files in `/proc/pressure`.
fn pressure(proc: &Path) -> Box<dyn Group + Send> {
    let file = |name, some, full| {
        let file = PolledFile::new(proc.join("pressure").join(name), "psi of this resource");
        FileGroup::new(file, move |text: &[u8], stats: &mut SysStatsWriter<'_>| psi::write(text, some, full, stats))
    };
    let cpu = file("cpu", PsiResource::PSI_RESOURCE_CPU_SOME, PsiResource::PSI_RESOURCE_CPU_FULL);
    let io = file("io", PsiResource::PSI_RESOURCE_IO_SOME, PsiResource::PSI_RESOURCE_IO_FULL);
    let memory = file("memory", PsiResource::PSI_RESOURCE_MEMORY_SOME, PsiResource::PSI_RESOURCE_MEMORY_FULL);
    Box::new(Both(cpu, Both(io, memory)))
}

impl Source for SysStats {
    fn descriptor() -> DataSourceDescriptor {
        DataSourceDescriptor {
            name: Some("linux.sys_stats".into()),
            will_notify_on_start: Some(true),
            will_notify_on_stop: Some(true),
            ..DataSourceDescriptor::default()
        }
    }

    fn set_up(instance: &Instance) -> Result<Self, SetupError> {
        let config = instance.config().sys_stats_config().unwrap_or_default();
        Ok(Self::new(&config, Path::new("/proc"), Path::new("/sys")))
    }

    fn start(&mut self, now: Monotonic, _: &mut TraceWriter) {
        for group in &mut self.groups {
            group.ticks = Some(Ticks::starting(now, group.period));
        }
    }

    fn deadline(&self) -> Option<Monotonic> {
        self.groups.iter().filter_map(|group| Some(group.ticks.as_ref()?.deadline())).min()
    }

    fn tick(&mut self, now: Monotonic, writer: &mut TraceWriter) {
        let begin_ns = boottime_ns();
        let mut is_read = false;
        for group in &mut self.groups {
            let is_due = group.ticks.as_mut().is_some_and(|ticks| ticks.take(now));
            group.is_read = is_due && {
                let _reading = metatrace::scope(group.activity);
                group.group.read(now)
            };
            is_read |= group.is_read;
        }
        if !is_read {
            return;
        }
        let end_ns = boottime_ns();
        let mut packet = writer.new_packet();
        let mut packet: TracePacketWriter<'_> = packet.typed();
        packet.timestamp(begin_ns);
        let mut stats = packet.sys_stats();
        for group in self.groups.iter_mut().filter(|group| group.is_read) {
            group.group.write(&mut stats);
        }
        stats.collection_end_timestamp(end_ns);
    }
}

impl fmt::Debug for ScheduledGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScheduledGroup").field("period", &self.period).finish_non_exhaustive()
    }
}

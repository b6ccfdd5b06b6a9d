//! `SysStats.cpufreq_khz`: `/sys/devices/system/cpu/cpuN/cpufreq/scaling_cur_freq`.

use std::path::Path;

use esatto_schema::SysStatsWriter;

use super::group::Group;
use crate::data_source::Monotonic;
use crate::polled_file::PolledFile;
use crate::polled_folder::{PolledFolder, numbered};
use crate::words::number_of_file;

/// CPUs that are looked at: the most that Linux can be built for.
const MAX_CPUS: u32 = 8192;

/// Frequency of each CPU. A CPU is told by its position in the trace.
#[derive(Debug)]
pub(super) struct CpuFrequencies {
    folder: PolledFolder,
    /// One for each CPU from 0 on.
    files: Vec<PolledFile>,
    /// 0 for CPUs that are offline or have no file.
    values_khz: Vec<u32>,
}

impl CpuFrequencies {
    pub(super) fn new(sys: &Path) -> Self {
        let is_cpu = |name: &str| numbered(name, "cpu").is_some();
        let folder = PolledFolder::new(sys.join("devices/system/cpu"), is_cpu, "cpufreq_khz");
        Self { folder, files: Vec::new(), values_khz: Vec::new() }
    }
}

impl Group for CpuFrequencies {
    fn read(&mut self, now: Monotonic) -> bool {
        if self.folder.refresh(now) {
            let cpus = self.folder.names().iter().filter_map(|name| numbered(name, "cpu"));
            let count = cpus.max().map_or(0, |last| last.min(MAX_CPUS - 1) + 1);
            let file = |cpu| self.folder.path().join(format!("cpu{cpu}/cpufreq/scaling_cur_freq"));
            self.files = (0..count).map(|cpu| PolledFile::optional(file(cpu))).collect();
        }
        let mut buffer = [0; 64];
        self.values_khz.clear();
        self.values_khz.extend(self.files.iter_mut().map(|file| {
            let frequency = file.read_short(now, &mut buffer).and_then(number_of_file);
            frequency.map_or(0, |khz| u32::try_from(khz).unwrap_or(u32::MAX))
        }));
        // Virtual machines often have no frequency; a track of zeros would look like one.
        self.values_khz.iter().any(|&khz| khz != 0)
    }

    fn write(&mut self, stats: &mut SysStatsWriter<'_>) {
        for &khz in &self.values_khz {
            stats.cpufreq_khz(khz);
        }
    }
}

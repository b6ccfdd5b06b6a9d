//! Whole packets of the data source, from a machine in a temporary folder.

use core::time::Duration;

use esatto_protozero::Owned;
use esatto_schema::{
    MeminfoCounters, SysStatsConfig, SysStatsConfigReader, SysStatsReader, TracePacketReader, VmstatCounters,
};

use super::*;
use crate::test_folder::TestFolder;
use crate::test_writer::TestWriter;

const fn ms(ms: u64) -> Monotonic {
    Duration::from_millis(ms)
}

/// An instance of a machine that is a folder with `proc` and `sys`.
struct Machine {
    folder: TestFolder,
    test: TestWriter,
    writer: TraceWriter,
    seen: usize,
}

impl Machine {
    fn new() -> Self {
        let test = TestWriter::new();
        let writer = test.writer();
        Self { folder: TestFolder::new(), test, writer, seen: 0 }
    }

    fn start(&mut self, now: Monotonic, config: &SysStatsConfig) -> SysStats {
        let config = config.encode();
        let config = SysStatsConfigReader::new(&config);
        let mut source = SysStats::new(&config, &self.folder.path("proc"), &self.folder.path("sys"));
        source.start(now, &mut self.writer);
        source
    }

    /// Lets all ticks before `end` happen.
    fn run(&mut self, source: &mut SysStats, end: Monotonic) {
        while let Some(now) = source.deadline().filter(|&now| now < end) {
            source.tick(now, &mut self.writer);
        }
    }

    /// Returns the packets since the last call.
    fn packets(&mut self) -> Vec<Vec<u8>> {
        self.writer.flush();
        let packets = self.test.packets().split_off(self.seen);
        self.seen += packets.len();
        packets
    }

    /// Returns the packet of the first tick.
    fn record(&mut self, config: &SysStatsConfig) -> Vec<u8> {
        let mut source = self.start(ms(1234), config);
        self.run(&mut source, ms(1235));
        let packets = self.packets();
        assert_eq!(packets.len(), 1);
        packets.into_iter().next().expect("a packet")
    }
}

fn stats(packet: &[u8]) -> SysStatsReader<'_> {
    let packet = TracePacketReader::new(packet);
    let stats = packet.sys_stats().expect("sys_stats");
    let (begin, end) = (packet.timestamp().expect("a time"), stats.collection_end_timestamp().expect("a time"));
    assert!(0 < begin && begin <= end);
    stats
}

#[test]
fn wanted_counters_of_memory_are_recorded() {
    let mut machine = Machine::new();
    machine.folder.write("proc/meminfo", "MemTotal: 100 kB\nMemFree: 50 kB\nCached: 7 kB\n");
    machine.folder.write("proc/vmstat", "nr_free_pages 12\npgfault 13\n");
    let config = SysStatsConfig {
        meminfo_period_ms: Some(100),
        meminfo_counters: vec![MeminfoCounters::MEMINFO_CACHED, MeminfoCounters::MEMINFO_MEM_FREE],
        vmstat_period_ms: Some(100),
        ..SysStatsConfig::default()
    };
    let packet = machine.record(&config);
    let stats = stats(&packet);
    let meminfo: Vec<_> = stats.meminfo().map(|value| (value.key(), value.value())).collect();
    let (free, cached) = (MeminfoCounters::MEMINFO_MEM_FREE, MeminfoCounters::MEMINFO_CACHED);
    assert_eq!(meminfo, [(Some(free), Some(50)), (Some(cached), Some(7))]);
    let vmstat: Vec<_> = stats.vmstat().map(|value| (value.key(), value.value())).collect();
    let (free, faults) = (VmstatCounters::VMSTAT_NR_FREE_PAGES, VmstatCounters::VMSTAT_PGFAULT);
    assert_eq!(vmstat, [(Some(free), Some(12)), (Some(faults), Some(13))]);
}

#[test]
fn times_of_cpus_and_counts_of_interrupts_are_recorded() {
    let mut machine = Machine::new();
    let text = "cpu  9 9\ncpu1 1 2 3 4 5 6 7 8\nintr 30 0 10 20\nprocesses 77\nsoftirq 5 0 5\n";
    machine.folder.write("proc/stat", text);
    let packet = machine.record(&SysStatsConfig { stat_period_ms: Some(1000), ..SysStatsConfig::default() });
    let stats = stats(&packet);
    let cpu = stats.cpu_stat().next().expect("a CPU");
    let ns = 1_000_000_000 / rustix::param::clock_ticks_per_second();
    assert_eq!((cpu.cpu_id(), cpu.user_ns(), cpu.steal_ns()), (Some(1), Some(ns), Some(8 * ns)));
    assert_eq!((stats.num_irq_total(), stats.num_softirq_total(), stats.num_forks()), (Some(30), Some(5), Some(77)));
    let irqs: Vec<_> = stats.num_irq().map(|irq| (irq.irq(), irq.count())).collect();
    assert_eq!(irqs, [(Some(1), Some(10)), (Some(2), Some(20))], "without zeros");
    let softirqs: Vec<_> = stats.num_softirq().map(|irq| (irq.irq(), irq.count())).collect();
    assert_eq!(softirqs, [(Some(0), Some(0)), (Some(1), Some(5))], "with zeros");
}

#[test]
fn only_wanted_parts_of_stat_are_recorded() {
    let mut machine = Machine::new();
    machine.folder.write("proc/stat", "cpu0 1\nintr 30 10\nprocesses 77\nsoftirq 5 5\n");
    let config = SysStatsConfig {
        stat_period_ms: Some(1000),
        stat_counters: vec![esatto_schema::sys_stats_config::StatCounters::STAT_FORK_COUNT],
        ..SysStatsConfig::default()
    };
    let packet = machine.record(&config);
    let stats = stats(&packet);
    assert_eq!(stats.num_forks(), Some(77));
    assert_eq!((stats.num_irq_total(), stats.num_softirq_total(), stats.cpu_stat().count()), (None, None, 0));
}

#[test]
fn each_group_has_its_own_period() {
    let mut machine = Machine::new();
    machine.folder.write("proc/meminfo", "MemTotal: 100 kB\n");
    machine.folder.write("proc/vmstat", "pgfault 13\n");
    let config =
        SysStatsConfig { meminfo_period_ms: Some(30), vmstat_period_ms: Some(50), ..SysStatsConfig::default() };
    let mut source = machine.start(ms(1000), &config);
    machine.run(&mut source, ms(1151));
    let packets = machine.packets();
    let counts: Vec<_> =
        packets.iter().map(|packet| (stats(packet).meminfo().count(), stats(packet).vmstat().count())).collect();
    // 1000 is the start; then 1020 (30), 1050 (both), 1080 (30), 1100 (50), 1110, 1140 and 1150.
    assert_eq!(counts, [(1, 1), (1, 0), (1, 1), (1, 0), (0, 1), (1, 0), (1, 0), (0, 1)]);
}

#[test]
fn periods_below_10_ms_become_10_ms() {
    let mut machine = Machine::new();
    machine.folder.write("proc/meminfo", "MemTotal: 100 kB\n");
    let mut source =
        machine.start(ms(1000), &SysStatsConfig { meminfo_period_ms: Some(1), ..SysStatsConfig::default() });
    machine.run(&mut source, ms(1100));
    assert_eq!(machine.packets().len(), 10);
}

#[test]
fn a_config_without_periods_records_nothing() {
    let mut machine = Machine::new();
    let source = machine.start(ms(1000), &SysStatsConfig::default());
    assert_eq!(source.deadline(), None);
}

#[test]
fn an_unreadable_file_is_tried_again_and_the_others_go_on() {
    let mut machine = Machine::new();
    machine.folder.write("proc/vmstat", "pgfault 13\n");
    let config =
        SysStatsConfig { meminfo_period_ms: Some(1000), vmstat_period_ms: Some(5000), ..SysStatsConfig::default() };
    let mut source = machine.start(ms(0), &config);
    machine.run(&mut source, ms(1500));
    let packets = machine.packets();
    assert_eq!(packets.len(), 1, "no packet without counters");
    assert_eq!(stats(&packets[0]).vmstat().count(), 1);
    machine.folder.write("proc/meminfo", "MemTotal: 100 kB\n");
    machine.run(&mut source, ms(4500));
    let packets = machine.packets();
    assert!(packets.iter().any(|packet| stats(packet).meminfo().count() == 1));
}

#[test]
fn disks_zones_slabs_and_pressure_are_recorded() {
    let mut machine = Machine::new();
    let folder = &machine.folder;
    folder.write("proc/diskstats", "  8 0 sda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n");
    folder.write("proc/buddyinfo", "Node 0, zone   Normal   3 2 1 \n");
    folder.write("proc/slabinfo", "version\n# name\ndentry 1 2 192 21 4 : tunables 0 0 0 : slabdata 1 9 0\n");
    folder.write("proc/pressure/io", "some avg10=0.00 total=5\nfull avg10=0.00 total=4\n");
    folder.write("proc/pressure/memory", "some avg10=0.00 total=3\n");
    let packet = machine.record(&SysStatsConfig {
        diskstat_period_ms: Some(1000),
        buddyinfo_period_ms: Some(1000),
        slab_period_ms: Some(1000),
        psi_period_ms: Some(1000),
        ..SysStatsConfig::default()
    });
    let stats = stats(&packet);
    let disk = stats.disk_stat().next().expect("a disk");
    let found = (disk.device_name(), disk.read_sectors(), disk.write_time_ms(), disk.discard_sectors());
    assert_eq!(found, (Some(&b"sda"[..]), Some(3), Some(8), Some(14)));
    assert_eq!((disk.discard_time_ms(), disk.flush_count(), disk.flush_time_ms()), (Some(15), Some(16), Some(17)));
    let zone = stats.buddy_info().next().expect("a zone");
    assert_eq!((zone.node(), zone.zone()), (Some(&b"0"[..]), Some(&b"Normal"[..])));
    assert_eq!(zone.order_pages().collect::<Vec<_>>(), [3, 2, 1]);
    let slab = stats.slab_info().next().expect("a cache");
    assert_eq!((slab.name(), slab.pages_per_slab(), slab.num_slabs()), (Some(&b"dentry"[..]), Some(4), Some(9)));
    let psi: Vec<_> = stats.psi().map(|psi| (psi.resource().map(|it| it.0), psi.total_ns())).collect();
    assert_eq!(psi, [(Some(3), Some(5000)), (Some(4), Some(4000)), (Some(5), Some(3000))]);
}

#[test]
fn frequencies_are_in_the_order_of_the_cpus_with_0_for_offline_ones() {
    let mut machine = Machine::new();
    for cpu in [0, 2, 10] {
        machine
            .folder
            .write(&format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq"), format!("{cpu}000\n"));
    }
    machine.folder.write("sys/devices/system/cpu/cpufreq/policy0", "");
    machine.folder.write("sys/devices/system/cpu/cpu1/online", "0\n");
    let config = SysStatsConfig { cpufreq_period_ms: Some(10), ..SysStatsConfig::default() };
    let packet = machine.record(&config);
    let khz: Vec<_> = stats(&packet).cpufreq_khz().collect();
    assert_eq!(khz, [0, 0, 2000, 0, 0, 0, 0, 0, 0, 0, 10_000]);
}

#[test]
fn a_machine_without_frequencies_has_no_zeros_instead() {
    let mut machine = Machine::new();
    machine.folder.write("sys/devices/system/cpu/cpu0/online", "1\n");
    machine.folder.write("proc/meminfo", "MemFree:  5 kB\n");
    let config =
        SysStatsConfig { cpufreq_period_ms: Some(10), meminfo_period_ms: Some(10), ..SysStatsConfig::default() };
    let packet = machine.record(&config);
    assert_eq!((stats(&packet).cpufreq_khz().count(), stats(&packet).meminfo().count()), (0, 1));
}

#[test]
fn idle_states_are_recorded_by_cpu() {
    let mut machine = Machine::new();
    for (cpu, state, name, time) in [(0, 0, "POLL", 5), (0, 1, "C1", 6), (1, 1, "C1", 7)] {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{state}");
        machine.folder.write(&format!("{folder}/name"), format!("{name}\n"));
        machine.folder.write(&format!("{folder}/time"), format!("{time}\n"));
    }
    let packet = machine.record(&SysStatsConfig { cpuidle_period_ms: Some(10), ..SysStatsConfig::default() });
    let stats = stats(&packet);
    let mut found = Vec::new();
    for cpu in stats.cpuidle_state() {
        for entry in cpu.cpuidle_state_entry() {
            let name = String::from_utf8_lossy(entry.state().expect("a name")).into_owned();
            found.push((cpu.cpu_id().expect("a CPU"), name, entry.duration_us().expect("a time")));
        }
    }
    assert_eq!(found, [(0, "POLL".into(), 5), (0, "C1".into(), 6), (1, "C1".into(), 7)]);
}

#[test]
fn devices_and_temperatures_are_recorded() {
    let mut machine = Machine::new();
    let folder = &machine.folder;
    folder.write("sys/class/devfreq/soc:bus/cur_freq", "800000000\n");
    folder.write("sys/class/devfreq/unreadable/other", "");
    for (zone, kind, temperature) in [(0, "acpitz", "45600\n"), (1, "outside", "-5000\n"), (2, "none", "-274000\n")] {
        folder.write(&format!("sys/class/thermal/thermal_zone{zone}/type"), format!("{kind}\n"));
        folder.write(&format!("sys/class/thermal/thermal_zone{zone}/temp"), temperature);
    }
    folder.write("sys/class/thermal/cooling_device0/type", "fan\n");
    let packet = machine.record(&SysStatsConfig {
        devfreq_period_ms: Some(10),
        thermal_period_ms: Some(10),
        ..SysStatsConfig::default()
    });
    let stats = stats(&packet);
    let devices: Vec<_> = stats.devfreq().map(|device| (device.key(), device.value())).collect();
    assert_eq!(devices, [(Some(&b"soc:bus"[..]), Some(800_000_000))]);
    let zones: Vec<_> = stats.thermal_zone().map(|zone| (zone.name(), zone.r#type(), zone.temp())).collect();
    let zone =
        |name: &'static str, kind: &'static str, degrees| (Some(name.as_bytes()), Some(kind.as_bytes()), degrees);
    let wanted = [
        zone("thermal_zone0", "acpitz", Some(45)),
        zone("thermal_zone1", "outside", Some(0)),
        zone("thermal_zone2", "none", None),
    ];
    assert_eq!(zones, wanted);
}

#[test]
fn the_gpu_may_be_the_second_card() {
    let mut machine = Machine::new();
    machine.folder.write("sys/class/drm/card0/device/vendor", "screen of the firmware\n");
    machine.folder.write("sys/class/drm/card0-eDP-1/gt_act_freq_mhz", "a connector\n");
    machine.folder.write("sys/class/drm/card1/device/pp_dpm_sclk", "0: 200Mhz \n1: 600Mhz *\n");
    let config = SysStatsConfig { gpufreq_period_ms: Some(10), ..SysStatsConfig::default() };
    let mut source = machine.start(ms(100), &config);
    machine.run(&mut source, ms(111));
    machine.folder.write("sys/class/drm/card1/device/pp_dpm_sclk", "0: 200Mhz *\n1: 600Mhz \n");
    machine.run(&mut source, ms(121));
    let mhz: Vec<_> =
        machine.packets().iter().flat_map(|packet| stats(packet).gpufreq_mhz().collect::<Vec<_>>()).collect();
    assert_eq!(mhz, [600, 600, 200]);
}

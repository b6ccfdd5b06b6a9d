//! Import of statistics of the system.

use esatto_protozero::Fields;
use esatto_schema::{MeminfoCounters, VmstatCounters, sys_stats};

use super::context::Context;
use super::meminfo_names::meminfo_name;
use super::tracks::{Dimension, TrackSpec};

/// Returns fields 1 and 2, a key and a value.
fn pair(bytes: &[u8]) -> (u64, u64) {
    (number(bytes, 1), number(bytes, 2))
}

fn number(bytes: &[u8], id: u32) -> u64 {
    Fields::new(bytes).filter(|f| f.id == id).last().map_or(0, |f| f.as_u64())
}

fn text(bytes: &[u8], id: u32) -> String {
    let found = Fields::new(bytes).filter(|f| f.id == id).last();
    found.map_or_else(String::new, |f| String::from_utf8_lossy(f.as_bytes()).into_owned())
}

fn low_32_bits(v: u64) -> i32 {
    i32::from_ne_bytes(((v & 0xffff_ffff) as u32).to_ne_bytes())
}

impl Context {
    fn system_counter(
        &mut self,
        ts: i64,
        machine: u32,
        (kind, name, unit): (&'static str, &str, Option<&'static str>),
        dimensions: &[Dimension<'_>],
        value: f64,
    ) {
        let name = Some(self.symbol(name));
        let machine = self.processes.machine_row(machine);
        let spec = TrackSpec { machine, unit, ..TrackSpec::counter(kind, name, dimensions) };
        let (track, _) = self.tracks.intern(&mut self.tables, &spec);
        self.add_counter(track, ts, value);
    }

    /// Imports a `SysStats`.
    pub(crate) fn import_sys_stats(&mut self, ts: i64, machine: u32, bytes: &[u8]) {
        use sys_stats::field;
        let mut cpus = 0;
        for f in Fields::new(bytes) {
            let inner = f.as_bytes();
            match f.id {
                field::MEMINFO => {
                    let (key, value) = pair(inner);
                    let name = meminfo_name(MeminfoCounters(low_32_bits(key)));
                    let value = value.wrapping_mul(1024) as f64;
                    let dimensions = [Dimension::Text("meminfo_key", &name)];
                    self.system_counter(ts, machine, ("meminfo", &name, Some("bytes")), &dimensions, value);
                }
                field::VMSTAT => {
                    let (key, value) = pair(inner);
                    let name = VmstatCounters(low_32_bits(key)).name().unwrap_or("VMSTAT_UNKNOWN");
                    let name = name.trim_start_matches("VMSTAT_").to_ascii_lowercase();
                    let dimensions = [Dimension::Text("vmstat_key", &name)];
                    self.system_counter(ts, machine, ("vmstat", &name, None), &dimensions, value as f64);
                }
                field::CPU_STAT => self.import_cpu_times(ts, machine, inner),
                field::NUM_FORKS => {
                    self.system_counter(ts, machine, ("num_forks", "num_forks", None), &[], f.as_u64() as f64);
                }
                field::NUM_IRQ_TOTAL => {
                    self.system_counter(ts, machine, ("num_irq_total", "num_irq_total", None), &[], f.as_u64() as f64);
                }
                field::NUM_SOFTIRQ_TOTAL => {
                    let names = ("num_softirq_total", "num_softirq_total", None);
                    self.system_counter(ts, machine, names, &[], f.as_u64() as f64);
                }
                field::NUM_IRQ | field::NUM_SOFTIRQ => {
                    let (irq, count) = pair(inner);
                    let kind = if f.id == field::NUM_IRQ { "num_irq" } else { "num_softirq" };
                    let name = format!("{kind} (id: {irq})");
                    let dimensions = [Dimension::Number("irq", i64::try_from(irq).unwrap_or(i64::MAX))];
                    self.system_counter(ts, machine, (kind, &name, None), &dimensions, count as f64);
                }
                field::DEVFREQ => {
                    let device = text(inner, sys_stats::devfreq_value::field::KEY);
                    let value = number(inner, sys_stats::devfreq_value::field::VALUE);
                    self.clock_frequency(machine, &device, ts, value as f64);
                }
                field::CPUFREQ_KHZ => {
                    self.list_cpu(machine, cpus);
                    self.cpu_counter(machine, "cpu_frequency", "cpufreq", cpus, ts, f.as_u64() as f64);
                    cpus += 1;
                }
                field::GPUFREQ_MHZ => {
                    // The trace processor takes all values for those of the first one.
                    let dimensions = [Dimension::Number("gpu", 0)];
                    let names = ("gpu_frequency", "gpufreq", Some("MHz"));
                    self.system_counter(ts, machine, names, &dimensions, f.as_u64() as f64);
                }
                field::DISK_STAT => self.import_disk(ts, machine, inner),
                field::BUDDY_INFO => self.import_buddy_info(ts, machine, inner),
                field::PSI => {
                    use sys_stats::psi_sample::{PsiResource, field};
                    let resource = PsiResource(low_32_bits(number(inner, field::RESOURCE)));
                    let resource = resource.name().unwrap_or("psi.unknown");
                    let key = resource
                        .trim_start_matches("PSI_RESOURCE_")
                        .to_ascii_lowercase()
                        .replace("memory", "mem")
                        .replace('_', ".");
                    let value = number(inner, field::TOTAL_NS) as f64;
                    let dimensions = [Dimension::Text("psi_resource", &key)];
                    self.system_counter(ts, machine, ("psi", &format!("psi.{key}"), None), &dimensions, value);
                }
                field::THERMAL_ZONE => {
                    use sys_stats::thermal_zone::field;
                    let zone = text(inner, field::TYPE);
                    let dimensions = [Dimension::Text("thermal_zone", &zone)];
                    let names = ("thermal_temperature_sys", zone.as_str(), Some("C"));
                    self.system_counter(ts, machine, names, &dimensions, number(inner, field::TEMP) as f64);
                }
                field::CPUIDLE_STATE => {
                    use sys_stats::{cpu_idle_state, cpu_idle_state_entry};
                    let cpu = u32::try_from(number(inner, cpu_idle_state::field::CPU_ID)).unwrap_or(u32::MAX);
                    let entries = Fields::new(inner).filter(|f| f.id == cpu_idle_state::field::CPUIDLE_STATE_ENTRY);
                    for entry in entries {
                        let state = text(entry.as_bytes(), cpu_idle_state_entry::field::STATE);
                        let value = number(entry.as_bytes(), cpu_idle_state_entry::field::DURATION_US) as f64;
                        let name = format!("cpuidle{cpu}.{state}");
                        let dimensions = [Dimension::Cpu(cpu), Dimension::Text("state", &state)];
                        self.list_cpu(machine, cpu);
                        let names = ("cpu_idle_state", name.as_str(), Some("us"));
                        self.system_counter(ts, machine, names, &dimensions, value);
                    }
                }
                _ => {}
            }
        }
    }

    fn import_cpu_times(&mut self, ts: i64, machine: u32, bytes: &[u8]) {
        use sys_stats::cpu_times::field;
        let Some(cpu) = Fields::new(bytes).find(|f| f.id == field::CPU_ID).map(|f| f.as_u32()) else { return };
        self.list_cpu(machine, cpu);
        for (id, key) in [
            (field::USER_NS, "user_ns"),
            (field::USER_NICE_NS, "user_nice_ns"),
            (field::SYSTEM_MODE_NS, "system_mode_ns"),
            (field::IDLE_NS, "idle_ns"),
            (field::IO_WAIT_NS, "io_wait_ns"),
            (field::IRQ_NS, "irq_ns"),
            (field::SOFTIRQ_NS, "softirq_ns"),
            (field::STEAL_NS, "steal_ns"),
        ] {
            let dimensions = [Dimension::Cpu(cpu), Dimension::Text("cpustat_key", key)];
            let name = format!("cpu.times.{key}");
            self.system_counter(ts, machine, ("cpustat", &name, None), &dimensions, number(bytes, id) as f64);
        }
    }

    /// Imports the growth of a device's statistics since the packet before.
    fn import_disk(&mut self, ts: i64, machine: u32, bytes: &[u8]) {
        use sys_stats::disk_stat::field;
        const SECTORS_OF_MEGABYTE: f64 = 2048.0;
        const MILLISECONDS: f64 = 1000.0;
        let device = text(bytes, field::DEVICE_NAME);
        let numbers = [
            field::READ_SECTORS,
            field::READ_TIME_MS,
            field::WRITE_SECTORS,
            field::WRITE_TIME_MS,
            field::DISCARD_SECTORS,
            field::DISCARD_TIME_MS,
            field::FLUSH_COUNT,
            field::FLUSH_TIME_MS,
        ]
        .map(|id| number(bytes, id));
        let Some(before) = self.counters.disks.insert((machine, device.clone()), numbers) else { return };
        let grown: Vec<f64> =
            numbers.iter().zip(before).map(|(now, before)| now.saturating_sub(before) as f64).collect();
        let mut add = |name: &str, unit, value: f64| {
            let full = format!("diskstat.[{device}].{name}");
            let dimensions = [Dimension::Text("device_name", &device), Dimension::Text("counter_name", name)];
            self.system_counter(ts, machine, ("diskstat", &full, Some(unit)), &dimensions, value);
        };
        for (index, word) in ["read", "write", "discard"].into_iter().enumerate() {
            let (sectors, time) = (grown[2 * index], grown[2 * index + 1]);
            let amount = sectors / SECTORS_OF_MEGABYTE;
            let throughput = if time == 0.0 { 0.0 } else { amount * MILLISECONDS / time };
            add(&format!("{word}_amount"), "MB", amount);
            add(&format!("{word}_throughput"), "MB/s", throughput);
        }
        add("flush_amount", "count", grown[6]);
        add("flush_time", "ms", grown[7]);
    }

    fn import_buddy_info(&mut self, ts: i64, machine: u32, bytes: &[u8]) {
        use sys_stats::buddy_info::field;
        /// Largest number of free lists of a memory zone that are read. Linux has 11.
        const MAX_READ_ORDERS: usize = 32;
        let (node, zone) = (text(bytes, field::NODE), text(bytes, field::ZONE));
        let orders = Fields::new(bytes).filter(|f| f.id == field::ORDER_PAGES);
        for (order, pages) in orders.take(MAX_READ_ORDERS).enumerate() {
            let kilobytes = (i64::from(self.page_size(machine)) << order) / 1024;
            let name = format!("mem.buddyinfo[{node}][{zone}][{kilobytes} kB]");
            let dimensions = [
                Dimension::Text("buddyinfo_node", &node),
                Dimension::Text("buddyinfo_zone", &zone),
                Dimension::Number("buddyinfo_chunk_size_kb", kilobytes),
            ];
            self.system_counter(ts, machine, ("buddyinfo", &name, None), &dimensions, pages.as_u64() as f64);
        }
    }
}

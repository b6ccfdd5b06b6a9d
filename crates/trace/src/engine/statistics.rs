//! Import of statistics: the process tree, counters of processes and of the system.

use esatto_protozero::Fields;
use esatto_schema::{MeminfoCounters, VmstatCounters, process_stats, process_tree, sys_stats};

use super::context::Context;
use super::meminfo_names::meminfo_name;
use super::processes::NameSource;
use super::tracks::{Dimension, TrackSpec};
use crate::tables::{ArgValue, Row};

/// A memory counter of `ProcessStats.Process`: its key.
fn memory_key(id: u32) -> Option<&'static str> {
    use process_stats::process::field;
    Some(match id {
        field::VM_SIZE_KB => "virt",
        field::VM_RSS_KB => "rss",
        field::RSS_ANON_KB => "rss.anon",
        field::RSS_FILE_KB => "rss.file",
        field::RSS_SHMEM_KB => "rss.shmem",
        field::VM_SWAP_KB => "swap",
        field::VM_LOCKED_KB => "locked",
        field::VM_HWM_KB => "rss.watermark",
        _ => return None,
    })
}

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
    /// Imports a `ProcessTree`.
    pub(crate) fn import_process_tree(&mut self, machine: u32, bytes: &[u8]) {
        use process_tree::{field, thread::field as thread_field};
        for f in Fields::new(bytes) {
            match f.id {
                field::PROCESSES => self.import_process(machine, f.as_bytes()),
                field::THREADS => {
                    let (mut tid, mut pid, mut name) = (None, None, None);
                    for f in Fields::new(f.as_bytes()) {
                        match f.id {
                            thread_field::TID => tid = Some(i64::from(f.as_i32())),
                            thread_field::TGID => pid = Some(i64::from(f.as_i32())),
                            thread_field::NAME => name = Some(self.tables.strings.add(f.as_bytes())),
                            _ => {}
                        }
                    }
                    let (Some(tid), Some(pid)) = (tid, pid) else { continue };
                    let utid = self.processes.thread_of(&mut self.tables, machine, tid, pid);
                    if let Some(name) = name {
                        self.processes.name_thread(&mut self.tables, utid, name, NameSource::ProcessTree);
                    }
                }
                _ => {}
            }
        }
    }

    fn import_process(&mut self, machine: u32, bytes: &[u8]) {
        use process_tree::process::field;
        let (mut pid, mut parent, mut uid, mut start, mut is_kthread) = (None, 0, None, None, None);
        let mut cmdline: Vec<&[u8]> = Vec::new();
        for f in Fields::new(bytes) {
            match f.id {
                field::PID => pid = Some(i64::from(f.as_i32())),
                field::PPID => parent = i64::from(f.as_i32()),
                field::UID => uid = u32::try_from(f.as_i32()).ok(),
                field::CMDLINE => cmdline.push(f.as_bytes()),
                field::PROCESS_START_FROM_BOOT => start = i64::try_from(f.as_u64()).ok(),
                field::IS_KTHREAD => is_kthread = Some(f.as_bool()),
                _ => {}
            }
        }
        let (Some(pid), Some(&first)) = (pid, cmdline.first()) else { return };
        let mut first = first;
        let mut line = cmdline.join(&b' ');
        if is_kthread == Some(true) && first.starts_with(b"kworker/") {
            // The rest tells what the thread does at the moment.
            let end = first.iter().position(|byte| matches!(byte, b'-' | b'+'));
            first = &first[..end.unwrap_or(first.len())];
            line = first.to_vec();
        } else if cmdline.len() == 1 {
            // The program has set its title, which is one text.
            let end = first.iter().position(|byte| *byte == b' ');
            first = &first[..end.unwrap_or(first.len())];
        }
        let name = self.tables.strings.add(first);
        let line = self.tables.strings.add(&line);
        let parent = self.processes.process(&mut self.tables, machine, parent);
        let mut upid = self.processes.process(&mut self.tables, machine, pid);
        if self.tables.process.parent_upid[upid.index()].is_some_and(|known| known != parent) {
            // The trace processor takes a process with another parent for another process.
            upid = self.processes.start_process(&mut self.tables, machine, pid, None, None, None);
        }
        let words = cmdline.iter().map(|word| self.tables.strings.add(word)).collect();
        self.processes.cmdlines.insert(upid, words);
        let table = &mut self.tables.process;
        let index = upid.index();
        table.parent_upid[index] = Some(parent);
        table.name[index] = Some(name);
        table.cmdline[index] = Some(line);
        table.uid[index] = uid.or(table.uid[index]);
        table.start_ts[index] = table.start_ts[index].or(start);
        if let Some(is_kthread) = is_kthread {
            let arg = self.arg("is_kthread", ArgValue::Bool(is_kthread));
            self.processes.add_arguments(upid, [arg]);
        }
    }

    /// Imports the descriptor of a thread or of a process that is no track.
    pub(crate) fn import_old_descriptor(&mut self, machine: u32, id: u32, bytes: &[u8]) {
        use esatto_schema::{process_descriptor, thread_descriptor, trace_packet::field as packet_field};
        let find = |id: u32| Fields::new(bytes).filter(|f| f.id == id).last();
        if id == packet_field::THREAD_DESCRIPTOR {
            use thread_descriptor::field;
            let (Some(pid), Some(tid)) = (find(field::PID), find(field::TID)) else { return };
            let (pid, tid) = (i64::from(pid.as_i32()), tid.as_i64());
            let utid = self.processes.thread_of(&mut self.tables, machine, tid, pid);
            if let Some(name) = find(field::THREAD_NAME) {
                let name = self.tables.strings.add(name.as_bytes());
                self.processes.name_thread(&mut self.tables, utid, name, NameSource::Descriptor);
            }
        } else {
            use process_descriptor::field;
            let Some(pid) = find(field::PID) else { return };
            let upid = self.processes.process(&mut self.tables, machine, i64::from(pid.as_i32()));
            if let Some(name) = find(field::PROCESS_NAME) {
                let name = self.tables.strings.add(name.as_bytes());
                let known = &mut self.tables.process.name[upid.index()];
                *known = known.or(Some(name));
            }
        }
    }

    /// Imports a `ProcessStats`.
    pub(crate) fn import_process_stats(&mut self, ts: i64, machine: u32, bytes: &[u8]) {
        use process_stats::process::field;
        for process in Fields::new(bytes).filter(|f| f.id == process_stats::field::PROCESSES) {
            let bytes = process.as_bytes();
            let Some(pid) = Fields::new(bytes).filter(|f| f.id == field::PID).last() else { continue };
            let pid = i64::from(pid.as_i32());
            for thread in Fields::new(bytes).filter(|f| f.id == field::THREADS) {
                let tid = Fields::new(thread.as_bytes()).find(|f| f.id == process_stats::thread::field::TID);
                if let Some(tid) = tid {
                    self.processes.thread_of(&mut self.tables, machine, i64::from(tid.as_i32()), pid);
                }
            }
            let mut values: Vec<(u32, f64)> = Vec::new();
            for f in Fields::new(bytes) {
                if memory_key(f.id).is_some() {
                    values.push((f.id, f.as_u64() as f64 * 1024.0));
                } else if f.id == field::OOM_SCORE_ADJ {
                    values.push((f.id, f.as_i64() as f64));
                }
            }
            for (id, value) in values {
                let upid = self.processes.process(&mut self.tables, machine, pid);
                let track = self.process_counter(machine, upid, id);
                self.add_counter(track, ts, value);
            }
        }
    }

    fn process_counter(&mut self, machine: u32, upid: Row, id: u32) -> Row {
        if let Some(&track) = self.counters.of_process.get(&(upid, id)) {
            return track;
        }
        let machine = self.processes.machine_row(machine);
        let track = match memory_key(id) {
            Some(key) => {
                let name = Some(self.symbol(&format!("mem.{key}")));
                let dimensions = [Dimension::Process(upid), Dimension::Text("process_memory_key", key)];
                let spec = TrackSpec { machine, ..TrackSpec::counter("process_memory", name, &dimensions) };
                self.tracks.intern(&mut self.tables, &spec).0
            }
            None => {
                let name = Some(self.symbol("oom_score_adj"));
                let dimensions = [Dimension::Process(upid)];
                let spec = TrackSpec { machine, ..TrackSpec::counter("oom_score_adj", name, &dimensions) };
                self.tracks.intern(&mut self.tables, &spec).0
            }
        };
        self.counters.of_process.insert((upid, id), track);
        track
    }

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
        let (mut cpus, mut gpus) = (0, 0);
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
                    let dimensions = [Dimension::Number("gpu", gpus)];
                    let names = ("gpu_frequency", "gpufreq", Some("MHz"));
                    self.system_counter(ts, machine, names, &dimensions, f.as_u64() as f64);
                    gpus += 1;
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

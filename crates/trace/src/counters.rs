//! Counters and sums of their values, from track events and from statistics.

use std::borrow::Cow;
use std::collections::HashMap;

use esatto_protozero::Fields;
use esatto_schema::{MeminfoCounters, VmstatCounters, process_stats, sys_stats};

use crate::field_names;
use crate::processes::Processes;
use crate::string_table::{Strings, Symbol};
use crate::track_key::TrackKey;

/// Longest name of a device, a zone or an idle state: many counters can have the name of one
/// message.
const MAX_ITEM_BYTES: usize = 256;
/// Largest number of free lists of a memory zone that are read. Linux has 11.
const MAX_ORDERS: usize = 64;

/// Owner of a counter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    Machine(u32),
    Cpu(u32, u32),
    /// A process, by its index in the list.
    Process(usize),
    /// A device, an interrupt or a zone, which the name alone does not tell.
    Item(u32, String),
    Track(TrackKey),
}

/// A counter with its values summed up.
#[derive(Debug, Clone)]
pub(crate) struct Counter {
    pub(crate) scope: Scope,
    pub(crate) name: Symbol,
    pub(crate) values: u64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) first: (i64, f64),
    pub(crate) last: (i64, f64),
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) list: Vec<Counter>,
    /// Number of values of all counters.
    values: u64,
    index: HashMap<(Scope, Symbol), usize>,
}

impl Counters {
    pub(crate) fn add(&mut self, scope: Scope, name: Symbol, ts: i64, value: f64) {
        let key = (scope, name);
        let index = match self.index.get(&key) {
            Some(&index) => index,
            None => {
                let (min, max) = (f64::INFINITY, f64::NEG_INFINITY);
                let at = (ts, value);
                self.list.push(Counter { scope: key.0.clone(), name, values: 0, min, max, first: at, last: at });
                self.index.insert(key, self.list.len() - 1);
                self.list.len() - 1
            }
        };
        let counter = &mut self.list[index];
        counter.values += 1;
        self.values += 1;
        counter.min = counter.min.min(value);
        counter.max = counter.max.max(value);
        if ts < counter.first.0 {
            counter.first = (ts, value);
        }
        if ts >= counter.last.0 {
            counter.last = (ts, value);
        }
    }

    pub(crate) fn values(&self) -> u64 {
        self.values
    }

    /// Reads a `ProcessStats`.
    pub(crate) fn add_process_stats(
        &mut self,
        bytes: &[u8],
        machine: u32,
        ts: i64,
        strings: &mut Strings,
        processes: &mut Processes,
    ) {
        use process_stats::process::field;
        for process in Fields::new(bytes).filter(|f| f.id == process_stats::field::PROCESSES) {
            let bytes = process.as_bytes();
            let Some(pid) = Fields::new(bytes).filter(|f| f.id == field::PID).last() else { continue };
            let pid = i64::from(pid.as_i32());
            let index = processes.process(machine, pid, None);
            for f in Fields::new(bytes) {
                match f.id {
                    field::PID | field::IS_PEAK_RSS_RESETTABLE | field::FDS => continue,
                    field::THREADS => {
                        let tid = Fields::new(f.as_bytes()).find(|f| f.id == process_stats::thread::field::TID);
                        if let Some(tid) = tid {
                            processes.thread(machine, pid, i64::from(tid.as_i32()), None);
                        }
                        continue;
                    }
                    _ => {}
                }
                let (name, scale) = process_counter(f.id);
                let value = if f.id == field::OOM_SCORE_ADJ { f.as_i64() as f64 } else { f.as_u64() as f64 };
                self.add(Scope::Process(index), strings.add_str(&name), ts, value * scale);
            }
        }
    }

    /// Reads a `SysStats`.
    pub(crate) fn add_sys_stats(&mut self, bytes: &[u8], machine: u32, ts: i64, strings: &mut Strings) {
        use sys_stats::field;
        let mut add = |scope, name: &str, value: u64| self.add(scope, strings.add_str(name), ts, value as f64);
        let everywhere = || Scope::Machine(machine);
        let (mut cpu_frequencies, mut gpu_frequencies) = (0, 0);
        for f in Fields::new(bytes) {
            let inner = f.as_bytes();
            match f.id {
                field::MEMINFO => {
                    let (key, value) = pair(inner);
                    let name = meminfo_name(MeminfoCounters(low_32_bits(key) as i32));
                    add(everywhere(), &name, value.saturating_mul(1024));
                }
                field::VMSTAT => {
                    let (key, value) = pair(inner);
                    let name = VmstatCounters(low_32_bits(key) as i32).name().unwrap_or("VMSTAT_UNKNOWN");
                    add(everywhere(), &name.trim_start_matches("VMSTAT_").to_ascii_lowercase(), value);
                }
                field::CPU_STAT => {
                    let cpu = low_32_bits(number(inner, sys_stats::cpu_times::field::CPU_ID));
                    for f in Fields::new(inner).filter(|f| f.id != sys_stats::cpu_times::field::CPU_ID) {
                        let name = format!("cpu.times.{}", field_names::name(field_names::cpu_times(), f.id));
                        add(Scope::Cpu(machine, cpu), &name, f.as_u64());
                    }
                }
                field::NUM_FORKS => add(everywhere(), "num_forks", f.as_u64()),
                field::NUM_IRQ_TOTAL => add(everywhere(), "num_irq_total", f.as_u64()),
                field::NUM_SOFTIRQ_TOTAL => add(everywhere(), "num_softirq_total", f.as_u64()),
                field::NUM_IRQ => {
                    let (irq, count) = pair(inner);
                    add(Scope::Item(machine, format!("irq {irq}")), "num_irq", count);
                }
                field::NUM_SOFTIRQ => {
                    let (irq, count) = pair(inner);
                    add(Scope::Item(machine, format!("softirq {irq}")), "num_softirq", count);
                }
                field::DEVFREQ => {
                    let device = string(inner, sys_stats::devfreq_value::field::KEY);
                    let value = number(inner, sys_stats::devfreq_value::field::VALUE);
                    add(Scope::Item(machine, device), "devfreq", value);
                }
                field::CPUFREQ_KHZ => {
                    add(Scope::Cpu(machine, cpu_frequencies), "cpufreq", f.as_u64());
                    cpu_frequencies += 1;
                }
                field::GPUFREQ_MHZ => {
                    add(Scope::Item(machine, format!("gpu {gpu_frequencies}")), "gpufreq", f.as_u64());
                    gpu_frequencies += 1;
                }
                field::BUDDY_INFO => {
                    use sys_stats::buddy_info::field;
                    let zone = format!("node {} zone {}", string(inner, field::NODE), string(inner, field::ZONE));
                    let orders = Fields::new(inner).filter(|f| f.id == field::ORDER_PAGES);
                    for (order, pages) in orders.take(MAX_ORDERS).enumerate() {
                        let scope = Scope::Item(machine, format!("{zone} order {order}"));
                        add(scope, "mem.buddyinfo", pages.as_u64());
                    }
                }
                field::DISK_STAT => {
                    use sys_stats::disk_stat::field;
                    let device = string(inner, field::DEVICE_NAME);
                    for (id, name) in [
                        (field::READ_SECTORS, "diskstat.read_sectors"),
                        (field::READ_TIME_MS, "diskstat.read_time_ms"),
                        (field::WRITE_SECTORS, "diskstat.write_sectors"),
                        (field::WRITE_TIME_MS, "diskstat.write_time_ms"),
                        (field::DISCARD_SECTORS, "diskstat.discard_sectors"),
                        (field::DISCARD_TIME_MS, "diskstat.discard_time_ms"),
                        (field::FLUSH_COUNT, "diskstat.flush_count"),
                        (field::FLUSH_TIME_MS, "diskstat.flush_time_ms"),
                    ] {
                        add(Scope::Item(machine, device.clone()), name, number(inner, id));
                    }
                }
                field::PSI => {
                    use sys_stats::psi_sample::{PsiResource, field};
                    let resource =
                        PsiResource(low_32_bits(number(inner, field::RESOURCE)) as i32).name().unwrap_or("psi.unknown");
                    let name = resource
                        .trim_start_matches("PSI_RESOURCE_")
                        .to_ascii_lowercase()
                        .replace("memory", "mem")
                        .replace('_', ".");
                    add(everywhere(), &format!("psi.{name}"), number(inner, field::TOTAL_NS));
                }
                field::THERMAL_ZONE => {
                    use sys_stats::thermal_zone::field;
                    let zone = string(inner, field::TYPE);
                    add(Scope::Item(machine, zone), "thermal_zone", number(inner, field::TEMP));
                }
                field::CPUIDLE_STATE => {
                    use sys_stats::{cpu_idle_state, cpu_idle_state_entry};
                    let cpu = number(inner, cpu_idle_state::field::CPU_ID);
                    let entries = Fields::new(inner).filter(|f| f.id == cpu_idle_state::field::CPUIDLE_STATE_ENTRY);
                    for entry in entries {
                        let state = string(entry.as_bytes(), cpu_idle_state_entry::field::STATE);
                        let duration = number(entry.as_bytes(), cpu_idle_state_entry::field::DURATION_US);
                        add(Scope::Item(machine, format!("cpu {cpu} {state}")), "cpuidle", duration);
                    }
                }
                field::SLAB_INFO => {
                    use sys_stats::slab_info::field;
                    let slab = string(inner, field::NAME);
                    let pages = number(inner, field::PAGES_PER_SLAB).saturating_mul(number(inner, field::NUM_SLABS));
                    add(Scope::Item(machine, slab), "slabinfo.pages", pages);
                }
                _ => {}
            }
        }
    }
}

/// Returns the name of a counter of `ProcessStats.Process`, and the factor of its values.
fn process_counter(id: u32) -> (Cow<'static, str>, f64) {
    use process_stats::process::field;
    let kilobytes = |name| (Cow::Borrowed(name), 1024.0);
    match id {
        field::OOM_SCORE_ADJ => ("oom_score_adj".into(), 1.0),
        field::RUNTIME_USER_MODE => ("runtime.user_ns".into(), 1.0),
        field::RUNTIME_KERNEL_MODE => ("runtime.kernel_ns".into(), 1.0),
        field::VM_SIZE_KB => kilobytes("mem.virt"),
        field::VM_RSS_KB => kilobytes("mem.rss"),
        field::RSS_ANON_KB => kilobytes("mem.rss.anon"),
        field::RSS_FILE_KB => kilobytes("mem.rss.file"),
        field::RSS_SHMEM_KB => kilobytes("mem.rss.shmem"),
        field::VM_SWAP_KB => kilobytes("mem.swap"),
        field::VM_LOCKED_KB => kilobytes("mem.locked"),
        field::VM_HWM_KB => kilobytes("mem.rss.watermark"),
        field::SMR_RSS_KB => kilobytes("mem.smaps.rss"),
        field::SMR_PSS_KB => kilobytes("mem.smaps.pss"),
        field::SMR_PSS_ANON_KB => kilobytes("mem.smaps.pss.anon"),
        field::SMR_PSS_FILE_KB => kilobytes("mem.smaps.pss.file"),
        field::SMR_PSS_SHMEM_KB => kilobytes("mem.smaps.pss.smem"),
        field::SMR_SWAP_PSS_KB => kilobytes("mem.smaps.swap.pss"),
        other => (field_names::name(field_names::process_stats(), other).into(), 1.0),
    }
}

/// Returns the name that `/proc/meminfo` has for a counter.
pub(crate) fn meminfo_name(key: MeminfoCounters) -> String {
    match key {
        MeminfoCounters::MEMINFO_ACTIVE_ANON => "Active(anon)".to_owned(),
        MeminfoCounters::MEMINFO_INACTIVE_ANON => "Inactive(anon)".to_owned(),
        MeminfoCounters::MEMINFO_ACTIVE_FILE => "Active(file)".to_owned(),
        MeminfoCounters::MEMINFO_INACTIVE_FILE => "Inactive(file)".to_owned(),
        MeminfoCounters::MEMINFO_SLAB_RECLAIMABLE => "SReclaimable".to_owned(),
        MeminfoCounters::MEMINFO_SLAB_UNRECLAIMABLE => "SUnreclaim".to_owned(),
        MeminfoCounters::MEMINFO_COMMITED_AS => "Committed_AS".to_owned(),
        key => camel_case(key.name().unwrap_or("MEMINFO_UNKNOWN").trim_start_matches("MEMINFO_")),
    }
}

/// Returns fields 1 and 2, a key and a value.
fn pair(bytes: &[u8]) -> (u64, u64) {
    (number(bytes, 1), number(bytes, 2))
}

fn number(bytes: &[u8], id: u32) -> u64 {
    Fields::new(bytes).filter(|f| f.id == id).last().map_or(0, |f| f.as_u64())
}

/// Returns the part of a varint that a field of 32 bits has.
fn low_32_bits(v: u64) -> u32 {
    (v & 0xffff_ffff) as u32
}

fn string(bytes: &[u8], id: u32) -> String {
    let found = Fields::new(bytes).filter(|f| f.id == id).last();
    let bytes = found.as_ref().map_or(&[][..], |f| f.as_bytes());
    String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_ITEM_BYTES)]).into_owned()
}

/// Converts `MEM_TOTAL` into `MemTotal`, the usual form in `/proc/meminfo`.
fn camel_case(name: &str) -> String {
    let words = name.split('_').map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        format!("{first}{}", rest.to_ascii_lowercase())
    });
    words.collect()
}

//! Facts about the trace, its machines and its losses, from packets of the service and of probes.

use std::collections::BTreeMap;

use esatto_protozero::Fields;
use esatto_schema::{
    ftrace_cpu_stats, ftrace_stats, trace_packet::field as packet_field, trace_stats, trace_uuid, tracing_service_event,
};

use super::context::Context;
use super::placement::TimeMaps;
use super::stats::{Fact, TimedFact};
use super::task_state::kernel_version;
use super::tokenizer::{Time, Tokenizer};
use crate::field_names;
use crate::machines::HOST;
use crate::merge_plan::{AttributeValue, MergePlan};
use crate::service_report::read_system_info;
use crate::tables::{MachineRow, MetadataRow, Row};

/// The fact of when the recording started.
const TRACING_STARTED: &str = "tracing_started_ns";
const DEFAULT_PAGE_SIZE: u32 = 4096;
/// Buffers whose counts are read; a session has at most 128.
const MAX_COUNTED_BUFFERS: i64 = 1024;
/// Processors whose counts of lost events are read.
const MAX_COUNTED_CPUS: i64 = 4096;

impl Tokenizer {
    /// Adds the row of a machine that has not been seen before.
    pub(super) fn add_machine(&mut self, machine: u32) {
        let context = &mut self.context;
        if context.machines.contains_key(&machine) {
            return;
        }
        if context.machines.is_empty() && machine != HOST {
            // The machine of the service is always the first.
            self.add_machine(HOST);
            return self.add_machine(machine);
        }
        context.origins.note_plain(machine);
        let home = context.origins.home(machine);
        if home != machine {
            self.add_machine(home);
            let context = &mut self.context;
            if let Some(&row) = context.machines.get(&home) {
                context.machines.insert(machine, row);
                if home != HOST {
                    context.processes.set_machine(machine, row);
                }
                context.processes.set_home(machine, home);
            }
            return;
        }
        let (raw_id, name) = context.origins.identity(machine);
        let name = name.map(|name| context.tables.strings.add_str(name));
        let (sysname, release, version, arch, num_cpus) = (None, None, None, None, None);
        let row = MachineRow { raw_id, name, sysname, release, version, arch, num_cpus };
        let row = context.tables.machine.push(row);
        context.tables.machine_numbers.push(machine);
        context.machines.insert(machine, row);
        if machine != HOST {
            context.processes.set_machine(machine, row);
            let idle = context.symbol("swapper");
            context.processes.add_idle(&mut context.tables, machine, idle);
        }
    }

    /// Reads a packet that is a fact.
    pub(super) fn add_fact(&mut self, id: u32, payload: &[u8], machine: u32, time: Option<Time>, sequence: usize) {
        let _ = sequence;
        let ts = match time {
            Some(Time::Known(ts)) => Some(ts),
            _ => None,
        };
        let context = &mut self.context;
        match id {
            packet_field::TRACE_UUID => {
                let part = |id| Fields::new(payload).filter(|f| f.id == id).last().map_or(0, |f| f.as_u64());
                let (msb, lsb) = (part(trace_uuid::field::MSB), part(trace_uuid::field::LSB));
                context.set_fact("trace_uuid", Fact::Text(uuid_text(msb, lsb)));
            }
            packet_field::SYSTEM_INFO => context.set_system_info(payload, machine),
            packet_field::CPU_INFO => context.set_cpu_info(payload, machine),
            packet_field::TRACE_STATS => {
                context.set_trace_stats(payload);
                self.count_losses(payload, machine);
            }
            packet_field::TRACE_CONFIG => {
                use esatto_schema::trace_config::field;
                if let Some(name) = Fields::new(payload).filter(|f| f.id == field::UNIQUE_SESSION_NAME).last() {
                    let name = String::from_utf8_lossy(name.as_bytes()).into_owned();
                    context.set_fact("unique_session_name", Fact::Text(name));
                }
            }
            packet_field::FTRACE_STATS => context.set_ftrace_stats(payload, machine),
            packet_field::SERVICE_EVENT => {
                use tracing_service_event::field;
                let Some(ts) = ts else { return };
                for f in Fields::new(payload) {
                    let buffer = i64::from(f.as_u32());
                    let fact = match f.id {
                        field::TRACING_STARTED => TimedFact::Fact(TRACING_STARTED),
                        field::ALL_DATA_SOURCES_STARTED => TimedFact::Fact("all_data_source_started_ns"),
                        field::TRACING_DISABLED => TimedFact::Fact("tracing_disabled_ns"),
                        field::CLONE_STARTED => TimedFact::Stat("traced_clone_started_timestamp_ns", None),
                        field::BUFFER_CLONED if buffer < MAX_COUNTED_BUFFERS => {
                            TimedFact::Stat("traced_buf_clone_done_timestamp_ns", Some(buffer))
                        }
                        field::ALL_DATA_SOURCES_FLUSHED => TimedFact::Flush,
                        _ => continue,
                    };
                    context.timed_facts.push((machine, fact, ts));
                }
            }
            _ => {}
        }
    }
}

/// Losses of the sequences of a buffer.
#[derive(Debug, Clone, Copy, Default)]
struct Losses {
    gaps: u64,
    /// Sequences that have no packet with the state that all of them need.
    unusable: i64,
}

impl Tokenizer {
    /// Counts the losses of the sequences so far, by the buffers that a `TraceStats` tells.
    fn count_losses(&mut self, payload: &[u8], machine: u32) {
        use esatto_schema::trace_stats::writer_stats::field;
        let mut buffers: BTreeMap<i64, Losses> = BTreeMap::new();
        for writer in Fields::new(payload).filter(|f| f.id == trace_stats::field::WRITER_STATS) {
            let find = |id: u32| Fields::new(writer.as_bytes()).filter(|f| f.id == id).last();
            let id = find(field::SEQUENCE_ID).map_or(0, |id| id.as_u32());
            let buffer = find(field::BUFFER).map_or(0, |buffer| buffer.as_i64());
            let Some(sequence) = self.known_sequence(machine, id) else { continue };
            if (0..MAX_COUNTED_BUFFERS).contains(&buffer) {
                let losses = buffers.entry(buffer).or_default();
                losses.gaps += sequence.later_losses;
                losses.unusable += i64::from(sequence.skipped > 0 && sequence.skipped == sequence.needing_state);
            }
        }
        for (buffer, losses) in buffers {
            let gaps = i64::try_from(losses.gaps).unwrap_or(i64::MAX);
            self.context.stats.set("traced_buf_sequence_packet_loss", Some(buffer), gaps);
            self.context.stats.set("traced_buf_incremental_sequences_dropped", Some(buffer), losses.unusable);
        }
    }
}

fn uuid_text(msb: u64, lsb: u64) -> String {
    let (a, b, c) = (msb >> 32, (msb >> 16) & 0xffff, msb & 0xffff);
    format!("{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}", lsb >> 48, lsb & 0xffff_ffff_ffff)
}

impl Context {
    pub(crate) fn set_fact(&mut self, name: &'static str, fact: Fact) {
        self.facts.insert(name, fact);
    }

    /// Converts the times of snapshots, and the moments that are facts, to the clock of the result.
    pub(super) fn convert_times(&mut self, maps: &TimeMaps) {
        let convert = |machine: u32, ts: i64| maps.get(&machine).map_or(ts, |map| map.convert(ts));
        for (ts, &machine) in self.tables.clock_snapshot.ts.iter_mut().zip(&self.snapshot_machines) {
            *ts = convert(machine, *ts);
        }
        for (machine, fact, ts) in core::mem::take(&mut self.timed_facts) {
            let ts = convert(machine, ts);
            match fact {
                TimedFact::Fact(name) => {
                    if name == TRACING_STARTED {
                        let file = self.origins.origin(machine).file;
                        self.ftrace_bounds(file).started = Some(ts);
                    }
                    self.set_fact(name, Fact::Number(ts));
                }
                TimedFact::Stat(name, idx) => self.stats.set(name, idx, ts),
                TimedFact::Flush => self.flushes.push(ts),
            }
        }
    }

    pub(crate) fn page_size(&self, machine: u32) -> u32 {
        self.page_sizes.get(&machine).copied().unwrap_or(DEFAULT_PAGE_SIZE)
    }

    fn set_cpu_info(&mut self, payload: &[u8], machine: u32) {
        use esatto_schema::cpu_info::{cpu::field as cpu_field, field};
        for (number, cpu) in Fields::new(payload).filter(|f| f.id == field::CPUS).enumerate() {
            let Ok(number) = u32::try_from(number) else { return };
            let Some(row) = self.list_cpu(machine, number) else { return };
            for f in Fields::new(cpu.as_bytes()) {
                match f.id {
                    cpu_field::PROCESSOR => {
                        self.tables.cpu.processor[row.index()] = Some(self.tables.strings.add(f.as_bytes()));
                    }
                    cpu_field::CAPACITY => self.tables.cpu.capacity[row.index()] = Some(f.as_u32()),
                    _ => {}
                }
            }
        }
    }

    fn set_system_info(&mut self, payload: &[u8], machine: u32) {
        let info = read_system_info(payload);
        if self.origins.is_base(machine) {
            if !info.sysname.is_empty() || !info.machine.is_empty() {
                for (name, text) in [
                    ("system_name", &info.sysname),
                    ("system_version", &info.version),
                    ("system_release", &info.release),
                    ("system_machine", &info.machine),
                ] {
                    self.set_fact(name, Fact::Text(text.clone()));
                }
            }
            if let Some(minutes) = info.timezone_off_mins {
                self.set_fact("timezone_off_mins", Fact::Number(i64::from(minutes)));
            }
        }
        if let Some(size) = info.page_size.filter(|size| size.is_power_of_two()) {
            self.page_sizes.insert(machine, size);
        }
        self.machine_arch.insert(machine, info.machine.clone());
        if let Some(version) = kernel_version(&info.sysname, &info.release) {
            self.kernel_versions.insert(machine, version);
        }
        let Some(&row) = self.machines.get(&machine) else { return };
        let index = row.index();
        let strings = &mut self.tables.strings;
        let mut text = |text: &str| (!text.is_empty()).then(|| strings.add_str(text));
        let (sysname, release) = (text(&info.sysname), text(&info.release));
        let (version, arch) = (text(&info.version), text(&info.machine));
        let table = &mut self.tables.machine;
        table.sysname[index] = sysname;
        table.release[index] = release;
        table.version[index] = version;
        table.arch[index] = arch;
        table.num_cpus[index] = info.num_cpus.or(table.num_cpus[index]);
    }

    /// Reads a `TraceStats`; a later one replaces the values of an earlier one.
    fn set_trace_stats(&mut self, payload: &[u8]) {
        use trace_stats::field;
        let value = |f: &esatto_protozero::Field<'_>| i64::try_from(f.as_u64()).unwrap_or(i64::MAX);
        let mut buffer = 0;
        for f in Fields::new(payload) {
            let name = match f.id {
                field::BUFFER_STATS if buffer >= MAX_COUNTED_BUFFERS => continue,
                field::BUFFER_STATS => {
                    for f in Fields::new(f.as_bytes()) {
                        if let Some(name) = field_names::buffer_stats().get(&f.id) {
                            self.stats.set(&format!("traced_buf_{name}"), Some(buffer), value(&f));
                        }
                    }
                    buffer += 1;
                    continue;
                }
                field::PRODUCERS_CONNECTED => "traced_producers_connected",
                field::PRODUCERS_SEEN => "traced_producers_seen",
                field::DATA_SOURCES_REGISTERED => "traced_data_sources_registered",
                field::DATA_SOURCES_SEEN => "traced_data_sources_seen",
                field::TRACING_SESSIONS => "traced_tracing_sessions",
                field::TOTAL_BUFFERS => "traced_total_buffers",
                field::CHUNKS_DISCARDED => "traced_chunks_discarded",
                field::PATCHES_DISCARDED => "traced_patches_discarded",
                field::FLUSHES_REQUESTED => "traced_flushes_requested",
                field::FLUSHES_SUCCEEDED => "traced_flushes_succeeded",
                field::FLUSHES_FAILED => "traced_flushes_failed",
                field::FINAL_FLUSH_OUTCOME => {
                    let name = match f.as_i32() {
                        1 => "traced_final_flush_succeeded",
                        2 => "traced_final_flush_failed",
                        _ => continue,
                    };
                    self.stats.set(name, None, 1);
                    continue;
                }
                _ => continue,
            };
            self.stats.set(name, None, value(&f));
        }
    }

    fn set_ftrace_stats(&mut self, payload: &[u8], machine: u32) {
        use ftrace_cpu_stats::field as cpu_field;
        use ftrace_stats::field;
        const NANOSECONDS: f64 = 1e9;
        let phase = Fields::new(payload).find(|f| f.id == field::PHASE).map_or(0, |f| f.as_i32());
        let suffix = match phase {
            1 => "begin",
            2 => "end",
            _ => return,
        };
        let keeps = Fields::new(payload).find(|f| f.id == field::PRESERVE_FTRACE_BUFFER);
        let file = self.origins.origin(machine).file;
        self.ftrace_bounds(file).keeps_old |= phase == 1 && keeps.is_some_and(|f| f.as_bool());
        for stats in Fields::new(payload).filter(|f| f.id == field::CPU_STATS) {
            let cpu = Fields::new(stats.as_bytes()).find(|f| f.id == cpu_field::CPU).map_or(0, |f| f.as_i64());
            if !(0..MAX_COUNTED_CPUS).contains(&cpu) {
                continue;
            }
            for f in Fields::new(stats.as_bytes()) {
                let (name, has_delta) = match f.id {
                    cpu_field::ENTRIES => ("entries", true),
                    cpu_field::OVERRUN => ("overrun", true),
                    cpu_field::COMMIT_OVERRUN => ("commit_overrun", true),
                    cpu_field::BYTES_READ => ("bytes", true),
                    cpu_field::OLDEST_EVENT_TS => ("oldest_event_ts", false),
                    cpu_field::NOW_TS => ("now_ts", false),
                    cpu_field::DROPPED_EVENTS => ("dropped_events", true),
                    cpu_field::READ_EVENTS => ("read_events", true),
                    _ => continue,
                };
                #[allow(clippy::cast_possible_truncation, reason = "saturates")]
                let value = if has_delta {
                    i64::try_from(f.as_u64()).unwrap_or(i64::MAX)
                } else {
                    (f.as_f64() * NANOSECONDS) as i64
                };
                self.stats.set(&format!("ftrace_cpu_{name}_{suffix}"), Some(cpu), value);
                if has_delta && phase == 2 {
                    let begin = self.stats.get(&format!("ftrace_cpu_{name}_begin"), Some(cpu));
                    self.stats.set(&format!("ftrace_cpu_{name}_delta"), Some(cpu), value.saturating_sub(begin));
                }
            }
        }
    }

    /// Adds the facts of a plan for merging.
    pub(crate) fn add_attributes(&mut self, plan: &MergePlan) {
        for (key, value) in &plan.attributes {
            let fact = match value {
                AttributeValue::Number(number) => Fact::Number(*number),
                AttributeValue::Text(text) => Fact::Text(text.clone()),
            };
            self.push_fact(&format!("manifest_attribute.{key}"), "single", fact);
        }
    }

    /// Writes the facts into the table.
    pub(crate) fn finish_facts(&mut self, trace_clock: u32) {
        self.set_fact("trace_type", Fact::Text("proto".to_owned()));
        self.set_fact("trace_time_clock_id", Fact::Number(i64::from(trace_clock)));
        let facts: BTreeMap<&'static str, Fact> = core::mem::take(&mut self.facts);
        for (name, fact) in facts {
            self.push_fact(name, "single", fact);
        }
        for ts in core::mem::take(&mut self.flushes) {
            self.push_fact("all_data_source_flushed_ns", "multi", Fact::Number(ts));
        }
    }

    fn push_fact(&mut self, name: &str, key_type: &str, fact: Fact) {
        let (name, key_type) = (self.symbol(name), self.symbol(key_type));
        let (int_value, str_value) = match fact {
            Fact::Number(number) => (Some(number), None),
            Fact::Text(text) => (None, Some(self.symbol(&text))),
        };
        let _: Row = self.tables.metadata.push(MetadataRow { name, key_type, int_value, str_value });
    }
}

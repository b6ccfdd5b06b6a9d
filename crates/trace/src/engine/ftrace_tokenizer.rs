//! First stage of the import: bundles of kernel events.

use esatto_protozero::Fields;
use esatto_schema::interned_data;

use super::descriptors::read_message;
use super::generic_event::GenericEvent;
use super::kernel_event::{TIMESTAMP, function_field};
use super::record::{Kind, Put as _};
use super::tokenizer::{Time, Tokenizer};
use crate::sorter::Queue;
use crate::string_table::Symbol;

impl Tokenizer {
    /// Splits a bundle of kernel events.
    pub(super) fn add_ftrace(&mut self, bytes: &[u8], sequence: usize, machine: u32) {
        use esatto_schema::ftrace_event_bundle::field;
        let cpu = Fields::new(bytes).find(|f| f.id == field::CPU).map_or(0, |f| f.as_u32());
        let queue = Queue::try_from(cpu.saturating_add(1)).unwrap_or(Queue::MAX);
        let clock = Fields::new(bytes).find(|f| f.id == field::FTRACE_CLOCK).map_or(0, |f| f.as_i32());
        if clock != 0 && clock != 2 {
            // The kernel's own clocks are not related to others here.
            self.context.stats.count("ftrace_clock_not_read");
        }
        let mut bundle_start = None;
        for f in Fields::new(bytes) {
            match f.id {
                field::EVENT => {
                    self.survey.ftrace_events += 1;
                    let mut ts = None;
                    let mut function = None;
                    let state = &self.sequences[sequence].state;
                    for f in Fields::new(f.as_bytes()) {
                        if f.id == TIMESTAMP {
                            ts = ts.or(Some(f.as_i64()));
                        } else if let Some(id) = function_field(f.id) {
                            let address = Fields::new(f.as_bytes()).filter(|f| f.id == id).last();
                            // The kernel's functions are numbered from 1.
                            function =
                                address.and_then(|f| state.look_up(interned_data::field::KERNEL_SYMBOLS, f.as_u64()));
                        }
                    }
                    let Some(ts) = ts.filter(|&ts| ts >= 0) else {
                        self.context.stats.count("ftrace_bundle_tokenizer_errors");
                        continue;
                    };
                    self.latest = self.latest.max(ts);
                    self.push(machine, Time::Known(ts), queue, |out| {
                        out.kind(Kind::Ftrace);
                        out.number(u64::from(cpu));
                        out.symbol(function);
                        out.extend(f.as_bytes());
                    });
                }
                field::GENERIC_EVENT_DESCRIPTORS => {
                    use esatto_schema::ftrace_event_bundle::generic_event_descriptor::field;
                    let find = |id: u32| Fields::new(f.as_bytes()).find(|f| f.id == id);
                    if let (Some(id), Some(event)) = (find(field::FIELD_ID), find(field::EVENT_DESCRIPTOR)) {
                        let event = read_message(event.as_bytes());
                        match GenericEvent::new(event) {
                            Some(event) => {
                                self.context.generic_events.entry((machine, id.as_u32())).or_insert(event);
                            }
                            None => self.context.stats.count("ftrace_generic_descriptor_errors"),
                        }
                    }
                }
                field::PREVIOUS_BUNDLE_END_TIMESTAMP => bundle_start = Some(f.as_i64()),
                field::LAST_READ_EVENT_TIMESTAMP => bundle_start = bundle_start.or(Some(f.as_i64())),
                field::COMPACT_SCHED => self.add_compact(f.as_bytes(), cpu, queue, machine),
                field::LOST_EVENTS => self.survey.ftrace_losses += u64::from(f.as_bool()),
                _ => {}
            }
            self.survey.ftrace_report.add_bundle_field(f.id, || f.as_u64());
        }
        // The first bundle of a processor tells from when on its events are complete.
        if let (true, Some(start)) = (self.ftrace_cpus.insert((machine, cpu)), bundle_start) {
            let known = self.context.ftrace_starts.entry(machine).or_insert(start);
            *known = start.max(*known);
        }
    }

    fn add_compact(&mut self, bytes: &[u8], cpu: u32, queue: Queue, machine: u32) {
        use esatto_schema::ftrace_event_bundle::CompactSchedReader;
        let compact = CompactSchedReader::new(bytes);
        let strings = &mut self.context.tables.strings;
        let comms: Vec<Symbol> = compact.intern_table().map(|comm| strings.add(comm)).collect();
        let comm = |index: u32| comms.get(index as usize).copied();
        let (mut latest, mut events) = (self.latest, 0);
        let sorter = self.sorter(machine);
        let mut ts = 0_u64;
        let switches = compact
            .switch_timestamp()
            .zip(compact.switch_prev_state())
            .zip(compact.switch_next_pid())
            .zip(compact.switch_next_prio())
            .zip(compact.switch_next_comm_index());
        for ((((delta, state), pid), prio), index) in switches {
            ts = ts.wrapping_add(delta);
            let Ok(ts) = i64::try_from(ts) else { continue };
            latest = latest.max(ts);
            events += 1;
            sorter.push(ts, queue, |record| {
                record.kind(Kind::CompactSwitch);
                record.number(u64::from(cpu));
                record.signed(state);
                record.signed(i64::from(pid));
                record.signed(i64::from(prio));
                record.symbol(comm(index));
            });
        }
        ts = 0;
        let mut flags = compact.waking_common_flags();
        let wakings = compact
            .waking_timestamp()
            .zip(compact.waking_pid())
            .zip(compact.waking_target_cpu())
            .zip(compact.waking_prio())
            .zip(compact.waking_comm_index());
        for ((((delta, pid), target), prio), index) in wakings {
            ts = ts.wrapping_add(delta);
            let flags = flags.next();
            let Ok(ts) = i64::try_from(ts) else { continue };
            latest = latest.max(ts);
            events += 1;
            sorter.push(ts, queue, |record| {
                record.kind(Kind::CompactWaking);
                record.number(u64::from(cpu));
                record.signed(i64::from(pid));
                record.signed(i64::from(target));
                record.signed(i64::from(prio));
                record.symbol(comm(index));
                record.number(flags.map_or(0, |flags| u64::from(flags) + 1));
            });
        }
        self.latest = latest;
        self.survey.ftrace_events += events;
    }
}

//! Import of kernel events in the order of time: their rows, and their further effects.

use esatto_protozero::Fields;

use super::context::Context;
use super::descriptors::{MessageInfo, kernel_events, messages};
use super::kernel_event::{self as event, Event, Place};
use super::record::Get;
use super::tracks::{Dimension, TrackSpec};
use crate::string_table::Symbol;
use crate::tables::{Arg, ArgValue, FtraceEventRow, Row};

impl Context {
    /// Returns whether an event of this time is a row only; `None` if it is not imported.
    pub(super) fn admits_ftrace(&mut self, ts: i64) -> Option<bool> {
        let window = self.ftrace_bounds(self.tracks.file).window();
        if ts < window.begin {
            self.stats.count("ftrace_packet_before_tracing_start");
            self.kernel_events.early += 1;
            return None;
        }
        Some(ts < window.complete)
    }

    /// Notes by how much the trace clock of a machine is ahead, after the last packet.
    pub(super) fn note_ftrace_start(&mut self, machine: u32, ahead: i64) {
        const FACT: &str = "ftrace_latest_data_start_ns";
        let Some(&start) = self.ftrace_starts.get(&machine) else { return };
        let start = start.saturating_sub(ahead);
        let file = self.origins.origin(machine).file;
        let complete = &mut self.ftrace_bounds(file).complete;
        *complete = Some(start.max(complete.unwrap_or(i64::MIN)));
        let known = match self.facts.get(FACT) {
            Some(super::stats::Fact::Number(known)) => *known,
            _ => i64::MIN,
        };
        self.set_fact(FACT, super::stats::Fact::Number(start.max(known)));
    }

    /// Imports an event: a processor, a function, and an encoded `FtraceEvent`.
    pub(crate) fn import_ftrace(&mut self, ts: i64, machine: u32, mut record: Get<'_>) {
        let Some(only_raw) = self.admits_ftrace(ts) else { return };
        let cpu = u32::try_from(record.number()).unwrap_or(u32::MAX);
        let function = record.symbol();
        let bytes = record.rest();
        let tid = Fields::new(bytes).find(|f| f.id == event::PID).map(|f| i64::from(f.as_i32()));
        let Some(tid) = tid else {
            self.stats.count("ftrace_event_without_pid");
            return;
        };
        let place = Place { ts, machine, cpu, tid, function };
        for f in Fields::new(bytes) {
            match f.id {
                event::PID | event::TIMESTAMP | event::COMMON_FLAGS => continue,
                event::GENERIC => self.add_generic(place, f.as_bytes()),
                event::SCHED_SWITCH => {}
                id => self.add_raw(place, id, f.as_bytes()),
            }
            if only_raw {
                return;
            }
            self.import_event(place, f.id, Event(f.as_bytes()));
        }
    }

    /// Adds the row of an event.
    fn add_raw(&mut self, place: Place, id: u32, bytes: &[u8]) {
        if self.kernel_events.are_left_out && (kernel_events().contains_key(&id) || self.is_generic(place, id)) {
            return self.push_raw_at(place, None, &mut Vec::new());
        }
        let empty = MessageInfo::new();
        let known = kernel_events().get(&id);
        let (name, fields) = match (known, self.generic_events.get(&(place.machine, id))) {
            (Some(info), _) => (&info.name, messages().get(&info.message).unwrap_or(&empty)),
            (None, Some(event)) => (&event.name, &event.fields),
            (None, None) => return,
        };
        let strings = &mut self.tables.strings;
        let names = &mut self.kernel_names;
        let name = Some(names.event(id, name, strings));
        let function = event::function_field(id).zip(place.function);
        let mut args = Vec::new();
        for f in Fields::new(bytes) {
            let Some(field) = fields.get(&f.id) else { continue };
            let value = match function {
                Some((id, name)) if id == f.id => ArgValue::Text(Some(name)),
                _ => match field.argument(&f, strings) {
                    Some(value) => value,
                    None => continue,
                },
            };
            args.push(Arg::new(names.field(id, f.id, &field.name, strings), value));
        }
        self.push_raw_at(place, name, &mut args);
    }

    fn is_generic(&self, place: Place, id: u32) -> bool {
        self.generic_events.contains_key(&(place.machine, id))
    }

    fn push_raw_at(&mut self, place: Place, name: Option<Symbol>, args: &mut Vec<Arg>) {
        let utid = self.processes.thread(&mut self.tables, place.machine, place.tid);
        self.push_raw(place.ts, (place.machine, place.cpu), (utid, name), 0, |context| context.tables.args.add(args));
    }

    /// Adds the row of an event. `arguments` adds its arguments.
    pub(super) fn push_raw(
        &mut self,
        ts: i64,
        (machine, cpu): (u32, u32),
        (utid, name): (Row, Option<Symbol>),
        common_flags: u32,
        arguments: impl FnOnce(&mut Self) -> Option<Row>,
    ) {
        self.list_cpu(machine, cpu);
        let cpu = self.unique_cpu(machine, cpu);
        let (from, to) = self.kernel_events.bounds.unwrap_or((ts, ts));
        self.kernel_events.bounds = Some((from.min(ts), to.max(ts)));
        if self.kernel_events.are_left_out {
            return;
        }
        let arg_set_id = arguments(self);
        self.tables.ftrace_event.push(FtraceEventRow { ts, name, cpu, utid, arg_set_id, common_flags });
    }

    fn add_generic(&mut self, place: Place, bytes: &[u8]) {
        const EVENT_NAME: u32 = 1;
        const FIELD: u32 = 2;
        let (mut name, mut args) = (None, Vec::new());
        for f in Fields::new(bytes) {
            let strings = &mut self.tables.strings;
            match f.id {
                EVENT_NAME => name = Some(strings.add(f.as_bytes())),
                FIELD => {
                    let (mut key, mut value) = (None, None);
                    for f in Fields::new(f.as_bytes()) {
                        match f.id {
                            1 => key = Some(strings.add(f.as_bytes())),
                            3 => value = Some(ArgValue::Text(Some(strings.add(f.as_bytes())))),
                            4 | 5 => value = Some(ArgValue::Int(f.as_i64())),
                            _ => {}
                        }
                    }
                    args.extend(key.zip(value).map(|(key, value)| Arg::new(key, value)));
                }
                _ => {}
            }
        }
        self.push_raw_at(place, name, &mut args);
    }

    fn import_event(&mut self, place: Place, id: u32, event: Event<'_>) {
        match id {
            event::SCHED_SWITCH => self.sched_switch(place, event),
            event::SCHED_WAKING => self.sched_waking(place, event),
            event::SCHED_WAKEUP_NEW => self.sched_wakeup_new(place, event),
            event::SCHED_BLOCKED_REASON => self.sched_blocked_reason(place, event),
            event::TASK_NEWTASK => self.new_task(place, event),
            event::TASK_RENAME => self.task_rename(place, event),
            event::SCHED_PROCESS_FREE => {
                self.processes.end_thread(&mut self.tables, place.machine, event.int(2), place.ts);
            }
            event::SYS_ENTER => self.enter_syscall(place, event),
            event::SYS_EXIT => self.leave_syscall(place, event),
            event::PRINT => {
                let utid = self.processes.thread(&mut self.tables, place.machine, place.tid);
                self.end_write(place.ts, utid);
                self.print_marker(place.ts, place.machine, utid, place.tid, event.bytes(2));
            }
            _ => {
                let is_done = self.import_kernel_counter(place, id, event)
                    || self.import_kernel_slice(place, id, event)
                    || self.import_suspend_event(place, id, event)
                    || self.import_network_event(place, id, event);
                if !is_done {
                    self.import_kernel_track_event(place, id, event);
                }
            }
        }
    }

    /// Returns the track of a kernel event, with the machine of the event.
    pub(super) fn kernel_track(
        &mut self,
        machine: u32,
        (kind, name): (&'static str, Option<&str>),
        dimensions: &[Dimension<'_>],
        is_counter: bool,
    ) -> Row {
        for dimension in dimensions {
            if let Dimension::Cpu(cpu) = dimension {
                self.list_cpu(machine, *cpu);
            }
        }
        let name = name.map(|name| self.symbol(name));
        let machine = self.processes.machine_row(machine);
        let spec = TrackSpec { machine, is_counter, ..TrackSpec::new(kind, name, dimensions) };
        self.tracks.intern(&mut self.tables, &spec).0
    }

    /// Returns the track of the thread in which an event happened.
    pub(super) fn track_of_tid(&mut self, machine: u32, tid: i64) -> Row {
        let utid = self.processes.thread(&mut self.tables, machine, tid);
        self.tracks.thread(&mut self.tables, utid)
    }
}

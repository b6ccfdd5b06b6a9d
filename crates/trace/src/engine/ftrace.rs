//! Import of kernel events in the order of time.

use esatto_protozero::{Field, Fields};

use super::context::Context;
use super::descriptors::{MessageInfo, messages};
use super::lanes::LaneGroup;
use super::processes::NameSource;
use super::record::Get;
use super::scheduling::Switch;
use super::slices::{Begin, PENDING};
use super::tracks::{Dimension, TrackSpec};
use crate::string_table::Symbol;
use crate::tables::{Arg, ArgValue, FtraceEventRow, Row};

/// Fields of `FtraceEvent` that are no event.
const TIMESTAMP: u32 = 1;
const PID: u32 = 2;
const COMMON_FLAGS: u32 = 5;
/// Events that have an effect beside their row.
const PRINT: u32 = 3;
const SCHED_SWITCH: u32 = 4;
const CPU_FREQUENCY: u32 = 11;
const CPU_FREQUENCY_LIMITS: u32 = 12;
const CPU_IDLE: u32 = 13;
const CLOCK_SET_RATE: u32 = 16;
const SUSPEND_RESUME: u32 = 113;
const GPU_FREQUENCY: u32 = 332;
const SCHED_BLOCKED_REASON: u32 = 18;
const SCHED_WAKING: u32 = 20;
const SOFTIRQ_ENTRY: u32 = 24;
const SOFTIRQ_EXIT: u32 = 25;
const IRQ_HANDLER_ENTRY: u32 = 36;
const IRQ_HANDLER_EXIT: u32 = 37;
const SCHED_WAKEUP_NEW: u32 = 114;
const TASK_NEWTASK: u32 = 235;
const TASK_RENAME: u32 = 236;
const SCHED_PROCESS_FREE: u32 = 240;
const GENERIC: u32 = 327;
const SYS_ENTER: u32 = 329;
const SYS_EXIT: u32 = 330;

/// Flag of `clone` for a new thread of the same process.
const CLONE_THREAD: u64 = 0x0001_0000;
/// Number of a system call that none has; the kernel uses it for calls that it refused.
const NO_SYSCALL: i64 = -1;

const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// The fields of an event, by number; the last value of a field counts.
#[derive(Debug, Clone, Copy)]
struct Event<'e>(&'e [u8]);

impl<'e> Event<'e> {
    fn field(self, id: u32) -> Option<Field<'e>> {
        Fields::new(self.0).filter(|f| f.id == id).last()
    }

    fn int(self, id: u32) -> i64 {
        self.field(id).map_or(0, |f| f.as_i64())
    }

    fn uint(self, id: u32) -> u64 {
        self.field(id).map_or(0, |f| f.as_u64())
    }

    fn small(self, id: u32) -> u32 {
        self.field(id).map_or(0, |f| f.as_u32())
    }

    fn bytes(self, id: u32) -> &'e [u8] {
        self.field(id).map_or(&[][..], |f| f.as_bytes())
    }
}

impl Context {
    /// Imports an event: a processor and an encoded `FtraceEvent`.
    pub(crate) fn import_ftrace(&mut self, ts: i64, machine: u32, mut record: Get<'_>) {
        let cpu = u32::try_from(record.number()).unwrap_or(u32::MAX);
        let mut pid = 0;
        for f in Fields::new(record.rest()) {
            match f.id {
                PID => pid = i64::from(f.as_i32()),
                TIMESTAMP | COMMON_FLAGS => {}
                GENERIC => self.add_generic(ts, machine, cpu, pid, f.as_bytes()),
                id => {
                    let event = Event(f.as_bytes());
                    self.add_raw(ts, machine, cpu, pid, id, f.as_bytes());
                    self.import_event(ts, (machine, cpu), pid, id, event);
                }
            }
        }
    }

    /// Adds the row of an event.
    fn add_raw(&mut self, ts: i64, machine: u32, cpu: u32, pid: i64, id: u32, bytes: &[u8]) {
        let empty = MessageInfo::new();
        let known = messages().get("FtraceEvent").and_then(|events| events.get(&id));
        let (name, fields) = match (known, self.generic_events.get(&id)) {
            (Some(info), _) => (&info.name, messages().get(&info.message).unwrap_or(&empty)),
            (None, Some((name, fields))) => (name, fields),
            (None, None) => return,
        };
        let strings = &mut self.tables.strings;
        let name = Some(strings.add_str(name));
        let mut args = Vec::new();
        for f in Fields::new(bytes) {
            let Some(field) = fields.get(&f.id) else { continue };
            let Some(value) = field.argument(&f, strings) else { continue };
            args.push(Arg::new(strings.add_str(&field.name), value));
        }
        self.push_raw(ts, machine, cpu, (pid, name), &mut args, 0);
    }

    fn push_raw(
        &mut self,
        ts: i64,
        machine: u32,
        cpu: u32,
        (pid, name): (i64, Option<Symbol>),
        args: &mut Vec<Arg>,
        common_flags: u32,
    ) {
        self.list_cpu(machine, cpu);
        let utid = self.processes.thread(&mut self.tables, machine, pid);
        let arg_set_id = self.tables.args.add(args);
        let cpu = self.unique_cpu(machine, cpu);
        self.tables.ftrace_event.push(FtraceEventRow { ts, name, cpu, utid, arg_set_id, common_flags });
    }

    fn add_generic(&mut self, ts: i64, machine: u32, cpu: u32, pid: i64, bytes: &[u8]) {
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
        self.push_raw(ts, machine, cpu, (pid, name), &mut args, 0);
    }

    fn comm(&mut self, bytes: &[u8]) -> Option<Symbol> {
        Some(self.tables.strings.add(bytes))
    }

    fn import_event(&mut self, ts: i64, (machine, cpu): (u32, u32), pid: i64, id: u32, event: Event<'_>) {
        match id {
            SCHED_SWITCH => {
                let switch = Switch {
                    prev_comm: self.comm(event.bytes(1)),
                    prev_pid: event.int(2),
                    prev_state: event.int(4),
                    next_comm: self.comm(event.bytes(5)),
                    next_pid: event.int(6),
                    next_prio: event.int(7),
                };
                self.switch(ts, machine, cpu, switch);
            }
            SCHED_WAKING => {
                let wakee = self.processes.thread(&mut self.tables, machine, event.int(2));
                if let Some(comm) = self.comm(event.bytes(1)) {
                    self.processes.name_thread(&mut self.tables, wakee, comm, NameSource::Kernel);
                }
                let waker = self.processes.thread(&mut self.tables, machine, pid);
                self.wake(ts, wakee, Some(waker), None);
            }
            SCHED_WAKEUP_NEW => {
                let wakee = self.processes.thread(&mut self.tables, machine, event.int(2));
                if !self.has_state(wakee) {
                    let waker = self.processes.thread(&mut self.tables, machine, pid);
                    self.wake(ts, wakee, Some(waker), Some(0));
                }
            }
            SCHED_BLOCKED_REASON => {
                let utid = self.processes.thread(&mut self.tables, machine, event.int(1));
                let io_wait = event.field(3).map(|f| f.as_bool());
                self.blocked(utid, io_wait, None);
            }
            TASK_NEWTASK => self.new_task(ts, machine, pid, event),
            TASK_RENAME => {
                let utid = self.processes.thread(&mut self.tables, machine, event.int(1));
                if let Some(name) = self.comm(event.bytes(3)) {
                    self.processes.name_thread_and_process(&mut self.tables, utid, name, NameSource::Kernel);
                }
            }
            SCHED_PROCESS_FREE => self.processes.end_thread(&mut self.tables, machine, event.int(2), ts),
            CPU_FREQUENCY => {
                let cpu = event.small(2);
                self.list_cpu(machine, cpu);
                self.cpu_counter(machine, "cpu_frequency", "cpufreq", cpu, ts, event.uint(1) as f64);
            }
            CPU_IDLE => {
                let cpu = event.small(2);
                self.list_cpu(machine, cpu);
                self.cpu_counter(machine, "cpu_idle", "cpuidle", cpu, ts, f64::from(event.small(1)));
            }
            CPU_FREQUENCY_LIMITS => {
                let cpu = event.small(3);
                self.list_cpu(machine, cpu);
                for (kind, word, id) in [("cpu_max_frequency_limit", "Max", 2), ("cpu_min_frequency_limit", "Min", 1)] {
                    let name = format!("Cpu {cpu} {word} Freq Limit");
                    self.cpu_counter(machine, kind, &name, cpu, ts, event.uint(id) as f64);
                }
            }
            CLOCK_SET_RATE => {
                let device = String::from_utf8_lossy(event.bytes(1)).into_owned();
                self.clock_frequency(machine, &device, ts, event.uint(2) as f64);
            }
            GPU_FREQUENCY => {
                let name = Some(self.symbol("gpufreq"));
                let machine = self.processes.machine_row(machine);
                let dimensions = [Dimension::Number("gpu", i64::from(event.small(1)))];
                let unit = Some("MHz");
                let spec = TrackSpec { machine, unit, ..TrackSpec::counter("gpu_frequency", name, &dimensions) };
                let (track, _) = self.tracks.intern(&mut self.tables, &spec);
                self.add_counter(track, ts, event.uint(2) as f64);
            }
            SUSPEND_RESUME => self.suspend(ts, (machine, cpu), pid, event),
            IRQ_HANDLER_ENTRY => {
                let text = format!("IRQ ({})", String::from_utf8_lossy(event.bytes(2)));
                self.begin_irq(ts, machine, cpu, ("cpu_irq", "Irq"), &text);
            }
            IRQ_HANDLER_EXIT => {
                let ret = if event.int(2) == 1 { "handled" } else { "unhandled" };
                let arg = self.text_arg("ret", ret);
                self.end_irq(ts, machine, cpu, ("cpu_irq", "Irq"), arg);
            }
            SOFTIRQ_ENTRY => {
                let Some(name) = SOFTIRQS.get(event.small(1) as usize) else {
                    self.stats.count("ftrace_softirq_unknown");
                    return;
                };
                self.begin_irq(ts, machine, cpu, ("cpu_softirq", "SoftIrq"), name);
            }
            SOFTIRQ_EXIT => {
                let arg = self.arg("vec", ArgValue::Int(i64::from(event.small(1))));
                self.end_irq(ts, machine, cpu, ("cpu_softirq", "SoftIrq"), arg);
            }
            SYS_ENTER => self.enter_syscall(ts, machine, pid, event),
            SYS_EXIT => {
                let utid = self.processes.thread(&mut self.tables, machine, pid);
                let name = self.syscall_name(machine, event.int(1));
                let track = self.tracks.thread(&mut self.tables, utid);
                let slice = self.slices.end(&mut self.tables, &mut self.stats, track, ts, name, None);
                if let Some(slice) = slice {
                    let arg = self.arg("ret", ArgValue::Int(event.int(2)));
                    self.extend_slice(slice, &[arg]);
                }
            }
            PRINT => {
                let utid = self.processes.thread(&mut self.tables, machine, pid);
                self.end_write(ts, utid);
                self.print_marker(ts, machine, utid, pid, event.bytes(2));
            }
            _ => {}
        }
    }

    fn suspend(&mut self, ts: i64, (machine, cpu): (u32, u32), pid: i64, event: Event<'_>) {
        let text = format!("{}({})", String::from_utf8_lossy(event.bytes(1)), event.int(2));
        let title = Some(self.symbol("Suspend/Resume Latency"));
        let key = LaneGroup { kind: "suspend_resume", machine, title, ..LaneGroup::default() };
        let name = self.symbol(&text);
        // Each name is a member of its own.
        let member = u64::from(name.number());
        if event.small(3) == 0 {
            self.end_in_group(key, member, ts, None, None);
            return;
        }
        let utid = self.processes.thread(&mut self.tables, machine, pid);
        let mut args = vec![
            self.row_arg("utid", utid),
            self.text_arg("event_type", "Main Kernel Suspend Event"),
            self.arg("cpu", ArgValue::Uint(u64::from(cpu))),
            self.arg("device_name", ArgValue::Text(None)),
            self.arg("driver_name", ArgValue::Text(None)),
            self.arg("callback_phase", ArgValue::Text(None)),
        ];
        let args = self.tables.args.add(&mut args);
        let begin = |track| Begin { track, ts, dur: PENDING, category: None, name: Some(name), args };
        self.begin_in_group(key, member, begin, &[], ts);
    }

    fn new_task(&mut self, ts: i64, machine: u32, parent: i64, event: Event<'_>) {
        let tid = event.int(1);
        let name = self.comm(event.bytes(2));
        let source = self.processes.thread(&mut self.tables, machine, parent);
        let utid = if event.uint(3) & CLONE_THREAD == 0 {
            let named = name.map(|name| (name, NameSource::Kernel));
            self.processes.start_process(&mut self.tables, machine, tid, Some(ts), Some(parent), named);
            self.processes.thread(&mut self.tables, machine, tid)
        } else {
            let utid = self.processes.start_thread(&mut self.tables, machine, tid, Some(ts));
            if let Some(name) = name {
                self.processes.name_thread(&mut self.tables, utid, name, NameSource::Kernel);
            }
            self.processes.associate_threads(&mut self.tables, source, utid);
            utid
        };
        self.wake(ts, utid, Some(source), Some(0));
    }

    pub(crate) fn cpu_counter(&mut self, machine: u32, kind: &'static str, name: &str, cpu: u32, ts: i64, value: f64) {
        let name = Some(self.symbol(name));
        let machine = self.processes.machine_row(machine);
        let dimensions = [Dimension::Cpu(cpu)];
        let spec = TrackSpec { machine, ..TrackSpec::counter(kind, name, &dimensions) };
        let (track, _) = self.tracks.intern(&mut self.tables, &spec);
        self.add_counter(track, ts, value);
    }

    pub(crate) fn clock_frequency(&mut self, machine: u32, device: &str, ts: i64, value: f64) {
        let name = Some(self.symbol(&format!("{device} Frequency")));
        let machine = self.processes.machine_row(machine);
        let dimensions = [Dimension::Text("linux_device", device)];
        let spec = TrackSpec { machine, ..TrackSpec::counter("clock_frequency", name, &dimensions) };
        let (track, _) = self.tracks.intern(&mut self.tables, &spec);
        self.add_counter(track, ts, value);
    }

    fn irq_track(&mut self, machine: u32, cpu: u32, (kind, word): (&'static str, &str)) -> Row {
        self.list_cpu(machine, cpu);
        let name = Some(self.symbol(&format!("{word} Cpu {cpu}")));
        let machine = self.processes.machine_row(machine);
        let dimensions = [Dimension::Cpu(cpu)];
        let spec = TrackSpec { machine, ..TrackSpec::new(kind, name, &dimensions) };
        self.tracks.intern(&mut self.tables, &spec).0
    }

    fn begin_irq(&mut self, ts: i64, machine: u32, cpu: u32, kind: (&'static str, &str), name: &str) {
        let track = self.irq_track(machine, cpu, kind);
        let (category, name) = (Some(self.symbol("irq")), Some(self.symbol(name)));
        let begin = Begin { track, ts, dur: PENDING, category, name, args: None };
        self.slices.begin(&mut self.tables, &mut self.stats, begin);
    }

    fn end_irq(&mut self, ts: i64, machine: u32, cpu: u32, kind: (&'static str, &str), arg: Arg) {
        let track = self.irq_track(machine, cpu, kind);
        if let Some(slice) = self.slices.end(&mut self.tables, &mut self.stats, track, ts, None, None) {
            self.extend_slice(slice, &[arg]);
        }
    }

    fn syscall_name(&mut self, machine: u32, number: i64) -> Option<Symbol> {
        let arch = self.machine_arch.get(&machine).map_or("", String::as_str);
        let name =
            super::syscalls::name(arch, number).map_or_else(|| format!("sys_{number}"), |name| format!("sys_{name}"));
        Some(self.symbol(&name))
    }

    fn enter_syscall(&mut self, ts: i64, machine: u32, pid: i64, event: Event<'_>) {
        const ARGS: u32 = 2;
        let number = event.int(1);
        if number == NO_SYSCALL {
            return;
        }
        let utid = self.processes.thread(&mut self.tables, machine, pid);
        let name = self.syscall_name(machine, number);
        let flat_key = self.symbol("args");
        let mut args = Vec::new();
        for (index, f) in Fields::new(event.0).filter(|f| f.id == ARGS).enumerate() {
            let key = self.symbol(&format!("args[{index}]"));
            args.push(Arg { flat_key, key, value: ArgValue::Uint(f.as_u64()) });
        }
        let args = self.tables.args.add(&mut args);
        let track = self.tracks.thread(&mut self.tables, utid);
        // This call does not return.
        let is_last = name.is_some_and(|name| self.tables.strings.get(name) == "sys_rt_sigreturn");
        let dur = if is_last { 0 } else { PENDING };
        let begin = Begin { track, ts, dur, category: None, name, args };
        self.slices.begin(&mut self.tables, &mut self.stats, begin);
    }

    /// Ends the system call by which a thread writes a mark, so that it does not contain the mark.
    fn end_write(&mut self, ts: i64, utid: Row) {
        let Some(track) = self.tracks.known_thread(utid) else { return };
        let Some(top) = self.slices.top(track) else { return };
        let name = self.tables.slice.name[top.index()];
        if name.is_some_and(|name| self.tables.strings.get(name) == "sys_write") {
            self.slices.end(&mut self.tables, &mut self.stats, track, ts, name, None);
        }
    }

    /// Imports a switch of the compact form.
    pub(crate) fn import_compact_switch(&mut self, ts: i64, machine: u32, mut record: Get<'_>) {
        let cpu = u32::try_from(record.number()).unwrap_or(u32::MAX);
        let (prev_state, next_pid, next_prio) = (record.signed(), record.signed(), record.signed());
        let next_comm = record.symbol();
        let switch = Switch { prev_pid: 0, prev_comm: None, prev_state, next_pid, next_comm, next_prio };
        let Some(previous) = self.compact_switch(ts, machine, cpu, &switch) else { return };
        let prev_comm = self.tables.thread.name[previous.utid.index()];
        let mut args = vec![
            self.arg("prev_comm", ArgValue::Text(prev_comm)),
            self.arg("prev_pid", ArgValue::Int(previous.pid)),
            self.arg("prev_prio", ArgValue::Int(previous.prio)),
            self.arg("prev_state", ArgValue::Int(prev_state)),
            self.arg("next_comm", ArgValue::Text(next_comm)),
            self.arg("next_pid", ArgValue::Int(next_pid)),
            self.arg("next_prio", ArgValue::Int(next_prio)),
        ];
        let name = Some(self.symbol("sched_switch"));
        self.push_raw(ts, machine, cpu, (previous.pid, name), &mut args, 0);
    }

    /// Imports a wake-up of the compact form.
    pub(crate) fn import_compact_waking(&mut self, ts: i64, machine: u32, mut record: Get<'_>) {
        let cpu = u32::try_from(record.number()).unwrap_or(u32::MAX);
        let (pid, target, prio) = (record.signed(), record.signed(), record.signed());
        let comm = record.symbol();
        let flags = record.number().checked_sub(1).map(|flags| u32::try_from(flags).unwrap_or(0));
        let Some(waker) = self.running_on(machine, cpu) else {
            self.stats.count("compact_sched_waking_skipped");
            return;
        };
        let mut args = vec![
            self.arg("comm", ArgValue::Text(comm)),
            self.arg("pid", ArgValue::Int(pid)),
            self.arg("prio", ArgValue::Int(prio)),
            self.arg("target_cpu", ArgValue::Int(target)),
        ];
        let name = Some(self.symbol("sched_waking"));
        let waker_tid = self.tables.thread.tid[waker.index()];
        self.push_raw(ts, machine, cpu, (waker_tid, name), &mut args, flags.unwrap_or(0));
        let wakee = self.processes.thread(&mut self.tables, machine, pid);
        if let Some(comm) = comm {
            self.processes.name_thread(&mut self.tables, wakee, comm, NameSource::Kernel);
        }
        self.wake(ts, wakee, Some(waker), flags.or(Some(0)));
    }
}

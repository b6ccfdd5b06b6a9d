//! Kernel events about tasks: switches, wake-ups, new tasks, names and ends.

use super::context::Context;
use super::kernel_event::{Event, Place};
use super::processes::NameSource;
use super::recent_sets::{RecentSets, Values, both};
use super::record::Get;
use super::scheduling::Switch;
use crate::string_table::Symbol;
use crate::tables::{Arg, ArgValue, Row};

/// Flag of `clone` for a new thread of the same process.
const CLONE_THREAD: u64 = 0x0001_0000;

impl Context {
    fn comm(&mut self, bytes: &[u8]) -> Symbol {
        self.tables.strings.add(bytes)
    }

    pub(super) fn sched_switch(&mut self, place: Place, event: Event<'_>) {
        let switch = Switch {
            prev_comm: Some(self.comm(event.bytes(1))),
            prev_pid: event.int(2),
            prev_state: event.int(4),
            next_comm: Some(self.comm(event.bytes(5))),
            next_pid: event.int(6),
            next_prio: event.int(7),
        };
        let prev_prio = event.int(3);
        let utid = self.switch(place.ts, place.machine, place.cpu, &switch);
        self.push_raw_switch(place.ts, (place.machine, place.cpu), utid, &switch, prev_prio);
    }

    fn push_raw_switch(
        &mut self,
        ts: i64,
        (machine, cpu): (u32, u32),
        prev_utid: Row,
        switch: &Switch,
        prev_prio: i64,
    ) {
        let names = self.kernel_names.scheduler(&mut self.tables.strings);
        let values = [
            ArgValue::Text(switch.prev_comm),
            ArgValue::Int(switch.prev_pid),
            ArgValue::Int(prev_prio),
            ArgValue::Int(switch.prev_state),
            ArgValue::Text(switch.next_comm),
            ArgValue::Int(switch.next_pid),
            ArgValue::Int(switch.next_prio),
        ];
        let key = || {
            let pids = both(switch.prev_pid, switch.next_pid)?;
            let prios = both(prev_prio, switch.next_prio)?;
            let state = u64::from_ne_bytes(switch.prev_state.to_ne_bytes());
            Some([symbols(switch.prev_comm, switch.next_comm), pids, prios, state])
        };
        let name = Some(names.sched_switch);
        self.push_raw(ts, (machine, cpu), (prev_utid, name), 0, |context| {
            context.kernel_set(|context| &mut context.switch_sets, key(), &names.of_switch, &values)
        });
    }

    /// Returns the set of these arguments: one of the recent sets, or from the table.
    fn kernel_set(
        &mut self,
        recent: fn(&mut Self) -> &mut RecentSets,
        key: Option<Values>,
        names: &[Symbol],
        values: &[ArgValue],
    ) -> Option<Row> {
        let hash = key.map(|key| recent(self).hash(&key));
        if let Some(known) = hash.and_then(|hash| recent(self).get(hash)) {
            return Some(known);
        }
        self.kernel_args.clear();
        self.kernel_args.extend(names.iter().zip(values).map(|(&name, &value)| Arg::new(name, value)));
        let set = self.tables.args.add(&mut self.kernel_args)?;
        if let Some(hash) = hash {
            recent(self).insert(hash, set);
        }
        Some(set)
    }

    pub(super) fn sched_waking(&mut self, place: Place, event: Event<'_>) {
        let wakee = self.processes.thread(&mut self.tables, place.machine, event.int(2));
        let comm = self.comm(event.bytes(1));
        self.processes.name_thread(&mut self.tables, wakee, comm, NameSource::Kernel);
        let waker = self.processes.thread(&mut self.tables, place.machine, place.tid);
        self.wake(place.ts, wakee, Some(waker), None);
    }

    pub(super) fn sched_wakeup_new(&mut self, place: Place, event: Event<'_>) {
        let wakee = self.processes.thread(&mut self.tables, place.machine, event.int(2));
        if !self.has_state(wakee) {
            let waker = self.processes.thread(&mut self.tables, place.machine, place.tid);
            self.wake(place.ts, wakee, Some(waker), Some(0));
        }
    }

    pub(super) fn sched_blocked_reason(&mut self, place: Place, event: Event<'_>) {
        let utid = self.processes.thread(&mut self.tables, place.machine, event.int(1));
        self.blocked(utid, event.small(3) != 0, place.function);
    }

    pub(super) fn new_task(&mut self, place: Place, event: Event<'_>) {
        let Place { ts, machine, tid: parent, .. } = place;
        let tid = event.int(1);
        if tid == 0 {
            // The kernel makes its idle threads while it boots.
            return;
        }
        let name = self.comm(event.bytes(2));
        let source = self.processes.thread(&mut self.tables, machine, parent);
        let utid = if event.uint(3) & CLONE_THREAD == 0 {
            let named = Some((name, NameSource::Kernel));
            self.processes.start_process(&mut self.tables, machine, tid, Some(ts), Some(parent), named);
            self.processes.thread(&mut self.tables, machine, tid)
        } else {
            let utid = self.processes.start_thread(&mut self.tables, machine, tid, Some(ts));
            self.processes.name_thread(&mut self.tables, utid, name, NameSource::Kernel);
            self.processes.associate_threads(&mut self.tables, source, utid);
            utid
        };
        self.wake(ts, utid, Some(source), Some(0));
    }

    pub(super) fn task_rename(&mut self, place: Place, event: Event<'_>) {
        let utid = self.processes.thread(&mut self.tables, place.machine, event.int(1));
        let name = self.comm(event.bytes(3));
        self.processes.name_thread_and_process(&mut self.tables, utid, name, NameSource::Kernel);
    }

    /// Imports a switch of the compact form.
    pub(crate) fn import_compact_switch(&mut self, ts: i64, machine: u32, mut record: Get<'_>) {
        let Some(only_raw) = self.admits_ftrace(ts) else { return };
        let cpu = u32::try_from(record.number()).unwrap_or(u32::MAX);
        let (prev_state, next_pid, next_prio) = (record.signed(), record.signed(), record.signed());
        let next_comm = record.symbol();
        let switch = Switch { prev_pid: 0, prev_comm: None, prev_state, next_pid, next_comm, next_prio };
        let Some(previous) = self.compact_switch(ts, machine, cpu, &switch, only_raw) else { return };
        let prev_comm = self.tables.thread.name[previous.utid.index()];
        let switch = Switch { prev_pid: previous.pid, prev_comm, ..switch };
        self.push_raw_switch(ts, (machine, cpu), previous.utid, &switch, previous.prio);
    }

    /// Imports a wake-up of the compact form.
    pub(crate) fn import_compact_waking(&mut self, ts: i64, machine: u32, mut record: Get<'_>) {
        let Some(only_raw) = self.admits_ftrace(ts) else { return };
        let cpu = u32::try_from(record.number()).unwrap_or(u32::MAX);
        let (pid, target, prio) = (record.signed(), record.signed(), record.signed());
        let comm = record.symbol();
        let flags = record.number().checked_sub(1).map(|flags| u32::try_from(flags).unwrap_or(0));
        let Some(waker) = self.running_on(machine, cpu) else {
            self.stats.count("compact_sched_waking_skipped");
            return;
        };
        let names = self.kernel_names.scheduler(&mut self.tables.strings);
        let values = [ArgValue::Text(comm), ArgValue::Int(pid), ArgValue::Int(prio), ArgValue::Int(target)];
        let key = || Some([symbols(comm, None), both(pid, target)?, both(prio, 0)?, 0]);
        let name = Some(names.sched_waking);
        self.push_raw(ts, (machine, cpu), (waker, name), flags.unwrap_or(0), |context| {
            context.kernel_set(|context| &mut context.waking_sets, key(), &names.of_waking, &values)
        });
        if only_raw {
            return;
        }
        let wakee = self.processes.thread(&mut self.tables, machine, pid);
        self.wake(ts, wakee, Some(waker), flags.or(Some(0)));
    }
}

/// Returns two texts as one value.
fn symbols(a: Option<Symbol>, b: Option<Symbol>) -> u64 {
    let number = |symbol: Option<Symbol>| symbol.map_or(0, |symbol| u64::from(symbol.number()));
    number(a) << 32 | number(b)
}

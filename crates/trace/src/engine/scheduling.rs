//! Scheduling: which thread each processor ran, and the states of threads.

use super::context::Context;
use super::processes::NameSource;
use super::scheduling_state::{Cpu, LastState};
use super::task_state;
use crate::string_table::Symbol;
use crate::tables::{Row, SchedRow, SpuriousWakeupRow, ThreadStateRow};

/// Duration of a state that has not ended.
const OPEN: i64 = -1;
/// Processors of a machine that are listed; others may run threads nevertheless.
const MAX_LISTED_CPUS: u32 = 4096;
/// Flags of the kernel for events in interrupts.
const IRQ_FLAGS: u32 = 0x08 | 0x10;

/// A switch from one thread to another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Switch {
    pub(crate) prev_pid: i64,
    pub(crate) prev_comm: Option<Symbol>,
    pub(crate) prev_state: i64,
    pub(crate) next_pid: i64,
    pub(crate) next_comm: Option<Symbol>,
    pub(crate) next_prio: i64,
}

/// Fields of an event that its compact form leaves out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Previous {
    pub(crate) utid: Row,
    pub(crate) pid: i64,
    pub(crate) prio: i64,
}

impl Context {
    fn named_thread(&mut self, machine: u32, pid: i64, comm: Option<Symbol>) -> Row {
        let utid = self.processes.thread(&mut self.tables, machine, pid);
        if let Some(comm) = comm {
            self.processes.name_thread(&mut self.tables, utid, comm, NameSource::Kernel);
        }
        utid
    }

    fn state_text(&mut self, machine: u32, state: i64) -> Option<Symbol> {
        // The kernel reports few bits; the trace processor reads the lower 16.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the lower bits")]
        let state = state as u16;
        if let Some(&known) = self.scheduling.states.get(&(machine, state)) {
            return known;
        }
        let text = task_state::letters(state, self.kernel_versions.get(&machine).copied());
        let text = text.map(|text| self.symbol(&text));
        self.scheduling.states.insert((machine, state), text);
        text
    }

    /// Returns the number of a processor in the whole trace.
    pub(crate) fn unique_cpu(&self, machine: u32, cpu: u32) -> u32 {
        let machine = self.processes.machine_row(machine).map_or(0, |row| row.number() - 1);
        machine.wrapping_mul(MAX_LISTED_CPUS).wrapping_add(cpu)
    }

    /// Lists a processor. Returns its row.
    pub(crate) fn list_cpu(&mut self, machine: u32, cpu: u32) -> Option<Row> {
        if cpu >= MAX_LISTED_CPUS {
            return None;
        }
        if let Some(row) = self.scheduling.recently_listed(machine, cpu) {
            return Some(row);
        }
        let machine_id = self.processes.machine_row(machine);
        let table = &mut self.tables.cpu;
        let row = *self.scheduling.listed.entry((self.origins.home(machine), cpu)).or_insert_with(|| {
            table.push(crate::tables::CpuRow { cpu, cluster_id: Some(0), processor: None, machine_id, capacity: None })
        });
        self.scheduling.note_listed(machine, cpu, row);
        Some(row)
    }

    /// Imports a switch of the plain form. Returns the thread before.
    pub(crate) fn switch(&mut self, ts: i64, machine: u32, cpu: u32, switch: &Switch) -> Row {
        self.list_cpu(machine, cpu);
        let next_utid = self.named_thread(machine, switch.next_pid, switch.next_comm);
        let state = self.state_text(machine, switch.prev_state);
        if state.is_none() {
            self.stats.count("task_state_invalid");
        }
        let before = self.scheduling.cpus.get(machine, cpu).copied();
        if let Some(Cpu { open: Some(open), pid, .. }) = before {
            if pid == switch.prev_pid {
                self.close(open, ts, state);
            } else {
                self.stats.count("mismatched_sched_switch_tids");
            }
        }
        let prev_utid = self.named_thread(machine, switch.prev_pid, switch.prev_comm);
        self.run(ts, (machine, cpu), prev_utid, state, next_utid, switch);
        prev_utid
    }

    /// Imports a switch of the compact form. Returns the fields of the thread before, unless it is
    /// the first event of its processor. With `only_raw`, no interval begins.
    pub(crate) fn compact_switch(
        &mut self,
        ts: i64,
        machine: u32,
        cpu: u32,
        switch: &Switch,
        only_raw: bool,
    ) -> Option<Previous> {
        self.list_cpu(machine, cpu);
        let next_utid = self.named_thread(machine, switch.next_pid, switch.next_comm);
        let Some(&before) = self.scheduling.cpus.get(machine, cpu) else {
            let state = Cpu { open: None, pid: switch.next_pid, utid: next_utid, prio: switch.next_prio };
            self.scheduling.cpus.set(machine, cpu, state);
            self.stats.count("compact_sched_switch_skipped");
            return None;
        };
        let state = self.state_text(machine, switch.prev_state);
        if let Some(open) = before.open {
            self.close(open, ts, state);
        }
        if only_raw {
            let state = Cpu { open: None, pid: switch.next_pid, utid: next_utid, prio: switch.next_prio };
            self.scheduling.cpus.set(machine, cpu, state);
        } else {
            self.run(ts, (machine, cpu), before.utid, state, next_utid, switch);
        }
        Some(Previous { utid: before.utid, pid: before.pid, prio: before.prio })
    }

    /// Returns the thread that a processor runs.
    pub(crate) fn running_on(&self, machine: u32, cpu: u32) -> Option<Row> {
        self.scheduling.cpus.get(machine, cpu).map(|cpu| cpu.utid)
    }

    fn close(&mut self, open: Row, ts: i64, state: Option<Symbol>) {
        let index = open.index();
        let dur = ts.saturating_sub(self.tables.sched.ts.get(index));
        self.tables.sched.dur.set(index, dur);
        self.tables.sched.end_state.set(index, state);
    }

    fn run(
        &mut self,
        ts: i64,
        (machine, cpu): (u32, u32),
        prev_utid: Row,
        prev_state: Option<Symbol>,
        next_utid: Row,
        switch: &Switch,
    ) {
        let priority = i32::try_from(switch.next_prio).unwrap_or(0);
        let ucpu = self.unique_cpu(machine, cpu);
        if self.scheduling.gaps.add_switch(machine, ts) {
            let before = self.scheduling.cpus.get(machine, cpu).filter(|before| before.pid != 0);
            if let Some(open) = before.and_then(|before| before.open) {
                self.scheduling.gaps.add_run(machine, (self.tables.sched.ts.get(open.index()), ts));
            }
        }
        let row = SchedRow { ts, dur: OPEN, cpu: ucpu, utid: next_utid, end_state: None, priority };
        let open = Some(self.tables.sched.push(row));
        let state = Cpu { open, pid: switch.next_pid, utid: next_utid, prio: switch.next_prio };
        self.scheduling.cpus.set(machine, cpu, state);
        let running = *self.scheduling.running.get_or_insert_with(|| self.tables.strings.add_str("Running"));
        let is_running = |context: &Self| {
            let last = context.scheduling.last(prev_utid).map(|last| last.row);
            last.is_none_or(|last| context.tables.thread_state.state.get(last.index()) == Some(running))
        };
        // A thread that was not running: events were lost, so the end of its state is not known.
        if is_running(self) {
            self.close_state(prev_utid, ts);
        }
        self.open_state(ts, prev_utid, prev_state, None, None);
        self.close_state(next_utid, ts);
        self.open_state(ts, next_utid, Some(running), Some(ucpu), None);
    }

    fn close_state(&mut self, utid: Row, ts: i64) {
        if let Some(LastState { row: last, .. }) = self.scheduling.last(utid) {
            let table = &mut self.tables.thread_state;
            let dur = ts.saturating_sub(table.ts.get(last.index()));
            table.dur.set(last.index(), dur);
        }
    }

    fn open_state(
        &mut self,
        ts: i64,
        utid: Row,
        state: Option<Symbol>,
        cpu: Option<u32>,
        waker: Option<(Option<Row>, Option<u32>)>,
    ) {
        if self.tables.thread.is_idle[utid.index()] {
            return;
        }
        let (waker_utid, flags) = waker.unwrap_or((None, None));
        let waker_id = waker_utid.and_then(|waker| self.scheduling.last(waker)).map(|last| last.row);
        // If the waker does not run, its events were lost.
        let states = &self.tables.thread_state.state;
        let waker_id = waker_id.filter(|last| states.get(last.index()) == self.scheduling.running);
        let row = self.tables.thread_state.push(ThreadStateRow {
            ts,
            dur: OPEN,
            cpu,
            utid,
            state,
            io_wait: None,
            blocked_function: None,
            waker_utid,
            waker_id,
            irq_context: flags.map(|flags| flags & IRQ_FLAGS != 0),
        });
        let blocked = if state == self.scheduling.running {
            None
        } else if self.is_runnable(state) {
            self.scheduling.last(utid).and_then(|last| last.blocked)
        } else {
            Some(row)
        };
        self.scheduling.set_last(utid, LastState { row, blocked });
    }

    fn is_runnable(&self, state: Option<Symbol>) -> bool {
        state.is_some_and(|state| self.tables.strings.get(state) == "R")
    }

    /// Imports a wake-up.
    pub(crate) fn wake(&mut self, ts: i64, utid: Row, waker: Option<Row>, flags: Option<u32>) {
        let runnable = *self.scheduling.runnable.get_or_insert_with(|| self.tables.strings.add_str("R"));
        if let Some(LastState { row: last, .. }) = self.scheduling.last(utid) {
            let state = self.tables.thread_state.state.get(last.index());
            if state == self.scheduling.running || self.is_runnable(state) {
                let irq_context = flags.map(|flags| flags & IRQ_FLAGS != 0);
                let thread_state_id = Some(last);
                let row = SpuriousWakeupRow { ts, thread_state_id, irq_context, utid, waker_utid: waker };
                self.tables.spurious_sched_wakeup.push(row);
                return;
            }
            self.close_state(utid, ts);
        }
        self.open_state(ts, utid, Some(runnable), None, Some((waker, flags)));
    }

    /// Adds the reason for which a thread was blocked.
    pub(crate) fn blocked(&mut self, utid: Row, io_wait: bool, function: Option<Symbol>) {
        let Some(LastState { blocked: Some(row), .. }) = self.scheduling.last(utid) else { return };
        let table = &mut self.tables.thread_state;
        table.io_wait.set(row, io_wait);
        if let Some(function) = function {
            table.blocked_function.set(row, function);
        }
    }

    /// Returns whether a thread has a state.
    pub(crate) fn has_state(&self, utid: Row) -> bool {
        self.scheduling.last(utid).is_some()
    }
}

//! Slices of system calls.

use esatto_protozero::Fields;

use super::context::Context;
use super::kernel_event::{Event, Place};
use super::slices::{Begin, PENDING};
use super::syscalls;
use crate::string_table::Symbol;
use crate::tables::{Arg, ArgValue, Row};

/// Numbers of system calls are below this one; the kernel uses others for calls that it refused.
const END_OF_NUMBERS: u64 = 550;

impl Context {
    fn syscall_name(&mut self, machine: u32, number: u64) -> Option<Symbol> {
        let number = i64::try_from(number).ok().filter(|_| number < END_OF_NUMBERS)?;
        let arch = self.machine_arch.get(&machine).map_or("", String::as_str);
        let name = match syscalls::name(arch, number) {
            Some(name) => format!("sys_{name}"),
            None => format!("sys_{number}"),
        };
        Some(self.symbol(&name))
    }

    fn is_write(&self, name: Symbol) -> bool {
        self.tables.strings.get(name) == "sys_write"
    }

    pub(super) fn enter_syscall(&mut self, place: Place, event: Event<'_>) {
        const ARGS: u32 = 2;
        let utid = self.processes.thread(&mut self.tables, place.machine, place.tid);
        let Some(name) = self.syscall_name(place.machine, event.uint(1)) else { return };
        let flat_key = self.symbol("args");
        let mut args = Vec::new();
        for (index, f) in Fields::new(event.0).filter(|f| f.id == ARGS).enumerate() {
            let key = self.symbol(&format!("args[{index}]"));
            args.push(Arg { flat_key, key, value: ArgValue::Uint(f.as_u64()) });
        }
        let args = self.tables.args.add(&mut args);
        let track = self.tracks.thread(&mut self.tables, utid);
        // This call does not return.
        let dur = if self.tables.strings.get(name) == "sys_rt_sigreturn" { 0 } else { PENDING };
        let begin = Begin { track, ts: place.ts, dur, category: None, name: Some(name), args };
        self.slices.begin(&mut self.tables, &mut self.stats, begin);
        if self.is_write(name) {
            self.writers.0.insert(utid);
        }
    }

    pub(super) fn leave_syscall(&mut self, place: Place, event: Event<'_>) {
        let utid = self.processes.thread(&mut self.tables, place.machine, place.tid);
        let Some(name) = self.syscall_name(place.machine, event.uint(1)) else { return };
        // A write whose begin is missing, or that a mark has ended.
        if self.is_write(name) && !self.writers.0.remove(&utid) {
            return;
        }
        let track = self.tracks.thread(&mut self.tables, utid);
        let slice = self.slices.end(&mut self.tables, &mut self.stats, track, place.ts, Some(name), None);
        if let (Some(slice), Some(ret)) = (slice, event.field(2)) {
            let arg = self.arg("ret", ArgValue::Int(ret.as_i64()));
            self.extend_slice(slice, &[arg]);
        }
    }

    /// Ends the system call by which a thread writes a mark, so that it does not contain the mark.
    pub(super) fn end_write(&mut self, ts: i64, utid: Row) {
        if self.writers.0.remove(&utid) {
            let track = self.tracks.thread(&mut self.tables, utid);
            let name = Some(self.symbol("sys_write"));
            self.slices.end(&mut self.tables, &mut self.stats, track, ts, name, None);
        }
    }
}

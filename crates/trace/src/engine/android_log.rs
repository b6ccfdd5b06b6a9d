//! Log messages of Android.

use esatto_protozero::Fields;

use super::context::Context;
use super::record::{Get, Kind, Put as _};
use super::tokenizer::{Time, Tokenizer};
use crate::clock_conversion::ClockKey;
use crate::tables::{LogRow, signed};

const REALTIME: u32 = 1;

impl Tokenizer {
    /// Reads an `AndroidLogPacket`.
    pub(super) fn add_log(&mut self, bytes: &[u8], machine: u32) {
        const EVENTS: u32 = 1;
        for event in Fields::new(bytes).filter(|f| f.id == EVENTS) {
            let (mut pid, mut tid, mut ticks, mut priority) = (0, 0, 0, 0);
            let (mut tag, mut message) = (None, None);
            for f in Fields::new(event.as_bytes()) {
                let strings = &mut self.context.tables.strings;
                match f.id {
                    2 => pid = i64::from(f.as_i32()),
                    3 => tid = i64::from(f.as_i32()),
                    5 => ticks = f.as_u64(),
                    6 => tag = Some(strings.add(f.as_bytes())),
                    7 => priority = f.as_u64(),
                    8 => message = Some(strings.add(f.as_bytes())),
                    _ => {}
                }
            }
            let clock = ClockKey::of_machine(REALTIME, machine);
            let Some(ts) = self.clocks.machine_time(clock, signed(ticks)) else {
                self.context.stats.count("clock_sync_failure_no_path");
                continue;
            };
            self.push(machine, Time::Known(ts), 0, |out| {
                out.kind(Kind::Log);
                out.signed(pid);
                out.signed(tid);
                out.number(priority);
                out.symbol(tag);
                out.symbol(message);
            });
        }
    }
}

impl Context {
    pub(crate) fn import_log(&mut self, ts: i64, machine: u32, mut record: Get<'_>) {
        let (pid, tid) = (record.signed(), record.signed());
        let prio = u32::try_from(record.number()).unwrap_or(0);
        let (tag, msg) = (record.symbol(), record.symbol());
        let utid = (tid != 0).then(|| self.processes.thread_of(&mut self.tables, machine, tid, pid));
        self.tables.android_logs.push(LogRow { ts, utid, prio, tag, msg });
    }
}

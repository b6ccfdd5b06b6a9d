//! Samples of call stacks that programs took themselves.

use esatto_protozero::Fields;
use esatto_schema::streaming_profile_packet;

use super::context::Context;
use super::record::{Get, Kind, Put as _};
use super::tokenizer::{Time, Tokenizer};
use crate::clock_conversion::ClockKey;
use crate::tables::StackSampleRow;

const MONOTONIC: u32 = 3;

impl Tokenizer {
    /// Reads a `StreamingProfilePacket`. Its times follow the one in the descriptor of the thread.
    pub(super) fn add_stack_samples(&mut self, bytes: &[u8], sequence: usize, machine: u32) {
        use streaming_profile_packet::field;
        let Some((pid, tid)) = self.context.generations[self.generation(sequence)].thread else { return };
        let Some(mut ticks) = self.stacks.sample_times.get(&sequence).copied() else { return };
        // The first time is converted, and the others follow it.
        let clock = ClockKey::of_machine(MONOTONIC, machine);
        let ahead = self.clocks.machine_time(clock, ticks).map_or(0, |ts| ts.saturating_sub(ticks));
        let priority = Fields::new(bytes).find(|f| f.id == field::PROCESS_PRIORITY).map_or(0, |f| f.as_i32());
        let reader = streaming_profile_packet_reader(bytes);
        for (iid, delta) in reader {
            ticks = ticks.saturating_add(delta.saturating_mul(1000));
            let Some(callsite) = self.callsite(sequence, pid, iid) else {
                self.context.stats.count("stackprofile_parser_error");
                continue;
            };
            self.push(machine, Time::Known(ticks.saturating_add(ahead)), 0, |out| {
                out.kind(Kind::StackSample);
                out.signed(pid);
                out.signed(tid);
                out.number(u64::from(callsite.number()));
                out.signed(i64::from(priority));
            });
        }
        self.stacks.sample_times.insert(sequence, ticks);
    }

    /// Notes the time in a descriptor of a thread.
    pub(super) fn note_reference_time(&mut self, bytes: &[u8], sequence: usize) {
        use esatto_schema::thread_descriptor::field;
        let time = Fields::new(bytes).find(|f| f.id == field::REFERENCE_TIMESTAMP_US);
        if let Some(time) = time {
            self.stacks.sample_times.insert(sequence, time.as_i64().saturating_mul(1000));
        }
    }
}

/// Iterates over the call stacks and times of a `StreamingProfilePacket`.
fn streaming_profile_packet_reader(bytes: &[u8]) -> impl Iterator<Item = (u64, i64)> + '_ {
    use streaming_profile_packet::field;
    let stacks = Fields::new(bytes).filter(|f| f.id == field::CALLSTACK_IID).map(|f| f.as_u64());
    let times = Fields::new(bytes).filter(|f| f.id == field::TIMESTAMP_DELTA_US).map(|f| f.as_i64());
    stacks.zip(times)
}

impl Context {
    pub(crate) fn import_stack_sample(&mut self, ts: i64, machine: u32, mut record: Get<'_>) {
        let (pid, tid) = (record.signed(), record.signed());
        let Some(callsite_id) = record.row() else { return };
        let process_priority = i32::try_from(record.signed()).unwrap_or(0);
        let utid = self.processes.thread_of(&mut self.tables, machine, tid, pid);
        let row = StackSampleRow { ts, callsite_id, utid, process_priority };
        self.tables.cpu_profile_stack_sample.push(row);
    }
}

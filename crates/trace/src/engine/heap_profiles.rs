//! Heap profiles.

use esatto_protozero::Fields;
use esatto_schema::profile_packet::{
    field, heap_sample::field as sample, process_heap_samples::field as dump, process_stats::field as process_stats,
};

use super::context::Context;
use super::record::{Get, Kind, Put as _};
use super::tokenizer::{Time, Tokenizer};
use crate::clock_conversion::ClockKey;
use crate::tables::{AllocationRow, signed};

const MONOTONIC_COARSE: u32 = 4;
/// The allocator of Android's runtime does not tell what is freed.
const ART_HEAP: &str = "com.android.art";
const CLIENT_ERROR_HIT_TIMEOUT: u64 = 1;

impl Tokenizer {
    /// Reads a `ProfilePacket`.
    pub(super) fn add_heap_profile(&mut self, bytes: &[u8], sequence: usize, machine: u32, time: Time) {
        let mut is_continued = false;
        for f in Fields::new(bytes) {
            match f.id {
                field::STRINGS | field::FRAMES | field::CALLSTACKS | field::MAPPINGS => {
                    self.keep_inline_stacks(&f, sequence);
                }
                field::CONTINUED => is_continued = f.as_bool(),
                _ => {}
            }
        }
        for process in Fields::new(bytes).filter(|f| f.id == field::PROCESS_DUMPS) {
            self.add_dump(process.as_bytes(), sequence, machine, time);
        }
        if !is_continued {
            self.end_inline_stacks(sequence);
        }
    }

    /// Reads what the heap of a process contains.
    fn add_dump(&mut self, bytes: &[u8], sequence: usize, machine: u32, time: Time) {
        let (mut pid, mut heap, mut ticks) = (0, None, 0);
        let (mut interval, mut original_interval) = (0, 0);
        for f in Fields::new(bytes) {
            match f.id {
                dump::PID => pid = f.as_i64(),
                dump::HEAP_NAME => heap = Some(self.context.tables.strings.add(f.as_bytes())),
                dump::TIMESTAMP => ticks = f.as_u64(),
                dump::SAMPLING_INTERVAL_BYTES => interval = f.as_i64(),
                dump::ORIG_SAMPLING_INTERVAL_BYTES => original_interval = f.as_i64(),
                _ => {}
            }
        }
        let heap = heap.unwrap_or_else(|| self.context.symbol("unknown"));
        let clock = ClockKey::of_machine(MONOTONIC_COARSE, machine);
        let Some(ts) = self.clocks.machine_time(clock, signed(ticks)) else {
            self.context.stats.count("clock_sync_failure_no_path");
            return;
        };
        self.count_heap_losses(bytes, pid);
        if original_interval != 0 {
            let adjusted = interval.wrapping_sub(original_interval);
            self.context.stats.set("heapprofd_sampling_interval_adjusted", Some(pid), adjusted);
        }
        for found in Fields::new(bytes).filter(|f| f.id == dump::SAMPLES) {
            let (mut iid, mut numbers) = (0, [0; 4]);
            let (mut maximum, mut count_at_maximum) = (None, 0);
            for f in Fields::new(found.as_bytes()) {
                match f.id {
                    sample::CALLSTACK_ID => iid = f.as_u64(),
                    sample::ALLOC_COUNT => numbers[0] = f.as_i64(),
                    sample::SELF_ALLOCATED => numbers[1] = f.as_i64(),
                    sample::FREE_COUNT => numbers[2] = f.as_i64(),
                    sample::SELF_FREED => numbers[3] = f.as_i64(),
                    sample::SELF_MAX => maximum = Some(f.as_i64()),
                    sample::SELF_MAX_COUNT => count_at_maximum = f.as_i64(),
                    _ => {}
                }
            }
            if let Some(bytes) = maximum {
                // Programs that do not tell the original interval counted wrongly.
                numbers = [if original_interval > 0 { count_at_maximum } else { 0 }, bytes, 0, 0];
            }
            let Some(callsite) = self.callsite(sequence, pid, iid) else { continue };
            self.push(machine, time, 0, |out| {
                out.kind(Kind::HeapSample);
                out.signed(ts);
                out.signed(pid);
                out.symbol(Some(heap));
                out.number(u64::from(callsite.number()));
                numbers.iter().for_each(|&number| out.signed(number));
            });
        }
    }

    fn count_heap_losses(&mut self, bytes: &[u8], pid: i64) {
        let stats = &mut self.context.stats;
        let mut overran = false;
        for f in Fields::new(bytes) {
            match f.id {
                dump::DISCONNECTED if f.as_bool() => stats.add("heapprofd_client_disconnected", Some(pid), 1),
                dump::BUFFER_CORRUPTED if f.as_bool() => stats.add("heapprofd_buffer_corrupted", Some(pid), 1),
                dump::BUFFER_OVERRAN => overran |= f.as_bool(),
                dump::REJECTED_CONCURRENT if f.as_bool() => stats.add("heapprofd_rejected_concurrent", Some(pid), 1),
                dump::HIT_GUARDRAIL if f.as_bool() => stats.add("heapprofd_hit_guardrail", Some(pid), 1),
                dump::CLIENT_ERROR if f.as_u64() != 0 => {
                    overran |= f.as_u64() == CLIENT_ERROR_HIT_TIMEOUT;
                    stats.set("heapprofd_client_error", Some(pid), f.as_i64());
                }
                dump::STATS => {
                    for part in Fields::new(f.as_bytes()) {
                        let name = match part.id {
                            process_stats::TOTAL_UNWINDING_TIME_US => "heapprofd_unwind_time_us",
                            process_stats::HEAP_SAMPLES => "heapprofd_unwind_samples",
                            process_stats::CLIENT_SPINLOCK_BLOCKED_US => "heapprofd_client_spinlock_blocked",
                            _ => continue,
                        };
                        stats.add(name, Some(pid), part.as_i64());
                    }
                }
                _ => {}
            }
        }
        if overran {
            stats.add("heapprofd_buffer_overran", Some(pid), 1);
        }
    }
}

impl Context {
    pub(crate) fn import_heap_sample(&mut self, machine: u32, mut record: Get<'_>) {
        let (ts, pid) = (record.signed(), record.signed());
        let heap_name = record.symbol();
        let Some(callsite_id) = record.row() else { return };
        let upid = self.processes.process(&mut self.tables, machine, pid);
        let numbers = [record.signed(), record.signed(), record.signed(), record.signed()];
        let key = (upid, heap_name, callsite_id);
        let before = self.heaps.0.get(&key).copied().unwrap_or_default();
        let grown: [i64; 4] = core::array::from_fn(|index| numbers[index].saturating_sub(before[index]));
        if grown.iter().any(|&number| number < 0) {
            self.stats.add("heapprofd_malformed_packet", Some(i64::from(upid.number()) - 1), 1);
            return;
        }
        self.heaps.0.insert(key, numbers);
        let (allocated, freed) = ((grown[0], grown[1]), (grown[2], grown[3]));
        let tells_frees = heap_name.is_none_or(|name| self.tables.strings.get(name) != ART_HEAP);
        let freed = if tells_frees { (-freed.0, -freed.1) } else { (0, 0) };
        for (count, size) in [allocated, freed] {
            if count != 0 || size != 0 {
                let row = AllocationRow { ts, upid, heap_name, callsite_id, count, size };
                self.tables.heap_profile_allocation.push(row);
            }
        }
    }
}

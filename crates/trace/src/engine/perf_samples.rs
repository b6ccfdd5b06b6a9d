//! Samples of the kernel's perf events.

use esatto_protozero::Fields;
use esatto_schema::{follower_event, perf_events, perf_sample, perf_sample_defaults, trace_packet_defaults};

use super::context::Context;
use super::record::{Get, Kind, Put as _};
use super::tokenizer::{Time, Tokenizer};
use super::tracks::{Dimension, TrackSpec};
use crate::string_table::Symbol;
use crate::tables::{ArgValue, PerfSampleRow, Row};

/// Counters beside the one by which samples are taken.
const MAX_FOLLOWERS: usize = 64;

impl Tokenizer {
    /// Reads a `PerfSample`.
    pub(super) fn add_perf_sample(&mut self, bytes: &[u8], sequence: usize, machine: u32, time: Time) {
        use perf_sample::field;
        let (mut cpu, mut pid, mut tid, mut mode, mut count) = (0, 0, 0, 0, 0);
        let (mut callstack, mut error, mut lost, mut skipped) = (None, None, 0, 0);
        let (mut followers, mut is_event) = (Vec::new(), false);
        for f in Fields::new(bytes) {
            match f.id {
                field::CPU => cpu = f.as_u32(),
                field::PID => pid = f.as_i32(),
                field::TID => tid = f.as_i32(),
                field::CPU_MODE => mode = f.as_u64(),
                field::TIMEBASE_COUNT => count = f.as_u64(),
                field::FOLLOWER_COUNTS => followers.push(f.as_u64()),
                field::CALLSTACK_IID => callstack = Some(f.as_u64()),
                field::UNWIND_ERROR => error = Some(f.as_u64()),
                field::KERNEL_RECORDS_LOST => lost = f.as_i64(),
                field::SAMPLE_SKIPPED_REASON => skipped = f.as_i32(),
                field::PRODUCER_EVENT => is_event = true,
                _ => {}
            }
        }
        let sessions = u32::try_from(self.perf.sessions.len()).unwrap_or(u32::MAX);
        let session = *self.perf.sessions.entry(sequence).or_insert(sessions);
        let names = match self.perf.counters.get(&(sequence, cpu)) {
            Some(names) => names.clone(),
            None => {
                let names = self.counter_names(sequence);
                self.perf.counters.insert((sequence, cpu), names.clone());
                names
            }
        };
        if lost > 0 {
            self.context.stats.add("perf_cpu_lost_records", Some(i64::from(cpu)), lost);
        }
        let is_sample = lost <= 0 && !is_event;
        if !is_sample {
            (count, callstack, skipped) = (0, None, 0);
            followers.clear();
        }
        match perf_sample::SampleSkipReason(skipped) {
            perf_sample::SampleSkipReason::PROFILER_SKIP_READ_STAGE
            | perf_sample::SampleSkipReason::PROFILER_SKIP_UNWIND_STAGE => {
                self.context.stats.count("perf_samples_skipped");
            }
            perf_sample::SampleSkipReason::PROFILER_SKIP_UNWIND_ENQUEUE => {
                self.context.stats.count("perf_samples_skipped_dataloss");
            }
            _ => {}
        }
        let callsite = callstack.and_then(|iid| self.callsite(sequence, i64::from(pid), iid));
        self.push(machine, time, 0, |out| {
            out.kind(Kind::PerfSample);
            out.number(u64::from(cpu));
            out.signed(i64::from(pid));
            out.signed(i64::from(tid));
            out.number(mode);
            out.number(callsite.map_or(0, |row| u64::from(row.number())));
            out.number(error.map_or(0, |error| error.saturating_add(1)));
            out.number(u64::from(session));
            // The counters have tracks even without values.
            out.index(if is_sample { followers.len() + 1 } else { 0 });
            for (index, name) in names.iter().enumerate() {
                out.symbol(Some(*name));
                let follower = index.checked_sub(1).map(|index| followers.get(index).copied());
                out.number(follower.unwrap_or(Some(count)).unwrap_or(0));
            }
        });
    }

    /// Returns the names of the counters of the samples of a sequence.
    fn counter_names(&mut self, sequence: usize) -> Vec<Symbol> {
        use perf_events::timebase::field;
        let defaults = self.sequences[sequence].state.defaults.clone();
        let perf = last(&defaults, trace_packet_defaults::field::PERF_SAMPLE_DEFAULTS);
        let Some(perf) = perf else {
            // Programs before Android 12 did not tell it.
            return vec![self.context.symbol("cpu-clock")];
        };
        let timebase = last(perf, perf_sample_defaults::field::TIMEBASE).unwrap_or_default();
        let fields = [field::NAME, field::COUNTER, field::TRACEPOINT, field::RAW_EVENT];
        let mut names = vec![self.counter_name(timebase, fields)];
        let followers = Fields::new(perf).filter(|f| f.id == perf_sample_defaults::field::FOLLOWERS);
        for follower in followers.take(MAX_FOLLOWERS) {
            use follower_event::field;
            let fields = [field::NAME, field::COUNTER, field::TRACEPOINT, field::RAW_EVENT];
            names.push(self.counter_name(follower.as_bytes(), fields));
        }
        names
    }

    /// Returns the name of a counter. `fields` are those of its name, of known counters, of
    /// tracepoints and of raw events.
    fn counter_name(&mut self, counter: &[u8], fields: [u32; 4]) -> Symbol {
        let [name, known, tracepoint, raw] = fields;
        let strings = &mut self.context.tables.strings;
        if let Some(name) = last(counter, name).filter(|name| !name.is_empty()) {
            return strings.add(name);
        }
        if let Some(known) = Fields::new(counter).filter(|f| f.id == known).last() {
            return strings.add_str(known_name(known.as_u64()));
        }
        if let Some(tracepoint) = last(counter, tracepoint) {
            return strings.add(last(tracepoint, perf_events::tracepoint::field::NAME).unwrap_or_default());
        }
        if let Some(raw) = last(counter, raw) {
            use perf_events::raw_event::field;
            let number = |id: u32| Fields::new(raw).filter(|f| f.id == id).last().map_or(0, |f| f.as_u64());
            let (kind, config) = (number(field::TYPE), number(field::CONFIG));
            let (config1, config2) = (number(field::CONFIG1), number(field::CONFIG2));
            return strings.add_str(&format!("raw.0x{kind:x}.0x{config:x}.0x{config1:x}.0x{config2:x}"));
        }
        strings.add_str("unknown")
    }
}

/// Returns the bytes of the last field with a number.
fn last(bytes: &[u8], id: u32) -> Option<&[u8]> {
    Fields::new(bytes).filter(|f| f.id == id).last().map(|f| f.as_bytes())
}

/// Returns the name of a counter that perf events know.
fn known_name(counter: u64) -> &'static str {
    match counter {
        1 => "cpu-clock",
        2 => "page-faults",
        3 => "task-clock",
        4 => "context-switches",
        5 => "cpu-migrations",
        6 => "minor-faults",
        7 => "major-faults",
        8 => "alignment-faults",
        9 => "emulation-faults",
        10 => "cpu-cycles",
        11 => "instructions",
        12 => "cache-references",
        13 => "cache-misses",
        14 => "branch-instructions",
        15 => "branch-misses",
        16 => "bus-cycles",
        17 => "stalled-cycles-frontend",
        18 => "stalled-cycles-backend",
        19 => "ref-cycles",
        20 => "dummy",
        _ => "unknown",
    }
}

/// Returns the name of a reason for which a call stack is not whole.
fn unwind_error_name(error: u64) -> &'static str {
    match error {
        1 => "none",
        2 => "memory_invalid",
        3 => "unwind_info",
        4 => "unsupported",
        5 => "invalid_map",
        6 => "max_frames_exceeded",
        7 => "repeated_frame",
        8 => "invalid_elf",
        9 => "system_call",
        10 => "thread_timeout",
        11 => "thread_does_not_exist",
        12 => "bad_arch",
        13 => "maps_parse",
        14 => "invalid_parameter",
        15 => "ptrace_call",
        _ => "unknown",
    }
}

impl Context {
    pub(crate) fn import_perf_sample(&mut self, ts: i64, machine: u32, mut record: Get<'_>) {
        let cpu = u32::try_from(record.number()).unwrap_or(u32::MAX);
        let (pid, tid) = (record.signed(), record.signed());
        let mode = record.number();
        let callsite_id = record.row();
        let error = record.number().checked_sub(1);
        let perf_session_id = u32::try_from(record.number()).unwrap_or(0);
        self.list_cpu(machine, cpu);
        let mode = match mode {
            1 => "kernel",
            2 => "user",
            3 => "hypervisor",
            4 => "guest_kernel",
            5 => "guest_user",
            _ => "unknown",
        };
        let machine_row = self.processes.machine_row(machine);
        let values = record.index();
        let mut index = 0;
        while let Some(name) = record.symbol() {
            let count = record.number();
            let track = self.perf_track(cpu, perf_session_id, name, machine_row, index == 0);
            if index < values {
                self.add_counter(track, ts, count as f64);
            }
            index += 1;
        }
        if values == 0 {
            return;
        }
        let utid = self.processes.thread_of(&mut self.tables, machine, tid, pid);
        let cpu_mode = self.symbol(mode);
        let unwind_error = error.map(|error| self.symbol(unwind_error_name(error)));
        let cpu = Some(cpu);
        self.tables.perf_sample.push(PerfSampleRow {
            ts,
            utid,
            cpu,
            cpu_mode,
            callsite_id,
            unwind_error,
            perf_session_id,
        });
    }

    fn perf_track(&mut self, cpu: u32, session: u32, name: Symbol, machine: Option<Row>, is_timebase: bool) -> Row {
        let dimensions = [
            Dimension::Cpu(cpu),
            Dimension::Number("perf_session_id", i64::from(session)),
            Dimension::Symbol("name", name),
        ];
        let spec = TrackSpec { machine, ..TrackSpec::counter("perf_cpu_counter", Some(name), &dimensions) };
        let (track, is_new) = self.tracks.intern(&mut self.tables, &spec);
        if is_new {
            let mut source = vec![self.arg("is_timebase", ArgValue::Bool(is_timebase))];
            self.tables.track.source_arg_set_id[track.index()] = self.tables.args.add(&mut source);
        }
        track
    }
}

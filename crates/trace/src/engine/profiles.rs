//! Samples of call stacks, heap profiles and logs of Android.

use esatto_protozero::Fields;
use esatto_schema::{
    interned_data::field as interned, perf_sample, perf_sample_defaults, profile_packet, streaming_profile_packet,
    trace_packet_defaults,
};

use super::context::Context;
use super::record::{Get, Kind, Put as _};
use super::tokenizer::{Time, Tokenizer};
use super::tracks::{Dimension, TrackSpec};
use crate::clock_conversion::ClockKey;
use crate::string_table::Symbol;
use crate::tables::{
    AllocationRow, CallsiteRow, FrameRow, LogRow, MappingRow, PerfSampleRow, Row, StackSampleRow, signed,
};

/// Clocks of profiles and logs.
const REALTIME: u32 = 1;
const MONOTONIC_COARSE: u32 = 4;
/// Frames of a call stack that are read.
const MAX_FRAMES: usize = 1 << 12;
/// Frames, call stacks and mappings that belong to one process of a sequence. Those that come after
/// so many are shared by all processes, so that few bytes that name many processes do not become
/// many rows.
const MAX_ROWS_OF_PROCESSES: usize = 1 << 20;
/// Length of a build id that is text: that of a module of Chromium.
const CHROMIUM_BUILD_ID: usize = 33;
/// Field of an `InternedString`.
const TEXT: u32 = 2;

impl Tokenizer {
    fn interned_text(&mut self, sequence: usize, table: u32, iid: u64) -> Vec<u8> {
        let entry = self.sequences[sequence].state.entry(table, iid);
        let text = entry.and_then(|entry| Fields::new(entry).find(|f| f.id == TEXT));
        text.map_or_else(Vec::new, |text| text.as_bytes().to_vec())
    }

    /// Returns the process whose memory a mapping describes, as long as there are few.
    pub(super) fn process_of_stacks(&self, pid: i64) -> Option<i64> {
        (self.stacks.rows_of_processes < MAX_ROWS_OF_PROCESSES).then_some(pid)
    }

    /// Returns an interned mapping of a process, if the process is known.
    pub(super) fn mapping(&mut self, sequence: usize, process: Option<i64>, iid: u64) -> Option<Row> {
        let key = (self.generation(sequence), process, iid);
        if let Some(&row) = self.stacks.mappings.get(&key) {
            return Some(row);
        }
        let entry: Box<[u8]> = self.sequences[sequence].state.entry(interned::MAPPINGS, iid)?.into();
        let mut numbers = [0; 5];
        let (mut build_id, mut path) = (0, Vec::new());
        for f in Fields::new(&entry) {
            match f.id {
                2 => build_id = f.as_u64(),
                3 => numbers[1] = signed(f.as_u64()),
                4 => numbers[2] = signed(f.as_u64()),
                5 => numbers[3] = signed(f.as_u64()),
                6 => numbers[4] = signed(f.as_u64()),
                7 if path.len() < MAX_FRAMES => path.push(f.as_u64()),
                8 => numbers[0] = signed(f.as_u64()),
                _ => {}
            }
        }
        let mut name = Vec::new();
        for part in path {
            name.push(b'/');
            name.extend(self.interned_text(sequence, interned::MAPPING_PATHS, part));
        }
        let build_id = self.interned_text(sequence, interned::BUILD_IDS, build_id);
        let strings = &mut self.context.tables.strings;
        let build_id = if build_id.len() == CHROMIUM_BUILD_ID {
            strings.add(&build_id)
        } else {
            let digits: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
            strings.add_str(&digits)
        };
        let name = strings.add(&name);
        let table = &mut self.context.tables.stack_profile_mapping;
        let mut add = || {
            let [exact_offset, start_offset, start, end, load_bias] = numbers;
            let (build_id, name) = (Some(build_id), Some(name));
            table.push(MappingRow { build_id, exact_offset, start_offset, start, end, load_bias, name })
        };
        let [_, _, start, end, _] = numbers;
        let row = if process.is_some() && start != end {
            self.stacks.rows_of_processes += 1;
            add()
        } else {
            *self.stacks.same_mappings.entry((numbers, build_id, name)).or_insert_with(add)
        };
        self.stacks.mappings.insert(key, row);
        Some(row)
    }

    fn frame(&mut self, sequence: usize, process: Option<i64>, iid: u64) -> Option<Row> {
        let key = (self.generation(sequence), process, iid);
        if let Some(&row) = self.stacks.frames.get(&key) {
            return Some(row);
        }
        let entry: Box<[u8]> = self.sequences[sequence].state.entry(interned::FRAMES, iid)?.into();
        let (mut function, mut mapping, mut rel_pc) = (0, 0, 0);
        for f in Fields::new(&entry) {
            match f.id {
                2 => function = f.as_u64(),
                3 => mapping = f.as_u64(),
                4 => rel_pc = signed(f.as_u64()),
                _ => {}
            }
        }
        let mapping = self.mapping(sequence, process, mapping)?;
        let name = self.interned_text(sequence, interned::FUNCTION_NAMES, function);
        let name = self.context.tables.strings.add(&name);
        let table = &mut self.context.tables.stack_profile_frame;
        let row = *self
            .stacks
            .same_frames
            .entry((name, mapping, rel_pc))
            .or_insert_with(|| table.push(FrameRow { name: Some(name), mapping, rel_pc, deobfuscated_name: None }));
        self.stacks.rows_of_processes += usize::from(process.is_some());
        self.stacks.frames.insert(key, row);
        Some(row)
    }

    /// Returns an interned call stack.
    fn callsite(&mut self, sequence: usize, pid: i64, iid: u64) -> Option<Row> {
        let process = self.process_of_stacks(pid);
        let key = (self.generation(sequence), process, iid);
        if let Some(&row) = self.stacks.callsites.get(&key) {
            return Some(row);
        }
        let entry: Box<[u8]> = self.sequences[sequence].state.entry(interned::CALLSTACKS, iid)?.into();
        let mut parent = None;
        let frames = Fields::new(&entry).filter(|f| f.id == 2).take(MAX_FRAMES);
        for (depth, frame) in frames.enumerate() {
            let frame_id = self.frame(sequence, process, frame.as_u64())?;
            self.stacks.rows_of_processes += usize::from(process.is_some());
            let table = &mut self.context.tables.stack_profile_callsite;
            parent = Some(*self.stacks.same_callsites.entry((parent, frame_id)).or_insert_with(|| {
                let depth = u32::try_from(depth).unwrap_or(u32::MAX);
                table.push(CallsiteRow { depth, parent_id: parent, frame_id })
            }));
        }
        let row = parent?;
        self.stacks.callsites.insert(key, row);
        Some(row)
    }

    /// Reads a `PerfSample`.
    pub(super) fn add_perf_sample(&mut self, bytes: &[u8], sequence: usize, machine: u32, time: Time) {
        use perf_sample::field;
        let (mut cpu, mut pid, mut tid, mut mode, mut count) = (0, 0, 0, 0, 0);
        let (mut callstack, mut error, mut lost, mut skipped) = (None, 0, None, None);
        for f in Fields::new(bytes) {
            match f.id {
                field::CPU => cpu = f.as_u32(),
                field::PID => pid = f.as_i32(),
                field::TID => tid = f.as_i32(),
                field::CPU_MODE => mode = f.as_u64(),
                field::TIMEBASE_COUNT => count = f.as_u64(),
                field::CALLSTACK_IID => callstack = Some(f.as_u64()),
                field::UNWIND_ERROR => error = f.as_u64(),
                field::KERNEL_RECORDS_LOST => lost = Some(f.as_u64()),
                field::SAMPLE_SKIPPED_REASON => skipped = Some(f.as_i32()),
                field::PRODUCER_EVENT => return,
                _ => {}
            }
        }
        if let Some(lost) = lost {
            let lost = i64::try_from(lost).unwrap_or(i64::MAX);
            self.context.stats.add("perf_cpu_lost_records", Some(i64::from(cpu)), lost);
            return;
        }
        const NOT_IN_SCOPE: i32 = 4;
        match skipped {
            Some(NOT_IN_SCOPE) => self.context.stats.count("perf_samples_skipped"),
            Some(_) => self.context.stats.count("perf_samples_skipped_dataloss"),
            None => {}
        }
        let callsite = callstack.and_then(|iid| self.callsite(sequence, i64::from(pid), iid));
        let timebase = self.timebase_name(sequence);
        let sessions = u32::try_from(self.perf_sessions.len()).unwrap_or(u32::MAX);
        let session = *self.perf_sessions.entry(sequence).or_insert(sessions);
        self.push(machine, time, 0, |out| {
            out.kind(Kind::PerfSample);
            out.number(u64::from(cpu));
            out.signed(i64::from(pid));
            out.signed(i64::from(tid));
            out.number(mode);
            out.number(count);
            out.number(callsite.map_or(0, |row| u64::from(row.number())));
            out.number(error);
            out.symbol(Some(timebase));
            out.number(u64::from(session));
        });
    }

    /// Returns the name of the counter by which the samples of a sequence were taken.
    fn timebase_name(&mut self, sequence: usize) -> Symbol {
        const COUNTER: u32 = 4;
        const NAME: u32 = 10;
        let defaults = self.sequences[sequence].state.defaults.clone();
        let field =
            |bytes: &[u8], id: u32| Fields::new(bytes).filter(|f| f.id == id).last().map(|f| f.as_bytes().to_vec());
        let perf = field(&defaults, trace_packet_defaults::field::PERF_SAMPLE_DEFAULTS).unwrap_or_default();
        let timebase = field(&perf, perf_sample_defaults::field::TIMEBASE).unwrap_or_default();
        let strings = &mut self.context.tables.strings;
        if let Some(name) = field(&timebase, NAME).filter(|name| !name.is_empty()) {
            return strings.add(&name);
        }
        let counter = Fields::new(&timebase).find(|f| f.id == COUNTER).map_or(0, |f| f.as_u64());
        strings.add_str(counter_name(counter))
    }

    /// Reads a `StreamingProfilePacket`. Its times follow the one in the descriptor of the thread.
    pub(super) fn add_stack_samples(&mut self, bytes: &[u8], sequence: usize, machine: u32) {
        use streaming_profile_packet::field;
        let Some((pid, tid)) = self.context.generations[self.generation(sequence)].thread else { return };
        let Some(mut ts) = self.stacks.sample_times.get(&sequence).copied() else { return };
        let priority = Fields::new(bytes).find(|f| f.id == field::PROCESS_PRIORITY).map_or(0, |f| f.as_i32());
        let reader = streaming_profile_packet_reader(bytes);
        for (iid, delta) in reader {
            ts = ts.saturating_add(delta.saturating_mul(1000));
            let Some(callsite) = self.callsite(sequence, pid, iid) else {
                self.context.stats.count("stackprofile_parser_error");
                continue;
            };
            self.push(machine, Time::Known(ts), 0, |out| {
                out.kind(Kind::StackSample);
                out.signed(pid);
                out.signed(tid);
                out.number(u64::from(callsite.number()));
                out.signed(i64::from(priority));
            });
        }
        self.stacks.sample_times.insert(sequence, ts);
    }

    /// Notes the time in a descriptor of a thread.
    pub(super) fn note_reference_time(&mut self, bytes: &[u8], sequence: usize) {
        use esatto_schema::thread_descriptor::field;
        let time = Fields::new(bytes).find(|f| f.id == field::REFERENCE_TIMESTAMP_US);
        if let Some(time) = time {
            self.stacks.sample_times.insert(sequence, time.as_i64().saturating_mul(1000));
        }
    }

    /// Reads a `ProfilePacket`.
    pub(super) fn add_heap_profile(&mut self, bytes: &[u8], sequence: usize, machine: u32, time: Time) {
        use profile_packet::{field, heap_sample::field as sample, process_heap_samples::field as dump};
        for process in Fields::new(bytes).filter(|f| f.id == field::PROCESS_DUMPS) {
            let (mut pid, mut heap, mut ticks) = (0, None, 0);
            for f in Fields::new(process.as_bytes()) {
                match f.id {
                    dump::PID => pid = f.as_i64(),
                    dump::HEAP_NAME => heap = Some(self.context.tables.strings.add(f.as_bytes())),
                    dump::TIMESTAMP => ticks = f.as_u64(),
                    _ => {}
                }
            }
            let heap = heap.unwrap_or_else(|| self.context.symbol("unknown"));
            let clock = ClockKey::of_machine(MONOTONIC_COARSE, machine);
            let Some(ts) = self.clocks.machine_time(clock, signed(ticks)) else {
                self.context.stats.count("clock_sync_failure_no_path");
                continue;
            };
            for found in Fields::new(process.as_bytes()).filter(|f| f.id == dump::SAMPLES) {
                let (mut iid, mut numbers) = (0, [0; 4]);
                for f in Fields::new(found.as_bytes()) {
                    match f.id {
                        sample::CALLSTACK_ID => iid = f.as_u64(),
                        sample::ALLOC_COUNT => numbers[0] = f.as_i64(),
                        sample::SELF_ALLOCATED => numbers[1] = f.as_i64(),
                        sample::FREE_COUNT => numbers[2] = f.as_i64(),
                        sample::SELF_FREED => numbers[3] = f.as_i64(),
                        _ => {}
                    }
                }
                let Some(callsite) = self.callsite(sequence, pid, iid) else {
                    self.context.stats.count("stackprofile_invalid_callstack_id");
                    continue;
                };
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
    }

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

/// Iterates over the call stacks and times of a `StreamingProfilePacket`.
fn streaming_profile_packet_reader(bytes: &[u8]) -> impl Iterator<Item = (u64, i64)> + '_ {
    use streaming_profile_packet::field;
    let stacks = Fields::new(bytes).filter(|f| f.id == field::CALLSTACK_IID).map(|f| f.as_u64());
    let times = Fields::new(bytes).filter(|f| f.id == field::TIMESTAMP_DELTA_US).map(|f| f.as_i64());
    stacks.zip(times)
}

/// Returns the name of a counter of perf events.
fn counter_name(counter: u64) -> &'static str {
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
        19 => "ref-cpu-cycles",
        20 => "dummy",
        _ => "unknown",
    }
}

impl Context {
    pub(crate) fn import_perf_sample(&mut self, ts: i64, machine: u32, mut record: Get<'_>) {
        let cpu = u32::try_from(record.number()).unwrap_or(u32::MAX);
        let (pid, tid) = (record.signed(), record.signed());
        let (mode, count) = (record.number(), record.number());
        let callsite_id = record.row();
        let error = record.number();
        let timebase = record.symbol();
        let session = u32::try_from(record.number()).unwrap_or(0);
        self.list_cpu(machine, cpu);
        let utid = self.processes.thread_of(&mut self.tables, machine, tid, pid);
        let mode = match mode {
            1 => "kernel",
            2 => "user",
            3 => "hypervisor",
            4 => "guest_kernel",
            5 => "guest_user",
            _ => "unknown",
        };
        let unwind_error = match error {
            2 => Some("memory_invalid"),
            3 => Some("unwind_info"),
            4 => Some("unsupported"),
            5 => Some("invalid_map"),
            6 => Some("max_frames_exceeded"),
            7 => Some("repeated_frame"),
            8 => Some("invalid_elf"),
            9 => Some("system_call"),
            10 => Some("thread_timeout"),
            11 => Some("thread_does_not_exist"),
            12 => Some("bad_arch"),
            13 => Some("maps_parse"),
            14 => Some("invalid_parameter"),
            15 => Some("ptrace_call"),
            _ => None,
        };
        if let Some(timebase) = timebase {
            let dimensions = [
                Dimension::Cpu(cpu),
                Dimension::Number("perf_session_id", i64::from(session)),
                Dimension::Symbol("name", timebase),
            ];
            let machine = self.processes.machine_row(machine);
            let spec = TrackSpec { machine, ..TrackSpec::counter("perf_cpu_counter", Some(timebase), &dimensions) };
            let (track, is_new) = self.tracks.intern(&mut self.tables, &spec);
            if is_new {
                let mut source = vec![self.arg("is_timebase", crate::tables::ArgValue::Bool(true))];
                self.tables.track.source_arg_set_id[track.index()] = self.tables.args.add(&mut source);
            }
            self.add_counter(track, ts, count as f64);
        }
        let cpu_mode = self.symbol(mode);
        let unwind_error = unwind_error.map(|error| self.symbol(error));
        let (cpu, perf_session_id) = (Some(cpu), session);
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

    pub(crate) fn import_stack_sample(&mut self, ts: i64, machine: u32, mut record: Get<'_>) {
        let (pid, tid) = (record.signed(), record.signed());
        let Some(callsite_id) = record.row() else { return };
        let process_priority = i32::try_from(record.signed()).unwrap_or(0);
        let utid = self.processes.thread_of(&mut self.tables, machine, tid, pid);
        let row = StackSampleRow { ts, callsite_id, utid, process_priority };
        self.tables.cpu_profile_stack_sample.push(row);
    }

    pub(crate) fn import_heap_sample(&mut self, machine: u32, mut record: Get<'_>) {
        let (ts, pid) = (record.signed(), record.signed());
        let heap_name = record.symbol();
        let Some(callsite_id) = record.row() else { return };
        let upid = self.processes.process(&mut self.tables, machine, pid);
        let numbers = [record.signed(), record.signed(), record.signed(), record.signed()];
        let before = self.heaps.0.insert((upid, heap_name, callsite_id), numbers).unwrap_or_default();
        let grown = |index: usize| numbers[index].saturating_sub(before[index]);
        let (allocated, freed) = ((grown(0), grown(1)), (grown(2), grown(3)));
        for (count, size) in [allocated, (-freed.0, -freed.1)] {
            if count != 0 {
                let row = AllocationRow { ts, upid, heap_name, callsite_id, count, size };
                self.tables.heap_profile_allocation.push(row);
            }
        }
    }

    pub(crate) fn import_log(&mut self, ts: i64, machine: u32, mut record: Get<'_>) {
        let (pid, tid) = (record.signed(), record.signed());
        let prio = u32::try_from(record.number()).unwrap_or(0);
        let (tag, msg) = (record.symbol(), record.symbol());
        let utid = (tid != 0).then(|| self.processes.thread_of(&mut self.tables, machine, tid, pid));
        self.tables.android_logs.push(LogRow { ts, utid, prio, tag, msg });
    }
}

//! A trace with all that the page has rows for, written by hand: slices, states, samples, heap
//! profiles, scheduling and single events of the kernel.

use std::fmt::Write as _;

use esatto_schema::FILE_DESCRIPTOR_SET;
use prost_reflect::DescriptorPool;

/// Samples of call stacks in the trace, and how many of them are of the thread 51.
pub(crate) const SAMPLES: [usize; 2] = [300, 100];
/// Events of the kernel that no other row of the page shows.
pub(crate) const KERNEL_EVENTS: usize = 400;
/// The dumps of the heap: bytes in use, and all bytes that were allocated before.
pub(crate) const HEAP: [[u64; 2]; 3] = [[60_000, 90_000], [120_000, 180_000], [180_000, 270_000]];

const FUNCTIONS: [&str; 8] = ["main", "run_loop", "handle", "parse", "read_header", "render", "draw_text", "memcpy"];
/// Call stacks by the positions of their functions.
const STACKS: [&[usize]; 6] = [&[0, 1], &[0, 1, 2], &[0, 1, 2, 3], &[0, 1, 2, 3, 4], &[0, 1, 5, 6], &[0, 1, 5, 6, 7]];

/// Returns names of functions, frames and call stacks as interned data.
fn interned() -> String {
    let mut text = String::from(
        "interned_data { build_ids { iid: 1 str: \"\\001\\002\" } mapping_paths { iid: 1 str: \"opt\" } \
         mapping_paths { iid: 2 str: \"libapp.so\" } mappings { iid: 1 build_id: 1 start: 65536 end: 131072 \
         path_string_ids: 1 path_string_ids: 2 } ",
    );
    for (place, function) in FUNCTIONS.iter().enumerate() {
        let iid = place + 1;
        write!(
            text,
            "function_names {{ iid: {iid} str: \"{function}\" }} \
             frames {{ iid: {iid} function_name_id: {iid} mapping_id: 1 rel_pc: {} }} ",
            iid * 16
        )
        .expect("memory takes all bytes");
    }
    for (place, stack) in STACKS.iter().enumerate() {
        let frames: String = stack.iter().map(|frame| format!("frame_ids: {} ", frame + 1)).collect();
        write!(text, "callstacks {{ iid: {} {frames}}} ", place + 1).expect("memory takes all bytes");
    }
    text + "}"
}

/// Returns the trace in protobuf's text format.
fn text() -> String {
    let mut text = String::new();
    let mut packet = |packet: String| writeln!(text, "packet {{ {packet} }}").expect("memory takes all bytes");
    packet(
        "clock_snapshot { clocks { clock_id: 6 timestamp: 1000 } clocks { clock_id: 3 timestamp: 1000 } \
         clocks { clock_id: 4 timestamp: 1000 } primary_trace_clock: 6 }"
            .into(),
    );
    packet(
        "trusted_packet_sequence_id: 1 timestamp: 1001 process_tree { processes { pid: 50 ppid: 1 cmdline: \"app\" } \
         processes { pid: 60 ppid: 1 cmdline: \"other\" } threads { tid: 51 tgid: 50 name: \"helper\" } \
         threads { tid: 61 tgid: 60 name: \"sampled only\" } }"
            .into(),
    );
    for (uuid, rest) in [
        (10, "process { pid: 50 }"),
        (11, "parent_uuid: 10 thread { pid: 50 tid: 50 thread_name: \"main\" }"),
        (12, "parent_uuid: 10 thread { pid: 50 tid: 51 }"),
        (13, "parent_uuid: 10 name: \"mode\" state { }"),
    ] {
        packet(format!("trusted_packet_sequence_id: 2 track_descriptor {{ uuid: {uuid} {rest} }}"));
    }
    let event = |ts: u64, kind: &str, track: u64, rest: &str| {
        format!(
            "trusted_packet_sequence_id: 2 timestamp: {ts} track_event {{ type: TYPE_{kind} track_uuid: {track} {rest} }}"
        )
    };
    let at = |us: u64| 1_000_000 + us * 1000;
    for frame in 0..30 {
        let begin = frame * 10_000;
        packet(event(at(begin), "SLICE_BEGIN", 11, "name: \"frame\" categories: \"app\""));
        packet(event(at(begin + 1000), "SLICE_BEGIN", 11, "name: \"layout\""));
        packet(event(at(begin + 4000), "SLICE_END", 11, ""));
        packet(event(at(begin + 5000), "SLICE_BEGIN", 12, "name: \"decode\""));
        packet(event(at(begin + 8000), "SLICE_END", 12, ""));
        packet(event(at(begin + 9000), "SLICE_END", 11, ""));
    }
    for (us, name) in [(0, "starting"), (40_000, "idle"), (120_000, "busy"), (200_000, ""), (240_000, "idle")] {
        let name = if name.is_empty() { String::new() } else { format!("name: \"{name}\"") };
        packet(event(at(us), "STATE", 13, &name));
    }
    packet(format!(
        "trusted_packet_sequence_id: 4 first_packet_on_sequence: true sequence_flags: 1 timestamp: 2000 \
         trace_packet_defaults {{ timestamp_clock_id: 6 perf_sample_defaults {{ timebase {{ frequency: 1000 }} }} }} {}",
        interned()
    ));
    for sample in 0..SAMPLES[0] as u64 {
        let (pid, tid) = [(50, 50), (50, 51), (60, 61)][(sample % 3) as usize];
        let stack = 1 + (sample / 3 * 7 + sample % 3) % STACKS.len() as u64;
        let error = if sample % 50 == 49 { "unwind_error: UNWIND_ERROR_MEMORY_INVALID" } else { "" };
        packet(format!(
            "trusted_packet_sequence_id: 4 sequence_flags: 2 timestamp: {} perf_sample {{ cpu: {} pid: {pid} tid: {tid} \
             cpu_mode: MODE_USER timebase_count: {sample} callstack_iid: {stack} {error} }}",
            at(sample * 1000 + 300),
            sample % 2
        ));
    }
    packet(format!(
        "trusted_packet_sequence_id: 5 first_packet_on_sequence: true sequence_flags: 1 timestamp: 2000 \
         trace_packet_defaults {{ timestamp_clock_id: 6 }} {}",
        interned()
    ));
    for (dump, [in_use, all]) in HEAP.into_iter().enumerate() {
        // Two stacks with a third and two thirds of all.
        let samples: String = [(4, 1), (6, 2)]
            .map(|(stack, parts)| {
                format!(
                    "samples {{ callstack_id: {stack} self_allocated: {} self_freed: {} alloc_count: {} free_count: {} }} ",
                    all * parts / 3,
                    (all - in_use) * parts / 3,
                    (dump as u64 + 1) * 10 * parts,
                    (dump as u64 + 1) * 4 * parts,
                )
            })
            .concat();
        let ts = at(90_000 * (dump as u64 + 1));
        packet(format!(
            "trusted_packet_sequence_id: 5 sequence_flags: 2 timestamp: {ts} profile_packet {{ index: {dump} \
             process_dumps {{ pid: 50 timestamp: {ts} heap_name: \"libc.malloc\" {samples} }} }}"
        ));
    }
    for cpu in 0..2_u64 {
        let mut events = String::new();
        for turn in 0..100 {
            let us = turn * 3000 + cpu * 1500;
            let (from, to) = if turn % 2 == 0 { (50 + cpu, 61) } else { (61, 50 + cpu) };
            write!(
                events,
                "event {{ timestamp: {} pid: {from} sched_switch {{ prev_pid: {from} prev_state: 1 next_pid: {to} }} }} \
                 event {{ timestamp: {} pid: {to} signal_generate {{ sig: 10 code: -6 comm: \"app\" pid: 50 }} }} \
                 event {{ timestamp: {} pid: {to} mm_page_alloc {{ pfn: {} order: 1 gfp_flags: 3520 }} }} ",
                at(us),
                at(us + 700),
                at(us + 900 + turn * 3),
                18_446_744_073_709_551_000 + turn,
            )
            .expect("memory takes all bytes");
        }
        packet(format!("trusted_packet_sequence_id: 3 ftrace_events {{ cpu: {cpu} {events}}}"));
    }
    // The symbols of an address, with a function that another one has inlined.
    text.push_str(
        "packet { trusted_packet_sequence_id: 7 module_symbols { path: \"/opt/libapp.so\" build_id: \"\\001\\002\" \
         address_symbols { address: 128 lines { function_name: \"copy_bytes\" source_file_name: \"copy.c\" } \
         lines { function_name: \"memcpy\" source_file_name: \"mem.c\" } } } }\n",
    );
    text
}

/// Returns the bytes of the trace.
pub(crate) fn profiled() -> Vec<u8> {
    parsed(&text())
}

/// Returns the bytes of a trace in protobuf's text format.
pub(crate) fn parsed(text: &str) -> Vec<u8> {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("the schema is valid");
    let message = pool.get_message_by_name("perfetto.protos.Trace").expect("the schema has traces");
    esatto_text_format::parse(&message, text).unwrap_or_else(|errors| panic!("{errors:?}"))
}

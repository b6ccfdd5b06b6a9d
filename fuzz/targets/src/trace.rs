//! Traces.

use esatto_protozero::{Fields, Value as FieldValue};
use esatto_trace::tables::{Table, Tables, Value};
use esatto_trace::{Engine, ReadOptions, Summary, Trace};

use crate::bytes::message;
use crate::script::Script;

/// Traces that `trace_engine` changes.
const TRACES: [&[u8]; 12] = [
    include_bytes!("../../corpus/trace_file/hand-made-kernel-counters"),
    include_bytes!("../../corpus/trace_file/hand-made-kernel-slices"),
    include_bytes!("../../corpus/trace_file/hand-made-kernel-track-events"),
    include_bytes!("../../corpus/trace_file/hand-made-legacy-flows"),
    include_bytes!("../../corpus/trace_file/hand-made-statistics"),
    include_bytes!("../../corpus/trace_file/hand-made-typed-fields"),
    include_bytes!("../../corpus/trace_file/hand-made-ftrace"),
    include_bytes!("../../corpus/trace_file/hand-made-legacy-events"),
    include_bytes!("../../corpus/trace_file/hand-made-profiles"),
    include_bytes!("../../corpus/trace_file/hand-made-track-events"),
    include_bytes!("../../corpus/trace_file/process-and-sys-stats"),
    include_bytes!("../../corpus/trace_file/ring-buffer-wrapped"),
];

/// Largest number of packets of a changed trace.
const LONGEST_TRACE: usize = 1000;

/// A trace, read as a summary, as a whole and as tables.
pub fn trace_file(bytes: &[u8]) {
    let summary = Summary::read(bytes);
    let _ = (summary.to_string(), summary.to_json().to_string());
    let trace = Trace::read(bytes);
    // The summary also counts those of the kernel.
    assert!(trace.slices.len() as u64 <= summary.slices.count);
    assert!(trace.flows.len() as u64 <= summary.flows);
    check_engine(bytes);
}

/// One packet of a trace.
pub fn trace_packet(bytes: &[u8]) {
    trace_file(&message(1, bytes));
}

/// A byte that selects a trace, and a script of changes to its packets.
pub fn trace_engine(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let trace = TRACES[usize::from(script.u8()) % TRACES.len()];
    let mut packets: Vec<Vec<u8>> = Fields::new(trace).map(|packet| packet.as_bytes().to_vec()).collect();
    while !script.is_empty() && !packets.is_empty() && packets.len() < LONGEST_TRACE {
        let op = script.u8();
        let at = usize::from(script.u16()) % packets.len();
        let other = usize::from(script.u16());
        match op % 10 {
            0 => drop(packets.remove(at)),
            1 => {
                let copy = packets[at].clone();
                packets.insert(other % packets.len(), copy);
            }
            2 => {
                let other = other % packets.len();
                packets.swap(at, other);
            }
            3 => packets[at].truncate(other),
            // A field at the end, which replaces earlier ones of its number: ids, clocks, flags.
            4 => {
                packets[at].extend(varint(u64::from(script.u8() % 128) << 3));
                packets[at].extend(varint(extreme(script.u8(), other)));
            }
            5 => {
                let bytes = script.string();
                packets[at].extend(message(u32::from(script.u8() % 120) + 1, bytes));
            }
            6 | 7 => change_inside(&mut packets[at], &mut script, other, 0),
            _ => {
                let value = script.u8();
                let place = other.checked_rem(packets[at].len());
                if let Some(byte) = place.and_then(|place| packets[at].get_mut(place)) {
                    *byte = value;
                }
            }
        }
    }
    let trace: Vec<u8> = packets.iter().flat_map(|packet| message(1, packet)).collect();
    check_engine(&trace);
}

/// Deepest level of a message that changes.
const DEEPEST_CHANGE: usize = 6;

/// Changes a field of a message or of one inside it, so that all others stay as they are.
fn change_inside(message: &mut Vec<u8>, script: &mut Script<'_>, small: usize, depth: usize) {
    let mut fields: Vec<Vec<u8>> = Vec::new();
    let mut values = Vec::new();
    for f in Fields::new(message) {
        fields.push(encode(f.id, f.value));
        values.push((f.id, f.value));
    }
    if fields.is_empty() {
        return;
    }
    let at = usize::from(script.u8()) % fields.len();
    let (id, value) = values[at];
    match (script.u8() % 6, value) {
        // Twice as likely as the other changes: most of a packet is deep inside.
        (0 | 1, FieldValue::Bytes(bytes)) if depth < DEEPEST_CHANGE => {
            let mut inner = bytes.to_vec();
            change_inside(&mut inner, script, small, depth + 1);
            fields[at] = encode(id, FieldValue::Bytes(&inner));
        }
        (2, _) => drop(fields.remove(at)),
        (3, _) => fields.push(fields[at].clone()),
        (4, _) => {
            let other = usize::from(script.u8()) % fields.len();
            fields.swap(at, other);
        }
        (_, FieldValue::Bytes(bytes)) => {
            let end = small % (bytes.len() + 1);
            fields[at] = encode(id, FieldValue::Bytes(&bytes[..end]));
        }
        _ => fields[at] = encode(id, FieldValue::Varint(extreme(script.u8(), small))),
    }
    *message = fields.concat();
}

fn encode(id: u32, value: FieldValue<'_>) -> Vec<u8> {
    let mut bytes = varint(u64::from(id) << 3 | value.wire_type() as u64);
    match value {
        FieldValue::Varint(v) => bytes.extend(varint(v)),
        FieldValue::Fixed64(v) => bytes.extend(v.to_le_bytes()),
        FieldValue::Fixed32(v) => bytes.extend(v.to_le_bytes()),
        FieldValue::Bytes(inner) => {
            bytes.extend(varint(inner.len() as u64));
            bytes.extend(inner);
        }
    }
    bytes
}

/// Returns a number at the edge of a type, or a small one.
fn extreme(choice: u8, small: usize) -> u64 {
    match choice % 6 {
        0 => u64::MAX,
        1 => i64::MAX as u64,
        2 => 1 << 63,
        3 => u64::from(u32::MAX),
        4 => 1_000_000_000_000_000_000,
        _ => small as u64,
    }
}

fn varint(mut v: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while v >= 0x80 {
        bytes.push(v as u8 | 0x80);
        v >>= 7;
    }
    bytes.push(v as u8);
    bytes
}

/// Reads a trace into tables, in memory and with temporary files.
fn check_engine(bytes: &[u8]) {
    let engine = Engine::read(bytes);
    check_tables(&engine.tables);
    crate::convert::convert(&engine.tables);
    crate::edit::edit(bytes);
    let mut options = ReadOptions::default();
    options.sort_memory = 64;
    let spilled = Engine::read_with(bytes, &options);
    assert!(spilled.sort_error.is_none(), "{:?}", spilled.sort_error);
    check_same(&engine.tables, &spilled.tables, |_, _| true);
    let part = Engine::read_with(bytes, &ReadOptions::without_kernel_events());
    check_same(&engine.tables, &part.tables, |table, column| {
        !["args", "ftrace_event"].contains(&table) && !column.ends_with("arg_set_id")
    });
}

/// Checks that tables have the same rows in the columns that are compared.
fn check_same(all: &Tables, others: &Tables, is_compared: impl Fn(&str, &str) -> bool) {
    for (one, other) in all.all().into_iter().zip(others.all()) {
        let columns = || (0..one.columns().len()).filter(|&at| is_compared(one.name(), one.columns()[at]));
        if columns().next().is_none() {
            continue;
        }
        assert_eq!(one.rows(), other.rows(), "{}", one.name());
        for row in 0..one.rows() {
            for column in columns() {
                let cells = (one.value(row, column, &all.strings), other.value(row, column, &others.strings));
                let is_same = match cells {
                    (Value::Real(one), Value::Real(other)) => one.to_bits() == other.to_bits(),
                    (one, other) => one == other,
                };
                assert!(is_same, "{} {row} {}: {cells:?}", one.name(), one.columns()[column]);
            }
        }
    }
}

/// Checks that rows refer to rows that exist.
fn check_tables(tables: &Tables) {
    let rows = |name: &str| tables.all().into_iter().find(|table| table.name() == name).map_or(0, Table::rows);
    for table in tables.all() {
        for (column, name) in table.columns().iter().enumerate() {
            let target = match *name {
                "utid" | "waker_utid" => "thread",
                "upid" | "parent_upid" => "process",
                "track_id" => "track",
                "slice_out" | "slice_in" => "slice",
                "parent_id" => table.name(),
                "arg_set_id" | "dimension_arg_set_id" | "source_arg_set_id" => "args",
                "callsite_id" => "stack_profile_callsite",
                "frame_id" => "stack_profile_frame",
                "waker_id" | "thread_state_id" => "thread_state",
                "machine_id" => "machine",
                _ => continue,
            };
            let rows = rows(target) as i64;
            for row in 0..table.rows() {
                match table.value(row, column, &tables.strings) {
                    Value::Null => {}
                    Value::Int(target) => assert!((0..rows).contains(&target), "{} {name} {target}", table.name()),
                    other => panic!("{} {name} {other:?}", table.name()),
                }
            }
        }
    }
}

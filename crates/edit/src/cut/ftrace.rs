//! Bundles of kernel events, of which those in the interval are kept.

use esatto_protozero::{Field, append_to, wire};
use esatto_schema::ftrace_event_bundle::{compact_sched, field};
use esatto_schema::trace_packet::field as packet_field;

use crate::packet::{append_message, last, raw_fields, without};

/// Field of `FtraceEvent`.
const TIMESTAMP: u32 = 1;
/// Field of `FtraceEvent` for a switch between threads.
const SCHED_SWITCH: u32 = 4;

/// Columns of the compact form that belong to switches; the first one has the times.
const SWITCHES: [u32; 5] = [
    compact_sched::field::SWITCH_TIMESTAMP,
    compact_sched::field::SWITCH_PREV_STATE,
    compact_sched::field::SWITCH_NEXT_PID,
    compact_sched::field::SWITCH_NEXT_PRIO,
    compact_sched::field::SWITCH_NEXT_COMM_INDEX,
];
/// Columns of wake-ups.
const WAKINGS: [u32; 6] = [
    compact_sched::field::WAKING_TIMESTAMP,
    compact_sched::field::WAKING_PID,
    compact_sched::field::WAKING_TARGET_CPU,
    compact_sched::field::WAKING_PRIO,
    compact_sched::field::WAKING_COMM_INDEX,
    compact_sched::field::WAKING_COMMON_FLAGS,
];

/// The part of a bundle in an interval.
pub(super) struct Part {
    pub(super) packet: Vec<u8>,
    /// It has events, and not only descriptions and marks of losses.
    pub(super) has_events: bool,
}

/// Returns a packet with the events of its bundle that are in an interval; `None` if nothing is
/// kept.
pub(super) fn cut(packet: &[u8], (from, to): (i64, i64)) -> Option<Part> {
    let bundle = last(packet, packet_field::FTRACE_EVENTS)?;
    let bundle = bundle.as_bytes();
    // The clock is one of the kernel's own, which is not converted.
    if last(bundle, field::FTRACE_CLOCK).is_some_and(|clock| clock.as_u64() != 0) {
        return Some(Part { packet: packet.to_vec(), has_events: true });
    }
    let is_inside = |time: u64| i64::try_from(time).is_ok_and(|time| (from..=to).contains(&time));
    let mut kept = Vec::with_capacity(bundle.len());
    let (mut has_content, mut has_events) = (false, false);
    for (found, bytes) in raw_fields(bundle) {
        match found.id {
            field::EVENT => {
                if last(found.as_bytes(), TIMESTAMP).is_some_and(|time| !is_inside(time.as_u64())) {
                    continue;
                }
                has_events = true;
                kept.extend_from_slice(bytes);
            }
            field::COMPACT_SCHED => {
                if let Some(compact) = cut_compact(found.as_bytes(), &is_inside) {
                    has_events = true;
                    append_message(&mut kept, field::COMPACT_SCHED, &compact);
                }
            }
            field::LOST_EVENTS | field::ERROR | field::GENERIC_EVENT_DESCRIPTORS => {
                has_content |= found.id != field::LOST_EVENTS || found.as_u64() != 0;
                kept.extend_from_slice(bytes);
            }
            _ => kept.extend_from_slice(bytes),
        }
    }
    if !has_content && !has_events {
        return None;
    }
    let mut packet = without(packet, |id| id == packet_field::FTRACE_EVENTS);
    append_message(&mut packet, packet_field::FTRACE_EVENTS, &kept);
    Some(Part { packet, has_events })
}

/// Returns a packet with only the last switch before a time, and its processor. A reader needs it
/// for the thread that was running at the next switch.
pub(super) fn last_switch(packet: &[u8], from: i64) -> Option<(u64, Vec<u8>)> {
    let bundle = last(packet, packet_field::FTRACE_EVENTS)?;
    let bundle = bundle.as_bytes();
    let is_before = |time: &u64| i64::try_from(*time).is_ok_and(|time| time < from);
    let events = raw_fields(bundle).filter(|(found, _)| found.id == field::EVENT);
    let switches = events.filter_map(|(found, bytes)| {
        last(found.as_bytes(), SCHED_SWITCH)?;
        Some((last(found.as_bytes(), TIMESTAMP)?.as_u64(), bytes))
    });
    let event = switches.filter(|(time, _)| is_before(time)).last();
    let compact = last(bundle, field::COMPACT_SCHED);
    let compact = compact.and_then(|compact| {
        let column = raw_fields(compact.as_bytes()).filter(|(field, _)| field.id == SWITCHES[0]);
        let times = column.flat_map(|(field, _)| varints(&field)).scan(0_u64, |time, delta| {
            *time = time.wrapping_add(delta);
            Some(*time)
        });
        let before = times.filter(is_before).last()?;
        let switches = without(compact.as_bytes(), |id| WAKINGS.contains(&id));
        Some((before, cut_compact(&switches, &|time| time == before)?))
    });
    let mut kept = without(bundle, |id| !matches!(id, field::CPU | field::FTRACE_CLOCK));
    match (event, compact) {
        (Some((time, bytes)), compact) if compact.as_ref().is_none_or(|(other, _)| *other < time) => {
            kept.extend_from_slice(bytes);
        }
        (_, Some((_, compact))) => append_message(&mut kept, field::COMPACT_SCHED, &compact),
        _ => return None,
    }
    let mut changed = without(packet, |id| id == packet_field::FTRACE_EVENTS);
    append_message(&mut changed, packet_field::FTRACE_EVENTS, &kept);
    Some((cpu(packet), changed))
}

/// Returns the first and the last time of the events of a packet, on the clock of their machine.
pub(crate) fn event_times(packet: &[u8]) -> Option<(i64, i64)> {
    let bundle = last(packet, packet_field::FTRACE_EVENTS)?;
    let mut bounds: Option<(i64, i64)> = None;
    let mut widen = |time: u64| {
        if let Ok(time) = i64::try_from(time) {
            bounds = Some(bounds.map_or((time, time), |(first, last)| (first.min(time), last.max(time))));
        }
    };
    for (found, _) in raw_fields(bundle.as_bytes()) {
        match found.id {
            field::EVENT => last(found.as_bytes(), TIMESTAMP).into_iter().for_each(|time| widen(time.as_u64())),
            field::COMPACT_SCHED => {
                for id in [SWITCHES[0], WAKINGS[0]] {
                    let column = raw_fields(found.as_bytes()).filter(|(field, _)| field.id == id);
                    let deltas = column.flat_map(|(field, _)| varints(&field));
                    let times = deltas.scan(0_u64, |time, delta| {
                        *time = time.wrapping_add(delta);
                        Some(*time)
                    });
                    times.for_each(&mut widen);
                }
            }
            _ => {}
        }
    }
    bounds
}

/// Returns the processor of the bundle in a packet.
pub(super) fn cpu(packet: &[u8]) -> u64 {
    let bundle = last(packet, packet_field::FTRACE_EVENTS);
    bundle.and_then(|bundle| last(bundle.as_bytes(), field::CPU)).map_or(0, |cpu| cpu.as_u64())
}

/// Returns the numbers of a field, packed or not.
pub(super) fn varints(field: &Field<'_>) -> Vec<u64> {
    let mut packed = field.as_bytes();
    if packed.is_empty() {
        return vec![field.as_u64()];
    }
    let mut numbers = Vec::new();
    while let Some((number, size)) = wire::decode_varint(packed) {
        numbers.push(number);
        packed = &packed[size..];
    }
    numbers
}

/// Returns the compact form with the rows in the interval; `None` if there are none.
fn cut_compact(compact: &[u8], is_inside: &impl Fn(u64) -> bool) -> Option<Vec<u8>> {
    let column = |id: u32| -> Vec<u64> {
        raw_fields(compact).filter(|(field, _)| field.id == id).flat_map(|(field, _)| varints(&field)).collect()
    };
    let is_column = |id: u32| SWITCHES.contains(&id) || WAKINGS.contains(&id);
    let mut kept = without(compact, is_column);
    let mut has_rows = false;
    for columns in [&SWITCHES[..], &WAKINGS[..]] {
        let mut time = 0_u64;
        let mut rows = Vec::new();
        for (row, delta) in column(columns[0]).into_iter().enumerate() {
            time = time.wrapping_add(delta);
            rows.extend(is_inside(time).then_some((row, time)));
        }
        if rows.is_empty() {
            continue;
        }
        has_rows = true;
        let mut before = 0;
        let times = rows.iter().map(|&(_, time)| {
            let delta = time.wrapping_sub(before);
            before = time;
            delta
        });
        let times: Vec<u64> = times.collect();
        append_to(&mut kept, |mut message| message.packed_varints(columns[0], times.iter().copied()));
        for &id in &columns[1..] {
            let values = column(id);
            let values: Vec<u64> = rows.iter().filter_map(|&(row, _)| values.get(row).copied()).collect();
            if !values.is_empty() {
                append_to(&mut kept, |mut message| message.packed_varints(id, values.iter().copied()));
            }
        }
    }
    has_rows.then_some(kept)
}

//! A trace of kernel events that describe their own tracks. Protobuf's text format cannot say it,
//! because the schema does not know the fields of such events.

use esatto_tests::wire::Proto;

/// Types of fields, as numbers of `FieldDescriptorProto.Type`.
const INT64: u64 = 3;
const UINT32: u64 = 13;
const STRING: u64 = 9;

/// Negative numbers, as they are encoded.
const MINUS_3: u64 = u64::MAX - 2;
const MINUS_7: u64 = u64::MAX - 6;

/// Describes an event: its number, and its fields from 1.
fn descriptor(id: u32, name: &str, fields: &[(&str, u64)]) -> Proto {
    let mut message = Proto::new().bytes(1, name);
    for (number, (name, kind)) in (1..).zip(fields) {
        message = message.message(2, &Proto::new().bytes(1, name).int(3, number).int(4, 1).int(5, *kind));
    }
    Proto::new().int(1, u64::from(id)).message(2, &message)
}

/// An event of the thread 11.
fn event(ts: u64, id: u32, fields: &Proto) -> Proto {
    Proto::new().int(1, ts).int(2, 11).message(id, fields)
}

/// Numbers of events that the schema does not know begin here.
const SLICE: u32 = 65_537;
const COUNTER: u32 = 65_538;
const OF_PROCESS: u32 = 65_539;
const OF_CPU: u32 = 65_540;
const OF_RING: u32 = 65_541;
const PLAIN: u32 = 65_542;
const TOO_MANY: u32 = 65_543;

/// Returns the trace.
pub(crate) fn trace() -> Vec<u8> {
    let slice = |phase: char, name: &str| Proto::new().int(1, u64::from(u32::from(phase))).bytes(2, name);
    let named = |value: u64, track: &str| Proto::new().int(1, value).bytes(2, track);
    let events = [
        event(1100, SLICE, &slice('B', "outer")),
        event(1110, SLICE, &slice('I', "mark")),
        event(1120, SLICE, &slice('E', "")),
        event(1130, SLICE, &slice('Q', "no such phase")),
        event(1135, SLICE, &Proto::new().bytes(2, "no phase")),
        event(1140, COUNTER, &Proto::new().int(1, 17)),
        event(1150, COUNTER, &Proto::new().int(1, MINUS_3)),
        event(1160, OF_PROCESS, &named(5, "queue").int(3, 10)),
        event(1170, OF_PROCESS, &named(6, "ring").int(3, 10)),
        event(1180, OF_PROCESS, &named(7, "queue").int(3, 20)),
        event(1185, OF_PROCESS, &named(7, "queue")),
        event(1190, OF_CPU, &slice('B', "on a processor").int(3, 1)),
        event(1195, OF_CPU, &slice('E', "").int(3, 1)),
        event(1200, OF_RING, &slice('B', "on a ring").int(3, MINUS_7)),
        event(1210, OF_RING, &slice('E', "").int(3, MINUS_7)),
        event(1220, PLAIN, &Proto::new().bytes(1, "text").int(2, 4)),
        event(1230, TOO_MANY, &Proto::new().int(1, 4)),
        event(1240, TOO_MANY + 1, &Proto::new().int(1, 4)),
    ];
    let clock = |id: u64| Proto::new().int(1, id).int(2, 1000);
    let many: Vec<(String, u64)> = (0..40).map(|number| (format!("field{number}"), INT64)).collect();
    let many: Vec<(&str, u64)> = many.iter().map(|(name, kind)| (&**name, *kind)).collect();
    let scoped = |scope: &'static str| [("track_event_type", UINT32), ("slice_name", STRING), (scope, INT64)];
    let descriptors = [
        descriptor(SLICE, "driver_slice", &[("track_event_type", UINT32), ("slice_name", STRING)]),
        descriptor(COUNTER, "driver_level", &[("counter_value", INT64)]),
        descriptor(
            OF_PROCESS,
            "driver_of_process",
            &[("counter_value", INT64), ("track_name", STRING), ("scope_tgid", INT64)],
        ),
        descriptor(OF_CPU, "driver_of_cpu", &scoped("scope_cpu")),
        descriptor(OF_RING, "driver_of_ring", &scoped("scope_ring")),
        descriptor(PLAIN, "driver_plain", &[("comment", STRING), ("number", UINT32)]),
        descriptor(TOO_MANY, "driver_too_many", &many),
    ];
    let mut bundle = Proto::new().int(1, 0);
    for event in &events {
        bundle = bundle.message(2, event);
    }
    for descriptor in &descriptors {
        bundle = bundle.message(11, descriptor);
    }
    let packets = [
        Proto::new().message(6, &Proto::new().message(1, &clock(6)).message(1, &clock(3))),
        Proto::new().int(8, 1000).int(10, 1).message(
            2,
            &Proto::new()
                .message(1, &Proto::new().int(1, 10).int(2, 1).bytes(3, "driver"))
                .message(2, &Proto::new().int(1, 11).int(3, 10)),
        ),
        Proto::new().int(10, 1).message(1, &bundle),
    ];
    packets.iter().flat_map(|packet| Proto::new().message(1, packet).0).collect()
}

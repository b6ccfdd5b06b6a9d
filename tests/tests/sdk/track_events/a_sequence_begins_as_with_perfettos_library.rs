//! The first packets of a sequence have the fields that those of Perfetto's own library have.
//! `tests/traces` holds a trace of it, by the C interface, which says less of tracks:
//! `docs/spec/track-event.md` §12.

use std::collections::BTreeSet;

use esatto::schema::TracePacketReader;
use esatto::schema::track_event::Type;
use esatto_protozero::Fields;
use esatto_tests::sdk::{Recorder, Trace};

use super::sequences;

esatto::categories! { static APP = "app"; }
esatto_tests::scenario!(record, check);

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = recorder.start(esatto::track_events(1024));
    {
        let here = 0x1000 as *const u8;
        let _slice = esatto::slice!(
            APP,
            "slice",
            number = 7_u64,
            int = -7,
            double = 0.5,
            text = "grün",
            flag = true,
            pointer = here
        );
        esatto::instant!(APP, "tick");
    }
    recorder.finish(session);
}

/// The numbers of all fields, with those of the messages that they are in. The fields that the
/// service adds are left out.
fn shape(packet: &[u8]) -> BTreeSet<Vec<u32>> {
    const MESSAGES: &[&[u32]] = &[
        &[59],
        &[59, 11],
        &[6],
        &[6, 1],
        &[60],
        &[60, 3],
        &[60, 4],
        &[11],
        &[11, 4],
        &[12],
        &[12, 1],
        &[12, 2],
        &[12, 3],
    ];
    /// Uid, sequence, mark of a loss, pid; and the fields above 100 of our own service.
    const OF_THE_SERVICE: &[u32] = &[3, 10, 42, 79];
    /// An addition of ours, on the track of the process (`docs/spec/track-event.md` §7).
    const START_TIMES: [u32; 2] = [60, 4001];
    fn add(found: &mut BTreeSet<Vec<u32>>, above: &[u32], message: &[u8]) {
        for field in Fields::new(message) {
            let path = [above, &[field.id]].concat();
            if above.is_empty() && (OF_THE_SERVICE.contains(&field.id) || field.id > 100) || path == START_TIMES {
                continue;
            }
            if MESSAGES.contains(&&path[..]) {
                add(found, &path, field.as_bytes());
            }
            found.insert(path);
        }
    }
    let mut found = BTreeSet::new();
    add(&mut found, &[], packet);
    found
}

/// The shapes of the first three packets, and of the first begin, instant and end.
fn shapes(packets: &[TracePacketReader<'_>]) -> Vec<BTreeSet<Vec<u32>>> {
    let first = |wanted: Type| {
        let is_wanted = |p: &&TracePacketReader<'_>| {
            p.track_event().is_some_and(|e| e.r#type() == Some(wanted) && e.track_uuid().is_none())
        };
        packets.iter().find(is_wanted).expect("is there")
    };
    let events = [Type::TYPE_SLICE_BEGIN, Type::TYPE_INSTANT, Type::TYPE_SLICE_END].map(first);
    packets[..3].iter().chain(events).map(|packet| shape(packet.as_bytes())).collect()
}

fn check(trace: &Trace) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/official-v56-track-events.pftrace");
    let theirs = std::fs::read(path).expect("is checked in");
    let theirs: Vec<_> = esatto_trace::packets(&theirs).collect::<Result<_, _>>().expect("whole packets");
    let theirs = shapes(&sequences(&theirs)[0]);
    let ours = trace.packets();
    let ours = shapes(&sequences(&ours)[0]);
    for (what, (ours, theirs)) in
        ["start", "thread", "process", "begin", "instant", "end"].iter().zip(ours.iter().zip(&theirs))
    {
        assert_eq!(ours, theirs, "{what}");
    }
}

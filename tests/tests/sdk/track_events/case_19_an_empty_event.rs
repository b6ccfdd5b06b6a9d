use esatto_tests::sdk::{Recorder, Trace};

use super::sequences;

esatto::categories! { static APP = "app"; }
esatto_tests::scenario!(record, check);

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    esatto::empty_event();
    let session = recorder.start(esatto::track_events(1024));
    esatto::empty_event();
    for _ in 0..3 {
        esatto::instant!(APP, "event");
        esatto::empty_event();
        esatto::empty_event();
    }
    recorder.finish(session);
}

fn check(trace: &Trace) {
    let [slices] = trace.query(["select name from slice"]);
    assert_eq!(slices.len(), 3);
    let packets = trace.packets();
    let sequences = sequences(&packets);
    let [packets] = &sequences[..] else { panic!("{} sequences", sequences.len()) };
    let empty = packets.iter().filter(|p| p.timestamp().is_none() && p.sequence_flags().is_none()).count();
    assert!(empty <= 3, "consecutive ones add none, and a service may leave them out");
}

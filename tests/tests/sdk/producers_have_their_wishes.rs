//! Settings of a producer in [`esatto::Builder`]: batched commits (row 29), direct patching, the
//! process's track.

use std::time::Duration;

use esatto_tests::sdk::{Recorder, Trace};

esatto::categories! {
    static APP = "app";
}

mod case_29_commits_may_be_batched {
    esatto_tests::scenario!(super::batched, super::check_batched);
}

fn batched(recorder: &Recorder) {
    // Longer than the test takes: only flushes and full memory send anything.
    let delay = Duration::from_secs(3600);
    let _tracing =
        recorder.builder().categories(CATEGORIES).batch_commits(delay).direct_patching().start().expect("it starts");
    recorder.wait_for_data_source("track_event");
    let session = recorder.start(esatto::track_events(4096));
    let long = "long ".repeat(5000);
    for number in 0..100_u32 {
        esatto::instant!(APP, "short", number = number);
    }
    // Over several chunks: lengths are filled in while the chunks wait.
    esatto::instant!(APP, "long", text = long.as_str());
    session.flush(None).wait().expect("flushes");
    recorder.save("trace", session.read().wait().expect("reads"));
    session.stop().expect("stops");
}

fn check_batched(trace: &Trace) {
    let [counts, long] = trace.query([
        "select count() as n from slice where name = 'short'",
        "select length(extract_arg(arg_set_id, 'debug.text')) as n from slice where name = 'long'",
    ]);
    assert_eq!((counts[0].int("n"), long[0].int("n")), (100, 25_000));
}

mod the_process_track_can_be_chosen {
    esatto_tests::scenario!(super::chosen, super::check_chosen);
}

const UUID: u64 = 0x1234_5678_9abc_def0;

fn chosen(recorder: &Recorder) {
    let _tracing = recorder.builder().categories(CATEGORIES).process_uuid(UUID).start().expect("it starts");
    recorder.wait_for_data_source("track_event");
    let session = recorder.start(esatto::track_events(1024));
    esatto::instant!(APP, "event");
    recorder.finish(session);
}

fn check_chosen(trace: &Trace) {
    let packets = trace.packets();
    let uuids: Vec<_> = packets
        .iter()
        .filter_map(|packet| {
            let descriptor = esatto::schema::TracePacketReader::new(&packet.bytes).track_descriptor()?;
            descriptor.process()?;
            descriptor.uuid()
        })
        .collect();
    assert!(!uuids.is_empty() && uuids.iter().all(|&uuid| uuid == UUID), "{uuids:x?}");
    let [events] = trace.query(["select name from slice"]);
    assert_eq!(events.len(), 1);
}

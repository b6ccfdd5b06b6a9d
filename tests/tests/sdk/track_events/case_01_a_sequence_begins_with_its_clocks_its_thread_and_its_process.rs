use esatto::Track;
use esatto_tests::sdk::{Recorder, Trace};

use super::{sequences, text};

esatto::categories! { static APP = "app"; }
esatto_tests::scenario!(record, check);

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = recorder.start(esatto::track_events(1024));
    esatto::instant!(APP, "first");
    std::thread::Builder::new().name("second".into()).spawn(|| esatto::instant!(APP, "first")).unwrap().join().unwrap();
    recorder.note("process", Track::of_process().uuid());
    recorder.finish(session);
}

fn check(trace: &Trace) {
    let [threads] = trace.query([
        "select thread.name as thread, process.pid = tid as is_main, process.name as process
        from slice join thread_track on track_id = thread_track.id join thread using (utid) join process using (upid)",
    ]);
    assert_eq!(threads.len(), 2);
    assert_eq!(threads[1].text("thread"), "second");
    assert!(threads.iter().all(|row| row.text("process").contains("sdk")));

    let process: u64 = trace.fact("process").parse().expect("a number");
    let packets = trace.packets();
    let sequences = sequences(&packets);
    assert_eq!(sequences.len(), 2, "one for each thread");
    let mut described = Vec::new();
    for packets in &sequences {
        let [first, thread, process_packet, event] = &packets[..4] else { panic!("{} packets", packets.len()) };
        assert_eq!(first.first_packet_on_sequence(), Some(true));
        assert_eq!(first.sequence_flags(), Some(1));
        assert_eq!(first.timestamp(), Some(0));
        let defaults = first.trace_packet_defaults().expect("defaults");
        assert_eq!(defaults.timestamp_clock_id(), Some(64));
        let thread_uuid = defaults.track_event_defaults().expect("of events").track_uuid().expect("a track");
        let clocks: Vec<_> = first
            .clock_snapshot()
            .expect("a snapshot")
            .clocks()
            .map(|c| (c.clock_id().unwrap(), c.is_incremental().unwrap_or(false), c.unit_multiplier_ns()))
            .collect();
        assert_eq!(clocks, [(6, false, None), (64, true, Some(1))]);

        assert_eq!((thread.timestamp(), thread.sequence_flags()), (Some(0), Some(2)));
        let descriptor = thread.track_descriptor().expect("of the thread");
        assert_eq!(descriptor.uuid(), Some(thread_uuid));
        assert_eq!(descriptor.parent_uuid(), Some(process));
        let of_thread = descriptor.thread().expect("is a thread");
        assert_eq!(thread_uuid, process ^ of_thread.tid().unwrap() as u64);

        assert_eq!((process_packet.timestamp(), process_packet.sequence_flags()), (Some(0), Some(2)));
        let descriptor = process_packet.track_descriptor().expect("of the process");
        assert_eq!((descriptor.uuid(), descriptor.parent_uuid()), (Some(process), None));
        let of_process = descriptor.process().expect("is a process");
        assert_eq!(of_process.process_name(), of_process.cmdline().next());
        described.push(descriptor.as_bytes().to_vec());

        assert_eq!(event.sequence_flags(), Some(2));
        let interned = event.interned_data().expect("names");
        assert_eq!(interned.event_names().map(|n| text(n.name())).collect::<Vec<_>>(), ["first"]);
        assert_eq!(interned.event_categories().map(|n| text(n.name())).collect::<Vec<_>>(), ["app"]);
    }
    assert_eq!(described[0], described[1], "the same process");
}

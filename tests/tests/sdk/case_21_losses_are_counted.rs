use esatto_tests::sdk::{Recorder, Scenario, Trace};

esatto::categories! {
    static APP = "app";
}

/// The only statistics that the trace processor may report.
const LOSSES: &[&str] = &["traced_buf_trace_writer_packet_loss", "traced_buf_sequence_packet_loss"];

esatto_tests::scenario!(Scenario::new(record).check(check).tolerating(LOSSES));

/// Far more than fits into the shared memory, and than anybody can take away meanwhile.
const BURST: u64 = 100_000;

fn record(recorder: &Recorder) {
    let _tracing = recorder.builder().shared_memory(16, 4).categories(CATEGORIES).start().expect("starts");
    recorder.wait_for_data_source("track_event");
    let session = recorder.start(esatto::track_events(32 * 1024));
    for n in 0..BURST {
        esatto::instant!(APP, "burst", n = n);
    }
    // Later packets find free memory when the service has taken the earlier ones.
    session.flush(None).wait().expect("is flushed");
    for n in 0..10_u32 {
        esatto::instant!(APP, "afterwards", n = n);
    }
    recorder.finish(session);
}

fn check(trace: &Trace) {
    let [bursts, afterwards, losses] = trace.query([
        "select count() as n, count(distinct extract_arg(arg_set_id, 'debug.n')) as ns from slice where name = 'burst'",
        "select extract_arg(arg_set_id, 'debug.n') as n from slice where name = 'afterwards' order by ts",
        "select sum(value) as n from stats where name = 'traced_buf_sequence_packet_loss'",
    ]);
    let recorded = bursts[0].int("n");
    assert_eq!(recorded, bursts[0].int("ns"), "each at most once");
    assert!((1..BURST as i64).contains(&recorded), "{recorded}: nothing was lost, or everything");
    assert!(losses[0].int("n") > 0, "{} events are missing, and nobody says so", BURST as i64 - recorded);
    let afterwards: Vec<i64> = afterwards.iter().map(|row| row.int("n")).collect();
    assert_eq!(afterwards, (0..10).collect::<Vec<_>>(), "what follows a loss has its names again");
}

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

/// No event follows the lost ones: the trace tells the loss nevertheless.
mod at_the_end {
    use super::*;

    fn burst() {
        for n in 0..BURST {
            esatto::instant!(APP, "burst", n = n);
        }
    }

    fn record(recorder: &Recorder, burst: impl FnOnce()) {
        let _tracing = recorder.builder().shared_memory(16, 4).categories(CATEGORIES).start().expect("starts");
        recorder.wait_for_data_source("track_event");
        let session = recorder.start(esatto::track_events(32 * 1024));
        burst();
        recorder.finish(session);
    }

    fn check(trace: &Trace) {
        let [bursts, losses] = trace.query([
            "select extract_arg(arg_set_id, 'debug.n') as n from slice where name = 'burst' order by n",
            "select sum(value) as n from stats where name = 'traced_buf_sequence_packet_loss'",
        ]);
        let bursts: Vec<i64> = bursts.iter().map(|row| row.int("n")).collect();
        let follows = bursts.iter().skip(1).copied().chain([BURST as i64]);
        let gaps = bursts.iter().zip(follows).filter(|(n, next)| **n + 1 != *next).count();
        assert!(gaps > 0, "nothing was lost");
        let told = losses[0].int("n");
        assert!(told >= gaps as i64, "{gaps} gaps, {told} are told; the last event is {:?}", bursts.last());
    }

    fn record_thread(recorder: &Recorder) {
        record(recorder, || std::thread::spawn(burst).join().expect("it ends"));
    }

    fn record_main(recorder: &Recorder) {
        record(recorder, burst);
    }

    mod of_a_thread {
        use super::*;
        esatto_tests::scenario!(Scenario::new(record_thread).check(check).tolerating(LOSSES));
    }

    mod of_the_recording {
        use super::*;
        esatto_tests::scenario!(Scenario::new(record_main).check(check).tolerating(LOSSES));
    }
}

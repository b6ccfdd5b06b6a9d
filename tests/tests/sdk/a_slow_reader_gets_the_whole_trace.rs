//! A trace is read chunk by chunk in bounded memory: a reader that is behind lets the service wait.

use esatto::SessionConfig;
use esatto::schema::data_source_config::BufferExhaustedPolicy;
use esatto_tests::sdk::{Backend, Recorder, Trace};
use esatto_tests::wait_until;

esatto::categories! {
    static APP = "app";
}
esatto_tests::scenario!(record, check);

const EVENTS: usize = 48 << 10;

/// Memory of the process in KiB.
fn memory_kb() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let config = SessionConfig::new().buffer_size_kb(64 * 1024).stall();
    let policy = config.trace_config().data_sources[0].config.as_ref().and_then(|c| c.buffer_exhausted_policy);
    assert_eq!(policy, Some(BufferExhaustedPolicy::BUFFER_EXHAUSTED_STALL_THEN_DROP));
    let session = esatto::Session::start(recorder.backend(), config).expect("starts");
    let kilobyte = "x".repeat(1000);
    for _ in 0..EVENTS {
        esatto::instant!(APP, "event", text = kilobyte.as_str());
    }
    session.stop_recording().wait().expect("stops");
    let before = memory_kb();
    let mut file = std::fs::File::create(recorder.trace()).expect("a file");
    let mut chunks = session.chunks();
    std::io::Write::write_all(&mut file, &chunks.next().expect("a chunk").expect("data")).expect("written");
    // Now the reader pauses. The service's data piles up until the service has to wait.
    let mut last = (0, 0);
    wait_until("nothing more arrives", || {
        std::thread::sleep(std::time::Duration::from_millis(50));
        let now = memory_kb();
        last = if now == last.0 { (now, last.1 + 1) } else { (now, 0) };
        (last.1 >= 4).then_some(())
    });
    let grown = memory_kb().saturating_sub(before);
    // In the process the service's own buffer may be read for the first time.
    let bound = if recorder.on() == Backend::InProcess { 32 << 10 } else { 24 << 10 };
    assert!(grown < bound, "{grown} KiB for a reader that does not read");
    chunks.write_to(file).expect("the rest");

    // A reader that leaves half-way does not block later calls.
    session.record(SessionConfig::new()).wait().expect("starts");
    for _ in 0..4096 {
        esatto::instant!(APP, "event", text = kilobyte.as_str());
    }
    session.stop_recording().wait().expect("stops");
    drop(session.chunks().next().expect("a chunk").expect("data"));
    session.record(SessionConfig::new()).wait().expect("starts");
    esatto::instant!(APP, "another");
    session.stop_recording().wait().expect("stops");
    assert!(session.read().wait().expect("reads").windows(7).any(|bytes| bytes == b"another"));
}

fn check(trace: &Trace) {
    let [events] = trace.query(["select count(*) as n from slice"]);
    assert_eq!(usize::try_from(events[0].int("n")), Ok(EVENTS));
}

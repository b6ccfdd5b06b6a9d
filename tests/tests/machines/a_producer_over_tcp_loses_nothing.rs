//! Without a relay, chunks come inside of messages, and the service takes the producer for a local
//! one.
//!
//! Only with our service: Perfetto's (v56) loses the last data that a producer sent over TCP before
//! it ended, even with Perfetto's SDK.

use crate::guest::{host, loopback_address};
use core::time::Duration;
use esatto_tests::workload::{self, CONFIG, Expected, Workload};
use esatto_tests::{Conversation, Harness, Implementation, Peer, Program, Skip, skip, tp, wait_until};

const LARGE: Workload = Workload { threads: 3, rounds: 400, pause_us: 100 };

const ENDLESS: Workload = Workload { threads: 3, rounds: 1 << 40, pause_us: 500 };

/// Emits a few events, and then nothing for longer than the recording takes.
const STUCK: Workload = Workload { threads: 1, rounds: 2, pause_us: 60_000_000 };

fn record(producer: Implementation, consumer: Implementation) {
    skip(|| {
        Conversation { producer, service: Implementation::Ours, consumer }.require()?;
        let harness = Harness::new();
        let address = loopback_address();
        let _service = host(&harness, Implementation::Ours, &address);
        let mut application = start(&harness, producer, LARGE, &address);
        let mut recording = harness.record(consumer, "trace", CONFIG);
        application.wait_ok();
        let trace = harness.stop(&mut recording);
        workload::assert_whole(&trace, &[Expected { pid: application.pid(), workload: LARGE, details: true }]);
        let machines = tp::rows(&trace, "select raw_id from machine");
        assert_eq!(machines.iter().map(|row| row.int("raw_id")).collect::<Vec<_>>(), [0]);
        Ok(())
    });
}

fn start(harness: &Harness, implementation: Implementation, workload: Workload, address: &str) -> Program {
    let mut command = harness.application_command(implementation, workload);
    harness.start("producer", command.env("PERFETTO_PRODUCER_SOCK_NAME", address))
}

#[test]
fn ours_recorded_by_ours() {
    record(Implementation::Ours, Implementation::Ours);
}

#[test]
fn ours_recorded_by_theirs() {
    record(Implementation::Ours, Implementation::Theirs);
}

#[test]
fn theirs_recorded_by_ours() {
    record(Implementation::Theirs, Implementation::Ours);
}

#[test]
fn theirs_recorded_by_theirs() {
    record(Implementation::Theirs, Implementation::Theirs);
}

/// A flush brings packets that threads have not committed yet: producers scrape themselves where
/// the service cannot.
fn scrape(producer: Implementation, service: Implementation) -> Result<(), Skip> {
    Conversation { producer, service, consumer: Implementation::Ours }.require()?;
    let harness = Harness::new();
    let address = loopback_address();
    let _service = host(&harness, service, &address);
    let mut recording = harness.record(Implementation::Ours, "trace", CONFIG);
    harness.wait_for_sessions(1);
    let application = start(&harness, producer, STUCK, &address);
    wait_until("the application sleeps inside of a slice", || sleeps(&application).then_some(()));
    let trace = recording.stop();
    let begun = "select s.name from slice s join thread_track k on s.track_id = k.id order by s.id";
    let names: Vec<String> = tp::rows(&trace, begun).iter().map(|row| row.text("name").to_owned()).collect();
    assert!(names.starts_with(&["frame".to_owned(), "draw".to_owned()]), "{names:?}");
    Ok(())
}

/// True if the emitting thread sleeps, as the kernel reports: it has emitted.
fn sleeps(application: &Program) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", application.pid())).expect("it runs");
    let text = |path| std::fs::read_to_string(path).unwrap_or_default();
    tasks
        .filter_map(Result::ok)
        .map(|task| task.path())
        .any(|task| text(task.join("comm")).trim() == "worker-0" && text(task.join("wchan")).contains("nanosleep"))
}

#[test]
fn ours_is_scraped() {
    skip(|| scrape(Implementation::Ours, Implementation::Ours));
}

#[test]
fn theirs_is_scraped() {
    skip(|| scrape(Implementation::Theirs, Implementation::Ours));
}

#[test]
fn ours_is_scraped_for_their_service() {
    skip(|| {
        Peer::Official.require()?;
        scrape(Implementation::Ours, Implementation::Theirs)
    });
}

/// It has an idea of the size of memory that it has not given, and drops chunks beyond.
#[test]
fn ours_is_recorded_to_the_end_by_their_service() {
    skip(|| {
        let (producer, consumer) = (Implementation::Ours, Implementation::Ours);
        Conversation { producer, service: Implementation::Theirs, consumer }.require()?;
        let harness = Harness::new();
        let address = loopback_address();
        let _service = host(&harness, Implementation::Theirs, &address);
        let _application = start(&harness, producer, ENDLESS, &address);
        let mut recording = harness.record(consumer, "trace", CONFIG);
        harness.wait_for_sessions(1);
        std::thread::sleep(Duration::from_secs(4));
        let trace = recording.stop();
        // The 64 chunks of 4 KiB that it would take have room for some 6000.
        let number = tp::rows(&trace, "select count(*) as number from slice")[0].int("number");
        assert!(number > 8000, "{number} slices");
        Ok(())
    });
}

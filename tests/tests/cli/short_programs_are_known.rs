//! Programs that live for some milliseconds come and go between two questions of `esatto record`.
//! It knows them nevertheless, and takes "not seen" for "not there" in no line.

use esatto_tests::raw::RawProducer;
use esatto_tests::workload::CONFIG_WITHOUT_DEBUG;
use esatto_tests::{Harness, Implementation, Program, Skip, esatto_bin};

const EMPTY: i32 = 3;

/// Starts a recording of the running service that ends by itself.
fn record(harness: &Harness, args: &[&str]) -> Program {
    let mut command = harness.command(esatto_bin());
    let record = harness.start("record", command.args(["record", "-o", "trace", "-t", "2s"]).args(args));
    harness.wait_for_sessions(1);
    record
}

fn their_events_are_no_unknown_source(service: Implementation) -> Result<(), Skip> {
    let harness = Harness::new();
    let _service = harness.service(service);
    harness.write("my.cfg", CONFIG_WITHOUT_DEBUG);
    let mut record = record(&harness, &["-c", "my.cfg"]);
    let mut command = harness.command(esatto_tests::beside_this_test("esatto-producer"));
    command.args(["1", "10", "100", "60", "0"]).env("ESATTO_WAIT_MS", "60000");
    harness.start("producer", &mut command).wait_ok();
    record.wait_ok();
    let log = record.log();
    assert!(!log.contains("No program was seen") && log.contains("Open it in"), "{log}");
    Ok(())
}
esatto_tests::for_each_service!(their_events_are_no_unknown_source);

#[test]
fn one_that_ended_before_it_was_recorded_is_named_with_advice() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let mut record = record(&harness, &[]);
    for _ in 0..2 {
        RawProducer::connect(&harness, "short-lived").offer("track_event");
    }
    assert_eq!(record.wait().code(), Some(EMPTY));
    let log = record.log();
    for part in ["the programs have ended", "short-lived", "ESATTO_WAIT_MS=5000", "wait_until_enabled"] {
        assert!(log.contains(part), "'{part}' is not in\n{log}");
    }
    // Other consumers see only what is connected.
    assert!(harness.state().producers.is_empty());
}

#[test]
fn a_mistyped_data_source_is_named_even_if_nothing_is_offered() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    harness.write("my.cfg", "buffers { size_kb: 64 } data_sources { config { name: \"track_evnt\" } }");
    let want = "no program offers the data source \"track_evnt\"; did you mean \"track_event\"?";
    let mut nothing = record(&harness, &["-c", "my.cfg"]);
    assert_eq!(nothing.wait().code(), Some(EMPTY));
    assert_eq!(nothing.log().matches(want).count(), 2, "while there is time, and at the end: {}", nothing.log());
    let mut silent = record(&harness, &["-c", "my.cfg"]);
    drop(RawProducer::connect(&harness, "short-lived"));
    assert_eq!(silent.wait().code(), Some(EMPTY));
    assert!(silent.log().contains(want) && silent.log().contains("short-lived connected, but"), "{}", silent.log());
    let mut gone = record(&harness, &["-c", "my.cfg"]);
    RawProducer::connect(&harness, "short-lived").offer("track_event");
    assert_eq!(gone.wait().code(), Some(EMPTY));
    assert!(gone.log().contains(want) && gone.log().contains("Known are: track_event"), "{}", gone.log());
}

#[test]
fn a_missing_start_is_told_in_one_line() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    harness.write("my.cfg", CONFIG_WITHOUT_DEBUG);
    let mut record = record(&harness, &["-c", "my.cfg"]);
    let mut command = harness.command(esatto_tests::beside_this_test("esatto-producer"));
    // Rounds of 5 ms; it does not wait for a recording.
    harness.start("producer", command.args(["1", "100", "5000", "60", "0"])).wait_ok();
    record.wait_ok();
    let line = record.log().lines().find(|line| line.contains("ms of ")).map(str::to_owned);
    let line = line.unwrap_or_else(|| panic!("no such line in {}", record.log()));
    assert!(line.starts_with("The first ") && line.contains("ESATTO_WAIT_MS=5000"), "{line}");
}

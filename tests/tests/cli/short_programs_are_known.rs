//! Programs that live for some milliseconds come and go between two questions of `esatto record`.
//! It knows them nevertheless, and takes "not seen" for "not there" in no line.

use esatto_protozero::Owned as _;
use esatto_schema::{DataSourceDescriptor, TrackEventCategory, TrackEventDescriptor};
use esatto_tests::raw::RawProducer;
use esatto_tests::wire::Proto;
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
    for part in [
        "the programs have ended",
        "no category of events: short-lived; ",
        "ESATTO_REGISTER",
        "ESATTO_WAIT_MS=5000",
        "wait_until_enabled",
    ] {
        assert!(log.contains(part), "'{part}' is not in\n{log}");
    }
    // Other consumers see only what is connected.
    assert!(harness.state().producers.is_empty());
}

#[test]
fn beside_one_that_the_config_leaves_out() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let offer = |name: &str, category: &str| {
        let category = TrackEventCategory { name: Some(category.into()), ..TrackEventCategory::default() };
        let events = TrackEventDescriptor { available_categories: vec![category], ..TrackEventDescriptor::default() };
        let descriptor = DataSourceDescriptor {
            name: Some("track_event".into()),
            no_flush: Some(true),
            track_event_descriptor: Some(events),
            ..DataSourceDescriptor::default()
        };
        let mut program = RawProducer::connect(&harness, name);
        let offered = Proto::new().bytes(1, descriptor.encode());
        assert!(program.call("RegisterDataSource", &offered).success);
        program
    };
    let idle = offer("idle", "app");
    let events = "track_event_config { disabled_categories: \"*\" enabled_categories: \"work\" }";
    let config = format!("data_sources {{ config {{ name: \"track_event\" {events} }} }}");
    harness.write("my.cfg", format!("buffers {{ size_kb: 64 }} {config}"));
    let mut record = record(&harness, &["-c", "my.cfg"]);
    drop(offer("crunch", "work"));
    assert_eq!(record.wait().code(), Some(EMPTY));
    drop(idle);
    let log = record.log();
    let want = "the programs have ended, and the recording reached them too late or they had no event: crunch;";
    assert!(log.contains(want) && log.contains("ESATTO_WAIT_MS=5000"), "{log}");
}

#[test]
fn a_mistyped_data_source_is_named_even_if_nothing_is_offered() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    harness.write("my.cfg", "buffers { size_kb: 64 } data_sources { config { name: \"track_evnt\" } }");
    let want = "no program offers the data source \"track_evnt\"; did you mean \"track_event\"?";
    let mut nothing = record(&harness, &["-c", "my.cfg"]);
    assert_eq!(nothing.wait().code(), Some(EMPTY));
    let log = nothing.log();
    assert_eq!(log.matches(want).count(), 1, "while there is time: {log}");
    assert!(log.contains("so none offers track_evnt (did you mean track_event?)"), "at the end: {log}");
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
fn those_that_were_missed_are_named_beside_a_recorded_one() {
    let harness = Harness::new();
    let mut service = harness.service(Implementation::Ours);
    let mut record = record(&harness, &[]);
    let mut command = harness.command(esatto_tests::beside_this_test("esatto-producer"));
    harness.start("producer", command.args(["1", "10", "100"]).env("ESATTO_WAIT_MS", "60000")).wait_ok();
    // It says that it will tell its start, and does not live that long.
    let descriptor = Proto::new().bytes(1, "track_event").int(3, 1);
    RawProducer::connect(&harness, "unreached").register(&descriptor);
    drop(RawProducer::connect(&harness, "early"));
    RawProducer::connect(&harness, "silent").offer("track_event");
    record.wait_ok();
    let (log, pid) = (record.log(), std::process::id());
    for line in [
        format!(
            "2 programs ended before the recording reached them: early (pid {pid}), unreached (pid {pid}). To record"
        ),
        format!(
            "1 program ended without an event in the recording: it reached it too late, or it had none: silent (pid \
             {pid}).\n"
        ),
    ] {
        assert!(log.contains(&line), "'{line}' is not in\n{log}");
    }
    let info = harness.command(esatto_bin()).args(["info", "trace"]).output().expect("it runs");
    let info = String::from_utf8_lossy(&info.stdout);
    for program in ["program early", "program unreached"] {
        let row = info.lines().find(|line| line.trim_start().starts_with(program));
        let row = row.unwrap_or_else(|| panic!("no '{program}' in {info}"));
        assert!(row.ends_with("it ended before the recording reached it"), "{row}");
    }
    service.wait_for_log("the service lost nothing; 2 producers ended before the session reached them");
}

#[test]
fn a_missing_start_is_told_in_one_line() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    harness.write("my.cfg", CONFIG_WITHOUT_DEBUG);
    let mut record = record(&harness, &["-c", "my.cfg"]);
    let mut command = harness.command(esatto_tests::beside_this_test("esatto-producer"));
    // Rounds of 5 ms; it does not wait for a recording.
    command.args(["1", "100", "5000", "60", "0"]);
    let mut programs = [(); 2].map(|()| harness.start("producer", &mut command));
    programs.iter_mut().for_each(Program::wait_ok);
    record.wait_ok();
    let line = record.log().lines().find(|line| line.contains("ms of ")).map(str::to_owned);
    let line = line.unwrap_or_else(|| panic!("no such line in {}", record.log()));
    let others = ", and less of 1 other program: ";
    assert!(line.starts_with("The first ") && line.contains(others) && line.contains("ESATTO_WAIT_MS=5000"), "{line}");
}

//! The service counts discarded chunks and patches since it started, for all sessions. `record` and
//! `info` report only the patches, and only those of their own session.

use esatto_tests::raw::{self, RawChunk, RawConsumer, RawProducer, packet};
use esatto_tests::wire::{self, Proto};
use esatto_tests::workload::{CONFIG as EVENTS, Workload};
use esatto_tests::{Harness, Implementation, Peer, Recording, Signal, Skip, esatto_bin, wait_until};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const CONFIG: &str = r#"
buffers { size_kb: 256 }
data_sources { config { name: "raw" } }
write_into_file: true
file_write_period_ms: 60000
"#;

const WARNING: &str = "chunks or packets were lost";

/// Numbers of the fields of TraceStats.
const CHUNKS_DISCARDED: u32 = 8;
const PATCHES_DISCARDED: u32 = 9;

/// Lets the service discard a chunk and a patch: no buffer has this number.
fn lose(producer: &mut RawProducer) {
    producer.commit_chunk(4000, &RawChunk::new(1, 1, &[packet(1, "lost")]));
    let patch = raw::patched(4000, 1, 1, &[(0, b"four")], false);
    assert!(producer.commit(&Proto::new().message(2, &patch)).success);
}

/// Loses data in an earlier session, then records another one. Returns the output of `record`, and
/// the losses that `info` reports.
fn record(during: impl FnOnce(&mut RawProducer)) -> (String, Vec<String>) {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let mut producer = RawProducer::connect(&harness, "raw");
    producer.offer("raw");
    let mut earlier = RawConsumer::connect(&harness);
    earlier.enable(&raw::config(64, &["raw"]));
    let _ = producer.await_start();
    lose(&mut producer);
    let stats = earlier.stats();
    assert_eq!([CHUNKS_DISCARDED, PATCHES_DISCARDED].map(|field| wire::int(&stats, field)), [1, 1]);
    drop(earlier);

    // A packet with a timestamp.
    let old = [0x0a, 2, 0x40, 7];
    let trace = harness.write("trace", old);
    let mut recording = harness.record(Implementation::Ours, "trace", CONFIG);
    let started = producer.await_start();
    // `record` replaces the file when it has learnt the first counts of its session.
    wait_until("the recording has begun", || (std::fs::read(&trace).ok()? != old).then_some(()));
    producer.commit_chunk(started.buffer, &RawChunk::new(2, 0, &[packet(0, "kept")]));
    during(&mut producer);
    recording.program.signal(Signal::INT);
    let flush = producer.await_flush();
    producer.acknowledge(flush);
    let _ = recording.program.wait();
    (recording.program.log(), losses(&recording))
}

fn losses(recording: &Recording) -> Vec<String> {
    let info = info(recording.trace());
    assert_eq!(info["stats"]["patches_discarded"].as_u64().map(|count| count > 0), Some(true), "{info}");
    let losses = info["losses"].as_array().expect("a list");
    losses.iter().map(|loss| loss["what"].as_str().expect("a text").to_owned()).collect()
}

fn info(trace: &Path) -> Value {
    let info = Command::new(esatto_bin()).arg("info").arg(trace).arg("--json").output().expect("it runs");
    serde_json::from_slice(&info.stdout).expect("JSON")
}

#[test]
fn by_record_and_info() {
    let (log, losses) = record(|_| ());
    assert!(log.contains("Wrote") && !log.contains(WARNING), "{log}");
    assert_eq!(losses, [""; 0]);
}

#[test]
fn but_those_of_this_session_are() {
    let (log, _) = record(lose);
    // The chunk was for no buffer of this session.
    assert!(log.contains(&format!("1 {WARNING}")), "{log}");
}

/// Records a long-running program on Perfetto's SDK twice. It returns the last chunks of the first
/// recording during the second one.
fn chunks_of_the_recording_before(service: Implementation) -> Result<(), Skip> {
    Peer::Producer.require()?;
    let harness = Harness::new();
    let _service = harness.service(service);
    let _program =
        harness.application(Implementation::Theirs, Workload { threads: 2, rounds: 100_000, pause_us: 1000 });
    harness.wait_for_data_source("track_event");
    harness.write("my.cfg", format!("{EVENTS}duration_ms: 700\n"));
    let record = |name: &str| {
        let mut command = harness.command(esatto_bin());
        let mut record = harness.start(name, command.args(["record", "-c", "my.cfg", "-o", name]));
        record.wait_ok();
        let info = info(&harness.path(name));
        let number = info["stats"]["chunks_discarded"].as_u64().expect("a number");
        let losses = info["losses"].as_array().expect("a list").len();
        (number, losses, record.log())
    };
    assert_eq!(record("first").0, 0);
    let (number, losses, log) = record("second");
    assert!(number > 0, "both services count them");
    assert!(losses == 0 && log.contains("Wrote") && !log.contains(WARNING), "{log}");
    Ok(())
}
esatto_tests::for_each_service!(chunks_of_the_recording_before);

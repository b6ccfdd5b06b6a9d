//! Our service compresses the trace for a consumer or a file; other readers find everything in it.

use std::path::Path;

use esatto_tests::workload::{self, Expected, Workload};
use esatto_tests::{Harness, Implementation, Peer, Skip, esatto_bin, skip, wire};

const WORKLOAD: Workload = Workload { threads: 2, rounds: 300, pause_us: 100 };
const CONFIG: &str = r#"
buffers { size_kb: 16384 }
data_sources { config {
  name: "track_event"
  track_event_config { enabled_categories: "rendering" enabled_categories: "debug" }
} }
"#;
const DEFLATE: &str = "compression_type: COMPRESSION_TYPE_DEFLATE";
const ZSTD: &str = "compression { deflate {} zstd { level: 5 } }";
const INTO_FILE: &str = "write_into_file: true file_write_period_ms: 100 flush_period_ms: 100";
const COMPRESSED_PACKETS: u32 = 50;
const ZSTD_COMPRESSED_PACKETS: u32 = 133;

#[test]
fn deflate() {
    skip(|| is_read_by_their_trace_processor(Implementation::Ours, ""));
}

#[test]
fn deflate_recorded_by_theirs() {
    skip(|| is_read_by_their_trace_processor(Implementation::Theirs, ""));
}

#[test]
fn deflate_into_a_file_of_theirs() {
    skip(|| is_read_by_their_trace_processor(Implementation::Theirs, INTO_FILE));
}

fn is_read_by_their_trace_processor(consumer: Implementation, more: &str) -> Result<(), Skip> {
    Peer::TraceProcessor.require()?;
    if consumer == Implementation::Theirs {
        Peer::Official.require()?;
    }
    let harness = Harness::new();
    let (trace, pid) = record(&harness, consumer, &format!("{DEFLATE} {more}"));
    only_field(&trace, COMPRESSED_PACKETS);
    workload::assert_whole(&harness.path("trace"), &[Expected { pid, workload: WORKLOAD, details: true }]);
    Ok(())
}

#[test]
fn zstd() {
    skip(|| is_whole_when_decompressed(""));
}

#[test]
fn zstd_into_a_file() {
    skip(|| is_whole_when_decompressed(INTO_FILE));
}

/// The reference library decompresses it; a trace processor that does it itself is younger than the
/// one here.
fn is_whole_when_decompressed(more: &str) -> Result<(), Skip> {
    Peer::TraceProcessor.require()?;
    let harness = Harness::new();
    let (trace, pid) = record(&harness, Implementation::Ours, &format!("{ZSTD} {more}"));
    let decompressed: Vec<u8> = only_field(&trace, ZSTD_COMPRESSED_PACKETS)
        .iter()
        .flat_map(|frame| zstd::stream::decode_all(*frame).expect("a zstd frame"))
        .collect();
    assert!(decompressed.len() > 3 * trace.len(), "{} bytes in {}", decompressed.len(), trace.len());
    let info = harness.command(esatto_bin()).arg("info").arg(harness.path("trace")).output().expect("esatto info");
    assert!(info.status.success(), "{}", String::from_utf8_lossy(&info.stderr));
    let path = harness.write("decompressed", decompressed);
    workload::assert_whole(&path, &[Expected { pid, workload: WORKLOAD, details: true }]);
    Ok(())
}

fn record(harness: &Harness, consumer: Implementation, more: &str) -> (Vec<u8>, u32) {
    let _service = harness.service(Implementation::Ours);
    let mut application = harness.application(Implementation::Ours, WORKLOAD);
    let mut recording = harness.record(consumer, "trace", &format!("{CONFIG}{more}\n"));
    application.wait_ok();
    let trace: &Path = &harness.stop(&mut recording);
    (std::fs::read(trace).expect("a trace"), application.pid())
}

/// The contents of packets that have nothing else.
fn only_field(trace: &[u8], field: u32) -> Vec<&[u8]> {
    let packets = wire::all(trace, 1).into_iter();
    let contents: Vec<&[u8]> = packets.map(|packet| wire::last(packet, field).expect("a compressed packet")).collect();
    assert!(!contents.is_empty() && contents.len() < 100, "{} packets", contents.len());
    contents
}
